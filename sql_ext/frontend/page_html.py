"""The HTML of the page "Sieve" in Spark's web UI, in the style of Spark's own pages.

This module escapes all text, because users choose the names of tables, columns and indexes. The
page shows neither keys nor constants.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Any, Final
from urllib.parse import quote

from sieve import index_key
from sieve.metadata.manifest import Manifest
from sieve.reader.reason import labelled
from sieve.workload.spelling import create_statement
from sieve.workload.suggest import Suggestion, described
from sql_ext.statements.describe import index_bytes

_TABLE: Final = "table table-bordered table-sm table-striped sortable"
_OF_FILES: Final = (
    "new-file", "unsettled-file", "changed-file", "unproven-file", "whole-file"
)  # fmt: skip
"""Reasons for reading one file of a scan, although the scan uses an index."""
_UNITS: Final = ("bytes", "KB", "MB", "GB", "TB")


@dataclass(frozen=True, slots=True)
class ShownIndex:
    """An index as the page shows it.

    Attributes:
        table: the table's database and name.
        state: state as in SHOW. The page does not compare the index with the table's files.
        manifest: manifest of the current version. None if the version is unreadable, or if the page
            did not read it in time.
        coverage: share of the index's files that the build read completely. None if the page did
            not read the file list.
    """

    table: str
    name: str
    state: str
    manifest: Manifest | None = None
    coverage: float | None = None


@dataclass(frozen=True, slots=True)
class WorthHaving:
    """The indexes that the page suggests to create.

    Attributes:
        found: tested indexes with which this driver's scans would skip the most bytes. The best
            index is the first.
        untested: number of columns that scans filter by and ADVISE has not tested.
        days: number of days that the record of scans spans.
    """

    found: Sequence[Suggestion] = ()
    untested: int = 0
    days: float = 1.0


def page(
    indexes: Sequence[ShownIndex],
    scans: Sequence[Mapping[str, Any]],
    advice: WorthHaving,
) -> str:
    """The page's content as HTML.

    Args:
        indexes: indexes of the tables that the driver knows.
        scans: the driver's records of scans, the latest scan first.
        advice: indexes that the page suggests.
    """
    parts = [_skipped(scans), *_indexes(indexes), *_advice(advice), *_scans(scans)]
    return "\n".join(parts)


def _skipped(scans: Sequence[Mapping[str, Any]]) -> str:
    if not scans:
        return "<p>No scan of a table with an index yet.</p>"
    files, skipped = (sum(scan[key] for scan in scans) for key in ("files", "files_skipped"))
    saved = sum(scan["bytes_skipped"] for scan in scans)
    return (
        f"<p>The latest {len(scans):,} scans of tables with an index skipped {skipped:,} of "
        f"{files:,} files ({_bytes(saved)}).</p>"
    )


def _indexes(indexes: Sequence[ShownIndex]) -> Iterator[str]:
    yield "<h4>Indexes of tables that this driver has used</h4>"
    head = (
        "table", "index", "column", "state", "version", "files", "coverage", "bytes",
        "files read for a key",
    )  # fmt: skip
    yield _table(head, (_index(one) for one in indexes))


def _index(shown: ShownIndex) -> list[str]:
    own = [_name(shown.table), _name(shown.name)]
    manifest = shown.manifest
    if manifest is None:
        return [*own, "", escape(shown.state), *[""] * 5]
    present = (kind for kind in manifest.stats.expected if kind.kind == "present")
    return [
        *own,
        _name(f"{index_key.shown(manifest.column)} {manifest.type}"),
        escape(shown.state),
        f"{manifest.version} of {escape(manifest.instant)}",
        f"{manifest.locations.count:,}",
        "" if shown.coverage is None else f"{shown.coverage:.1%}",
        _bytes(index_bytes(manifest)),
        next((f"{kind.files:,.2f}" for kind in present), ""),
    ]


def _advice(advice: WorthHaving) -> Iterator[str]:
    if advice.found:
        yield "<h4>Indexes worth having, by the scans of this driver</h4>"
        head = (
            "table", "column", "scans ask", "files before", "after", "read a day", "saved a day",
            "statement",
        )  # fmt: skip
        yield _table(head, (_suggestion(one, advice.days) for one in advice.found))
    if advice.untested:
        columns = "column" if advice.untested == 1 else "columns"
        yield (
            f"<p>Scans ask for {advice.untested:,} {columns} without an index that no test has "
            "judged: <code>ADVISE SIEVE INDEXES</code> tests them by a sample of files.</p>"
        )


def _suggestion(one: Suggestion, days: float) -> list[str]:
    return [
        _name(".".join(one.table)),
        _name(index_key.shown(one.column)),
        escape(described(one)),
        f"{one.files_before:,.1f}",
        f"{one.files_after:,.1f}",
        _bytes(round(one.bytes_read / days)),
        _bytes(round(one.bytes_saved / days)),
        f"<code>{_name(create_statement(one.table, one.column))}</code>",
    ]


def _scans(scans: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "<h4>Latest scans</h4>"
    head = (
        "time, UTC", "query", "table", "predicate", "index", "files read", "ranges read",
        "bytes skipped", "ms", "why files were read",
    )  # fmt: skip
    yield _table(head, map(_scan, scans))


def _scan(scan: Mapping[str, Any]) -> list[str]:
    at = datetime.fromtimestamp(scan["at"] / 1000, UTC)
    number = scan["execution"]
    query = "" if number is None else f"../SQL/execution/?id={quote(str(number))}"
    functions = scan.get("functions", ())
    reasons = [f"{labelled(reason, functions)}: {n:,}" for reason, n in scan["reasons"].items()]
    # If a scan records no reason for reading a file, the file may contain a matching row.
    matching = scan["files"] - scan["files_skipped"]
    matching -= sum(scan["reasons"].get(reason, 0) for reason in _OF_FILES)
    if scan["used"] and matching > 0:
        reasons.insert(0, f"may hold a match: {matching:,}")
    return [
        f"{at:%Y-%m-%d %H:%M:%S}",
        query and f'<a href="{query}">{escape(str(number))}</a>',
        _name(scan["table"]),
        f"<code>{_name(scan['predicate'])}</code>",
        _name(", ".join(scan["used"])),
        _left(scan["files"], scan["files_skipped"]),
        _left(scan["ranges"], scan["ranges_skipped"]),
        _bytes(scan["bytes_skipped"]),
        f"{scan['ms']:,}",
        escape(", ".join(reasons)),
    ]


def _name(text: str) -> str:
    """A name as HTML. Lines can break after ``_``, ``.`` and ``@``, so columns stay narrow."""
    return re.sub(r"[_.@]", r"\g<0><wbr>", escape(text))


def _left(total: int, skipped: int) -> str:
    return f"{total - skipped:,} of {total:,}"


def _table(head: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table with its own scroll bar on narrow screens. The cells are HTML, too."""
    titles = "".join(f"<th>{title}</th>" for title in head)
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>\n" for row in rows)
    return (
        f'<div style="overflow-x: auto"><table class="{_TABLE}"><thead><tr>{titles}</tr></thead>\n'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _bytes(count: int) -> str:
    size, unit = float(count), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:,.0f} {_UNITS[unit]}" if unit == 0 else f"{size:,.1f} {_UNITS[unit]}"
