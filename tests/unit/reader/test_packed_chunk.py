"""A packed chunk finds the same locations as an unpacked chunk of the same entries."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sieve.arrays.dtypes import Places, Words
from sieve.encoding.encoder import GREATEST, LEAST
from sieve.reader import packed_chunk
from sieve.reader.entry_table import Chunk, assemble
from sieve.reader.packed_chunk import PackedChunk
from sieve.segments.intervals.format import IN_BLOCKS, IN_CELLS, Cells, decode_cells, encode
from sieve.segments.intervals.grid import Grid
from sieve.segments.payload import decode
from tests.drawn_cells import segments_of_cells


def flags(chunk: Chunk | PackedChunk, asked: list[tuple[int, int]], n: int) -> list[bool]:
    """Returns, for each location, whether a look-up finds it."""
    found = np.zeros(n, np.bool_)
    chunk.mark(np.array(asked, np.int64).reshape(-1, 2), found)
    return found.tolist()


@given(segments_of_cells(), st.integers(1, 5), st.integers(1, 3), st.data())
def test_packed_and_unpacked_look_ups_are_equal(
    drawn: list[Cells], block: int, at_once: int, data: st.DataObject
) -> None:
    """For random entries, look-ups and `holds` agree in packed and unpacked chunks."""
    shape = data.draw(st.sampled_from([IN_CELLS, IN_BLOCKS]))
    payloads = [encode(cells, shape) for cells in drawn]
    plain = assemble(map(decode, payloads))
    with mock.patch.multiple(packed_chunk, BLOCK=block, _AT_ONCE=at_once):
        cells = decode_cells(payloads)
        assert cells is not None
        packed = PackedChunk.of(cells)
        assert packed is not None
        assert packed.n_locations == plain.n_locations
        n = plain.n_locations
        ends = [*plain.low.tolist(), *plain.high.tolist(), LEAST, GREATEST]
        near = st.sampled_from(ends).flatmap(
            lambda end: st.integers(max(LEAST, end - 2), min(GREATEST, end + 2))
        )
        for _ in range(3):
            points = sorted(data.draw(st.sets(near, max_size=8)))
            assert flags(packed, [(p, p) for p in points], n) == flags(
                plain, [(p, p) for p in points], n
            )
            pairs = list(zip(points[::2], points[1::2], strict=False))
            assert flags(packed, pairs, n) == flags(plain, pairs, n)
            codes = np.array(points, np.int64)
            for location in range(n):
                assert (
                    packed.holds(codes, location).tolist() == plain.holds(codes, location).tolist()
                )
        arrays = packed.begin, packed.reach, packed.records
        assert packed.nbytes == sum(one.nbytes for one in arrays) + packed.grid.nbytes
        grid = packed.grid
        assert grid.nbytes == grid.start.nbytes + grid.shift.nbytes + grid.base.nbytes


def of(begin: list[int], end: list[int], location: list[int], last: int = GREATEST) -> Cells:
    """Entries in a grid from code 0 on, whose cells have one code each."""
    grid = Grid.of(0, last, np.zeros(1, np.uint64), np.zeros(1, np.uint8))
    assert grid is not None
    ends = np.array(begin, np.uint64), np.array(end, np.uint64)
    return Cells(grid, *ends, np.array(location, np.int32))


def test_records_have_as_few_bytes_as_their_parts() -> None:
    """If all entries of a chunk are equal, a packed entry needs no bytes.

    A packed entry of 8 bits needs one byte. A packed entry of 9 bits needs two bytes.
    """
    assert PackedChunk.of(of([7], [7], [9])).width == 0  # type: ignore[union-attr]
    for size, width in ((255, 1), (256, 2)):
        packed = PackedChunk.of(of([7], [7 + size], [9]))
        assert packed is not None
        assert (packed.width, len(packed.records)) == (width, width + 8)
        assert flags(packed, [(7 + size, 7 + size)], 10) == [False] * 9 + [True]
        assert flags(packed, [(8 + size, 8 + size)], 10) == [False] * 10


@pytest.mark.parametrize(("bits", "fits"), [(30, True), (31, True), (32, False)])
def test_a_record_has_63_bits_at_most(bits: int, fits: bool) -> None:
    """Records of more than 63 bits are not packed.

    The first cell of a record has `bits` bits, its length has 31 bits, and its location has one
    bit.
    """
    cells = of([0, (1 << bits) - 1], [(1 << 31) - 1, (1 << bits) - 1], [4, 5])
    packed = PackedChunk.of(cells)
    assert (packed is not None) == fits
    if packed is not None:
        last = (1 << bits) - 1
        assert packed.n_locations == 6
        assert flags(packed, [(last, last)], 6) == [False] * 4 + [True, True]
        assert flags(packed, [(1 << 31, GREATEST)], 6) == [False] * 6


def test_look_up_finds_an_entry_beyond_the_next_block() -> None:
    """A look-up finds an entry that extends beyond the next block."""
    n = 3 * packed_chunk.BLOCK
    begin = list(range(n))
    end = [2 * n if k == 1 else k for k in begin]
    packed = PackedChunk.of(of(begin, end, [0 if k == 1 else 1 for k in begin]))
    assert packed is not None
    assert packed.reach.tolist() == [2 * n] * 3
    assert packed.begin.tolist() == begin[:: packed_chunk.BLOCK]
    for code, marked in ((0, [False, True]), (2 * n, [True, False]), (2 * n + 1, [False] * 2)):
        assert flags(packed, [(code, code)], 2) == marked


def test_only_needed_blocks_are_unpacked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look-up unpacks only the blocks that it needs, and unpacks each block only once."""
    real, seen = PackedChunk._unpacked, []

    def noted(chunk: PackedChunk, blocks: Places) -> tuple[Words, Words, Places]:
        seen.extend(blocks.tolist())
        return real(chunk, blocks)

    n, block = 4 * packed_chunk.BLOCK, packed_chunk.BLOCK
    packed = PackedChunk.of(of(list(range(n)), list(range(n)), [0] * n))
    assert packed is not None
    monkeypatch.setattr(PackedChunk, "_unpacked", noted)
    for asked, blocks in (
        ([(0, 0), (3 * block, 3 * block)], [0, 3]),
        ([(0, 0), (5, 9), (block - 1, block - 1)], [0]),
        ([(0, block), (block + 1, block + 1), (n - 1, GREATEST)], [0, 1, 3]),
        ([(n, GREATEST)], []),
    ):
        seen.clear()
        assert flags(packed, asked, 1) == [bool(blocks)]
        assert seen == blocks


def test_a_wide_range_is_unpacked_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a wide range, a look-up unpacks only a few blocks at a time, to save memory."""
    real, seen = PackedChunk._unpacked, []

    def noted(chunk: PackedChunk, blocks: Places) -> tuple[Words, Words, Places]:
        seen.append(blocks.tolist())
        return real(chunk, blocks)

    n = 5 * packed_chunk.BLOCK
    packed = PackedChunk.of(of(list(range(n)), list(range(n)), list(range(n))))
    assert packed is not None
    monkeypatch.setattr(PackedChunk, "_unpacked", noted)
    monkeypatch.setattr(packed_chunk, "_AT_ONCE", 2)
    assert flags(packed, [(1, n - 2)], n) == [False] + [True] * (n - 2) + [False]
    assert seen == [[0, 1], [2, 3], [4]]
