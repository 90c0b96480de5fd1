"""Tests segments of intervals: their bytes, their price, and columns with extreme values."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest

from sieve.arrays.bit_packing import bit_lengths, pack
from sieve.encoding.encoder import GREATEST, LEAST
from sieve.errors import CorruptError, SieveError, UnsupportedError
from sieve.segments.budget import choose_price, prices_for, within_budget
from sieve.segments.intervals import integer_coding
from sieve.segments.intervals.cut_gaps import Intervals, concatenated, cut_location
from sieve.segments.intervals.format import CODINGS, IN_BLOCKS, IN_CELLS, Cells, encode
from sieve.segments.intervals.grid import MAX_PIECES, Grid
from sieve.segments.intervals.plan_segments import SEGMENT_OVERHEAD, fitted, plan
from sieve.segments.payload import decode
from sieve.segments.query_model import QueryModel

HEAD = "<BBqqIIIBB"


def column(files):
    """Returns the intervals of files with these key codes, cut at all gaps, and a query model."""
    query_model = QueryModel.of_sample(np.concatenate(files))
    parts = []
    for location, keys in enumerate(files):
        codes, rows = np.unique(keys, return_counts=True)
        parts.append(cut_location(codes, rows, location, query_model, 0.0))
    return concatenated(parts), query_model


def random_files(n=40, keys=200):
    """Makes files of random keys."""
    rng = np.random.default_rng(0)
    return [rng.integers(0, 100_000, keys) for _ in range(n)]


def found(segments, code):
    """Returns the locations in which a code can be."""
    entries = [decode(segment.payload) for segment in segments]
    return {
        int(at) for e in entries for at in e.location[(e.low <= code) & (e.high >= code)].tolist()
    }


@pytest.mark.parametrize("codings", [CODINGS, (IN_CELLS,), (IN_BLOCKS,)])
def test_lower_price_leads_to_fewer_reads(codings):
    """At a lower price, segments have more bytes, and queries read fewer files without a match.

    At each price, look-ups find all locations with a match.
    """
    files = random_files()
    prepared = plan(*column(files), codings=codings)
    prices = np.geomspace(1e-1, 1e-6, 12)
    emitted = [list(prepared.emit(price)) for price in prices.tolist()]
    sizes = np.array([sum(len(s.payload) for s in segments) for segments in emitted])
    vain = np.array([sum(s.expected.mean() for s in segments) for segments in emitted])
    assert np.all(np.diff(sizes) > -0.05 * sizes[:-1])
    assert np.all(np.diff(vain) < 0.05 * vain[:-1] + 1e-9)
    assert sizes[-1] > 10 * sizes[0]
    assert vain[-1] < vain[0] / 10
    for price in (1e-1, 1e-6):
        segments = list(prepared.emit(price))
        for location, keys in enumerate(files):
            for key in keys[:5].tolist():
                assert location in found(segments, key)


def test_best_shape_of_each_segment_costs_no_more():
    """The cost with the cheaper shape for each segment is at most the cost with one shape for all.

    The cost of segments is the reads without a match, plus the bytes times the price.
    """
    rng = np.random.default_rng(1)
    tenants = [np.repeat(rng.choice(500, 20, replace=False), 10) << 32 for _ in range(50)]
    for files in (random_files(), tenants):
        prepared = {
            some: plan(*column(files), codings=some)
            for some in (CODINGS, (IN_CELLS,), (IN_BLOCKS,))
        }
        for price in (1e-2, 1e-4):
            cost = {}
            for some, one in prepared.items():
                segments = list(one.emit(price))
                cost[some] = sum(price * len(s.payload) + float(s.expected.sum()) for s in segments)
            assert cost[CODINGS] <= 1.05 * min(cost[(IN_CELLS,)], cost[(IN_BLOCKS,)])


def test_figures_of_segments_add_up():
    """The rows of all segments add up to the column's rows, and their keys to the column's keys.

    Queries for a key read only the files that contain this key.
    """
    files = [np.arange(100) for _ in range(8)] + [np.arange(1000, 1100)]
    segments = list(plan(*column(files)).emit(1e-9))
    assert sum(s.rows for s in segments) == 900
    assert sum(s.keys for s in segments) == 900
    reads = np.mean([len(found(segments, key)) for keys in files for key in keys.tolist()])
    # The keys of 800 rows are in 8 files, and the keys of 100 rows are in one file.
    assert reads == pytest.approx((800 * 8 + 100) / 900, rel=0.05)
    assert sum(s.expected for s in segments) == pytest.approx(np.zeros(3), abs=0.05)
    assert all(s.blocks >= 1 and s.postings >= 1 for s in segments)


def test_many_locations():
    """If 100,000 locations have the same keys, each location costs little more than one byte."""
    n = 100_000
    intervals = Intervals(
        np.full(n, -5),
        np.full(n, 5),
        np.arange(n, dtype=np.int32),
        np.full(n, 2),
        np.full(n, 2),
    )
    segments = list(plan(intervals, QueryModel.of_sample(np.array([-5, 5]))).emit(1e-3))
    assert sum(len(s.payload) for s in segments) < 1.2 * n
    assert len(found(segments, 0)) == n


def test_long_intervals_at_most_double_the_entries():
    """An entry that extends over several segments is repeated in each segment.

    Repetition at most doubles the number of entries.
    """
    rng = np.random.default_rng(2)
    long = [np.array([0, 10_000_000])] * 2_000
    short = [rng.integers(0, 10_000_000, 400) for _ in range(200)]
    intervals, query_model = column(short)
    wide = concatenated(
        [
            cut_location(keys, np.ones(2, np.int64), 200 + at, query_model, 0.0, most=1)
            for at, keys in enumerate(long)
        ]
    )
    segments = list(plan(concatenated([intervals, wide]), query_model).emit(1e-9))
    entries = len(intervals) + len(wide)
    assert len(segments) > 2
    assert entries <= sum(s.postings for s in segments) <= 2 * entries
    assert {200, 2199} <= found(segments, 5_000_000)


def test_all_keys_equal():
    """If all files contain the same single key, one block names all files."""
    for key in (LEAST, 0, GREATEST):
        segments = list(plan(*column([np.full(3, key)] * 50)).emit(1e-3))
        assert len(segments) == 1
        assert (segments[0].first, segments[0].last) == (key, key)
        assert found(segments, key) == set(range(50))


@pytest.mark.parametrize("price", [1e-12, 1e-3, 10.0])
def test_a_segment_may_span_all_codes(price):
    """Keys at both ends of the 64-bit domain are found at any price."""
    files = [np.array([LEAST, GREATEST - 2, GREATEST]), np.array([LEAST, GREATEST]), np.array([0])]
    segments = list(plan(*column(files)).emit(price))
    for location, keys in enumerate(files):
        for key in keys.tolist():
            assert location in found(segments, key)


# -- the price ------------------------------------------------------------------------------------


def test_the_price_meets_the_budget():
    """The bytes at the chosen price use most of the budget, and at most a tenth more.

    If a build exceeds its budget, it starts again at a higher price.
    """
    prepared = plan(*column(random_files()))
    for budget in (2_000.0, 8_000.0):
        prices = prices_for(40, budget)
        price = choose_price(prices, prepared.curve(prices, budget), budget)
        written = sum(len(s.payload) + SEGMENT_OVERHEAD for s in prepared.emit(price))
        assert 0.8 * budget <= written <= 1.1 * budget


def test_prices_at_the_ends():
    """The build chooses the greatest price if the bytes of a run exceed the budget at every price.

    The build chooses the least price if the bytes of a run fit the budget at every price.
    """
    prices = np.array([4.0, 2.0, 1.0])
    assert choose_price(prices, np.array([10.0, 20.0, 40.0]), 5.0) == 4.0
    assert choose_price(prices, np.array([10.0, 20.0, 40.0]), 100.0) == 1.0
    assert 1.0 < choose_price(prices, np.array([10.0, 20.0, 40.0]), 30.0) < 2.0
    assert choose_price(prices, np.array([0.0, 0.0, 0.0]), 30.0) == 1.0
    assert choose_price(prices, np.array([10.0, np.inf, np.inf]), 30.0) == 4.0


# -- bytes ----------------------------------------------------------------------------------------


def payloads():
    """Payloads, one of each shape."""
    prepared = column(random_files(5, 20))
    return [next(plan(*prepared, codings=(one,)).emit(1e-4)).payload for one in CODINGS]


@pytest.mark.parametrize("payload", payloads())
def test_every_shortened_payload_is_corrupt(payload):
    """A truncated payload is corrupt, and so is a payload with more bytes after it."""
    for length in range(len(payload)):
        with pytest.raises(CorruptError):
            decode(payload[:length])
    with pytest.raises(CorruptError):
        decode(payload + b"\0")


@pytest.mark.parametrize("payload", payloads())
def test_flipped_bits_are_refused_or_harmless(payload):
    """A payload with a flipped bit is decoded to entries within the segment, or raises an error."""
    for bit in range(8 * len(payload)):
        damaged = bytearray(payload)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            entries = decode(bytes(damaged))
        except SieveError:
            continue
        first, last = struct.unpack_from("<qq", damaged, 2)
        assert np.all((entries.low >= first) & (entries.low <= entries.high))
        assert np.all(entries.high <= last)


@pytest.mark.parametrize(("shape", "version"), [(4, 1), (2, 2), (255, 255)])
def test_later_layouts_are_too_new(shape, version):
    """A payload with the shape or layout of a later release is too new, not damaged."""
    with pytest.raises(UnsupportedError) as refusal:
        decode(bytes([shape, version]) + payloads()[0][2:])
    assert refusal.value.condition == "SIEVE_VERSION_TOO_NEW"


def built(head, grid=b"\0", arrays=((0, 3), (1, 0)), blocks=None):
    """A payload that the test assembles from its parts."""
    parts = [struct.pack(HEAD, *head), grid]
    if blocks is not None:
        parts += [
            struct.pack("<I", len(blocks)),
            integer_coding.encode(np.array(blocks, np.uint64)),
        ]
    return b"".join([*parts, *(integer_coding.encode(np.array(a, np.uint64)) for a in arrays)])


GOOD = (2, 1, 10, 19, 2, 7, 2, 0, 0)


def test_payloads_follow_the_documented_layout():
    """Hand-assembled payloads are decoded to the entries that docs/format.md describes."""
    entries = decode(built(GOOD))
    assert entries.low.tolist() == [10, 11]
    assert entries.high.tolist() == [11, 11]
    assert entries.location.tolist() == [7, 8]
    # The grid has a piece of 4 codes with cells of 2 codes, and then cells of 1 code each.
    # Locations and cells are stored in different arrays.
    head = (2, 1, 10, 19, 3, 7, 9, 1, 1)
    entries = decode(built(head, bytes([1, 0, 4, 0]), ((1, 0, 3), (2, 5, 0), (1, 0, 3))))
    assert entries.low.tolist() == [12, 12, 16]
    assert entries.high.tolist() == [14, 13, 19]
    assert entries.location.tolist() == [9, 15, 7]
    # The three blocks contain 3, 1 and 6 codes.
    runs = decode(built((3, *GOOD[1:]), blocks=(2, 0, 5)))
    assert runs.low.tolist() == [10, 13]
    assert runs.high.tolist() == [13, 13]


def test_a_grid_has_as_many_pieces_as_a_byte_can_count():
    """A grid has 1 to 256 pieces, because one byte stores their number."""

    def cells(pieces):
        start = 4 * np.arange(pieces, dtype=np.uint64)
        shift = np.append(np.arange(pieces - 1) % 3, 1).astype(np.uint8)
        grid = Grid.of(-9, 4 * pieces - 11, start, shift)
        ends = np.array([0, grid.cells - 1], np.uint64)
        return Cells(grid, ends, ends, np.array([5, 3], np.int32))

    for pieces in (1, 2, 3, 4, 5, MAX_PIECES):
        entries = decode(encode(cells(pieces), IN_CELLS))
        assert (entries.low[0], entries.high[1]) == (-9, 4 * pieces - 11)
        assert entries.location.tolist() == [5, 3]
    with pytest.raises(struct.error):
        encode(cells(MAX_PIECES + 1), IN_CELLS)


def test_stretch_without_intervals_has_no_bytes():
    """A part of the domain without keys has no segment."""
    intervals, query_model = column(random_files(2))
    nothing = plan(intervals.take(np.zeros(len(intervals), np.bool_)), query_model)
    assert nothing.trial(1e-3, []) == (0, [])
    assert list(nothing.emit(1e-3)) == []


@pytest.mark.parametrize(("last", "cells"), [(GREATEST, None), (GREATEST - 1, (1 << 64) - 1)])
def test_a_grid_has_fewer_cells_than_64_bits_can_count(last, cells):
    """A grid has at most 2^64 - 1 cells, so the code refuses one cell for each of 2^64 codes."""
    grid = Grid.of(LEAST, last, np.zeros(1, np.uint64), np.zeros(1, np.uint8))
    assert (grid and grid.cells) == cells


@pytest.mark.parametrize("second", [9, 10, 11, 12])
def test_the_last_cell_of_a_piece_ends_before_the_next_piece(second):
    """The last cell of a piece can be shorter, because it ends where the next piece begins."""
    grid = Grid.of(100, 120, np.array([0, second], np.uint64), np.array([2, 0], np.uint8))
    cells = np.arange(grid.cells, dtype=np.uint64)
    first, last = grid.first_codes(cells), grid.last_codes(cells)
    assert first[0] == 100
    assert (first[1:] == last[:-1] + 1).all()
    assert last[-1] == 120
    assert last[:3].tolist() == [103, 107, min(111, 99 + second)]


@pytest.mark.parametrize("locations", [1, 2, 3, 4])
def test_entries_are_decoded_beyond_64_bits(locations):
    """Entries are decoded correctly even if location and cell together need more than 64 bits.

    Segments store such long entries without a joint order of location and cell.
    """
    last = (1 << 64) // locations - 1
    begin = np.array([0, *[last - 1] * locations, *[last] * locations], np.uint64)
    grid = Grid.of(LEAST, LEAST + last, np.zeros(1, np.uint64), np.zeros(1, np.uint8))
    if grid is None:
        grid = Grid.of(LEAST, LEAST + last - 1, np.zeros(1, np.uint64), np.zeros(1, np.uint8))
        begin = begin[: 1 + locations]
    location = np.resize(np.arange(locations, dtype=np.int32), len(begin) - 1)
    cells = Cells(grid, begin, begin, np.append(np.int32(0), location))
    for shape in (IN_CELLS, IN_BLOCKS):
        found = decode(encode(cells, shape))
        assert found.low.tolist() == grid.first_codes(begin).tolist()
        assert found.high.tolist() == found.low.tolist()
        assert found.location.tolist() == cells.location.tolist()


@pytest.mark.parametrize(
    ("head", "rest", "problem"),
    [
        ((0, *GOOD[1:]), {}, "claims shape"),
        ((2, 0, *GOOD[2:]), {}, "claims shape"),
        ((2, 1, 20, 19, *GOOD[4:]), {}, "head"),
        ((*GOOD[:4], 0, *GOOD[5:]), {}, "head"),
        ((*GOOD[:4], 1 << 25, *GOOD[5:]), {}, "head"),
        ((*GOOD[:4], (1 << 24) + 1, *GOOD[5:]), {}, "head"),
        ((*GOOD[:4], 1 << 24, *GOOD[5:]), {}, "ends inside an array|of another length"),
        ((*GOOD[:7], 2, 0), {}, "head"),
        ((*GOOD[:6], 0, 0, 0), {}, "location"),
        ((*GOOD[:5], 1 << 31, 1, 0, 0), {}, "location"),
        (GOOD, {"grid": b"\x40"}, "grid"),
        ((*GOOD[:8], 1), {"grid": bytes([0, 0, 10, 0])}, "grid"),
        ((*GOOD[:8], 1), {"grid": bytes([0, 0, 0, 3])}, "grid"),
        ((*GOOD[:8], 1), {"grid": bytes([0, 0, 1, 64])}, "grid"),
        ((2, 1, LEAST, GREATEST, *GOOD[4:]), {}, "too many cells"),
        (GOOD, {"arrays": ((0, 20), (1, 0))}, "cell out of range"),
        (GOOD, {"arrays": ((5, (1 << 64) - 4), (1, 0))}, "cell out of range"),
        (GOOD, {"arrays": ((0, 3), (10, 0))}, "ends outside"),
        (GOOD, {"arrays": ((0, 3), (1, 9))}, "ends outside"),
        ((*GOOD[:7], 1, 0), {"arrays": ((0, 3), (0, 2), (1, 0))}, "location"),
        ((*GOOD[:7], 1, 0), {"arrays": ((0, 0), (1, 0), (1, 0))}, "location"),
        ((3, *GOOD[1:]), {"blocks": ()}, "claims 0 blocks"),
        ((3, *GOOD[1:]), {"blocks": (4, 5)}, "cell out of range"),
        ((3, *GOOD[1:]), {"blocks": (4, 4), "arrays": ((0, 3), (0, 1))}, "ends outside"),
    ],
)
def test_invalid_numbers_are_corrupt(head, rest, problem):
    """Invalid numbers make a payload corrupt. The decoder checks each number before its use."""
    with pytest.raises(CorruptError, match=problem):
        decode(built(head, **rest))


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\3",
        b"\1\xff\xff\xff\xff",
        b"\1\2\0\0\0\xff\xff",
        struct.pack("<BI", 1, 2) + b"\3\0",
        struct.pack("<BI", 1, 5) + b"\1\3\0\xfc\xff" + bytes([65] * 3),
        integer_coding.encode(np.array([1, 3, 900_000] * 30, np.uint64))[:-1],
    ],
)
def test_impossible_arrays_are_corrupt(payload):
    """An array with an unknown mode, an excessive length or an invalid stream is corrupt."""
    with pytest.raises(CorruptError):
        integer_coding.decode(payload, 0, 3 if len(payload) < 100 else 90)


def test_the_shortest_form_of_an_array_is_written():
    """An array is written in the shortest of its three forms.

    The forms of an array are bit packing, deflated classes, and deflated bytes.
    """
    draw = np.random.default_rng(4)
    modes = set()
    for count in range(1, 200):
        array = draw.integers(0, 1 << int(draw.integers(1, 20)), count).astype(np.uint64)
        array[draw.random(count) < draw.random()] = 0
        payload = integer_coding.encode(array)
        modes.add(payload[0])
        packed = 1 + len(pack(array))
        small = array.max() < 256
        bits = np.maximum(bit_lengths(array) - 1, 0).sum()
        classes = 5 + len(integer_coding._deflated(bit_lengths(array).astype(np.uint8)))
        numbers = 5 + len(integer_coding._deflated(array.astype(np.uint8)))
        forms = [packed, classes + -(-bits // 8), *([numbers] if small else [])]
        assert len(payload) == min(forms)
    assert modes == {0, 1, 2}


@pytest.mark.parametrize("budget", [500, 3_000, 20_000, 60_000])
@pytest.mark.parametrize("kind", ["sawtooth", "random"])
def test_a_plan_fits_its_budget(kind: str, budget: int) -> None:
    """Even if the estimated curve is wrong, the plan fits its budget.

    In one case, keys are random. In the other case, consecutive keys are in different files.
    """
    n, files = 20_000, 40
    codes = np.arange(n)
    if kind == "random":
        codes = np.random.default_rng(8).integers(0, 1 << 62, n)
    intervals, query_model = column([codes[number::files] for number in range(files)])
    planned = plan(intervals, query_model)
    chosen, price, segments = fitted(planned, prices_for(files, budget), budget)
    size = sum(len(segment.payload) + SEGMENT_OVERHEAD for segment in segments)
    assert size <= budget
    assert [s.payload for s in segments] == [s.payload for s in chosen.emit(price)]
    if kind == "random" and budget > 500:
        # Gaps have different values, so bytes fall gradually as the price rises. So the plan can
        # use most of the budget.
        assert size > 0.7 * budget


def stairs(times: float) -> float:
    """Maps a multiple of the price to a number of bytes, in three steps."""
    return 400.0 if times < 3 else 120.0 if times < 10 else 8.0


@pytest.mark.parametrize(
    ("first", "budget", "lowest", "wanted"),
    [
        (lambda times: 100 / times, 100, 1.0, 100),
        (lambda times: 500 / times, 100, 1.0, 90),
        (lambda times: 50 / times, 100, 0.01, 90),
        (lambda times: 50 / times, 100, 1.0, 50),
        (lambda times: 50 / times, 100, 0.8, 62),
        (lambda _: 50.0, 100, 0.5, 50),
        (stairs, 130, 1.0, 120),
        (stairs, 100, 1.0, 8),
        (lambda _: 500.0, 100, 1.0, 500),
    ],
)
def test_budget_is_used_and_other_results_are_discarded(
    first: Callable[[float], float], budget: float, lowest: float, wanted: float
) -> None:
    """`within_budget` returns a result that uses enough of the budget, and discards the rest."""
    held: list[float] = []

    def make(times: float) -> tuple[float, float]:
        assert times >= lowest
        held.append(first(times))
        return held[-1], held[-1]

    made = within_budget(make, budget, held.remove, lowest)
    assert made >= wanted
    assert made <= budget or wanted > budget
    assert held == [made]


def test_failed_attempt_discards_earlier_results() -> None:
    """If an attempt fails, `within_budget` discards the results of all earlier attempts."""
    held: list[float] = []

    def make(times: float) -> tuple[float, float]:
        if len(held) == 1 and times < 5:
            raise OSError("disk")
        held.append(times)
        return times, 1000.0 if times < 2 else 10.0

    with pytest.raises(OSError, match="disk"):
        within_budget(make, 100, held.remove)
    assert held == []
