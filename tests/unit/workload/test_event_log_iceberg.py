"""Tests scans of Iceberg tables in event logs, with texts of Iceberg 1.12 on Spark 3.5 and 4.1."""

from __future__ import annotations

from typing import Any

import pytest

from sieve.workload.column_use import ColumnUse, Kind
from sieve.workload.event_log.filters import UnreadableFilterError
from sieve.workload.event_log.iceberg_filters import conjuncts, iceberg_uses
from sieve.workload.event_log.plans import Scan, Unread, scans_of

TEXTS = {
    "4.1": "IcebergScan(table={table}, schemaId=0, snapshotId=62, branch=null, filters={filters}, "
    "runtimeFilters=, groupedBy=) RuntimeFilters: []",
    "4.1, copy-on-write": "IcebergCopyOnWriteScan(table={table}, schemaId=0, snapshotId=62, "
    "branch=null, filters={filters}, groupedBy=) RuntimeFilters: []",
    "3.5": "{table} (branch=null) [filters={filters}, groupedBy=] RuntimeFilters: []",
}


def use(kind: Kind, values: int = 1) -> ColumnUse:
    """A column use."""
    return ColumnUse(kind, values)


def scan(
    filters: str,
    *,
    above: str = "",
    table: str = "spark_catalog.shop.orders",
    columns: str = "[id#1L, s#2, my col#3L]",
    text: str = TEXTS["4.1"],
) -> Scan:
    """The scan that `scans_of` finds in a plan with the given texts."""
    of_scan = text.format(table=table, filters=filters)
    metrics = ("number of file splits read", "number of result data files")
    plan: dict[str, Any] = {
        "nodeName": f"BatchScan {table}",
        "simpleString": f"BatchScan {table}{columns} {of_scan}",
        "children": [],
        "metadata": {},
        "metrics": [
            {"name": name, "accumulatorId": number}
            for number, name in enumerate((*metrics, "total data file size (bytes)"))
        ],
    }
    if above:
        plan = {"nodeName": "ColumnarToRow", "simpleString": "ColumnarToRow", "children": [plan]}
        plan = {"nodeName": "Filter", "simpleString": f"Filter {above}", "children": [plan]}
    (one,) = scans_of(plan)
    return one


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_scan_of_each_release(text: str) -> None:
    """The result has the scan's table, its column uses, and the accumulators of files and bytes."""
    one = scan("id IS NOT NULL, id = 5, s LIKE 'x 1%'", text=text)
    assert (one.table, one.unread) == (("shop", "orders"), ())
    assert one.uses == {("id",): use(Kind.EQUALS), ("s",): use(Kind.PREFIX)}
    assert (one.files, one.bytes, one.filters) == (1, 2, True)
    assert (scan("", text=text).uses, scan("", text=text).filters) == ({}, False)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("ice.shop.orders", ("ice.shop", "orders")),
        ("spark_catalog.shop.orders", ("shop", "orders")),
        ("spark_catalog.shop.orders.files", Unread.NAME),
        ("ice.a.b.orders", Unread.NAME),
    ],
)
def test_the_table_of_a_scan(table: str, expected: Any) -> None:
    """The first part of a table's name is the database, or the catalog and the database."""
    one = scan("id = 5", table=table)
    assert (one.table or one.unread) == (expected if isinstance(expected, tuple) else (expected,))


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ("id = 5", {"id": use(Kind.EQUALS)}),
        ("id > 5, id <= 9", {"id": use(Kind.BETWEEN)}),
        ("id != 5", {"id": use(Kind.UNEQUAL)}),
        ("s IS NULL", {"s": use(Kind.NULL)}),
        ("id IN (1, 2, 3)", {"id": use(Kind.IN, 3)}),
        ("s IN ('a, b', 'c')", {"s": use(Kind.IN, 2)}),
        ("s NOT IN ('a', 'c'), s IS NOT NULL", {"s": use(Kind.UNEQUAL)}),
        ("(id = 5 OR id IN (7, 8))", {"id": use(Kind.IN, 3)}),
        ("(id = 5 OR s = 'x')", {"id": use(Kind.OR), "s": use(Kind.OR)}),
        ("(id = 5 AND s = 'a OR b')", {"id": use(Kind.EQUALS), "s": use(Kind.EQUALS)}),
        ("NOT ((id = 5 OR id > 9))", {"id": use(Kind.UNEQUAL)}),
        ("NOT (s LIKE 'q%'), s NOT LIKE 'x%'", {"s": use(Kind.UNEQUAL)}),
        ("s = 'it's', id = 4", {"s": use(Kind.EQUALS), "id": use(Kind.EQUALS)}),
        ("s = 'c, d (e'", {"s": use(Kind.EQUALS)}),
        ("my col = 4", {"my col": use(Kind.EQUALS)}),
        ("s.a = -1.5", {"s.a": use(Kind.EQUALS)}),
        ("year(ts) = 50, bucket[16](id) IN (1, 2), is_nan(d), id < 3", {"id": use(Kind.RANGE)}),
        ("", {}),
    ],
)  # fmt: skip
def test_filters(filters: str, expected: dict[str, ColumnUse]) -> None:
    """Each filter that Iceberg evaluates is a use of its column."""
    assert {".".join(column): one for column, one in iceberg_uses(filters).items()} == expected


@pytest.mark.parametrize(
    "filters",
    ["id", "id = ", "(id = 5", "(id = 5, s = 'x')", "id = 5 s", "s = 'a", "NOT (id = 5",
     "(id = 5 XOR id = 6)", "NOT (" * 300 + "id = 5" + ")" * 300],
)  # fmt: skip
def test_unreadable_filters(filters: str) -> None:
    """Filters in an unknown form raise an error, and the scan reports the problem."""
    with pytest.raises(UnreadableFilterError):
        iceberg_uses(filters)
    one = scan(filters)
    assert (one.table, one.uses, one.unread) == (("shop", "orders"), {}, (Unread.FILTER,))


def test_a_constant_is_no_column() -> None:
    """A constant with a part like a filter is no use of a column."""
    assert scan("s = 'x', secret = 'y'").uses == {("s",): use(Kind.EQUALS)}


def test_filters_that_only_spark_evaluates() -> None:
    """Uses of expressions, elements and substrings are in the filter above the scan."""
    above = (
        "(((isnotnull(s#2) AND (lower(s#2) = x 7)) AND Contains(s#2, error)) "
        "AND array_contains(tags#4, a))"
    )
    one = scan("s IS NOT NULL", above=above, columns="[s#2, tags#4]")
    assert one.uses == {
        ("", "lower(s)"): use(Kind.EQUALS),
        ("", "s", "substring"): use(Kind.CONTAINS),
        ("", "tags", "elements"): use(Kind.EQUALS),
    }
    either = "((lower(s#2) = x) OR ((id#1L = 3) AND (lower(s#2) = y)))"
    assert scan("", above=either).uses == {}


def test_a_constant_with_brackets_hides_only_the_other_filters() -> None:
    """Filters that Iceberg evaluates are uses of columns even if a constant has brackets."""
    one = scan("s = 'd (e'", above="((s#2 = d (e) AND (lower(s#2) = x))")
    assert (one.uses, one.unread) == ({("s",): use(Kind.EQUALS)}, (Unread.FILTER,))


def test_the_operands_of_an_and() -> None:
    """Only the operands of the outermost AND are separate filters."""
    assert conjuncts("Filter (a#1 = 1)") == ["(a#1 = 1)"]
    assert conjuncts("((a AND (b OR (c AND d))) AND e)") == ["a", "(b OR (c AND d))", "e"]
    assert conjuncts("(a AND b) OR (c AND d)") == ["(a AND b) OR (c AND d)"]


def test_truncated_columns() -> None:
    """If a scan's columns are truncated, the columns of filters count, and the scan says so."""
    columns = "[id#1L, ... 30 more fields]"
    one = scan("s = 'x', id = 5", above="((s#2 = x) AND (id#1L = 5))", columns=columns)
    assert one.uses == {("s",): use(Kind.EQUALS), ("id",): use(Kind.EQUALS)}
    assert one.unread == (Unread.SCHEMA,)
