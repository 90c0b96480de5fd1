"""For any keys, shape and cost per byte, look-ups find all locations of a key."""

from __future__ import annotations

import itertools
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sieve.encoding.encoder import GREATEST, LEAST
from sieve.errors import SieveError
from sieve.segments.blocks.cut_blocks import cut_segments
from sieve.segments.blocks.format import encode_segment
from sieve.segments.intervals import integer_coding
from sieve.segments.intervals.cut_gaps import Intervals, concatenated, cut_location, split_at
from sieve.segments.intervals.format import CODINGS, IN_BLOCKS, IN_CELLS
from sieve.segments.intervals.plan_segments import plan
from sieve.segments.payload import decode
from sieve.segments.query_model import QueryModel
from sieve.segments.weights import weights_of

CODES = st.integers(LEAST, GREATEST)
ENDS = [LEAST, LEAST + 1, LEAST + 2, -1, 0, 1, GREATEST - 2, GREATEST - 1, GREATEST]
KEYS = st.one_of(
    st.lists(st.integers(-40, 40), min_size=1, max_size=60),
    st.lists(st.sampled_from(ENDS), min_size=1, max_size=20),
    st.lists(CODES, min_size=1, max_size=60),
    st.lists(st.one_of(st.integers(0, 20), st.integers(1 << 40, (1 << 40) + 20)), min_size=1),
    st.builds(lambda code, n: [code] * n, CODES, st.integers(1, 30)),
)
PRICES = st.sampled_from([1e-12, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 100.0])
CUTS = st.sampled_from([(0.0, None), (1e-3, None), (0.1, 3), (0.0, 1), (2.0, None)])
SOME_CODINGS = st.sampled_from([CODINGS, (IN_CELLS,), (IN_BLOCKS,)])
SIZES = st.lists(st.sampled_from([0, 1, 1000, 1 << 40]), min_size=40, max_size=40).map(np.array)


@st.composite
def pairs(draw):
    """The (code, location) pairs of a small generated table."""
    codes = draw(KEYS)
    n = draw(st.sampled_from([1, 2, 5, 40]))
    if draw(st.booleans()):
        return [(code, at % n) for at, code in enumerate(codes)]
    return [(code, draw(st.integers(0, n - 1))) for code in codes]


def intervals_of(table, query_model, threshold, most):
    """Makes the key intervals of each location separately, as executors do."""
    parts = []
    for location in sorted({location for _, location in table}):
        codes, rows = np.unique([c for c, at in table if at == location], return_counts=True)
        parts.append(cut_location(codes, rows, location, query_model, threshold, most))
    return concatenated(parts)


def probes(codes):
    """Each key, its neighbouring codes, the middle of each gap, and both ends of the domain."""
    codes = sorted(set(codes))
    middles = [(low + high) // 2 for low, high in itertools.pairwise(codes)]
    around = [code + off for code in codes for off in (-1, 0, 1)]
    return sorted({p for p in [*around, *middles, LEAST, GREATEST] if LEAST <= p <= GREATEST})


def answer(entries, low, high):
    """Returns the locations of all entries that overlap an interval."""
    hit = [(e.low <= high) & (e.high >= low) for e in entries]
    return {int(at) for e, h in zip(entries, hit, strict=True) for at in e.location[h]}


def check(table, segments):
    """Checks that points, and intervals between probes, find each location of a key."""
    entries = [decode(segment.payload) for segment in segments]
    bounds = [(segment.first, segment.last) for segment in segments]
    assert all(one[1] < other[0] for one, other in itertools.pairwise(bounds))
    for e, (first, last) in zip(entries, bounds, strict=True):
        assert first == e.low.min()
        assert np.all(e.low >= first)
        assert np.all(e.high <= last)
        assert np.all(e.low <= e.high)
    points = probes(code for code, _ in table)
    intervals = [(p, p) for p in points] + list(zip(points, points[3:], strict=False))
    for low, high in intervals:
        truth = {at for code, at in table if low <= code <= high}
        assert truth <= answer(entries, low, high)


@pytest.mark.usefixtures("fifth")
@given(pairs(), PRICES, SOME_CODINGS, CUTS, st.sampled_from([1, 3, 1 << 12]), SIZES)
@settings(max_examples=50)
def test_look_ups_find_every_location_of_every_key(table, price, codings, cut, entries, sizes):
    """For any price and segment size, look-ups of points and intervals find all true locations."""
    query_model = QueryModel.of_sample(np.array([code for code, _ in table]))
    cuts = intervals_of(table, query_model, *cut)
    prepared = plan(cuts, query_model, weights_of(sizes), codings)
    with mock.patch("sieve.segments.intervals.plan_segments._LEAST_ENTRIES", entries):
        segments = list(prepared.emit(price))
        sizes = prepared.curve(np.array([price]), 1e6)
    check(table, segments)
    assert np.all(sizes > 0)
    assert all(np.all(segment.expected >= 0) for segment in segments)
    assert sum(segment.rows for segment in segments) == len(table)
    assert sum(segment.keys for segment in segments) == len(set(table))


@pytest.mark.usefixtures("fifth")
@given(pairs(), st.lists(CODES, max_size=3), st.data(), PRICES)
@settings(max_examples=40)
def test_stretches_planned_separately_lose_no_key(table, far, data, price):
    """No row is lost if a build divides the domain anywhere and plans each part separately."""
    near = data.draw(st.lists(st.sampled_from(probes(code for code, _ in table)), max_size=3))
    borders = np.unique(np.array([*near, *far], np.int64))
    query_model = QueryModel.of_sample(np.array([code for code, _ in table]))
    stretch, pieces = split_at(intervals_of(table, query_model, 0.01, None), borders)
    segments = []
    for number in range(len(borders) + 1):
        piece = pieces.take(stretch == number)
        if number > 0:
            assert np.all(piece.first >= borders[number - 1])
        if number < len(borders):
            assert np.all(piece.last < borders[number])
        segments += list(plan(piece, query_model).emit(price))
    check(table, segments)
    assert sum(segment.rows for segment in segments) == len(table)


@pytest.mark.usefixtures("fifth")
@given(pairs(), st.data(), PRICES)
@settings(max_examples=40)
def test_pieces_of_one_location_may_overlap(table, data, price):
    """If several tasks make the intervals of one location, look-ups find all of its keys."""
    query_model = QueryModel.of_sample(np.array([code for code, _ in table]))
    task = data.draw(st.lists(st.integers(0, 2), min_size=len(table), max_size=len(table)))
    parts = [
        intervals_of(
            [pair for pair, of in zip(table, task, strict=True) if of == n], query_model, 0.02, 3
        )
        for n in range(3)
    ]
    segments = list(plan(concatenated(parts), query_model).emit(price))
    check(table, segments)


@pytest.mark.usefixtures("fifth")
@given(pairs(), st.data(), PRICES, SOME_CODINGS)
@settings(max_examples=40)
def test_damaged_payloads_are_refused_or_in_bounds(table, data, price, codings):
    """If a payload's bytes are changed, Sieve raises an error or decodes entries within bounds."""
    query_model = QueryModel.of_sample(np.array([code for code, _ in table]))
    segments = list(
        plan(intervals_of(table, query_model, 0.0, None), query_model, codings=codings).emit(price)
    )
    payload = bytearray(data.draw(st.sampled_from(segments)).payload)
    for _ in range(data.draw(st.integers(1, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del payload[data.draw(st.integers(0, len(payload) - 1)) :]
    try:
        entries = decode(bytes(payload))
    except SieveError:
        return
    assert len(entries.low) == len(entries.high) == len(entries.location) > 0
    assert np.all(entries.low <= entries.high)
    assert entries.location.min() >= 0


@given(pairs(), st.sampled_from([1, 5, 100]))
def test_the_reference_shape_decodes_to_entries_too(table, error):
    """From blocks of equal width, the decoder makes entries that find all locations of each key."""
    ordered = sorted(table)
    chunk = (
        np.array([code for code, _ in ordered]),
        np.array([at for _, at in ordered], np.int32),
        np.ones(len(ordered), np.int64),
    )
    payloads = [encode_segment(s) for s in cut_segments([chunk], error=error)]
    entries = [decode(payload) for payload in payloads]
    for point in probes(code for code, _ in table):
        truth = {at for code, at in table if code == point}
        assert truth <= answer(entries, point, point)


@given(st.lists(st.tuples(CODES, CODES), min_size=1), st.lists(CODES, min_size=1))
def test_value_of_a_gap_is_a_probability(gaps, sample):
    """The probability that queries skip a file by a gap between the file's entries is from 0 to 1.

    A wider gap never has a lower probability of skipping a file than a narrower gap.
    """
    query_model = QueryModel.of_sample(np.array(sample))
    low, high = np.sort(np.array(gaps), axis=1).T.copy()
    skip_probability = query_model.skip_probability(low, high)
    assert np.all((skip_probability >= 0) & (skip_probability <= 1 + 1e-9))
    wider = query_model.skip_probability(
        np.maximum(low, LEAST + 9) - 9, np.minimum(high, GREATEST - 9) + 9
    )
    assert np.all(wider >= skip_probability - 1e-9)


def test_no_interval_gives_no_segment():
    """A part of the domain that contains no key gets no segment."""
    query_model = QueryModel.of_sample(np.array([1]))
    none = concatenated([])
    assert isinstance(none, Intervals)
    assert list(plan(none, query_model).emit(1.0)) == []
    assert plan(none, query_model).curve(np.array([1.0]), 1.0).tolist() == [0.0]


@given(st.lists(st.integers(0, 64).flatmap(lambda bits: st.integers(0, (1 << bits) - 1))))
def test_coded_numbers_survive(values):
    """Decoding returns coded numbers of any size unchanged, and finds the array's end."""
    array = np.array(values, np.uint64)
    payload = integer_coding.encode(array)
    found, after = integer_coding.decode(b"abc" + payload + b"rest", 3, len(values))
    assert found.tolist() == values
    assert after == 3 + len(payload)
