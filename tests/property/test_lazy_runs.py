"""A run that is read lazily from several files finds the same locations as a run in memory."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sieve.encoding.encoder import GREATEST, LEAST, Encoder
from sieve.encoding.hashing import hash_codes
from sieve.reader import run_file
from sieve.reader.lru_cache import Cache
from sieve.reader.run_file import describe_run
from sieve.reader.run_reader import Run
from sieve.segments.blocks.cut_blocks import cut_segments
from sieve.segments.blocks.format import CSR, Segment, encode_segment
from sieve.segments.hash_map.format import decode_map
from sieve.segments.intervals.format import CODINGS, encode
from sieve.segments.payload import decode
from sieve.storage.interface import base_name
from tests.built_index import RUN, map_row, run_file_bytes
from tests.drawn_cells import segments_of_cells

N = 12
CODES = st.one_of(
    st.integers(-60, 60), st.integers(LEAST, GREATEST), st.sampled_from([LEAST, GREATEST])
)
INTERVALS = st.lists(
    st.one_of(
        CODES.map(lambda code: (code, code)),
        st.tuples(CODES, CODES),
        CODES.map(lambda code: (code, min(code + 9, GREATEST))),
        st.just((LEAST, GREATEST)),
    ),
    max_size=12,
)


class Files(dict):
    """A store that has only the methods that a run calls."""

    def read(self, uri):
        """Reads a file by its name."""
        return self[base_name(uri)]


@st.composite
def runs(draw):
    """Rows of several run files in any order: segments of random keys, and in some cases maps.

    All segments of the drawn runs have one shape: either `sieve` or `intervals`.
    """
    keys = sorted(draw(st.lists(CODES, unique=True, max_size=60)))
    pairs = sorted({(key, at) for key in keys for at in draw(st.sets(st.integers(0, N - 1)))})
    codes = np.array([code for code, _ in pairs], np.int64)
    chunk = (codes, np.array([at for _, at in pairs], np.int32), np.ones(len(codes), np.int64))
    made = cut_segments([chunk], error=draw(st.integers(1, 3)), hole=draw(st.integers(1, 1 << 60)))
    rows = [("sieve", s.first, s.last, 1, 1, 1, encode_segment(s)) for s in made] if pairs else []
    if draw(st.booleans()):
        rows = []
        for cells in draw(segments_of_cells()):
            payload, grid = encode(cells, draw(st.sampled_from(CODINGS))), cells.grid
            rows.append(("intervals", grid.first, grid.last, 1, 1, 1, payload))
    if draw(st.booleans()) and pairs:
        hashed = sorted((int(hash_codes(np.array([c])).view(np.int64)[0]), at) for c, at in pairs)
        border = draw(st.sampled_from([h for h, _ in hashed]))
        halves = [p for p in hashed if p[0] < border], [p for p in hashed if p[0] >= border]
        rows.extend(map_row(*zip(*half, strict=True), N, 4) for half in halves if half)
    files = [[] for _ in range(draw(st.integers(1, 5)))]
    for row in draw(st.permutations(rows)):
        files[draw(st.integers(0, len(files) - 1))].append(row)
    return files


@pytest.mark.usefixtures("fifth")
@given(runs(), st.lists(INTERVALS, max_size=6), st.data())
@settings(max_examples=30, deadline=None)
def test_lazy_and_eager_reading_find_the_same(files, look_ups, data):
    """Lazy look-ups of points, ranges and lists give the same results as look-ups in memory.

    The order of look-ups is random, and caches are cold or warm.
    """
    named = Files((f"part-{k}.parquet", run_file_bytes(rows)) for k, rows in enumerate(files))
    told = describe_run(RUN, N, Encoder("bigint"), sorted(named.items()))
    rows = [row for some in files for row in some]
    assert (told is None) == (not rows)
    if told is None:
        return
    entries = [decode(row[-1]) for row in rows if row[0] != "map"]
    maps = [decode_map(row[-1]) for row in rows if row[0] == "map"]
    with mock.patch.object(run_file, "CHUNK_BYTES", data.draw(st.sampled_from([1, 100, 1 << 16]))):
        bound = data.draw(st.sampled_from([0, 2000, 1 << 20]))
        run = Run(named, "file:/x", told, Cache(bound))
        for asked in [*look_ups, *look_ups]:
            want = np.zeros(N, np.bool_)
            for low, high in asked:
                for some in entries:
                    want[some.location[(some.low <= high) & (some.high >= low)]] |= low <= high
            found = run.locations_in(np.array(asked, np.int64).reshape(-1, 2))
            assert found.tolist() == want.tolist()
            points = hash_codes(np.array([low for low, _ in asked], np.int64))
            assert run.has_maps == bool(maps)
            if maps:
                mapped = np.logical_or.reduce([one.locations_of(points) for one in maps])
                assert run.locations_of(points).tolist() == mapped.tolist()


@pytest.mark.usefixtures("fifth")
@given(runs(), INTERVALS, st.data())
@settings(max_examples=20, deadline=None)
def test_queries_find_the_same_together_and_one_by_one(files, look_ups, data):
    """Several look-ups in one batch find the same locations as the same look-ups one by one."""
    named = Files((f"part-{k}.parquet", run_file_bytes(rows)) for k, rows in enumerate(files))
    told = describe_run(RUN, N, Encoder("bigint"), sorted(named.items()))
    assume(told is not None)
    with mock.patch.object(run_file, "CHUNK_BYTES", data.draw(st.sampled_from([1, 100, 1 << 16]))):
        run = Run(named, "file:/x", told, Cache(0))
        asked = np.array(look_ups, np.int64).reshape(-1, 2)
        each = run.locations_in_each(asked)
        assert each.shape == (len(asked), N)
        alone = [run.locations_in(asked[k : k + 1]).tolist() for k in range(len(asked))]
        assert each.tolist() == alone
        if run.has_maps:
            hashes = hash_codes(asked[:, 0])
            alone = [run.locations_of(hashes[k : k + 1]).tolist() for k in range(len(asked))]
            assert run.locations_of_each(hashes).tolist() == alone


def test_a_hundred_thousand_locations():
    """Among 100,000 locations, look-ups find exactly the blocks that overlap the wanted codes."""
    n, blocks, width = 100_000, 10_000, 1000
    rng = np.random.default_rng(1)
    also = rng.integers(0, n, n)
    rows = []
    for at in range(0, n, blocks):
        own = np.arange(at, at + blocks)
        pair = np.sort(np.stack([own, also[own]], axis=1), axis=1)
        once = np.ones(pair.shape, np.bool_)
        once[:, 1] = pair[:, 0] != pair[:, 1]
        offsets = np.append(0, np.cumsum(once.sum(axis=1)))
        locations = pair[once].astype(np.int32)
        first, last = at * width, (at + blocks) * width - 1
        block = CSR(offsets, locations, np.ones(len(locations), np.int64))
        payload = encode_segment(Segment(first, last, width, block))
        rows.append(("sieve", first, last, 1, 1, blocks, payload))
    named = Files((f"part-{k}.parquet", run_file_bytes(rows[k::3])) for k in range(3))
    told = describe_run(RUN, n, Encoder("bigint"), sorted(named.items()))
    run = Run(named, "file:/x", told, Cache(1 << 30))
    for size, length in ((1, 0), (1, 50_000_000), (10_000, 0), (300, 99_999)):
        first = rng.integers(0, n * width, size)
        asked = np.stack([first, first + length], axis=1)
        touched = np.zeros(n + 1, np.int64)
        np.add.at(touched, first // width, 1)
        np.add.at(touched, np.minimum((first + length) // width, n - 1) + 1, -1)
        own = np.flatnonzero(np.cumsum(touched)[:n])
        want = np.zeros(n, np.bool_)
        want[own] = want[also[own]] = True
        assert np.array_equal(run.locations_in(asked), want)
