"""Tests the grids of segments: pieces with cells of equal width, blocks, and estimated bytes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sieve.errors import CorruptError
from sieve.segments.intervals import integer_coding, plan_segments, quantize
from sieve.segments.intervals.cut_gaps import Intervals
from sieve.segments.intervals.format import (
    CODINGS,
    IN_BLOCKS,
    IN_CELLS,
    Cells,
    _arrays,
    encode,
    expected_size,
)
from sieve.segments.intervals.grid import Grid
from sieve.segments.intervals.plan_segments import SEGMENT_OVERHEAD, Plan, fitted, plan
from sieve.segments.payload import decode
from sieve.segments.query_model import QueryModel
from tests.unit.segments.test_shapes import column, random_files


@pytest.mark.parametrize(
    ("asked", "bounds", "shifts"),
    [
        ([5.0], [0], [5]),
        ([9.0, 1.0], [0], [5]),
        ([9.0, 1.0, 2.0], [0], [2]),
        ([9.0, 1.0, 4.0, 2.0], [0], [3]),
        ([3.0, 4.0, 7.0, 7.0, 8.0, 0.0], [0, 2, 4], [3, 7, 4]),
        ([-9.0, -7.0, 80.0, 99.0], [0, 2], [0, 63]),
        ([1.0, 2.0, 3.0, 40.0, 50.0, 60.0, 70.0], [0, 3], [2, 55]),
    ],
)
def test_width_of_cells_is_the_median_over_the_borders(
    asked: list[float], bounds: list[int], shifts: list[int]
) -> None:
    """Each border of an entry has a best cell width; a grid piece uses the median width.

    If the number of widths is even, the median is the mean of the middle two, rounded down.
    """
    found = quantize._medians(np.array(asked), np.array(bounds))
    assert found.tolist() == shifts


def cells(pieces: int) -> Cells:
    """Entries of several locations, on a grid that has this many pieces."""
    start = 64 * np.arange(pieces, dtype=np.uint64)
    grid = Grid.of(0, 64 * pieces - 1, start, np.arange(pieces, dtype=np.uint8) % 3)
    assert grid is not None
    begin = np.sort(np.random.default_rng(2).integers(0, grid.cells - 2, 40).astype(np.uint64))
    location = np.arange(40, dtype=np.int32) * 3 % 40
    order = np.lexsort((location, begin))
    return Cells(grid, begin, begin + np.uint64(1), location[order])


@pytest.mark.parametrize("shape", [IN_CELLS, IN_BLOCKS])
def test_estimated_size_without_arrays_is_exact(shape: int) -> None:
    """The sizes of a segment's head and pieces are exact. Only the sizes of arrays are estimates.

    The head has 32 bytes, and each piece has three bytes.
    """
    for pieces in (1, 2, 7, 40):
        given = cells(pieces)
        arrays = list(_arrays(given, shape).values())
        estimated = sum(integer_coding.expected_size(array) for array in arrays)
        assert expected_size(given, shape) - estimated == pytest.approx(32 + 3 * pieces, abs=1e-6)
        written = sum(len(integer_coding.encode(array)) for array in arrays)
        # The first piece stores no width. A segment with blocks stores the number of its blocks.
        blocks = 4 if shape == IN_BLOCKS else 0
        assert len(encode(given, shape)) - written == 32 + 3 * pieces - 2 + blocks


def long_segments() -> Plan:
    """A plan of five segments with very different numbers of bytes per entry."""
    random = np.random.default_rng(4)
    n = 4 * 16384 + 100
    first = np.sort(random.choice(1 << 40, n, replace=False))
    first[n // 2 :] += (1 << 50) + 5 * np.arange(n - n // 2)
    location = random.integers(0, 300, n).astype(np.int32)
    ones = np.ones(n, np.int64)
    intervals = Intervals(first, first, location, ones, ones)
    return plan(intervals, QueryModel.of_sample(first[::50]), codings=(IN_CELLS,))


def test_a_trial_encodes_some_segments_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial of many segments encodes at most three segments, at equal distances.

    From these segments, a trial estimates the bytes and entries of all segments.
    """
    planned = long_segments()
    price = 1e-12
    segments = list(planned.emit(price))
    assert len(segments) == 5
    tried: list[int] = []
    cheapest = Plan._cheapest

    def counted(self: Plan, part: quantize.Part, price: float) -> quantize.Coded:
        tried.append(part.first)
        return cheapest(self, part, price)

    monkeypatch.setattr(Plan, "_cheapest", counted)
    size, _ = planned.trial(price, [])
    # Of five segments, a trial encodes only the second and the fourth.
    assert tried == [segments[1].first, segments[3].first]
    written = sum(len(s.payload) + SEGMENT_OVERHEAD for s in segments)
    assert size == pytest.approx(written, rel=0.1)
    tried.clear()
    curve = planned.curve(np.array([4 * price, 2 * price, price]), 1e9)
    assert len(tried) == 3 * 2
    assert curve[-1] == pytest.approx(written, rel=0.15)


def test_a_trial_of_a_few_segments_is_exact() -> None:
    """A trial of a plan with up to three segments encodes all of them, so its estimate is exact."""
    planned = plan(*column(random_files(10, 50)), codings=(IN_CELLS,))
    segments = list(planned.emit(1e-12))
    assert len(segments) <= 3
    size, named = planned.trial(1e-12, [])
    assert (size, named) == (sum(len(s.payload) + SEGMENT_OVERHEAD for s in segments), [])


def test_one_more_entry_costs_less_than_a_mean_entry() -> None:
    """By the estimate, one more entry needs slightly fewer bytes than the mean entry."""
    planned = plan(*column(random_files(10, 50)), codings=(IN_CELLS,))
    (segment,) = planned.emit(1e-9)
    mean = len(segment.payload) / segment.postings
    assert planned._entry_bytes(1e-9) == pytest.approx(0.8 * mean, rel=0.05)
    nothing = planned.intervals.take(np.zeros(len(planned.intervals), np.bool_))
    assert plan(nothing, planned.query_model)._entry_bytes(1e-9) == 2.0


@pytest.mark.parametrize(
    ("n", "problem"),
    [
        (0, "claims 0 blocks"),
        (1, "ends inside"),
        (1 << 25, "ends inside"),
        ((1 << 25) + 1, "claims"),
    ],
)
def test_blocks_are_at_most_twice_the_entries(n: int, problem: str) -> None:
    """A payload is corrupt if it has more blocks than twice its maximum number of entries."""
    head = struct.pack("<BBqqIIIBB", IN_BLOCKS, 1, 10, 19, 2, 7, 2, 0, 0)
    with pytest.raises(CorruptError, match=problem):
        decode(head + bytes([0]) + struct.pack("<I", n))


@pytest.mark.parametrize(
    ("begin", "end", "blocks"),
    [([0], [0], 1), ([0, 0], [3, 3], 1), ([0, 0, 2, 4], [1, 3, 3, 4], 3), ([0, 5], [2, 9], 3)],
)
def test_blocks_are_the_stretches_between_distinct_borders(
    begin: list[int], end: list[int], blocks: int
) -> None:
    """Each block of a segment extends from one distinct border to the next.

    A gap between two entries is a block, too.
    """
    grid = Grid.of(0, 9, np.zeros(1, np.uint64), np.zeros(1, np.uint8))
    assert grid is not None
    ends = (np.array(codes, np.uint64) for codes in (begin, end))
    given = Cells(grid, *ends, np.arange(len(begin), dtype=np.int32))
    assert quantize.blocks_of(given) == blocks


def named(low: np.ndarray, high: np.ndarray, location: np.ndarray, asked: np.ndarray) -> float:
    """Returns the mean number of locations with an entry that overlaps a queried range."""
    found = 0
    for number in np.unique(location):
        own = location == number
        meets = (low[own] <= asked[:, 1:]) & (high[own] >= asked[:, :1])
        found += int(np.count_nonzero(meets.any(axis=1)))
    return found / len(asked)


@pytest.mark.parametrize("coding", CODINGS)
def test_expected_reads_without_a_match_are_those_counted(coding: int) -> None:
    """The expected reads without a match, for a segment, equal the reads that this test counts.

    The queries are for the keys of rows, for all codes, and for ranges of 0.05 % of the domain.
    """
    files = random_files(10, 200)
    intervals, query_model = column(files)
    (segment,) = plan(intervals, query_model, codings=(coding,)).emit(3e-4)
    rows = decode(segment.payload)
    keys = np.sort(np.concatenate(files))
    first, last = int(keys[0]), int(keys[-1])
    length = round(0.0005 * (last - first + 1))
    codes = np.linspace(first, last, 20_000).astype(np.int64)
    starts = np.linspace(first, last - length, 20_000).astype(np.int64)
    kinds = (
        np.stack([keys, keys], axis=1),
        np.stack([codes, codes], axis=1),
        np.stack([starts, starts + length], axis=1),
    )
    vain = [
        named(rows.low, rows.high, rows.location, asked)
        - named(intervals.first, intervals.last, intervals.location, asked)
        for asked in kinds
    ]
    assert min(vain) > 0.05
    # The model expects more keys between the sampled keys. So the test does not compare the first
    # kind of query.
    assert segment.expected[1:] == pytest.approx(vain[1:], rel=0.1)


CELLS = (IN_CELLS,)
SEGMENTS = {
    "auto": [SimpleNamespace(expected=np.array([1.0, 2.0, 3.0]))],
    "better": [SimpleNamespace(expected=np.array([5.0, 0.0, 0.9]))],
    "worse": [SimpleNamespace(expected=np.array([5.0, 1.0, 0.1]))],
    "same": [SimpleNamespace(expected=np.array([3.0, 2.0, 1.0]))],
}


@pytest.mark.parametrize(
    ("codings", "size", "price", "has_blocks", "cells", "taken"),
    [
        (CODINGS, 799.0, 2.0, True, "better", CELLS),
        (CODINGS, 799.0, 2.0, True, "worse", CODINGS),
        (CODINGS, 799.0, 2.0, True, "same", CODINGS),
        # The first plan stays in three cases: it uses much of the budget, no segment has blocks, or
        # no price is lower.
        (CODINGS, 800.0, 2.0, True, "better", CODINGS),
        (CODINGS, 799.0, 2.0, False, "better", CODINGS),
        (CODINGS, 799.0, 1.0, True, "better", CODINGS),
        ((IN_BLOCKS,), 799.0, 2.0, True, "better", (IN_BLOCKS,)),
    ],
)
def test_plan_without_blocks_is_tried_if_much_budget_is_left(
    monkeypatch: pytest.MonkeyPatch,
    codings: Sequence[int],
    size: float,
    price: float,
    has_blocks: bool,
    cells: str,
    taken: Sequence[int],
) -> None:
    """If a plan leaves much of the budget unused, a build also tries a plan without blocks.

    The build keeps the plan for which queries read fewer files without a match.
    """
    tried: list[Sequence[int]] = []

    def sought(planned: Plan, prices: np.ndarray, budget: float) -> Any:
        assert (prices.tolist(), budget) == ([4.0, 1.0], 1000.0)
        tried.append(planned.codings)
        if planned.codings == CELLS:
            return 1.5, SEGMENTS[cells], 900.0, False
        return price, SEGMENTS["auto"], size, has_blocks

    monkeypatch.setattr(plan_segments, "_sought", sought)
    planned = plan(*column(random_files(2)), codings=codings)
    found, at, segments = fitted(planned, np.array([4.0, 1.0]), 1000.0)
    assert found.codings == taken
    assert (at, segments) == (
        (1.5, SEGMENTS[cells]) if taken == CELLS else (price, SEGMENTS["auto"])
    )
    assert len(tried) == (
        2 if (codings, size, price, has_blocks) == (CODINGS, 799.0, 2.0, True) else 1
    )
