from __future__ import annotations

import json
from typing import Any

import pytest

from sieve.errors import CorruptError
from sieve.workload.column_use import ColumnUse, Kind
from sieve.workload.driver_record import (
    IndexWork,
    add_up,
    encode_record,
    parse_record,
    tree_uses,
)

DAY = 86_400_000
ID = {"op": "=", "col": ["id"]}


def row(table: str, tree: Any, *used: str, scans: int = 1, **sums: int) -> dict[str, Any]:
    """One row in the record of a driver."""
    asked = {"table": ["shop", table], "used": list(used), "filter": tree}
    none = {"bytes": 0, "files": 0, "files_skipped": 0, "bytes_skipped": 0}
    return {"asked": json.dumps(asked), "scans": scans} | none | sums


def _skipped(files: int) -> dict[str, int]:
    """The columns of a record's row about skipped files; each file has ten bytes."""
    return {"files_skipped": files, "bytes_skipped": 10 * files}


def parsed(now_ms: int, *rows: Any, since: int = 0) -> Any:
    """Parses the record of one driver that has these rows."""
    return add_up([record(*rows, since=since)], now_ms)


def record(*rows: Any, since: int = 0, driver: str = "d") -> Any:
    """Makes the record of a driver with these rows."""
    return parse_record(json.dumps({"driver": driver, "since": since, "scans": list(rows)}))


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
    """Each operator counts as one kind of use of the column that it compares.

    A column can be a path.
    """
    assert tree_uses({"op": op, "col": ["s", "a"]}) == {("s", "a"): ColumnUse(kind)}


def test_lists_have_their_number_of_values() -> None:
    """For IN, a record contains the number of values, but not the values."""
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
def test_constants_are_no_use_of_a_column(tree: Any) -> None:
    """Constants, unknown operators and IS NOT NULL are not uses of a column."""
    assert tree_uses(tree) == {}


def test_connectives_and_unknown_parts() -> None:
    """In an AND, the uses of all parts count. OR adds the numbers of values of the same column.

    An unknown part counts as a use of each column that it names.
    """
    unknown = {"op": "unknown", "names": ["note"]}
    assert tree_uses({"op": "and", "args": [ID, unknown]}) == {
        ("id",): ColumnUse(Kind.EQUALS),
        ("note",): ColumnUse(Kind.OTHER),
    }
    assert tree_uses({"op": "or", "args": [ID, ID]}) == {("id",): ColumnUse(Kind.IN, 2)}
    assert tree_uses({"op": "or", "args": [ID, {"op": "true"}]}) == {("id",): ColumnUse(Kind.OR)}


def test_uses_of_substrings() -> None:
    """A look-up of grams is a use of substrings, unless the column also has a prefix predicate."""
    gram = {"op": "exists", "args": [{"op": "=", "col": ["", "note", "substring"]}]}
    contains = {("", "note", "substring"): ColumnUse(Kind.CONTAINS)}
    assert tree_uses({"op": "and", "args": [gram, gram]}) == contains
    for name, others in (("note", {}), ("other", contains)):
        prefix = {"op": "starts with", "col": [name]}
        found = tree_uses({"op": "and", "args": [prefix, gram]})
        assert found == {(name,): ColumnUse(Kind.PREFIX)} | others


def test_scans_and_the_work_of_indexes() -> None:
    """Scans with equal filters and indexes are added up, even for different index versions."""
    found = parsed(
        3 * DAY,
        row("orders", ID, scans=2, bytes=1000, files=20),
        row("orders", ID, "id_sieve@3", "a@b@1", bytes=10, files=1, **_skipped(9)),
        row("orders", ID, "id_sieve@4", scans=2, bytes=20, files=2, **_skipped(18)),
        row("orders", ID, "id_sieve@5", bytes=5, files=1),
        since=DAY,
    )
    groups = [(group.table[1], group.used, group.scans, group.bytes) for group in found.workload]
    assert groups == [
        ("orders", set(), 2, 1000),
        ("orders", {"id_sieve", "a@b"}, 1, 10),
        ("orders", {"id_sieve"}, 3, 25),
    ]
    assert [group.left for group in found.workload] == [{("id",): n} for n in (100, 10, 25)]
    assert found.indexes == {
        (("shop", "orders"), "id_sieve"): IndexWork(4, 35, 270, 4, 27, 25, 180),
        (("shop", "orders"), "a@b"): IndexWork(1, 10, 90, 1, 9),
    }
    assert found.days == 2.0


def test_days_are_at_least_one() -> None:
    """A record covers at least a day, even if it is younger or contains no scan."""
    assert parsed(DAY // 24, row("orders", ID)).days == 1.0
    assert parsed(5 * DAY).days == 1.0


def test_records_of_several_drivers_add_up() -> None:
    """The sum of several drivers' records covers the time since the earliest record began."""
    late = record(row("orders", ID, "i@1", bytes=5, files=1), since=3 * DAY)
    early = record(row("orders", ID, "i@2", scans=2, bytes=7, files=2), since=DAY, driver="e")
    found = add_up([late, early, record(since=0)], 4 * DAY)
    (group,) = found.workload
    assert (group.scans, group.bytes) == (3, 12)
    assert found.indexes == {(("shop", "orders"), "i"): IndexWork(3, 12, 0, 3, 0, 12, 0)}
    assert found.days == 3.0


def test_a_record_survives_its_encoding() -> None:
    """An encoded record has at most the given size, and lists the sums with most bytes first."""
    small, middle, large = (
        row("small", ID, bytes=3, bytes_skipped=3),
        row("middle", ID, "i@1", scans=2, bytes=1, files=9, bytes_skipped=8, files_skipped=7),
        row("large", {"op": "in", "col": ["a", "b"], "values": 7}, bytes=10),
    )
    one = record(small, middle, large, since=5)
    data = encode_record(one, 10_000)
    assert parse_record(data) == record(large, middle, small, since=5)
    assert encode_record(one, len(data) + 2) == data
    assert parse_record(encode_record(one, len(data) - 3)) == record(large, middle, since=5)
    assert parse_record(encode_record(one, 0)) == record(since=5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"scans": 0},
        {"scans": -1},
        {"scans": 1.5},
        {"bytes": "1"},
        {"files": None},
        {"bytes_skipped": -1},
        {"asked": 7},
        {"asked": "{"},
        {"asked": "[]"},
        {"asked": json.dumps({"table": ["shop"], "used": [], "filter": ID})},
        {"asked": json.dumps({"table": ["shop", 7], "used": [], "filter": ID})},
        {"asked": json.dumps({"table": [["shop"], "t"], "used": [], "filter": ID})},
        {"asked": json.dumps({"table": ["shop", "t"], "used": [7], "filter": ID})},
        {"asked": json.dumps({"table": ["shop", "t"], "used": [], "filter": []})},
        {"asked": json.dumps({"table": ["shop", "t"], "used": [], "filter": ID | {"col": [7]}})},
        {"asked": json.dumps({"table": ["shop", "t"], "used": [], "filter": ID | {"col": 7}})},
        {"asked": json.dumps({"table": ["s", "t"], "used": [], "filter": ID | {"values": "x"}})},
        {"asked": json.dumps({"table": ["s", "t"], "used": [], "filter": {"op": ["="]}})},
    ],
)
def test_malformed_record_is_refused(wrong: dict[str, Any]) -> None:
    """Any user can write a record, so the parser refuses malformed records."""
    assert record(row("t", ID, bytes=0)).sums
    with pytest.raises(CorruptError, match="no record of scans"):
        record(row("t", ID) | wrong)
