"""Reads scans from the plans (``sparkPlanInfo``) of an event log: tables, filters and metrics.

A node of a plan contains ``nodeName``, ``simpleString``, ``metrics`` and ``children``. Scans also
contain ``metadata``. In ``simpleString``, Spark truncates lists to ``maxToStringFields`` entries
and metadata values to 100 characters. In ``metadata``, Spark truncates only the schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, TypeAlias

from sieve.workload.column_use import Column, ColumnUse, Kind, Uses, all_of
from sieve.workload.event_log.filters import (
    ScanSchema,
    UnreadableFilterError,
    column_uses,
    other_uses,
)
from sieve.workload.event_log.iceberg_filters import conjuncts, iceberg_uses
from sieve.workload.scan_groups import Table

Node: TypeAlias = Mapping[str, Any]

_FILES: Final = ("number of files read", "number of result data files")
_BYTES: Final = ("size of files read", "total data file size (bytes)")
_SCAN = re.compile(r"Scan (\S+) (.*)", re.DOTALL)
_NOT_INDEXED = ("text", "avro", "binaryFile", "image", "libsvm")
_OTHER_SOURCES = ("BatchScan", "Scan hive ")
# The text of an Iceberg scan, in releases for Spark 3.5 and for Spark 4.
_ICEBERG = re.compile(
    r"BatchScan (?P<table>[^\[]+)(?P<columns>\[[^\]]*\]) "
    r"(?:Iceberg\w*Scan\(|\S+ \(branch=[^)]*\) \[)(?:[^']*?, )?"
    r"filters=(?P<filters>.*?)(?:, runtimeFilters=.*)?, groupedBy=",
    re.DOTALL,
)
_JOIN = re.compile(
    r"(BroadcastHashJoin|SortMergeJoin|ShuffledHashJoin) \[(.*?)\], \[(.*?)\], "
    r"(Inner|LeftSemi)(?:, (BuildLeft|BuildRight))?"
)
# The keys of a join are at the start of the node's text, so the patterns search only this many
# characters.
_LONGEST_NODE: Final = 2000
_KEY = re.compile(r"([^#]+)#\d+L?")
_TOP = re.compile(r"TakeOrderedAndProject\(limit=\d+, orderBy=\[([^#\]]+#\d+L?) ")
# These nodes process each row independently. If only nodes of `_ROW_BY_ROW` are between a scan and
# TakeOrderedAndProject, the order applies to the scan's rows.
_ROW_BY_ROW = (
    "WholeStageCodegen",
    "InputAdapter",
    "Project",
    "Filter",
    "ColumnarToRow",
    "AdaptiveSparkPlan",
)


class Unread(StrEnum):
    """Why a scan in an event log could not be read completely; each value is text for users."""

    PATH = "scans of paths, not of tables"
    NAME = "scans of tables of other catalogs, or whose names have dots"
    SOURCE = "scans of sources that Sieve does not index"
    FILTER = "scans with filters that are cut off or have unbalanced brackets"
    SCHEMA = "scans whose columns are cut off (spark.sql.debug.maxToStringFields)"


@dataclass(frozen=True, slots=True)
class Scan:
    """A scan in a plan.

    Attributes:
        table: the scan's table, or None if the table is unknown.
        uses: the uses of the scan's columns.
        unread: why the scan, or a part of the scan, could not be read.
        files, bytes: ids of the accumulators that count the scan's files and bytes; -1 if the plan
            has no such accumulator.
        text: a text that contains the scan's columns in the form ``id#12L``, as joins and orders
            name them.
        filters: whether the scan has filters on columns or on partitions.
    """

    table: Table | None
    uses: Uses
    unread: tuple[Unread, ...]
    files: int
    bytes: int
    text: str
    filters: bool

    def column(self, key: str) -> Column | None:
        """The scan's column with a name such as ``id#12L``; None if the scan has no such column."""
        found = _KEY.fullmatch(key)
        if found is None or re.search(rf"[\[(, ]{re.escape(key)}[\], )]", self.text) is None:
            return None
        return (found[1],)


def scans_of(plan: Node) -> list[Scan]:
    """Returns a plan's distinct scans.

    A scan's uses include the join keys and ORDER BY columns that apply to the scan.
    """
    filters = {
        id(_row_by_row(node)[-1]): str(node.get("simpleString", ""))
        for node in _nodes(plan)
        if node.get("nodeName") == "Filter" and node.get("children")
    }
    found = {
        id(node): _scan(node, filters.get(id(node), "")) for node in _nodes(plan) if _is_scan(node)
    }
    for node in _nodes(plan):
        for keys, below, kind in _keys_from_parents(node, found):
            for inner in below:
                scan = found.get(id(inner))
                if scan is not None:
                    columns = [scan.column(key) for key in keys]
                    more = [{column: ColumnUse(kind)} for column in columns if column is not None]
                    found[id(inner)] = replace(scan, uses=all_of([scan.uses, *more]))
    # If a plan reuses an exchange or a subquery, the plan contains the same scan several times,
    # with equal accumulator ids.
    once = {scan.files if scan.files >= 0 else -key: scan for key, scan in found.items()}
    return list(once.values())


def _nodes(plan: Node) -> Iterator[Node]:
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.get("children", ()))


def _is_scan(node: Node) -> bool:
    name = str(node.get("nodeName", ""))
    return name.startswith(_OTHER_SOURCES) or (
        name.startswith("Scan ") and "PushedFilters" in node.get("metadata", {})
    )


def _scan(node: Node, above: str) -> Scan:
    """Reads a scan; ``above`` is the text of the Filter node above the scan, or an empty text."""
    iceberg = _ICEBERG.match(str(node.get("simpleString", "")))
    return _scan_of_files(node) if iceberg is None else _iceberg_scan(node, iceberg, above)


def _iceberg_scan(node: Node, text: re.Match[str], above: str) -> Scan:
    uses: dict[Column, ColumnUse] = {}
    unread = []
    columns = f"{text['columns']} {above}"
    schema = ScanSchema(None, columns)
    try:
        pushed = iceberg_uses(text["filters"])
        uses |= {column: use for column, use in pushed.items() if schema.has(column)}
        uses |= other_uses(f"[{', '.join(conjuncts(above))}]", schema)
    except UnreadableFilterError:
        unread.append(Unread.FILTER)
    if schema.is_cut_off:
        unread.append(Unread.SCHEMA)
    *namespace, name = text["table"].split(".")
    is_known = len(namespace) == 2
    table = (namespace[-1] if namespace[0] == "spark_catalog" else ".".join(namespace), name)
    return Scan(
        table=table if is_known else None,
        uses=uses,
        unread=tuple(unread) if is_known else (Unread.NAME,),
        files=_metric(node, _FILES),
        bytes=_metric(node, _BYTES),
        text=columns,
        filters=bool(text["filters"]),
    )


def _metric(node: Node, names: Sequence[str]) -> int:
    """The accumulator id of a node's metric that has one of the names; -1 if there is none."""
    ids = {metric["name"]: metric["accumulatorId"] for metric in node.get("metrics", ())}
    return next((ids[name] for name in names if name in ids), -1)


def _scan_of_files(node: Node) -> Scan:
    metadata: Mapping[str, str] = node.get("metadata", {})
    simple = str(node.get("simpleString", ""))
    pushed, filters = metadata.get("PushedFilters", ""), metadata.get("DataFilters", "")
    schema = ScanSchema(metadata.get("ReadSchema", ""), filters)
    uses: Uses = {}
    unread = []
    try:
        uses = column_uses(pushed, filters, schema)
    except UnreadableFilterError:
        unread.append(Unread.FILTER)
    if schema.is_cut_off:
        unread.append(Unread.SCHEMA)
    named = _table(str(node["nodeName"]))
    if isinstance(named, Unread):
        unread = [named]
    return Scan(
        table=None if isinstance(named, Unread) else named,
        uses=uses,
        unread=tuple(unread),
        files=_metric(node, _FILES),
        bytes=_metric(node, _BYTES),
        text=simple.partition(" Batched: ")[0] + " " + filters,
        filters=bool(uses) or metadata.get("PartitionFilters", "[]") != "[]",
    )


def _table(node_name: str) -> Table | Unread:
    if node_name.startswith(_OTHER_SOURCES):
        return Unread.SOURCE
    found = _SCAN.fullmatch(node_name)
    if found is None or not found[2].strip():
        return Unread.PATH
    if found[1] in _NOT_INDEXED:
        return Unread.SOURCE
    parts = found[2].split(".")
    if len(parts) == 3 and parts[0] == "spark_catalog":
        return parts[1], parts[2]
    return (parts[0], parts[1]) if len(parts) == 2 else Unread.NAME


def _keys_from_parents(
    node: Node, scans: Mapping[int, Scan]
) -> Iterator[tuple[Sequence[str], Sequence[Node], Kind]]:
    """Yields keys of a join or ORDER BY, the nodes that the keys apply to, and the kind of use."""
    text = str(node.get("simpleString", ""))[:_LONGEST_NODE]
    children = node.get("children", ())
    if (top := _TOP.match(text)) is not None:
        yield [top[1]], _row_by_row(node), Kind.TOP
    join = _JOIN.match(text)
    if join is None or len(children) != 2:
        return
    keys = [part.split(", ") for part in (join[2], join[3])]
    sides = [list(_nodes(child)) for child in children]
    filtered = [any(id(n) in scans and scans[id(n)].filters for n in side) for side in sides]
    if join[1] != "BroadcastHashJoin":
        asked = [(0, Kind.SHUFFLED_JOIN), (1, Kind.SHUFFLED_JOIN)]
    else:
        # In a broadcast join, Sieve uses keys of the broadcast side to skip files of the other
        # side.
        asked = [(1, Kind.JOIN)] if join[5] == "BuildLeft" else [(0, Kind.JOIN)]
    for side, kind in asked:
        if filtered[1 - side]:
            yield keys[side], sides[side], kind


def _row_by_row(top: Node) -> list[Node]:
    """The nodes below ``top``, down to the first node outside `_ROW_BY_ROW`, which is included."""
    found: list[Node] = []
    children = top.get("children", ())
    while len(children) == 1:
        found.append(children[0])
        if not str(children[0].get("nodeName", "")).startswith(_ROW_BY_ROW):
            break
        children = children[0].get("children", ())
    return found
