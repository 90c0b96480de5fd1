"""In generated runs, look-ups in decoded segments find every key at its location."""

from __future__ import annotations

import itertools
from collections import Counter
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sieve.arrays.bit_packing import pack, unpack
from sieve.arrays.interval_set import merge
from sieve.encoding.encoder import GREATEST, LEAST
from sieve.errors import SieveError
from sieve.reader.entry_table import assemble
from sieve.segments.blocks.cut_blocks import cut_segments
from sieve.segments.blocks.format import decode_segment, encode_segment
from sieve.segments.payload import decode

CODES = st.integers(LEAST, GREATEST)


def clipped(codes):
    """Limits codes to the ends of the domain."""
    return [max(LEAST, min(GREATEST, code)) for code in codes]


def stretch(start, steps):
    """Returns ascending codes from `start` on; `steps` are the distances between codes."""
    return clipped(itertools.accumulate(steps, initial=start))


STARTS = st.one_of(
    CODES, st.sampled_from([LEAST, GREATEST - 50, 1 << 53, (1 << 53) - 20, -(1 << 62), 0])
)
KEYS = st.one_of(
    st.builds(lambda start, n: stretch(start, [1] * n), STARTS, st.integers(0, 200)),
    st.builds(stretch, STARTS, st.lists(st.integers(0, 3), max_size=200)),
    st.builds(stretch, STARTS, st.lists(st.sampled_from([1, 1, 1, 1 << 40]), max_size=100)),
    st.builds(stretch, STARTS, st.lists(st.sampled_from([1, 7, 1 << 62]), max_size=20)),
    st.lists(CODES, min_size=1, max_size=100),
    st.lists(st.sampled_from([LEAST, LEAST + 1, -1, 0, GREATEST - 1, GREATEST]), min_size=1),
    st.builds(lambda key, n: [key] * n, CODES, st.integers(1, 50)),
)
OPTIONS = st.fixed_dictionaries(
    {
        "error": st.sampled_from([1, 2, 5, 100]),
        "max_keys": st.sampled_from([1, 2, 7, 50, 1 << 18]),
        "hole": st.one_of(st.sampled_from([1, 2, 1 << 20, (1 << 64) - 1]), st.integers(1, 1 << 64)),
    }
)


@st.composite
def pairs(draw):
    """Draws sorted (code, location, rows) tuples.

    Locations of successive codes are equal, alternate, or are random.
    """
    codes = sorted(draw(KEYS))
    n_locations = draw(st.sampled_from([1, 2, 3, 40]))
    pattern = draw(st.sampled_from(["runs", "sawtooth", "random"]))
    if pattern == "runs":
        length = draw(st.integers(1, 60))
        locations = [at // length % n_locations for at in range(len(codes))]
    elif pattern == "sawtooth":
        locations = [at % n_locations for at in range(len(codes))]
    else:
        seed = draw(st.integers(0, 1 << 32))
        locations = np.random.default_rng(seed).integers(0, n_locations, len(codes)).tolist()
    rows = draw(st.sampled_from([1, 3, 1 << 40]))
    return list(zip(codes, locations, [rows] * len(codes), strict=True))


def chunks_of(rows, size):
    """Divides the pairs into chunks of `size`, as a build does."""
    for at in range(0, len(rows), size):
        codes, locations, counts = zip(*rows[at : at + size], strict=True)
        yield np.array(codes), np.array(locations, np.int32), np.array(counts)


def cut(rows, options, size=1 << 20, batch=1 << 18):
    """Builds the segments of some pairs, encodes the segments, and decodes them again."""
    with mock.patch("sieve.segments.blocks.key_groups._BATCH", batch):
        segments = list(cut_segments(chunks_of(rows, size), **options))
    return [decode_segment(encode_segment(segment)) for segment in segments]


class Line:
    """A segment that grows key by key, as in the definition of segments."""

    def __init__(self, code, changes, size):
        self.first = self.last = code
        self.base = self.changes = changes
        self.keys, self.pairs = 1, size
        self.low, self.high = -np.inf, np.inf

    def takes(self, code, changes, size, options):
        """Adds a key, and narrows the range of slopes. Returns false if a key does not fit."""
        run, rise = float(code - self.first), float(changes - self.base)
        if (
            self.keys == options["max_keys"]
            or self.pairs + size > 16 * options["max_keys"]
            or code - self.last > options["hole"]
            or not self.low <= rise / run <= self.high
        ):
            return False
        self.high = min(self.high, (rise + options["error"]) / run)
        self.low = max(self.low, (rise - options["error"]) / run)
        self.last, self.changes = code, changes
        self.keys, self.pairs = self.keys + 1, self.pairs + size
        return True


def reference_lines(rows, options):
    """Computes the segments key by key, as defined."""
    sets = {}
    for code, location, _ in rows:
        sets.setdefault(code, set()).add(location)
    lines, changes, before = [], 0, None
    for code, locations in sets.items():
        changes += before is not None and locations != before
        before = locations
        if not lines or not lines[-1].takes(code, changes, len(locations), options):
            lines.append(Line(code, changes, len(locations)))
    return lines


@given(pairs(), OPTIONS)
def test_segments_are_those_of_the_definition(rows, options):
    """The vectorised algorithm ends each segment at the same key as the key-by-key definition."""
    with (
        mock.patch("sieve.segments.blocks.cut_blocks._SMALLEST_WINDOW", 2),
        mock.patch("sieve.segments.blocks.cut_blocks._LARGEST_WINDOW", 8),
    ):
        segments = cut(rows, options)
    lines = reference_lines(rows, options)
    assert [(s.first, s.last) for s in segments] == [(line.first, line.last) for line in lines]
    for segment, line in zip(segments, lines, strict=True):
        width = -(-(line.last - line.first + 1) // (line.changes - line.base + 1))
        assert segment.width == (width if width < 1 << 64 else 1 << 63)


@given(pairs(), OPTIONS, st.integers(1, 30), st.integers(1, 60))
def test_chunks_do_not_matter(rows, options, size, batch):
    """The segments are the same for any distribution of the pairs to chunks and batches."""
    whole = [encode_segment(segment) for segment in cut(rows, options)]
    dealt = [encode_segment(segment) for segment in cut(rows, options, size, batch)]
    assert whole == dealt


@given(pairs(), OPTIONS, st.integers(1, 30))
def test_blocks_have_exactly_the_rows_of_their_keys(rows, options, size):
    """Each block has exactly the locations of its keys, and counts their rows correctly."""
    expected = Counter()
    segments = cut(rows, options, size, batch=16)
    for code, location, count in rows:
        (at,) = (i for i, s in enumerate(segments) if s.first <= code <= s.last)
        segment = segments[at]
        expected[at, (code - segment.first) // segment.width, location] += count
    found = Counter()
    for at, segment in enumerate(segments):
        blocks = segment.blocks
        numbers = np.repeat(np.arange(len(blocks.offsets) - 1), np.diff(blocks.offsets))
        for entry in zip(
            numbers.tolist(), blocks.locations.tolist(), blocks.rows.tolist(), strict=True
        ):
            found[at, entry[0], entry[1]] += entry[2]
    assert found == expected


def probes(rows):
    """Returns each key, nearby codes, the middle of each gap, and codes beyond both ends."""
    codes = sorted({code for code, _, _ in rows})
    middles = [(low + high) // 2 for low, high in itertools.pairwise(codes)]
    around = [code + off for code in codes for off in (-1, 0, 1)]
    return sorted(set(clipped([*around, *middles, LEAST, GREATEST])))


def blocks_of(segments):
    """Returns the first code, the last code and the locations of each block."""
    for segment in segments:
        offsets = segment.blocks.offsets
        for number in range(len(offsets) - 1):
            low = segment.first + number * segment.width
            locations = segment.blocks.locations[offsets[number] : offsets[number + 1]]
            yield low, min(low + segment.width - 1, segment.last), locations


def look_up(chunk, intervals, n_locations=41):
    """For each location, returns whether a look-up finds the location."""
    flags = np.zeros(n_locations, np.bool_)
    asked = merge(np.array(intervals, np.int64).reshape(-1, 2))
    chunk.mark(asked, flags)
    return flags


@pytest.mark.usefixtures("fifth")
@given(pairs(), OPTIONS, st.data())
@settings(max_examples=40)
def test_look_ups_find_every_key_and_no_other_block(rows, options, data):
    """Look-ups of points and intervals find each key's locations, and only overlapping blocks."""
    segments = cut(rows, options)
    shuffled = data.draw(st.permutations(segments)) if len(segments) < 20 else segments[::-1]
    run = assemble([decode(encode_segment(segment)) for segment in shuffled])
    points = probes(rows)
    bounds = st.sampled_from(points)
    intervals = [(point, point) for point in points]
    intervals += data.draw(st.lists(st.tuples(bounds, bounds), max_size=10))
    blocks = list(blocks_of(segments))
    for low, high in intervals:
        truth = {location for code, location, _ in rows if low <= code <= high}
        touched = [b[2] for b in blocks if low <= high and b[0] <= high and b[1] >= low]
        expected = np.unique(np.concatenate([np.empty(0, int), *touched])).tolist()
        found = np.flatnonzero(look_up(run, [(low, high)])).tolist()
        assert truth <= set(found)
        assert found == expected
    some = data.draw(st.lists(st.sampled_from(intervals), max_size=30))
    together = look_up(run, some)
    one_by_one = [look_up(run, [interval]) for interval in some]
    assert together.tolist() == np.any([np.zeros(41, bool), *one_by_one], axis=0).tolist()


@given(st.lists(st.integers(0, 64).flatmap(lambda bits: st.integers(0, (1 << bits) - 1))))
def test_packed_numbers_survive(values):
    """Unpacking returns packed numbers of any size unchanged, and finds the array's end."""
    array = np.array(values, np.uint64)
    payload = pack(array)
    found, after = unpack(b"abc" + payload + b"rest", 3, len(values))
    assert found.tolist() == values
    assert after == 3 + len(payload)


@given(pairs(), OPTIONS, st.data())
def test_damaged_payloads_are_refused_or_in_bounds(rows, options, data):
    """If a payload's bytes are changed, Sieve raises an error or decodes a usable segment."""
    payload = bytearray(encode_segment(data.draw(st.sampled_from(cut(rows, options)))))
    for _ in range(data.draw(st.integers(1, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    try:
        run = assemble([decode(bytes(payload))])
        segment = decode_segment(bytes(payload))
    except SieveError:
        return
    assert look_up(run, [(segment.first, segment.last)], run.n_locations).any()
