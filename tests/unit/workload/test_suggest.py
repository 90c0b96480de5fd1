from __future__ import annotations

import pytest

from sieve.workload.benefit import Benefit, benefit_of
from sieve.workload.column_use import ColumnUse, Kind
from sieve.workload.scan_groups import Workload
from sieve.workload.suggest import ColumnTest, Suggestion, suggest
from sieve.workload.tuples import with_tuples

ORDERS, ITEMS = ("shop", "orders"), ("shop", "items")
ID, DAY, NOTE = ("id",), ("day",), ("note",)
EQUALS, RANGE = ColumnUse(Kind.EQUALS), ColumnUse(Kind.RANGE)


def test_scans_with_the_same_columns_form_one_group() -> None:
    """Scans with the same table, columns and kinds form a group, even if their IN lists differ."""
    work = Workload()
    work.add(ORDERS, {ID: ColumnUse(Kind.IN, 2), DAY: RANGE}, 1000, 10)
    work.add(ORDERS, {DAY: RANGE, ID: ColumnUse(Kind.IN, 5)}, 2000, 10)
    work.add(ITEMS, {ID: EQUALS}, 10, 1)
    first, second = work
    assert (first.table, first.kinds) == (ORDERS, {DAY: Kind.RANGE, ID: Kind.IN})
    assert (first.scans, first.bytes) == (2, 3000)
    assert first.left == {ID: 200.0 + 1000.0, DAY: 1000.0}
    assert (second.table, second.scans, second.bytes) == (ITEMS, 1, 10)


def test_files_are_those_of_one_scan() -> None:
    """If a record adds several scans at once, the estimate for each scan is one file per value."""
    work = Workload()
    work.add(ORDERS, {ID: EQUALS}, 1000, 40, scans=4)
    (group,) = work
    assert (group.scans, group.left) == (4, {ID: 100.0})


def test_indexes_are_ranked_by_the_bytes_they_save() -> None:
    """The suggested indexes are sorted by the bytes that they save."""
    work = Workload()
    work.add(ITEMS, {ID: EQUALS}, 1000, 10)
    work.add(ORDERS, {DAY: RANGE}, 3000, 10)
    work.add(ORDERS, {ID: EQUALS}, 2000, 10)
    assert suggest(work) == [
        Suggestion(ORDERS, DAY, {Kind.RANGE: 1}, 1, 3000, 2000, 10.0, pytest.approx(10 / 3)),
        Suggestion(ORDERS, ID, {Kind.EQUALS: 1}, 1, 2000, 1800, 10.0, 1.0),
        Suggestion(ITEMS, ID, {Kind.EQUALS: 1}, 1, 1000, 900, 10.0, 1.0),
    ]


def test_second_index_saves_only_what_the_first_leaves() -> None:
    """Together, the indexes of a table save at most the bytes that its scans read."""
    work = Workload()
    work.add(ORDERS, {ID: EQUALS, DAY: RANGE}, 9000, 10)
    work.add(ORDERS, {DAY: RANGE}, 300, 10)
    assert [(one.column, one.bytes_saved) for one in suggest(work)] == [(ID, 8100), (DAY, 200)]
    assert [one.bytes_read for one in suggest(work)] == [9000, 9300]
    assert [one.scans for one in suggest(work)] == [1, 2]


def test_saving_below_a_hundredth_is_not_suggested() -> None:
    """A suggestion must save at least a hundredth of the bytes of the table's scans."""
    work = Workload()
    work.add(ORDERS, {}, 9850, 10)
    work.add(ORDERS, {DAY: RANGE}, 150, 10)
    assert [one.bytes_saved for one in suggest(work)] == [100]
    work.add(ORDERS, {}, 1, 1)
    assert suggest(work) == []


def test_unsupported_kinds_are_not_suggested() -> None:
    """There is no suggestion for inequality, or for scans that read no bytes."""
    work = Workload()
    work.add(ORDERS, {ID: ColumnUse(Kind.UNEQUAL)}, 10_000, 10)
    work.add(ITEMS, {ID: EQUALS}, 0, 0)
    work.add(("shop", "empty"), {ID: EQUALS}, 1, 100)
    assert suggest(work) == []


def test_one_byte_is_the_least_saving() -> None:
    """A saving of one byte is enough for a suggestion."""
    work = Workload()
    work.add(ITEMS, {ID: EQUALS}, 2, 2)
    assert [one.bytes_saved for one in suggest(work)] == [1]


def test_suggestion_counts_all_scans_by_kind() -> None:
    """A suggestion counts scans of each kind, even of kinds for which an index does not help."""
    work = Workload()
    work.add(ORDERS, {ID: ColumnUse(Kind.UNEQUAL)}, 10, 1)
    work.add(ORDERS, {ID: EQUALS, NOTE: ColumnUse(Kind.OTHER)}, 1000, 10)
    work.add(ORDERS, {ID: EQUALS}, 1000, 10)
    (one,) = suggest(work)
    assert list(one.kinds.items()) == [(Kind.EQUALS, 2), (Kind.UNEQUAL, 1)]
    assert (one.scans, one.bytes_read, one.bytes_saved) == (3, 2010, 1800)


def test_ties_are_in_the_order_of_names() -> None:
    """Suggestions with equal savings are in the order of names, for any order of the scans."""
    work = Workload()
    work.add(ORDERS, {NOTE: EQUALS}, 100, 10)
    work.add(ORDERS, {ID: EQUALS}, 100, 10)
    work.add(ITEMS, {ID: EQUALS}, 100, 10)
    assert [(one.table, one.column) for one in suggest(work)] == [
        (ITEMS, ID),
        (ORDERS, ID),
        (ORDERS, NOTE),
    ]


def test_result_of_a_test_replaces_the_estimate() -> None:
    """A column's test replaces the estimate. Sieve does not suggest an untested column.

    If a test finds a value in three of twenty files, the suggestion expects 1.5 of ten files.
    """
    work = Workload()
    work.add(ORDERS, {ID: EQUALS}, 1000, 10)
    work.add(ORDERS, {DAY: RANGE}, 1000, 10)
    tests = {
        (ORDERS, ID): ColumnTest(Benefit.HELPS, 20, 3.0, 20.0, 3.0),
        (ORDERS, DAY): ColumnTest(Benefit.LITTLE, 20, 20.0, 15.0, 3.0),
    }
    found = [(one.column, one.files_after, one.bytes_saved) for one in suggest(work, tests=tests)]
    assert found == [(ID, 1.5, 850), (DAY, 7.5, 250)]
    assert suggest(work, tests={}) == []
    for benefit in (Benefit.CANNOT, Benefit.SCATTERED):
        helpless = {(ORDERS, ID): ColumnTest(benefit, 20, 3.0, 3.0, 3.0)}
        assert suggest(work, tests=helpless) == []


def test_untested_columns_are_suggested_by_their_bounds() -> None:
    """A column in `untested` needs no test. Other columns without a test are not suggested."""
    work = Workload()
    work.add(ORDERS, {ID: EQUALS, DAY: EQUALS}, 1000, 10)
    tests = {(ORDERS, DAY): ColumnTest(Benefit.CANNOT, 10, 10.0, 10.0, 3.0)}
    found = suggest(work, tests=tests, untested=frozenset({(ORDERS, ID)}))
    assert [one.column for one in found] == [ID]
    assert suggest(work, tests=tests) == []


@pytest.mark.parametrize(("used", "saved"), [((), [250]), (("id_sieve",), [500])])
def test_scans_before_an_index_count_as_they_would_read_today(
    used: tuple[str, ...], saved: list[int]
) -> None:
    """If scans are older than an index, a test of the index shows what they would read today.

    The scans read 750 of 1000 bytes with the index on `id`, and 500 with an index on `day`.
    """
    work = Workload()
    work.add(ORDERS, {ID: EQUALS, DAY: EQUALS}, 1000, 10, used=used)
    tests = {
        (ORDERS, ID): ColumnTest(Benefit.HELPS, 10, 7.5, 10.0, 3.0),
        (ORDERS, DAY): ColumnTest(Benefit.HELPS, 10, 5.0, 10.0, 3.0),
    }
    found = suggest(work, {(ORDERS, ID): "id_sieve"}, tests)
    assert [one.bytes_saved for one in found] == saved


@pytest.mark.parametrize(("of_id", "expected"), [(1.09, ID), (1.11, ("", "(day, id)"))])
def test_tuple_must_save_more_than_its_columns(of_id: float, expected: tuple[str, ...]) -> None:
    """A suggested tuple saves at least a hundredth of the bytes more than the best column."""
    work = Workload()
    work.add(ORDERS, {ID: EQUALS, DAY: EQUALS}, 1000, 10)
    tests = {
        (ORDERS, ID): ColumnTest(Benefit.HELPS, 10, of_id, 10.0, 3.0),
        (ORDERS, DAY): ColumnTest(Benefit.HELPS, 10, 5.0, 10.0, 3.0),
        (ORDERS, ("", "(day, id)")): ColumnTest(Benefit.HELPS, 10, 1.0, 10.0, 3.0),
    }
    assert [one.column for one in suggest(with_tuples(work), tests=tests)] == [expected]


@pytest.mark.parametrize(
    ("kind", "after"),
    [(Kind.JOIN, 7.0), (Kind.PREFIX, 8.0), (Kind.BETWEEN, 8.0), (Kind.NULL, 3.0), (Kind.TOP, 5.0)],
)
def test_result_of_a_test_applies_to_each_kind_of_use(kind: Kind, after: float) -> None:
    """A test decides the estimate for values, NULLs, join keys, prefixes and ranges."""
    work = Workload()
    files = 20 if kind is Kind.TOP else 10
    work.add(ORDERS, {ID: ColumnUse(kind)}, 1000, files)
    share = 10 / files
    tests = {(ORDERS, ID): ColumnTest(Benefit.LITTLE, 10, 7.0, 8.0, 3.0)}
    (one,) = suggest(work, tests=tests)
    assert one.files_after * share == pytest.approx(after)


@pytest.mark.parametrize(
    ("reads", "least", "found"),
    [
        (50, 50, Benefit.HELPS),
        (51, 50, Benefit.LITTLE),
        (51, 51, Benefit.SCATTERED),
        (98.9, 98.9, Benefit.SCATTERED),
        (99, 99, Benefit.CANNOT),
        (2, 2, Benefit.HELPS),
    ],
)
def test_index_helps_if_it_reads_at_most_half(reads: float, least: float, found: Benefit) -> None:
    """An index helps if queries with it read at most half of the table.

    If queries with the best index would read more than half of the table, an index's options do not
    matter. No index can help if queries with the best index would read the whole table.
    """
    assert benefit_of(reads, least, 100) == found
