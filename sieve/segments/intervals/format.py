"""Segment format of the shape `intervals`: encodes the entries of a segment, and decodes them.

Each entry consists of whole cells of a `Grid`. On a coarser grid, entries take fewer bits, but
cover more keys that are absent from the entry's location. A payload in a run file is little-endian;
`sieve.segments.intervals.integer_coding` encodes its arrays:

===========  ================================================================
u8           coding: 2, entries in cells; 3, entries in blocks
u8           version of this layout: 1
i64          first: least key code of the segment
i64          last: greatest key code
u32          n, number of entries, at least 1
u32          base: least location of the segment
u32          l: greatest location - base + 1
u8           order: 0, joint; 1, apart
u8           pieces of the grid less one: p - 1
u8[p]        shift of each piece, 0..63
u8[p - 1]    m, at least 1, and
u8[p - 1]    e, 0..63: the width of each piece but the last is m * 2^e codes
             blocks only: u32 b, number of blocks, then an array of b, each block's cells less one;
             blocks begin at the first cell and are contiguous
array of n   order joint: position less the position of the entry before. A position is
             begin * l + (location - base). Order apart: begin less begin of the entry before
array of n   order apart only: location - base if begin differs from begin of the entry before.
             Otherwise location less the location of the entry before, less one
array of n   number of cells (or blocks) of each entry, less one
===========  ================================================================

`begin` is the number of an entry's first cell. With coding 3, `begin` is the number of the entry's
first block. Entries are sorted by begin, then by location. Two entries with the same begin always
have different locations.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Codes, Words
from sieve.errors import corrupt_segment
from sieve.segments.entries import Ends, Entries
from sieve.segments.intervals import integer_coding
from sieve.segments.intervals.grid import Grid, join, short_widths

IN_CELLS: Final = 2
IN_BLOCKS: Final = 3
CODINGS: Final = (IN_CELLS, IN_BLOCKS)
"""The codings of a segment. With `IN_CELLS`, the borders of each entry are stored separately. With
`IN_BLOCKS`, the borders of all entries are stored once, and divide the segment into blocks; each
entry refers to blocks. Blocks take fewer bytes if the entries of many locations begin and end at
the same keys."""
LAYOUT_VERSION: Final = 1
# Deflate can expand a few bytes of a damaged payload to a long array. `MAX_ENTRIES` limits the
# memory that a reader allocates for this array.
MAX_ENTRIES: Final = 1 << 24

_HEAD: Final = struct.Struct("<BBqqIIIBB")
_BLOCKS: Final = struct.Struct("<I")
_LOCATIONS: Final = 1 << 31
_JOINT, _APART = 0, 1
_ONE: Final = np.uint64(1)


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The entries of a segment as cells of its grid.

    Attributes:
        begin: uint64[n], the number of each entry's first cell. Entries are sorted by first cell,
            then by location.
        end: uint64[n], the number of each entry's last cell.
        location: int32[n].
    """

    grid: Grid
    begin: Words
    end: Words
    location: npt.NDArray[np.int32]

    def by_location(self) -> tuple[Codes, Codes, npt.NDArray[np.int32]]:
        """Returns first key, last key and location of each entry, sorted by location and key."""
        order = np.lexsort((self.begin, self.location))
        first, last = self.grid.first_codes(self.begin), self.grid.last_codes(self.end)
        return first[order], last[order], self.location[order]


def encode(cells: Cells, coding: int) -> bytes:
    """Encodes the entries of a segment as a payload, with one of the `CODINGS`."""
    grid = cells.grid
    arrays = _arrays(cells, coding)
    base = int(cells.location.min())
    head = _HEAD.pack(
        coding,
        LAYOUT_VERSION,
        grid.first,
        grid.last,
        len(cells.begin),
        base,
        int(cells.location.max()) - base + 1,
        _JOINT if "joint" in arrays else _APART,
        len(grid.start) - 1,
    )
    mantissa, exponent = short_widths(np.diff(grid.start))
    parts = [head, grid.shift.tobytes(), mantissa.tobytes(), exponent.tobytes()]
    if "blocks" in arrays:
        parts.append(_BLOCKS.pack(len(arrays["blocks"])))
    return b"".join([*parts, *(integer_coding.encode(array) for array in arrays.values())])


def expected_size(cells: Cells, coding: int) -> float:
    """Estimates how many bytes `encode` would return, without encoding."""
    arrays = _arrays(cells, coding)
    fixed = _HEAD.size + 3 * len(cells.grid.start)
    return fixed + sum(integer_coding.expected_size(array) for array in arrays.values())


def _arrays(cells: Cells, coding: int) -> dict[str, Words]:
    """Returns the arrays of a payload by name, in the payload's order."""
    begin, end = cells.begin, cells.end
    arrays: dict[str, Words] = {}
    if coding == IN_BLOCKS:
        after = end + _ONE
        # Both halves of the array are sorted or nearly sorted, so a merge sort is fastest.
        borders = np.sort(np.concatenate([np.zeros(1, np.uint64), begin, after]), kind="stable")
        borders = borders[np.append(True, borders[1:] != borders[:-1])]
        begin = np.searchsorted(borders, begin).astype(np.uint64)
        end = np.searchsorted(borders, after).astype(np.uint64) - _ONE
        arrays["blocks"] = np.diff(borders) - _ONE
    located = (cells.location - cells.location.min()).astype(np.uint64)
    count = int(located.max()) + 1
    steps = _steps(begin)
    apart = located.copy()
    apart[1:] -= np.where(steps[1:] == 0, located[:-1] + _ONE, np.uint64(0))
    if (int(begin[-1]) + 1) * count < 1 << 64:
        joint = _steps(begin * np.uint64(count) + located)
        if integer_coding.expected_size(joint) <= integer_coding.expected_size(
            steps
        ) + integer_coding.expected_size(apart):
            return arrays | {"joint": joint, "lengths": end - begin}
    return arrays | {"steps": steps, "apart": apart, "lengths": end - begin}


def entries(payload: bytes) -> Entries:
    """Decodes a segment of this shape; the caller has checked the first two bytes."""
    cells = _of_cells(payload)
    low, high = cells.grid.first_codes(cells.begin), cells.grid.last_codes(cells.end)
    return Entries(low, high, cells.location)


def ends(payload: bytes) -> Ends:
    """Decodes a segment of this shape to its `Ends`."""
    cells = _of_cells(payload)
    begin, end, grid = cells.begin, cells.end, cells.grid
    low, high = grid.first_codes(begin), grid.last_codes(end)
    codes = low, grid.last_codes(begin), grid.first_codes(end), high
    # An entry that reaches the segment's first or last code may be a piece of a longer entry, cut
    # at the segment's border. So the piece's cell at the border may contain no key.
    cut = low == low.min(), high == high.max()
    return Ends(*codes, cells.location, ~cut[0], ~cut[1], begin != end)


def decode_cells(payloads: Iterable[bytes]) -> Cells | None:
    """Decodes segments of this shape; all resulting cells belong to one joint grid.

    Raises the same errors as `sieve.segments.payload.decode`.

    Args:
        payloads: one or more disjoint segments, in ascending order.

    Returns:
        The entries of all segments, or None if the joint grid would have 2^64 cells or more.
    """
    segments = [_of_cells(payload) for payload in payloads]
    grid, pieces = join([segment.grid for segment in segments])
    if grid is None:
        return None
    base = grid.base[pieces]
    begin, end = (
        np.concatenate([getattr(one, name) + at for one, at in zip(segments, base, strict=True)])
        for name in ("begin", "end")
    )
    return Cells(grid, begin, end, np.concatenate([one.location for one in segments]))


def _of_cells(payload: bytes) -> Cells:
    if len(payload) < _HEAD.size:
        raise corrupt_segment("is too short")
    coding, _, first, last, n, base, count, order, pieces = _HEAD.unpack_from(payload)
    if first > last or not 1 <= n <= MAX_ENTRIES or order > _APART:
        raise corrupt_segment("has a head that cannot be")
    if count < 1 or base + count > _LOCATIONS:
        raise corrupt_segment("names a location out of range")
    grid, at = _grid(payload, first, last, pieces + 1)
    blocks: tuple[Words, Words] | None = None
    most = grid.cells - 1
    if coding == IN_BLOCKS:
        blocks, at = _blocks(payload, at, most)
        most = len(blocks[0]) - 1
    steps, at = integer_coding.decode(payload, at, n)
    if order == _JOINT:
        position = _summed(steps, (most + 1) * count - 1, 0)
        begin, located = position // np.uint64(count), position % np.uint64(count)
    else:
        begin = _summed(steps, most, 0)
        apart, at = integer_coding.decode(payload, at, n)
        located = _located(steps, apart, count)
    lengths, at = integer_coding.decode(payload, at, n)
    if at != len(payload):
        raise corrupt_segment("is too long")
    if np.any(lengths > np.uint64(most) - begin):
        raise corrupt_segment("has an entry that ends outside it")
    end = begin + lengths
    if blocks is not None:
        begin, end = blocks[0][begin.astype(np.int64)], blocks[1][end.astype(np.int64)]
    return Cells(grid, begin, end, (located + np.uint64(base)).astype(np.int32))


def _grid(payload: bytes, first: int, last: int, pieces: int) -> tuple[Grid, int]:
    """Decodes the grid of a payload; also returns the offset after the grid."""
    at, after = _HEAD.size, _HEAD.size + 3 * pieces - 2
    if after > len(payload):
        raise corrupt_segment("is too short")
    shift = np.frombuffer(payload, np.uint8, pieces, at)
    mantissa = payload[at + pieces : at + 2 * pieces - 1]
    exponent = payload[at + 2 * pieces - 1 : after]
    start = [0]
    for m, e in zip(mantissa, exponent, strict=True):
        if m < 1 or e > 63:
            raise corrupt_segment("has a grid that cannot be")
        start.append(start[-1] + (m << e))
    if start[-1] > last - first or np.any(shift > 63):
        raise corrupt_segment("has a grid that cannot be")
    grid = Grid.of(first, last, np.array(start, np.uint64), shift)
    if grid is None:
        raise corrupt_segment("has a grid of too many cells")
    return grid, after


def _blocks(payload: bytes, at: int, most: int) -> tuple[tuple[Words, Words], int]:
    """Decodes the first and the last cell of each block.

    Also returns the offset after the array of blocks.
    """
    if at + _BLOCKS.size > len(payload):
        raise corrupt_segment("is too short")
    (n,) = _BLOCKS.unpack_from(payload, at)
    if not 1 <= n <= 2 * MAX_ENTRIES:
        raise corrupt_segment(f"claims {n} blocks")
    sizes, at = integer_coding.decode(payload, at + _BLOCKS.size, n)
    # Each number in `sizes` is a block's count of cells, less one. Cells are numbered from 0, so
    # the first number is also the last cell of the first block.
    ends = _summed(sizes, most, 1)
    return (np.append(np.uint64(0), ends[:-1] + _ONE), ends), at


def _located(steps: Words, apart: Words, count: int) -> Words:
    """Decodes the locations of a payload with the order "apart", relative to the base location."""
    if np.any(apart >= count):
        raise corrupt_segment("names a location out of range")
    fresh = steps > 0
    fresh[0] = True
    sums: Words = np.cumsum(apart, dtype=np.uint64)
    sums += np.arange(len(apart), dtype=np.uint64)
    start = np.flatnonzero(fresh)
    before = sums[start] - apart[start]
    located = sums - np.repeat(before, np.diff(start, append=len(apart)))
    if np.any(located >= count):
        raise corrupt_segment("names a location out of range")
    return located


def _steps(ascending: Words) -> Words:
    return np.diff(ascending, prepend=np.uint64(0))


def _summed(steps: Words, most: int, more: int) -> Words:
    """Adds `more` to each of `steps` except the first; returns the cumulative sums.

    Raises CorruptError if a sum exceeds `most`.
    """
    if np.any(steps > min(most, (1 << 64) - 1)):
        raise corrupt_segment("has a cell out of range")
    sums = np.cumsum(steps, dtype=np.uint64)
    if more:
        sums += np.arange(len(sums), dtype=np.uint64)
    # Each step is below 2^64. So if a sum wraps around, it is less than the previous sum.
    if np.any(sums[1:] < sums[:-1]) or int(sums[-1]) > most:
        raise corrupt_segment("has a cell out of range")
    return sums
