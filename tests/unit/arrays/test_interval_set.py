"""Operations on interval sets return the same integers as Python's sets, even at int64's ends."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sieve.arrays.interval_set import intersect, locate, meeting, merge, spelled_out, starts

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
Pair = tuple[int, int]

few = st.integers(-8, 8)
anywhere = st.lists(st.tuples(few, few), max_size=12)
extremes = st.sampled_from([LEAST, LEAST + 1, -1, 0, 1, GREATEST - 1, GREATEST])


def array(intervals: list[Pair]) -> np.ndarray:
    """The intervals, in the form of the array that the functions accept."""
    return np.array(intervals, np.int64).reshape(-1, 2)


def members(intervals: np.ndarray) -> set[int]:
    """The integers that a set of small intervals contains."""
    return {k for first, last in intervals.tolist() for k in range(first, last + 1)}


def gaps(intervals: np.ndarray) -> list[int]:
    """The distance from each interval to the next interval; touching intervals have distance 1."""
    pairs = intervals.tolist()
    return [b[0] - a[1] for a, b in itertools.pairwise(pairs)]


@given(anywhere, st.booleans())
def test_merging_keeps_the_integers(intervals: list[Pair], touching: bool) -> None:
    """`merge` keeps every integer, and its result contains no overlapping intervals.

    With `touching`, `merge` returns no adjacent intervals and no empty interval.
    """
    made = merge(array(intervals), touching=touching)
    assert members(made) == members(array(intervals))
    assert (made[:, 0] <= made[:, 1]).all()
    assert all(gap > touching for gap in gaps(made))


@given(st.lists(st.tuples(extremes, extremes), max_size=6))
def test_ends_of_the_domain_do_not_overflow(intervals: list[Pair]) -> None:
    """`merge` and `locate` are right even at the ends of int64, where additions overflow."""
    sound = [pair for pair in intervals if pair[0] <= pair[1]]
    for touching in (False, True):
        made = merge(array(intervals), touching=touching)
        assert all(gap > touching for gap in gaps(made))
        inside = [any(a <= k <= b for a, b in sound) for k in (LEAST, -1, 0, 1, GREATEST)]
        found = locate(made[:, 0], made[:, 1], np.array([LEAST, -1, 0, 1, GREATEST]))[1]
        assert found.tolist() == inside


@given(st.lists(st.tuples(st.integers(0, 3), few, st.integers(0, 4)), max_size=14))
def test_each_owner_is_merged_separately(rows: list[tuple[int, int, int]]) -> None:
    """Only intervals of one owner merge; `starts` finds where each merged interval begins."""
    rows = sorted((owner, first, first + more) for owner, first, more in rows)
    owner, first, last = np.array(rows, np.int64).reshape(-1, 3).T
    begin = starts(first, last, owner.astype(np.int32))
    ends = np.maximum.reduceat(last, begin) if len(begin) else last
    for number in range(4):
        own = owner[begin] == number
        expected = merge(array([(a, b) for o, a, b in rows if o == number]))
        assert np.stack([first[begin][own], ends[own]], axis=1).tolist() == expected.tolist()


@given(anywhere, anywhere)
def test_intersection_of_two_sets_is_a_merged_set(one: list[Pair], other: list[Pair]) -> None:
    """The intersection of two merged sets is merged, too."""
    a, b = merge(array(one)), merge(array(other))
    both = intersect(a, b)
    assert members(both) == members(a) & members(b)
    assert merge(both).tolist() == both.tolist()


@given(anywhere, anywhere)
def test_intervals_that_meet_a_set(one: list[Pair], other: list[Pair]) -> None:
    """For each range, `meeting` returns exactly the intervals with an integer of the range."""
    asked, ranges = merge(array(one)), merge(array(other))
    begin, end = meeting(asked, ranges[:, 0], ranges[:, 1])
    for k, (first, last) in enumerate(ranges.tolist()):
        expected = [n for n, (a, b) in enumerate(asked.tolist()) if a <= last and b >= first]
        assert list(range(begin[k], end[k])) == expected


@given(anywhere, st.lists(few, max_size=8))
def test_values_are_located(intervals: list[Pair], values: list[int]) -> None:
    """If an interval contains a value, `locate` finds this interval."""
    some = merge(array(intervals))
    place, inside = locate(some[:, 0], some[:, 1], np.array(values, np.int64))
    assert inside.tolist() == [value in members(some) for value in values]
    for value, at in zip(values, place.tolist(), strict=True):
        assert at == sum(first <= value for first in some[:, 0].tolist()) - 1


@pytest.mark.parametrize(
    ("begin", "end", "numbers"),
    [([], [], []), ([3], [3], []), ([3, 0, 7], [5, 0, 8], [3, 4, 7])],
)
def test_ranges_are_spelled_out(begin: list[int], end: list[int], numbers: list[int]) -> None:
    """`spelled_out` lists the integers of each range in turn; an empty range adds no integer."""
    made = spelled_out(np.array(begin, np.int64), np.array(end, np.int64))
    assert made.tolist() == numbers
