"""The answer of a statement: a sequence of records that terminals and notebooks show as a table.

A terminal shows plain text. A notebook shows HTML (``_repr_html_``), in which texts are escaped and
bars represent shares. All styles are inline, so the HTML loads no other file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from html import escape
from typing import Any, Final, Generic, TypeVar, overload

Record = TypeVar("Record")

MOST_ROWS: Final = 200
"""The maximum number of rows to show. The answer of CHECK can be longer, because it has one row for
each file."""

_EXPECTED: Final = re.compile(
    r"([\d.]+) of (\d+) expected; at least [\d.]+, by min and max ([\d.]+)"
)
"""Matches three file counts in an answer of DESCRIBE: files read with the index, all files, and
files read with min/max statistics."""

_CELL: Final = "padding:2px 8px;text-align:{align};vertical-align:top;white-space:pre-wrap"
_TRACK: Final = "position:relative;height:6px;min-width:80px;background:rgba(128,128,128,.2)"
_BAR: Final = "position:absolute;left:0;top:0;height:6px;width:{width:.1f}%;background:{colour}"
_DARK, _PALE = "#2c6fad", "#a9c8e8"


@dataclass(frozen=True, slots=True, repr=False)
class Answer(Sequence[Record], Generic[Record]):
    """The rows of a statement's answer.

    Attributes:
        record: the class of the rows.
        rows: the rows, in the order in which the statement returned them.
    """

    record: type[Record]
    rows: Sequence[Record]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(field.name for field in fields(self.record))  # type: ignore[arg-type]

    @overload
    def __getitem__(self, place: int) -> Record: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Record]: ...
    def __getitem__(self, place: int | slice) -> Record | Sequence[Record]:
        return self.rows[place]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.rows)

    def __repr__(self) -> str:
        """Returns the answer as plain text: a line of column names, then one line per row."""
        lines = [list(self.columns), *([on_a_line(t) for t in row] for row in self._texts())]
        widths = [max(len(line[k]) for line in lines) for k in range(len(self.columns))]
        rows = ("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in lines)
        return "\n".join([*(row.rstrip() for row in rows), *self._rest()])

    def _repr_html_(self) -> str:
        """The answer as an HTML table; notebooks call this method."""
        head = "".join(_cell("th", escape(name), number=False) for name in self.columns)
        body = "".join(
            f"<tr>{''.join(self._cells(row, texts))}</tr>"
            for row, texts in zip(self.rows, self._texts(), strict=False)
        )
        rest = "".join(f"<p>{escape(line)}</p>" for line in self._rest())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"

    def _texts(self) -> list[list[str]]:
        return [[_text(getattr(row, c)) for c in self.columns] for row in self.rows[:MOST_ROWS]]

    def _cells(self, row: Any, texts: list[str]) -> Iterator[str]:
        for column, text in zip(self.columns, texts, strict=True):
            value = getattr(row, column)
            number = isinstance(value, int | float)
            yield _cell("td", escape(text) + _bars(row, column, value), number=number)

    def _rest(self) -> list[str]:
        more = len(self.rows) - MOST_ROWS
        return [f"and {more:,} more rows"] if more > 0 else []


def on_a_line(text: str) -> str:
    """Escapes control characters such as line breaks, which would change a terminal's output."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _cell(tag: str, content: str, *, number: bool) -> str:
    style = _CELL.format(align="right" if number else "left")
    return f'<{tag} style="{style}">{content}</{tag}>'


def _bars(row: Any, column: str, value: object) -> str:
    """Returns a cell's bars as HTML: a dark bar for the index, a pale bar behind it for min/max."""
    if isinstance(value, str) and (found := _EXPECTED.match(value)):
        read, files, minmax = map(float, found.groups())
        return _track([(minmax / files, _PALE), (read / files, _DARK)]) if files else ""
    whole = getattr(row, row.wholes.get(column, ""), None)
    return _track([(value / whole, _DARK)]) if isinstance(value, int | float) and whole else ""


def _track(bars: list[tuple[float, str]]) -> str:
    drawn = "".join(
        f'<div style="{_BAR.format(width=100 * min(max(share, 0), 1), colour=colour)}"></div>'
        for share, colour in bars
    )
    return f'<div style="{_TRACK}">{drawn}</div>'


def _text(value: object) -> str:
    """Returns a value as text; the text of NULL is empty."""
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
