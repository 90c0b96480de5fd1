"""Records: the row types of the statements' answers.

A record has the columns of its statement, in the same order; docs/sql.md describes them. A record
ignores columns that a later release adds to the statement. Some columns count a part of a total,
which is in another column or in a property. ``wholes`` maps the column of a part to the name of its
total. Notebooks draw the part's share of the total as a bar.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class IndexState:
    """A row of SHOW SIEVE INDEXES."""

    wholes: ClassVar[Mapping[str, str]] = {}

    namespace: str
    table: str
    index: str
    column: str
    type: str | None
    shape: str | None
    state: str
    version: int | None
    instant: str | None
    files: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True)
class Advised:
    """A row of ADVISE SIEVE INDEXES: an index, and whether to create, keep or drop it."""

    wholes: ClassVar[Mapping[str, str]] = {
        "files_after": "files_before",
        "bytes_saved": "bytes_without",
    }

    action: str
    namespace: str
    table: str
    column: str
    index: str | None
    asked: str | None
    scans: float
    files_before: float | None
    files_after: float | None
    bytes_read: int
    bytes_saved: int
    statement: str | None
    estimate: str | None

    @property
    def bytes_without(self) -> int:
        """Bytes that the scans would read without the index; an estimate if the index exists."""
        return self.bytes_read if self.action == "create" else self.bytes_read + self.bytes_saved


@dataclass(frozen=True, slots=True)
class Built:
    """A row of CREATE and REFRESH SIEVE INDEX."""

    wholes: ClassVar[Mapping[str, str]] = {}

    index: str
    version: int | None
    files: int | None
    bytes: int | None
    seconds: float | None
    change: str | None
    advice: str | None


@dataclass(frozen=True, slots=True)
class Dropped:
    """A row of DROP SIEVE INDEX."""

    wholes: ClassVar[Mapping[str, str]] = {}

    index: str


@dataclass(frozen=True, slots=True)
class Property:
    """A row of DESCRIBE SIEVE INDEX."""

    wholes: ClassVar[Mapping[str, str]] = {}

    property: str
    value: str


@dataclass(frozen=True, slots=True)
class Scan:
    """A row of EXPLAIN SIEVE: one scan of a table."""

    wholes: ClassVar[Mapping[str, str]] = {
        "files_read": "files_total",
        "ranges_read": "ranges_total",
        "bytes_read": "bytes_total",
    }

    scan: int
    table: str
    indexes: str | None
    predicate: str | None
    files_total: int | None
    files_read: int | None
    ranges_total: int | None
    ranges_read: int | None
    bytes_total: int | None
    bytes_read: int | None
    reasons: str | None


@dataclass(frozen=True, slots=True)
class Estimated:
    """A row of ESTIMATE SIEVE INDEX: the estimate for one column."""

    wholes: ClassVar[Mapping[str, str]] = {"files_read": "files"}

    column: str
    files: int
    files_read: float | None
    bytes: int
    seconds: float
    advice: str | None


@dataclass(frozen=True, slots=True)
class EstimatedBudget:
    """A row of ESTIMATE SIEVE INDEX EXTENDED: the estimate for one column and one budget."""

    wholes: ClassVar[Mapping[str, str]] = {
        "files_present": "files",
        "files_absent": "files",
        "files_range": "files",
        "files_predicate": "files",
    }

    column: str
    budget: str | None
    shape: str | None
    bytes: int
    percent: float | None
    seconds: float | None
    files: int
    files_present: float | None
    bytes_present: int | None
    files_absent: float | None
    bytes_absent: int | None
    files_range: float | None
    bytes_range: int | None
    files_predicate: int | None
    bytes_predicate: int | None
    advice: str | None


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A row of CHECK SIEVE INDEX: one file, or the whole index if ``file`` is None."""

    wholes: ClassVar[Mapping[str, str]] = {}

    index: str
    file: str | None
    status: str
    detail: str | None
