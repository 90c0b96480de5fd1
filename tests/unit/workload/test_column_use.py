from __future__ import annotations

import pytest

from sieve.workload.column_use import ColumnUse, Kind, all_of, any_of, negated

ID, DAY = ("id",), ("day",)


@pytest.mark.parametrize(
    ("use", "files", "share"),
    [
        (ColumnUse(Kind.EQUALS), 100, 0.01),
        (ColumnUse(Kind.IN, 3), 100, 0.03),
        (ColumnUse(Kind.IN, 101), 100, 1.0),
        (ColumnUse(Kind.EQUALS), 0.5, 1.0),
        (ColumnUse(Kind.EQUALS), 0, 1.0),
        (ColumnUse(Kind.NULL), 100, 0.1),
        (ColumnUse(Kind.PREFIX), 100, 0.25),
        (ColumnUse(Kind.BETWEEN), 100, 0.25),
        (ColumnUse(Kind.RANGE), 100, 1 / 3),
        (ColumnUse(Kind.JOIN), 100, 0.5),
        (ColumnUse(Kind.UNEQUAL), 100, 1.0),
        (ColumnUse(Kind.OR), 100, 1.0),
        (ColumnUse(Kind.OTHER), 100, 1.0),
        (ColumnUse(Kind.SHUFFLED_JOIN), 100, 1.0),
        (ColumnUse(Kind.TOP), 100, 0.1),
        (ColumnUse(Kind.TOP), 10, 1.0),
        (ColumnUse(Kind.TOP), 5, 1.0),
        (ColumnUse(Kind.TOP), 0.5, 1.0),
    ],
)
def test_share_of_files_that_a_scan_still_reads(use: ColumnUse, files: float, share: float) -> None:
    """With an index, a scan reads one file per value. For ranges, Selinger's selectivities apply.

    A scan without a useful index reads all files.
    """
    assert use.share_left(files) == share


def test_and_keeps_the_narrowest_use() -> None:
    """If two parts of an AND use the same column, the use that reads fewer files counts.

    If the parts of an AND use different columns, each column's use counts.
    """
    narrow = all_of([{ID: ColumnUse(Kind.RANGE)}, {ID: ColumnUse(Kind.EQUALS)}])
    assert narrow == {ID: ColumnUse(Kind.EQUALS)}
    assert all_of([{ID: ColumnUse(Kind.EQUALS)}, {ID: ColumnUse(Kind.RANGE)}]) == narrow
    both = all_of([{ID: ColumnUse(Kind.IN, 5)}, {DAY: ColumnUse(Kind.NULL)}])
    assert both == {ID: ColumnUse(Kind.IN, 5), DAY: ColumnUse(Kind.NULL)}


def test_and_of_lists_keeps_the_shorter() -> None:
    """If AND joins two value lists of one column, the shorter list counts, in any order."""
    lists = [{ID: ColumnUse(Kind.IN, 5)}, {ID: ColumnUse(Kind.IN, 2)}]
    assert all_of(lists) == all_of(lists[::-1]) == {ID: ColumnUse(Kind.IN, 2)}
    same = [{ID: ColumnUse(Kind.IN, 1)}, {ID: ColumnUse(Kind.EQUALS)}]
    assert all_of(same) == {ID: ColumnUse(Kind.IN, 1)}


def test_two_ranges_are_one_between() -> None:
    """If AND joins two ranges of one column, they become one range with two ends."""
    assert all_of([{ID: ColumnUse(Kind.RANGE)}] * 2) == {ID: ColumnUse(Kind.BETWEEN)}
    assert all_of([{ID: ColumnUse(Kind.UNEQUAL)}] * 2) == {ID: ColumnUse(Kind.UNEQUAL)}
    apart = all_of([{ID: ColumnUse(Kind.RANGE)}, {ID: ColumnUse(Kind.UNEQUAL)}])
    assert apart == {ID: ColumnUse(Kind.RANGE)}


def test_or_of_values_is_a_list() -> None:
    """OR adds the numbers of values with which its parts compare one column."""
    assert any_of([{ID: ColumnUse(Kind.EQUALS)}, {ID: ColumnUse(Kind.IN, 2)}]) == {
        ID: ColumnUse(Kind.IN, 3)
    }


def test_or_keeps_the_widest_use() -> None:
    """If OR uses a column twice, the use that reads more files counts."""
    branches = [{ID: ColumnUse(Kind.EQUALS)}, {ID: ColumnUse(Kind.RANGE)}]
    assert any_of(branches) == any_of(branches[::-1]) == {ID: ColumnUse(Kind.RANGE)}


def test_or_of_other_columns_helps_none() -> None:
    """If a branch of OR does not use a column, an index on the column skips no file."""
    branches = [
        {ID: ColumnUse(Kind.EQUALS), DAY: ColumnUse(Kind.NULL)},
        {DAY: ColumnUse(Kind.NULL)},
    ]
    assert any_of(branches) == {ID: ColumnUse(Kind.OR), DAY: ColumnUse(Kind.NULL)}
    assert any_of([{ID: ColumnUse(Kind.EQUALS)}, {}]) == {ID: ColumnUse(Kind.OR)}


def test_negation_counts_as_inequality() -> None:
    """NOT of any predicate counts as inequality, so a scan reads all files."""
    assert negated({ID: ColumnUse(Kind.IN, 4)}) == {ID: ColumnUse(Kind.UNEQUAL)}
