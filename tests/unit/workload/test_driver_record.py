from __future__ import annotations

import json
from typing import Any

import pytest

from sieve.workload.column_use import ColumnUse, Kind
from sieve.workload.driver_record import IndexWork, parse_record, tree_uses

DAY = 86_400_000
ID = {"op": "=", "col": ["id"]}


def row(table: str, tree: Any, *used: str, scans: int = 1, **sums: int) -> dict[str, Any]:
    """A row of the record."""
    asked = {"table": ["shop", table], "used": list(used), "filter": tree}
    none = {"bytes": 0, "files": 0, "files_skipped": 0, "bytes_skipped": 0}
    return {"asked": json.dumps(asked), "scans": scans} | none | sums


def parsed(now_ms: int, *rows: Any, since: int = 0) -> Any:
    """The record of these rows."""
    return parse_record(json.dumps({"since": since, "scans": list(rows)}), now_ms)


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        ("=", Kind.EQUALS),
        ("<", Kind.RANGE),
        ("<=", Kind.RANGE),
        (">", Kind.RANGE),
        (">=", Kind.RANGE),
        ("is null", Kind.NULL),
        ("starts with", Kind.PREFIX),
        ("!=", Kind.UNEQUAL),
        ("join", Kind.JOIN),
        ("shuffled join", Kind.SHUFFLED_JOIN),
        ("order by limit", Kind.TOP),
    ],
)
def test_each_leaf_has_its_kind(op: str, kind: Kind) -> None:
    """A leaf asks its column, which may be a path."""
    assert tree_uses({"op": op, "col": ["s", "a"]}) == {("s", "a"): ColumnUse(kind)}


def test_lists_have_their_number_of_values() -> None:
    """The driver leaves the number alone of what IN lists."""
    assert tree_uses({"op": "in", "col": ["id"], "values": 7}) == {("id",): ColumnUse(Kind.IN, 7)}
    assert tree_uses({"op": "not in", "col": ["id"], "values": 7})[("id",)].kind is Kind.UNEQUAL


@pytest.mark.parametrize(
    "tree",
    [
        {"op": "true"},
        {"op": "false"},
        {"op": "is not null", "col": ["id"]},
        {"op": "unknown"},
        {"op": "and", "args": []},
        {"op": "of a later release", "col": ["id"]},
    ],
)
def test_what_asks_no_column(tree: Any) -> None:
    """IS NOT NULL is in nearly every filter; what is not known says nothing."""
    assert tree_uses(tree) == {}


def test_connectives_and_unknown_parts() -> None:
    """AND keeps the narrowest use, OR over other columns none; unknown parts name their columns."""
    unknown = {"op": "unknown", "names": ["note"]}
    assert tree_uses({"op": "and", "args": [ID, unknown]}) == {
        ("id",): ColumnUse(Kind.EQUALS),
        ("note",): ColumnUse(Kind.OTHER),
    }
    assert tree_uses({"op": "or", "args": [ID, ID]}) == {("id",): ColumnUse(Kind.IN, 2)}
    assert tree_uses({"op": "or", "args": [ID, {"op": "true"}]}) == {("id",): ColumnUse(Kind.OR)}


def test_scans_and_the_work_of_indexes() -> None:
    """Sums of scans alike, and for each index those of the scans that asked it, in any version."""
    record = parsed(
        3 * DAY,
        row("orders", ID, scans=2, bytes=1000, files=20),
        row("orders", ID, "id_sieve@3", "a@b@1", bytes=10, files=1, bytes_skipped=90),
        row("orders", ID, "id_sieve@4", scans=2, bytes=20, files=2, bytes_skipped=180),
        since=DAY,
    )
    (group,) = record.workload
    assert (group.table, group.scans, group.bytes) == (("shop", "orders"), 5, 1030)
    assert group.left == {("id",): 100 + 10 + 20}
    assert record.indexes == {
        (("shop", "orders"), "id_sieve"): IndexWork(3, 30, 270),
        (("shop", "orders"), "a@b"): IndexWork(1, 10, 90),
    }
    assert record.days == 2.0


def test_days_are_at_least_one() -> None:
    """Of a record of an hour, and of one without a scan."""
    assert parsed(DAY // 24, row("orders", ID)).days == 1.0
    assert parsed(5 * DAY).days == 1.0
