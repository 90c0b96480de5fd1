"""With weights of locations, an index spends its bytes where queries save the most bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from sieve.arrays.dtypes import Codes, Counts, Weights
from sieve.segments.budget import prices_for
from sieve.segments.intervals import quantize
from sieve.segments.intervals.cut_gaps import Intervals, concatenated, cut_location
from sieve.segments.intervals.format import CODINGS, IN_BLOCKS, IN_CELLS
from sieve.segments.intervals.plan_segments import Plan, Segment, fitted, plan
from sieve.segments.intervals.quantize import Part
from sieve.segments.payload import decode
from sieve.segments.query_model import QueryModel
from sieve.segments.weights import weights_at, weights_of

MB = 1 << 20


def test_weights_are_bytes_over_their_mean() -> None:
    """The weight of a location is its size, divided by the mean size.

    If all locations have the same size, there are no weights. If a location has no bytes, its
    weight is slightly above 0.
    """
    weights = weights_of(np.array([MB, 3 * MB]))
    assert weights is not None
    assert (weights.dtype, weights.tolist()) == (np.float32, [0.5, 1.5])
    assert weights_of(np.array([7, 7, 7])) is None
    assert weights_of(np.array([], np.int64)) is None
    small = weights_of(np.array([0, 2 * MB]))
    assert small is not None
    assert 0 < small[0] < 1e-5
    assert weights_at(weights, np.array([1, 1, 0], np.int32)).tolist() == [1.5, 1.5, 0.5]
    assert weights_at(None, np.array([1, 1, 0], np.int32)).tolist() == [1, 1, 1]


def two_stretches(file: int) -> Codes:
    """A file with keys on both sides of one gap. Two of these files never share a key."""
    return np.concatenate([np.arange(0, 100), np.arange(10_000, 10_100)]) * 2 + file


def column(files: list[Codes]) -> tuple[Intervals, QueryModel]:
    """Makes intervals that are cut at all gaps of each file, and the query model of all keys."""
    model = QueryModel.of_sample(np.concatenate(files))
    parts = [cut_location(keys, np.ones_like(keys), k, model, 0.0) for k, keys in enumerate(files)]
    return concatenated(parts), model


def locations_in(segments: list[Segment], first: int, last: int) -> set[int]:
    """Returns the locations in which a key of the interval can be."""
    entries = [decode(segment.payload) for segment in segments]
    return {int(k) for e in entries for k in e.location[(e.low <= last) & (e.high >= first)]}


def test_the_gap_of_a_large_location_is_kept_first() -> None:
    """If two locations have the same gap, a plan stores the larger location's gap first.

    The gap of the larger location saves more bytes.
    """
    cuts, model = column([two_stretches(0), two_stretches(1)])
    weights = weights_of(np.array([MB, 100 * MB]))
    assert weights is not None
    kept = set()
    for price in np.geomspace(1, 1e-4, 40).tolist():
        found = locations_in(list(plan(cuts, model, weights=weights).emit(price)), 9000, 9100)
        kept.add(frozenset(found))
        # Without weights, both gaps have the same value.
        alike = locations_in(list(plan(cuts, model).emit(price)), 9000, 9100)
        assert alike in (set(), {0, 1})
    assert kept == {frozenset({0, 1}), frozenset({0}), frozenset()}


def test_reads_without_a_match_count_by_weight() -> None:
    """The expected reads without a match are the sum of the weights of the locations read.

    At the high price, the plan stores no gap, so a query in the gap reads both locations.
    """
    cuts, model = column([two_stretches(0), two_stretches(1)])
    weights = weights_of(np.array([MB, 100 * MB]))
    assert weights is not None
    gap = 2 * 9_900 / 20_201
    for some, read in ((None, [1.0, 1.0]), (weights, weights.tolist())):
        for keep, price in ((2, 1e9), (0, 1e-9)):
            segments = list(plan(cuts, model, some, (IN_CELLS,)).emit(price))
            vain = sum(float(segment.expected[1]) for segment in segments)
            expected = gap * sum(read) if keep else 0.0
            assert vain == pytest.approx(expected, rel=0.02, abs=0.02)


def part_of(cuts: Intervals, weights: Weights | None) -> Part:
    """A plan's only part, with all entries."""
    first, last = int(cuts.first.min()), int(cuts.last.max())
    ends = cuts.first, cuts.last, cuts.location
    return Part(first, last, *ends, weights, 0, 0, np.zeros(6))


def test_shares_between_entries_count_by_weight() -> None:
    """The result sums the share of queries between entries over all locations.

    Each location's share is multiplied by the location's weight.
    """
    cuts, model = column([np.arange(5) * 900, np.array([7]), np.array([50, 4000]), np.arange(9)])
    weights = np.array([0.5, 2, 4, 8], np.float32)
    whole, alone = part_of(cuts, weights), part_of(cuts, None)
    entries = cuts.first, cuts.last, cuts.location
    found = quantize._free(whole, model, *entries)
    parts = [
        weights[k] * quantize._free(alone, model, *(each[cuts.location == k] for each in entries))
        for k in range(4)
    ]
    assert found == pytest.approx(np.sum(parts, axis=0))


def test_borders_of_large_locations_are_finer() -> None:
    """Borders of a location with 2^6 times the weight have 6 more bits."""
    cuts, model = column(scattered(8, 300, 10))
    grids = [
        quantize._pieces(part_of(cuts, weights), model, 1e-3)
        for weights in (np.full(8, 1, np.float32), np.full(8, 64, np.float32))
    ]
    for (start, shift), (other_start, other_shift) in zip(*grids, strict=True):
        assert np.array_equal(start, other_start)
        assert np.array_equal(shift - 6, other_shift)


def scattered(files: int, keys: int, stretches: int) -> list[Codes]:
    """Makes files whose keys are in random parts of the domain."""
    rng = np.random.default_rng(4)
    made = []
    for _ in range(files):
        starts = rng.choice(4000, stretches, replace=False) * 1_000_000
        codes = np.repeat(starts, keys // stretches) + rng.integers(0, 1_000_000, keys)
        made.append(np.unique(codes))
    return made


def sizes_of(files: int) -> Counts:
    """Makes sizes of files. A tenth of the files have nearly all bytes."""
    return np.where(np.arange(files) % 10 == 0, 100 * MB, MB)


def points(files: list[Codes]) -> Codes:
    """Probes for single keys, present and absent."""
    rng = np.random.default_rng(5)
    codes = np.sort(
        np.concatenate([rng.choice(np.concatenate(files), 60), rng.integers(0, 4e9, 60)])
    )
    return np.stack([codes, codes], axis=1)


def bytes_read(segments: list[Segment], probes: Codes, sizes: Counts) -> int:
    """Sums the bytes of all locations that the probes read."""
    return sum(int(sizes[list(locations_in(segments, *probe))].sum()) for probe in probes.tolist())


@pytest.mark.parametrize("codings", [CODINGS, (IN_CELLS,), (IN_BLOCKS,)])
def test_a_trial_counts_bytes(codings: Sequence[int]) -> None:
    """The weighted reads of a trial equal the bytes that probes read in the written segments."""
    files = scattered(40, 300, 10)
    sizes, probes = sizes_of(40), points(files)
    planned = plan(*column(files), weights_of(sizes), codings)
    for price in (1e-4, 1e-5, 1e-6):
        _, (read,) = planned.trial(price, [probes])
        written = bytes_read(list(planned.emit(price)), probes, sizes)
        assert read * sizes.mean() == pytest.approx(written, rel=0.1)


@pytest.mark.parametrize("codings", [CODINGS, (IN_CELLS,), (IN_BLOCKS,)])
def test_a_tight_budget_reads_fewer_bytes_with_weights(codings: Sequence[int]) -> None:
    """With weights, a small budget serves the few large files, so queries read fewer bytes.

    Queries then read more small files without a match.
    """
    files = scattered(60, 400, 20)
    sizes, probes = sizes_of(60), points(files)
    cuts, model = column(files)

    def read(weights: Weights | None) -> int:
        planned: Plan = plan(cuts, model, weights, codings)
        *_, segments = fitted(planned, prices_for(60, 1200), 1200)
        assert sum(len(segment.payload) for segment in segments) <= 1200
        return bytes_read(segments, probes, sizes)

    assert read(weights_of(sizes)) < 0.75 * read(None)
