"""The record of scans that a driver keeps, parsed from its JSON.

    {"since": 1760000000000, "scans": [
      {"asked": "...", "scans": 2, "bytes": 800, "files": 4,
       "files_skipped": 196, "bytes_skipped": 39200}]}

``asked`` is JSON in a string, by which the driver adds scans up:

    {"table": ["shop", "orders"], "used": ["id_sieve@3"], "filter": {"op": "=", "col": ["id"]}}

``filter`` is a tree as prune requests have it (``sieve/predicate/tree.py``), without constants: of
``values`` there is the number. More leaves, such as ``join``, stand for keys and orders.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sieve.workload.column_use import Column, ColumnUse, Kind, Uses, all_of, any_of
from sieve.workload.record import Table, Workload

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


@dataclass(slots=True)
class IndexWork:
    """The scans that asked an index: how many, and what they read and skipped, in bytes.

    Where a scan asked several indexes, what it skipped counts for each of them.
    """

    scans: int = 0
    bytes_read: int = 0
    bytes_skipped: int = 0


@dataclass(frozen=True, slots=True)
class DriverRecord:
    """What a driver's scans asked and read.

    Attributes:
        workload: the scans, with the bytes that they read after indexes skipped some.
        indexes: the work of each index, by table and name.
        days: days of the record, at least one.
    """

    workload: Workload
    indexes: Mapping[tuple[Table, str], IndexWork]
    days: float


def parse_record(text: str, now_ms: int) -> DriverRecord:
    """The record of a driver.

    Args:
        text: its JSON.
        now_ms: the time until which it was kept, in milliseconds.
    """
    raw = json.loads(text)
    workload, indexes = Workload(), dict[tuple[Table, str], IndexWork]()
    for row in raw["scans"]:
        asked = json.loads(row["asked"])
        table: Table = (asked["table"][0], asked["table"][1])
        workload.add(table, tree_uses(asked["filter"]), row["bytes"], row["files"], row["scans"])
        for used in asked["used"]:
            work = indexes.setdefault((table, used.rpartition("@")[0]), IndexWork())
            work.scans += row["scans"]
            work.bytes_read += row["bytes"]
            work.bytes_skipped += row["bytes_skipped"]
    days = (now_ms - raw["since"]) / _DAY_MS if raw["scans"] else 1.0
    return DriverRecord(workload, indexes, max(1.0, days))


def tree_uses(node: Mapping[str, Any]) -> Uses:
    """What a predicate tree without constants asks of its columns."""
    op = node["op"]
    if op == "and":
        return all_of(map(tree_uses, node["args"]))
    if op == "or":
        return any_of(map(tree_uses, node["args"]))
    if op == "unknown":
        return {(name,): ColumnUse(Kind.OTHER) for name in node.get("names", ())}
    kind = _KINDS.get(op)
    if kind is None:
        return {}
    column: Column = tuple(node["col"])
    return {column: ColumnUse(kind, node.get("values", 1))}
