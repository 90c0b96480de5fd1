from __future__ import annotations

from typing import Any

import pytest

from sieve.workload.column_use import ColumnUse, Kind
from sieve.workload.event_log.plans import Scan, Unread, scans_of

EQUALS, JOIN = ColumnUse(Kind.EQUALS), ColumnUse(Kind.JOIN)
ID, CUSTOMER = ("id",), ("customer",)


def node(name: str, simple: str = "", *children: Any) -> dict[str, Any]:
    """A plan node other than a scan."""
    return {
        "nodeName": name,
        "simpleString": simple or name,
        "children": list(children),
        "metadata": {},
        "metrics": [],
    }


def scan(
    pushed: str = "[]",
    *,
    name: str = "Scan parquet spark_catalog.shop.orders",
    columns: str = "id#10L,customer#11L",
    schema: str = "struct<id:bigint,customer:bigint>",
    data: str = "[]",
    first: int = 1,
    partition: str = "[]",
) -> dict[str, Any]:
    """A scan, in the form in which event logs contain it."""
    return {
        "nodeName": name,
        "simpleString": f"FileScan parquet shop.orders[{columns}] Batched: true, DataFilters: [",
        "children": [],
        "metadata": {
            "ReadSchema": schema,
            "PushedFilters": pushed,
            "DataFilters": data,
            "PartitionFilters": partition,
        },
        "metrics": [
            {"name": "number of files read", "accumulatorId": first},
            {"name": "size of files read", "accumulatorId": first + 1},
        ],
    }


def the_one(plan: dict[str, Any]) -> Scan:
    """Returns the only scan of a plan."""
    (one,) = scans_of(plan)
    return one


def test_a_scan_below_other_nodes() -> None:
    """A scan has a table, filters, and accumulators for its metrics."""
    one = the_one(node("WholeStageCodegen (1)", "", node("Filter", "", scan("[EqualTo(id,5)]"))))
    assert (one.table, one.uses, one.unread) == (("shop", "orders"), {ID: EQUALS}, ())
    assert (one.files, one.bytes) == (1, 2)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Scan parquet spark_catalog.shop.orders", ("shop", "orders")),
        ("Scan orc shop.orders", ("shop", "orders")),
        ("Scan parquet spark_catalog.my shop.all orders", ("my shop", "all orders")),
        ("Scan parquet ", Unread.PATH),
        ("Scan parquet", Unread.PATH),
        ("Scan parquet glue.shop.orders", Unread.NAME),
        ("Scan parquet spark_catalog.shop.or.ders", Unread.NAME),
        ("Scan parquet orders", Unread.NAME),
        ("Scan text shop.orders", Unread.SOURCE),
        ("Scan avro shop.orders", Unread.SOURCE),
        ("BatchScan ice.shop.orders", Unread.SOURCE),
        ("Scan hive shop.orders", Unread.SOURCE),
    ],
)
def test_the_table_of_a_scan(name: str, told: Any) -> None:
    """Only scans of tables in the session catalog have names.

    Other scans report why they have no name.
    """
    one = the_one(scan(name=name))
    assert (one.table or one.unread) == (told if isinstance(told, tuple) else (told,))


def test_other_leaves_are_no_scans() -> None:
    """Plan nodes that read no table files, such as local or cached tables, are no scans."""
    for name in ("LocalTableScan", "Scan In-memory table t", "Scan OneRowRelation", "Range (1)"):
        assert scans_of(node(name)) == []


def test_scan_with_an_unreadable_filter_reports_it() -> None:
    """A scan with an unreadable filter or truncated schema counts, and reports the problem."""
    one = the_one(scan("[EqualTo(name,:( )]"))
    assert (one.table, one.uses, one.unread) == (("shop", "orders"), {}, (Unread.FILTER,))
    assert the_one(scan(schema="struct<id:bigint,... 30 more fields>")).unread == (Unread.SCHEMA,)


def test_scan_that_is_shown_twice_counts_once() -> None:
    """A reused exchange or subquery, with the same metrics, counts once.

    Scans without metrics count separately.
    """
    again = node("Union", "", scan(first=0), scan(first=0), scan(first=7))
    assert sorted(one.files for one in scans_of(again)) == [0, 7]
    other = [scan() | {"metrics": []}, scan() | {"metrics": []}]
    found = scans_of(node("Union", "", *other))
    assert [(one.files, one.bytes) for one in found] == [(-1, -1)] * 2


def join(text: str, *, filtered: bool = True, partition: str = "[]") -> dict[str, Any]:
    """A join with orders on the left and customers on the right."""
    customers = scan(
        "[EqualTo(city,x)]" if filtered else "[IsNotNull(id)]",
        name="Scan parquet shop.customers",
        columns="id#20L,city#21",
        schema="struct<id:bigint,city:string>",
        first=5,
        partition=partition,
    )
    kind = text.partition(" ")[0]
    return node(kind, text, node("Project", "", scan()), node("Filter", "", customers))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BroadcastHashJoin [customer#11L], [id#20L], Inner, BuildRight, false", JOIN),
        ("BroadcastHashJoin [customer#11L], [id#20L], LeftSemi, BuildRight, false", JOIN),
        ("BroadcastHashJoin [customer#11L], [id#20L], Inner, BuildLeft, false", None),
        ("BroadcastHashJoin [customer#11L], [id#20L], LeftOuter, BuildRight, false", None),
        ("BroadcastHashJoin [customer#99L], [id#20L], Inner, BuildRight, false", None),
        ("BroadcastHashJoin [customer#1], [id#20L], Inner, BuildRight, false", None),
        ("BroadcastHashJoin [(customer#11L + 1)], [id#20L], Inner, BuildRight, false", None),
        ("SortMergeJoin [customer#11L], [id#20L], Inner", ColumnUse(Kind.SHUFFLED_JOIN)),
        ("ShuffledHashJoin [customer#11L], [id#20L], Inner, BuildRight",
         ColumnUse(Kind.SHUFFLED_JOIN)),
        ("BroadcastNestedLoopJoin BuildRight, Inner", None),
    ],
)  # fmt: skip
def test_keys_of_joins(text: str, expected: ColumnUse | None) -> None:
    """The keys of a filtered broadcast side are a use of the column on a join's other side."""
    orders = next(one for one in scans_of(join(text)) if one.table == ("shop", "orders"))
    assert orders.uses == ({} if expected is None else {CUSTOMER: expected})


def test_each_key_of_a_join_is_a_use_of_its_column() -> None:
    """A join with two keys is a use of both columns."""
    text = "BroadcastHashJoin [customer#11L, id#10L], [id#20L, x#22L], Inner, BuildRight, false"
    orders = next(one for one in scans_of(join(text)) if one.files == 1)
    assert orders.uses == {CUSTOMER: JOIN, ID: JOIN}


def test_a_side_without_a_filter_picks_no_files() -> None:
    """A join is no use of a column if the broadcast side has no filter, as all keys may match.

    A filter on partitions counts as a filter.
    """
    text = "BroadcastHashJoin [customer#11L], [id#20L], Inner, BuildRight, false"
    assert all(CUSTOMER not in one.uses for one in scans_of(join(text, filtered=False)))
    pruned = scans_of(join(text, filtered=False, partition="[isnotnull(d#1)]"))
    assert any(one.uses == {CUSTOMER: JOIN} for one in pruned)


def test_keys_of_a_broadcast_left_side_use_the_right_column() -> None:
    """The keys of a broadcast left side are a use of the right side's column."""
    text = "BroadcastHashJoin [id#20L], [customer#11L], Inner, BuildLeft, false"
    turned = join(text)
    turned["children"].reverse()
    orders = next(one for one in scans_of(turned) if one.files == 1)
    assert orders.uses == {CUSTOMER: JOIN}


TOP = "TakeOrderedAndProject(limit=5, orderBy=[id#10L ASC NULLS FIRST,customer#11L ASC], output=[])"


def test_order_by_limit_is_a_use_of_its_first_column() -> None:
    """ORDER BY with LIMIT is a use of its first column, but not above aggregates and joins."""
    below = node("WholeStageCodegen (1)", "", node("Filter", "", scan()))
    assert the_one(node("TakeOrderedAndProject", TOP, below)).uses == {ID: ColumnUse(Kind.TOP)}
    grouped = node("TakeOrderedAndProject", TOP, node("HashAggregate", "", scan()))
    assert the_one(grouped).uses == {}
    two = node("TakeOrderedAndProject", TOP, node("Union", "", scan(), scan(first=7)))
    assert [one.uses for one in scans_of(two)] == [{}, {}]


def test_a_predicate_counts_before_the_order() -> None:
    """If a top-k query filters and orders by the same column, only the filter counts as a use."""
    one = the_one(node("TakeOrderedAndProject", TOP, scan("[EqualTo(id,5)]")))
    assert one.uses == {ID: EQUALS}


def test_keys_are_found_if_the_output_is_truncated() -> None:
    """Even if a plan truncates a scan's columns, a column of the scan's filter is found."""
    wide = scan(columns="a#1, ... 30 more fields", data="[isnotnull(id#10L)]")
    assert the_one(node("TakeOrderedAndProject", TOP, wide)).uses == {ID: ColumnUse(Kind.TOP)}
