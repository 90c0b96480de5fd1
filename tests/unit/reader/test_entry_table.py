"""Look-ups in a chunk of a run, for intervals of key codes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from sieve.arrays.interval_set import meeting, merge
from sieve.encoding.encoder import GREATEST, LEAST
from sieve.errors import CorruptError
from sieve.reader.entry_table import assemble
from sieve.segments.blocks.format import CSR, Segment, encode_segment
from sieve.segments.payload import decode


def segment(first, last, width, *blocks):
    """Makes the entries of a segment; `blocks` lists the locations of each block."""
    locations = np.array([location for block in blocks for location in block], np.int32)
    offsets = np.cumsum([0, *map(len, blocks)])
    rows = np.ones(len(locations), np.int64)
    return decode(encode_segment(Segment(first, last, width, CSR(offsets, locations, rows))))


def found(chunk, *intervals):
    """Returns the numbers of the locations that a look-up in the chunk finds."""
    flags = np.zeros(1000, np.bool_)
    asked = merge(np.array(intervals, np.int64).reshape(-1, 2))
    chunk.mark(asked, flags)
    return np.flatnonzero(flags).tolist()


@pytest.fixture
def run():
    """A chunk with five locations: keys 0..29 in three blocks, and keys 100..119 in two blocks."""
    return assemble([segment(100, 119, 10, (3,), (0, 4)), segment(0, 29, 10, (0,), (), (1, 2))])


@pytest.mark.parametrize(
    ("low", "high", "locations"),
    [
        (0, 0, [0]),
        (9, 9, [0]),
        (10, 19, []),
        (9, 20, [0, 1, 2]),
        (29, 29, [1, 2]),
        (30, 99, []),
        (29, 100, [1, 2, 3]),
        (-50, -1, []),
        (120, GREATEST, []),
        (LEAST, 0, [0]),
        (119, GREATEST, [0, 4]),
        (15, 105, [1, 2, 3]),
        (LEAST, GREATEST, [0, 1, 2, 3, 4]),
        (5, 4, []),
        (GREATEST, LEAST, []),
    ],
)
def test_interval_finds_the_blocks_that_share_a_key(run, low, high, locations):
    """A look-up of an interval finds the locations of all overlapping blocks."""
    assert found(run, (low, high)) == locations


def test_look_up_finds_the_locations_of_all_intervals(run):
    """A look-up of several intervals finds all their locations, even if the intervals overlap."""
    assert found(run, (115, 118), (0, 3), (2, 5), (7, 6), (200, 300)) == [0, 4]
    assert found(run, (0, 105), (1, 2), (108, 109)) == [0, 1, 2, 3]
    assert found(run, (0, 9), (20, 29), (100, 100), (1, 1)) == [0, 1, 2, 3]
    assert found(run) == []


def test_distant_points_skip_the_locations_between_them(run):
    """A look-up of two distant points skips locations whose keys are all between the points."""
    assert found(run, (0, 0), (105, 105)) == [0, 3]


def test_long_slices_and_short_ones_agree():
    """Look-ups find the right locations in blocks of one location and in blocks of hundreds.

    Different algorithms look up short and long lists of locations.
    """
    wide = segment(0, 2, 1, range(300), (300,), range(301, 900))
    run = assemble([wide, segment(10, 10, 1, (950,))])
    assert found(run, (0, 0)) == list(range(300))
    assert found(run, (1, 1), (10, 10)) == [300, 950]
    assert found(run, (0, 1), (10, 10)) == [*range(301), 950]


def test_the_ends_of_the_domain_are_found():
    """In a segment over all 2^64 codes, look-ups are right at both ends and in the middle."""
    width = -(-(1 << 64) // 3)
    run = assemble([segment(LEAST, GREATEST, width, (0,), (1,), (2,))])
    assert found(run, (LEAST, LEAST)) == [0]
    assert found(run, (0, 0)) == [1]
    assert found(run, (GREATEST, GREATEST)) == [2]
    assert found(run, (LEAST, -1), (1, GREATEST)) == [0, 1, 2]


def test_chunk_without_segments_finds_nothing():
    """In a chunk without segments, look-ups find no location."""
    run = assemble([])
    assert found(run, (LEAST, GREATEST)) == []
    assert found(run, (0, 0), (5, 9)) == []


def test_mark_keeps_existing_locations(run):
    """`mark` adds locations to a result, and keeps the locations that the result already has."""
    flags = np.array([False] * 5 + [True])
    run.mark(np.array([[0, 0]]), flags)
    assert flags.tolist() == [True] + [False] * 4 + [True]


def test_locations_are_counted_from_the_segments():
    """The number of locations is one more than the greatest location number in the segments."""
    assert assemble([segment(0, 0, 1, (7,))]).n_locations == 8
    assert assemble([]).n_locations == 0


def test_meeting_returns_the_intervals_of_each_range():
    """For each range, `meeting` returns the intervals that share a key with this range."""
    asked = merge(np.array([[0, 4], [10, 10], [20, 30]]))
    ranges = np.array([[21, 25], [-5, -1], [4, 10], [5, 9], [0, 99], [31, 40]])
    start, stop = meeting(asked, ranges[:, 0], ranges[:, 1])
    met = [list(range(a, b)) for a, b in zip(start.tolist(), stop.tolist(), strict=True)]
    assert met == [[2], [], [0, 1], [], [0, 1, 2], []]


def test_overlapping_segments_are_corrupt():
    """Overlapping segments are corrupt, because a look-up searches only one segment."""
    with pytest.raises(CorruptError, match="overlap"):
        assemble([segment(0, 9, 10, (0,)), segment(9, 19, 11, (1,))])


def test_size_of_a_chunk_includes_all_its_arrays():
    """The size of a chunk includes all its arrays, so the cache counts all bytes of the arrays."""
    run = assemble([segment(0, 999, 1, *((k % 10,) for k in range(1000)))])
    assert run.nbytes >= run.low.nbytes + run.high.nbytes + run.reach.nbytes + run.location.nbytes


def test_holds_agrees_with_look_ups():
    """For random segments of overlapping entries, `holds` and look-ups return the same result."""
    random = np.random.default_rng(5)
    for _ in range(20):
        blocks = [sorted(random.choice(6, random.integers(1, 4), replace=False)) for _ in range(9)]
        chunk = assemble([segment(0, 79, 10, *blocks[:8]), segment(95, 97, 9, blocks[8])])
        high = chunk.high + random.integers(0, 25, len(chunk.high))
        chunk = dataclasses.replace(chunk, high=high, reach=np.maximum.accumulate(high))
        codes = np.arange(-3, 130)
        for location in range(7):
            by_look_up = [location in found(chunk, (code, code)) for code in codes.tolist()]
            assert chunk.holds(codes, location).tolist() == by_look_up
