"""The golden corpus as files: statements with annotations, and the rows each is known to give.

A ``.sql`` file holds statements that end with ``;`` at the end of a line. Up to the line
``--@ queries`` they make the file's tables, once; what follows is run once in every mode, and each
statement's rows stand in the ``.out`` file beside it, sorted. Annotations stand before a statement:

    --! files <= 2 of 20      with the index at most 2 files are read, without it 20 (also: = )
    --! modes on strict       the statement is run in these modes only (EXPLAIN SIEVE, say)

Every file is run without the index and with it in strict mode; without the index only if that is
not known to pass (``proven``). Those of ``EVERY_MODE`` are also run with the settings as they come
and through the Thrift server, those of ``OVER_THRIFT`` through the latter; Spark compiles the
queries of both, and interprets those of the others. ``--every 6`` leaves out five of six queries.

``{{3..9 step 2}}`` in a statement stands for ``3, 5, 7, 9``: long lists would bury the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MODES = ("off", "on", "strict", "thrift")
"""How a statement can be run."""

EVERY_MODE = {"statements"}
"""The files that are run in every mode, not in ``off`` and ``strict`` alone."""
OVER_THRIFT = {"structs", "timestamps"}
"""The files that are also run through the Thrift server, where their values have other forms."""

_QUERIES = "--@ queries"
_SERIES = re.compile(r"\{\{(-?\d+)\.\.(-?\d+)(?: step (\d+))?\}\}")
_ROWS = re.compile(r"\s*(SELECT|WITH|VALUES|TABLE)\b", re.IGNORECASE)
_FILES = re.compile(r"files (<=|=) (\d+) of (\d+)")


@dataclass(frozen=True, slots=True)
class Files:
    """How many files a query may read with the index, and how many it reads without."""

    exact: bool
    most: int
    total: int

    def allow(self, read: int) -> bool:
        """Whether a scan with the index may have read so many."""
        return read == self.most if self.exact else read <= self.most


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a file, with what its annotations ask."""

    text: str
    files: Files | None = None
    modes: tuple[str, ...] = MODES

    @property
    def only_reads(self) -> bool:
        """Whether statements after it give the same without it."""
        return _ROWS.match(self.text) is not None

    @property
    def sql(self) -> str:
        """What is run."""
        return _SERIES.sub(_series, self.text)


@dataclass(frozen=True, slots=True)
class Script:
    """A ``.sql`` file: what makes its tables, and what is asked of them."""

    path: Path
    setup: tuple[Statement, ...]
    queries: tuple[Statement, ...]

    @property
    def name(self) -> str:
        """The theme."""
        return self.path.stem

    @property
    def expected(self) -> Path:
        """Where its rows stand."""
        return self.path.with_suffix(".out")


def read_script(path: Path) -> Script:
    """Parse a ``.sql`` file. Raises ValueError for an annotation that is none."""
    setup, mark, queries = path.read_text(encoding="utf-8").partition(f"{_QUERIES}\n")
    if not mark:
        raise ValueError(f"{path.name} has no line {_QUERIES}")
    return Script(path, tuple(_statements(setup)), tuple(_statements(queries)))


def _statements(text: str) -> Iterator[Statement]:
    lines: list[str] = []
    notes: list[str] = []
    for line in text.splitlines():
        if line.startswith("--!"):
            notes.append(line.removeprefix("--!").strip())
        elif not lines and (not line.strip() or line.startswith("--")):
            continue
        else:
            lines.append(line)
            if line.rstrip().endswith(";"):
                yield _annotated("\n".join(lines).rstrip().removesuffix(";"), notes)
                lines, notes = [], []
    if lines or notes:
        raise ValueError(f"a statement has no end: {lines or notes}")


def _annotated(text: str, notes: Sequence[str]) -> Statement:
    files, modes = None, MODES
    for note in notes:
        if match := _FILES.fullmatch(note):
            files = Files(match[1] == "=", int(match[2]), int(match[3]))
        elif note.startswith("modes ") and set(note.split()[1:]) <= set(MODES):
            modes = tuple(note.split()[1:])
        else:
            raise ValueError(f"not an annotation: --! {note}")
    return Statement(text, files, modes)


def _series(match: re.Match[str]) -> str:
    first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
    return ", ".join(map(str, range(first, last + 1, step)))


def render(statement: Statement, rows: Sequence[str]) -> str:
    """A statement's entry in an ``.out`` file."""
    head = "\n".join(f"> {line}" for line in statement.text.splitlines())
    return "\n".join([head, *rows, ""]) + "\n"


def read_expected(path: Path) -> list[str]:
    """The entries of an ``.out`` file, in order."""
    text = path.read_text(encoding="utf-8")
    return [entry.rstrip("\n") + "\n\n" for entry in re.split(r"(?m)^\n(?=> )", text)]
