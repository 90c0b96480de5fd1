"""Tests how intervals of locations are cut, split and merged."""

from __future__ import annotations

import numpy as np
import pytest

from sieve.encoding.encoder import GREATEST, LEAST
from sieve.segments.intervals.cut_gaps import (
    Intervals,
    concatenated,
    cut_location,
    overprovisioned_most,
    overprovisioned_threshold,
    overprovisioned_total,
    split_at,
    united,
)
from sieve.segments.query_model import QueryModel


def made(*rows):
    """Converts tuples (first, last, location, keys, rows) to intervals."""
    first, last, location, keys, counts = zip(*rows, strict=True)
    return Intervals(
        np.array(first, np.int64),
        np.array(last, np.int64),
        np.array(location, np.int32),
        np.array(keys, np.int64),
        np.array(counts, np.int64),
    )


def rows_of(intervals):
    """Converts intervals to tuples."""
    names = ("first", "last", "location", "keys", "rows")
    return list(zip(*(getattr(intervals, name).tolist() for name in names), strict=True))


KEYS = np.array([1, 2, 10, 11, 500, 1000])
ROWS = np.array([1, 2, 3, 4, 5, 6])
MASS = QueryModel.of_sample(np.arange(1001))


def test_the_most_valuable_gaps_are_kept():
    """Intervals end at each gap with a value above the threshold, and lose no key or row."""
    assert rows_of(cut_location(KEYS, ROWS, 7, MASS, 0.1)) == [
        (1, 11, 7, 4, 10),
        (500, 500, 7, 1, 5),
        (1000, 1000, 7, 1, 6),
    ]
    assert rows_of(cut_location(KEYS, ROWS, 7, MASS, 2.0)) == [(1, 1000, 7, 6, 21)]
    assert len(cut_location(KEYS, ROWS, 7, MASS, 0.0)) == 4


def test_no_more_intervals_than_allowed():
    """If a location would have too many intervals, it is cut only at its most valuable gaps."""
    assert rows_of(cut_location(KEYS, ROWS, 7, MASS, 0.0, most=2)) == [
        (1, 500, 7, 5, 15),
        (1000, 1000, 7, 1, 6),
    ]
    assert rows_of(cut_location(KEYS, ROWS, 7, MASS, 0.0, most=1)) == [(1, 1000, 7, 6, 21)]


def test_widest_of_many_gaps_are_kept():
    """If there are many gaps, intervals end at the widest gaps, wherever the gaps are."""
    gaps = np.random.default_rng(5).permutation(np.arange(1, 301))
    keys = np.append(0, np.cumsum(gaps))
    even = QueryModel.of_sample(np.arange(keys[-1] + 1))
    made = cut_location(keys, np.ones(len(keys), np.int64), 7, even, 0.0, most=40)
    assert (made.first[1:] - made.last[:-1]).tolist() == [gap for gap in gaps if gap > 261]


def test_one_key_is_one_interval():
    """A location with one key has one interval."""
    for key in (LEAST, 0, GREATEST):
        cut = cut_location(
            np.array([key]), np.array([9]), 0, QueryModel.of_sample(np.array([key])), 0.0
        )
        assert rows_of(cut) == [(key, key, 0, 1, 9)]


def test_budget_bounds_the_sent_intervals():
    """A task may return a location's intervals in proportion to the budget, plus a fixed number."""
    more, less = (
        overprovisioned_most(100, 1000, 10, 8000.0),
        overprovisioned_most(100, 1000, 10, 4000.0),
    )
    assert more - 64 == 2 * (less - 64)
    assert overprovisioned_most(0, 1000, 10, 8000.0) - 64 == (more - 64) / 2
    assert overprovisioned_most(0, 0, 0, 0.0) == 64
    assert overprovisioned_most(1, 1, 1, 8000.0) == 64 + 12_000
    assert overprovisioned_most(0, 0, 1, 8000.0) == 64 + 6_000
    assert overprovisioned_threshold(200, 1e6) < overprovisioned_threshold(200, 1e4)


def test_total_of_sent_intervals_is_bounded():
    """`overprovisioned_total` limits the total of the intervals that all tasks return.

    `overprovisioned_total` is at most one interval per row.
    """
    rows = [700, 200, 100, 0]
    sent = sum(overprovisioned_most(count, sum(rows), len(rows), 400.0) for count in rows)
    assert sent <= overprovisioned_total(10_000, len(rows), 400.0)
    assert overprovisioned_total(30, len(rows), 400.0) == 30


def test_intervals_are_clipped_at_borders():
    """Borders split an interval. Its keys and rows count only in the first piece."""
    intervals = made((0, 25, 1, 5, 50), (10, 10, 2, 1, 1), (30, 31, 3, 2, 2))
    stretch, pieces = split_at(intervals, np.array([10, 20]))
    assert stretch.tolist() == [0, 1, 2, 1, 2]
    assert rows_of(pieces) == [
        (0, 9, 1, 5, 50),
        (10, 19, 1, 0, 0),
        (20, 25, 1, 0, 0),
        (10, 10, 2, 1, 1),
        (30, 31, 3, 2, 2),
    ]
    assert rows_of(intervals)[0] == (0, 25, 1, 5, 50)


def test_border_at_the_greatest_code_makes_a_stretch():
    """If the last border is the greatest code, the last part of the domain has only this code."""
    stretch, pieces = split_at(made((LEAST, GREATEST, 0, 2, 2)), np.array([LEAST + 1, GREATEST]))
    assert stretch.tolist() == [0, 1, 2]
    assert rows_of(pieces)[0][:2] == (LEAST, LEAST)
    assert rows_of(pieces)[1][:2] == (LEAST + 1, GREATEST - 1)
    assert rows_of(pieces)[2][:2] == (GREATEST, GREATEST)


def test_pieces_of_one_location_are_merged():
    """Overlapping pieces of one location are merged, and sorted by location and key.

    Pieces of different locations are not merged.
    """
    intervals = concatenated(
        [
            made((5, 9, 1, 1, 1), (0, 20, 0, 3, 3)),
            made((2, 6, 1, 1, 1), (10, 12, 1, 2, 2), (3, 4, 0, 1, 1), (20, 22, 0, 1, 1)),
        ]
    )
    assert rows_of(united(intervals)) == [(0, 22, 0, 5, 5), (2, 9, 1, 2, 2), (10, 12, 1, 2, 2)]


def test_empty_list_is_merged_to_an_empty_list():
    """A merge or split of an empty list of intervals gives an empty list."""
    none = concatenated([])
    assert len(united(none)) == 0
    assert len(split_at(none, np.array([3]))[1]) == 0


def test_a_piece_within_another_does_not_shorten_it():
    """If one piece lies within a longer piece, the merged interval ends with the longer piece."""
    nested = made((0, 100, 0, 5, 5), (2, 3, 0, 1, 1), (90, 95, 0, 1, 1), (200, 201, 0, 2, 2))
    assert rows_of(united(nested)) == [(0, 100, 0, 7, 7), (200, 201, 0, 2, 2)]


@pytest.mark.parametrize(
    ("rows", "locations", "budget", "total"),
    [
        (10_000, 4, 400.0, 4 * 64 + 600),
        (855, 4, 400.0, 855),
        (10**9, 1, 1e6, 64 + 1_500_000),
        (10_000, 0, 0.0, 0),
    ],
)
def test_two_bytes_of_budget_add_three_intervals(
    rows: int, locations: int, budget: float, total: int
) -> None:
    """`overprovisioned_total` is 64 intervals per location, plus 3 per 2 bytes of the budget.

    The total never exceeds the number of rows.
    """
    assert overprovisioned_total(rows, locations, budget) == total
    if locations:
        most = overprovisioned_most(rows, rows, locations, budget)
        assert most == 64 + int(1.5 * budget * (1 + 1 / locations) / 2)
