from __future__ import annotations

import pytest

from sieve.workload.column_use import Column, ColumnUse, Kind, Uses
from sieve.workload.scan_groups import ScanGroup, Workload
from sieve.workload.tuples import by_bytes, names_of, with_tuples

ORDERS, ITEMS = ("shop", "orders"), ("shop", "items")
A, B, C = ("a",), ("b",), ("c",)
EQUALS, IN, RANGE = ColumnUse(Kind.EQUALS), ColumnUse(Kind.IN, 3), ColumnUse(Kind.RANGE)


def added(group: ScanGroup) -> dict[str, tuple[Kind, float]]:
    """The tuples of a group, with their kinds of use and lower bounds in bytes."""
    return {key[1]: (group.kinds[key], group.left[key]) for key in group.kinds if names_of(key)}


@pytest.mark.parametrize(
    ("uses", "expected"),
    [
        ({B: EQUALS, A: EQUALS}, {"(a, b)": (Kind.EQUALS, 100.0)}),
        ({A: EQUALS, B: IN}, {"(a, b)": (Kind.IN, 300.0)}),
        ({A: EQUALS, B: EQUALS, C: RANGE}, {"(a, b)": (Kind.EQUALS, 100.0)}),
        ({A: EQUALS, ("s", "b b"): EQUALS}, {"(a, s.`b b`)": (Kind.EQUALS, 100.0)}),
        ({A: EQUALS, B: RANGE}, {}),
        ({A: EQUALS}, {}),
        ({A: EQUALS, ("", "lower(b)"): EQUALS}, {}),
        ({(name,): EQUALS for name in "abcde"}, {}),
        ({(name,): EQUALS for name in "abcd"}, {"(a, b, c, d)": (Kind.EQUALS, 100.0)}),
    ],
)
def test_tuples_of_columns_that_scans_compare(
    uses: Uses, expected: dict[str, tuple[Kind, float]]
) -> None:
    """A tuple consists of 2 to 4 columns that a scan compares with constants."""
    work = Workload()
    work.add(ORDERS, uses, 1000, 10)
    (group,) = with_tuples(work)
    assert added(group) == expected
    (before,) = work
    assert {key: group.kinds[key] for key in before.kinds} == before.kinds


def test_tuple_serves_scans_that_compare_more_columns() -> None:
    """A group of scans also uses the tuples of other groups of scans of the same table."""
    work = Workload()
    work.add(ORDERS, {A: EQUALS, B: EQUALS, C: EQUALS}, 1000, 10)
    work.add(ORDERS, {A: EQUALS, B: EQUALS}, 50, 10)
    work.add(ITEMS, {A: EQUALS, C: EQUALS}, 1000, 10)
    both, two, other = map(added, with_tuples(work))
    assert (set(both), set(two), set(other)) == ({"(a, b)", "(a, b, c)"}, {"(a, b)"}, {"(a, c)"})
    assert by_bytes(work) == [
        (ORDERS, ("", "(a, b)")),
        (ITEMS, ("", "(a, c)")),
        (ORDERS, ("", "(a, b, c)")),
    ]


@pytest.mark.parametrize("key", [("", "(a, b)"), ("", "(b, a)")])
def test_indexed_tuple_is_not_added(key: Column) -> None:
    """If an index has the same columns in any order, a further tuple is needless."""
    work = Workload()
    work.add(ORDERS, {A: EQUALS, B: EQUALS}, 1000, 10)
    assert [added(group) for group in with_tuples(work, {(ORDERS, key)})] == [{}]
    assert [set(added(group)) for group in with_tuples(work, {(ITEMS, key)})] == [{"(a, b)"}]


def test_tuple_of_a_record_is_the_same_in_any_order() -> None:
    """If the record of a scan already has the tuple, other groups use this tuple's key."""
    work = Workload()
    work.add(ORDERS, {("", "(b, a)"): IN}, 1000, 10)
    work.add(ORDERS, {A: EQUALS, B: EQUALS}, 1000, 10)
    assert [set(added(group)) for group in with_tuples(work)] == [{"(b, a)"}, {"(b, a)"}]


@pytest.mark.parametrize(
    ("key", "names"),
    [
        (("", "(a, b)"), {"a", "b"}),
        (("", "(a, s.`b, b`)"), {"a", "s.`b, b`"}),
        (("", "(a + b)"), None),
        (("", "(a)"), None),
        (("", "lower(a)"), None),
        (("", "(a, b)", "elements"), None),
        (("", "(on, b)"), {"`on`", "b"}),
        (("", "(`on`, b)"), {"`on`", "b"}),
        (("a",), None),
    ],
)
def test_names_of_a_key(key: Column, names: set[str] | None) -> None:
    """A key with several names is the key of a tuple."""
    assert names_of(key) == names
