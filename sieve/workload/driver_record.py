"""Parses and writes the JSON form of a driver's record of its scans.

    {"driver": "0f3c...", "since": 1760000000000, "scans": [
      {"asked": "...", "scans": 2, "bytes": 800, "files": 4, "bytes_skipped": 39200}]}

The value of ``asked`` is a string that contains JSON. The driver adds up all scans that have equal
``asked`` strings:

    {"table": ["shop", "orders"], "used": ["id_sieve@3"], "filter": {"op": "=", "col": ["id"]}}

``filter`` is the predicate tree of a prune request (``sieve/predicate/parse_predicate.py``).
Instead of a predicate's constants, the tree has their number, ``values``. The tree has further
leaves, such as ``join``, for join keys and for the columns of ORDER BY with LIMIT.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sieve.errors import CorruptError
from sieve.index_key import SUBSTRING, expression_of, kind_of
from sieve.workload.column_use import Column, ColumnUse, Kind, Uses, all_of, any_of
from sieve.workload.scan_groups import Table, Workload
from sieve.workload.spelling import spelled

_DAY_MS: Final = 86_400_000
_KINDS: Final[Mapping[str, Kind | None]] = {
    "=": Kind.EQUALS,
    "<": Kind.RANGE,
    "<=": Kind.RANGE,
    ">": Kind.RANGE,
    ">=": Kind.RANGE,
    "in": Kind.IN,
    "is null": Kind.NULL,
    "is not null": None,
    "starts with": Kind.PREFIX,
    "!=": Kind.UNEQUAL,
    "not in": Kind.UNEQUAL,
    "join": Kind.JOIN,
    "shuffled join": Kind.SHUFFLED_JOIN,
    "order by limit": Kind.TOP,
}


@dataclass(frozen=True, slots=True)
class ScanSums:
    """Sums over all scans of a table with the same predicates and the same indexes.

    Attributes:
        asked: table, indexes and filter, as JSON.
        used: the names of the indexes that the scans consulted.
        uses: the kind of predicate on each column.
        scans: number of scans, at least one.
        bytes: sum of the bytes that the scans read.
        files: number of files that the scans read, summed over the scans.
        bytes_skipped: sum of the bytes that the scans skipped because of indexes.
        files_skipped: number of files that the scans skipped because of indexes, summed over the
            scans.
    """

    asked: str
    table: Table
    used: tuple[str, ...]
    uses: Uses
    scans: int
    bytes: int
    files: int
    bytes_skipped: int
    files_skipped: int = 0


@dataclass(frozen=True, slots=True)
class ScanRecord:
    """The scans of one driver.

    Attributes:
        driver: id of the driver.
        since_ms: the time at which the driver's first scan ended, in ms since the epoch.
        sums: the sums over the scans.
    """

    driver: str
    since_ms: int
    sums: tuple[ScanSums, ...]


@dataclass(slots=True)
class IndexWork:
    """Sums over the scans that consulted an index: bytes and files, read and skipped.

    If a scan consulted several indexes, all its skipped bytes count for every one of the indexes.

    Attributes:
        read_alone: bytes read by scans that consulted only this index.
        skipped_alone: bytes skipped by scans that consulted only this index.
    """

    scans: int = 0
    bytes_read: int = 0
    bytes_skipped: int = 0
    files_read: int = 0
    files_skipped: int = 0
    read_alone: int = 0
    skipped_alone: int = 0


@dataclass(frozen=True, slots=True)
class RecordedWork:
    """The scans of several drivers, summed up in two ways: by predicate kinds, and by index.

    Attributes:
        workload: the scans, with the bytes that the scans read. Skipped bytes are not included.
        indexes: a dict from an index's table and name to the index's `IndexWork`.
        days: number of days that the records cover; at least 1.
    """

    workload: Workload
    indexes: Mapping[tuple[Table, str], IndexWork]
    days: float


def parse_record(text: str | bytes) -> ScanRecord:
    """Parses the JSON of a driver's record.

    Raises:
        CorruptError: the JSON is not a driver's record.
    """
    try:
        raw = json.loads(text)
        sums = tuple(_sums(row) for row in raw["scans"])
        return ScanRecord(str(raw["driver"]), _count(raw["since"]), sums)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise CorruptError(
            "SIEVE_RECORD_CORRUPT", f"this is no record of scans: {type(error).__name__}: {error}"
        ) from error


def encode_record(record: ScanRecord, limit: int) -> bytes:
    """Encodes a record as JSON; omits the sums with the fewest bytes to stay within ``limit``.

    Args:
        limit: maximum length of the JSON in bytes.
    """
    head = {"driver": record.driver, "since": record.since_ms}
    room = limit - len(json.dumps({**head, "scans": []}))
    rows = []
    for one in sorted(record.sums, key=lambda one: -(one.bytes + one.bytes_skipped)):
        row = {
            "asked": one.asked,
            "scans": one.scans,
            "bytes": one.bytes,
            "files": one.files,
            "bytes_skipped": one.bytes_skipped,
            "files_skipped": one.files_skipped,
        }
        room -= len(json.dumps(row)) + len(", ")
        if room < 0:
            break
        rows.append(row)
    return json.dumps({**head, "scans": rows}).encode()


def add_up(records: Iterable[ScanRecord], now_ms: int) -> RecordedWork:
    """Adds up the scans of several records.

    Args:
        records: one record for each driver.
        now_ms: the end of the period that the records cover, in ms since the epoch.
    """
    workload, indexes = Workload(), dict[tuple[Table, str], IndexWork]()
    since = now_ms
    for record in records:
        for one in record.sums:
            since = min(since, record.since_ms)
            workload.add(one.table, one.uses, one.bytes, one.files, one.scans, one.used)
            for index in one.used:
                work = indexes.setdefault((one.table, index), IndexWork())
                work.scans += one.scans
                work.bytes_read += one.bytes
                work.bytes_skipped += one.bytes_skipped
                work.files_read += one.files
                work.files_skipped += one.files_skipped
                if len(one.used) == 1:
                    work.read_alone += one.bytes
                    work.skipped_alone += one.bytes_skipped
    return RecordedWork(workload, indexes, max(1.0, (now_ms - since) / _DAY_MS))


def _sums(row: Mapping[str, Any]) -> ScanSums:
    asked = json.loads(row["asked"])
    database, table = asked["table"]
    uses = tree_uses(asked["filter"])
    scans = _count(row["scans"])
    if scans == 0:
        raise ValueError("sums of no scan")
    return ScanSums(
        row["asked"],
        (_text(database), _text(table)),
        tuple(_text(used).rpartition("@")[0] for used in asked["used"]),
        {
            tuple(map(_text, column)): ColumnUse(use.kind, _count(use.values))
            for column, use in uses.items()
        },
        scans,
        _count(row["bytes"]),
        _count(row["files"]),
        _count(row["bytes_skipped"]),
        # Records from earlier releases lack this member.
        _count(row.get("files_skipped", 0)),
    )


def _count(value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is not a number from 0 on")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def tree_uses(node: Mapping[str, Any]) -> Uses:
    """The uses of columns in a predicate tree that contains no constants."""
    op = node["op"]
    if op in ("and", "exists"):
        return _without_prefixes(all_of(map(tree_uses, node["args"])))
    if op == "or":
        return any_of(map(tree_uses, node["args"]))
    if op == "unknown":
        return {(name,): ColumnUse(Kind.OTHER) for name in node.get("names", ())}
    kind = _KINDS.get(op)
    if kind is None:
        return {}
    column: Column = tuple(node["col"])
    if kind_of(column) == SUBSTRING:
        kind = Kind.CONTAINS
    return {column: ColumnUse(kind, node.get("values", 1))}


def _without_prefixes(uses: Uses) -> Uses:
    """Removes a column's substring use if the column also has a predicate on a prefix.

    An ordinary index serves the prefix predicate, and is smaller than an index on substrings.
    """
    prefixes = {spelled(column) for column, use in uses.items() if use.kind is Kind.PREFIX}
    return {
        column: use
        for column, use in uses.items()
        if use.kind is not Kind.CONTAINS or expression_of(column) not in prefixes
    }
