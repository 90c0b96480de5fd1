"""Packed chunk: the entries of segments in six to eight bytes each, searched by blocks.

If a run's decoded entries would not fit into the cache, the run reader packs the entries in this
form. A look-up then unpacks only the blocks that can contain the wanted keys. As in the block index
of a sorted run, two cells describe a block: the block's first cell, and the greatest cell of all
entries up to the block's end. Each entry is a record of whole bytes: the entry's first cell minus
the block's first cell, the entry's length, and the entry's location.

Example: the entries of the cells [0, 9], [2, 2], [5, 6], [8, 8] make two blocks of two entries. The
blocks begin at the cells 0 and 5, and both reach cell 9. A key in cell 7 can be in both blocks, and
a key in cell 3 only in the first block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.arrays.bit_packing import byte_words
from sieve.arrays.dtypes import CodeIntervals, Codes, Flags, Places, Words
from sieve.arrays.interval_set import spelled_out
from sieve.reader.entry_table import assemble
from sieve.segments.entries import Entries
from sieve.segments.intervals.format import Cells
from sieve.segments.intervals.grid import Grid

BLOCK: Final = 64
"""The number of entries in a block. At this size the block index takes a quarter of a byte for each
entry."""

# This many blocks are packed or unpacked at once, because unpacked entries take ten times the
# memory of packed entries.
_AT_ONCE: Final = 2048
# A record has fewer bits than a word, so each field begins within the word.
_RECORD_BITS: Final = 63
_WORD: Final = 8
# This number marks "no cell", because a grid has fewer than 2^64 cells.
_NO_CELL: Final = np.uint64((1 << 64) - 1)


@dataclass(frozen=True, slots=True, eq=False)
class _Field:
    """A field of a record: a range of the record's bits."""

    shift: np.uint64
    mask: np.uint64

    def of(self, records: Words) -> Words:
        found: Words = records >> self.shift & self.mask
        return found


@dataclass(frozen=True, slots=True, eq=False)
class PackedChunk:
    """n entries in b blocks, with the methods of `sieve.reader.entry_table.Chunk`.

    Attributes:
        grid: the grid of the entries.
        n: number of entries, 1 or more.
        begin: uint64[b], first cell of each block's first entry.
        reach: uint64[b], greatest cell of all entries up to the end of each block.
        base: the least location.
        fields: the parts of a record: the entry's first cell minus the block's first cell, the
            number of cells minus one, and the location minus `base`.
        width: bytes of a record.
        records: uint8[n * width], and some more bytes as padding.
        n_locations: the greatest location plus one.
    """

    grid: Grid
    n: int
    begin: Words
    reach: Words
    base: int
    fields: tuple[_Field, _Field, _Field]
    width: int
    records: npt.NDArray[np.uint8]
    n_locations: int

    @classmethod
    def of(cls, cells: Cells) -> PackedChunk | None:
        """Packs entries; returns None if a record would be too long."""
        n, base = len(cells.begin), int(cells.location.min())
        parts = [slice(at, at + _AT_ONCE * BLOCK) for at in range(0, n, _AT_ONCE * BLOCK)]
        greatest = [[int(column.max()) for column in _columns(cells, base, part)] for part in parts]
        bits, fields = 0, []
        for most in map(max, zip(*greatest, strict=True)):
            size = most.bit_length()
            fields.append(_Field(np.uint64(bits), np.uint64((1 << size) - 1)))
            bits += size
            if bits > _RECORD_BITS:
                return None
        first, length, location = fields
        width = -(-bits // 8)
        data = np.zeros(n * width + _WORD, np.uint8)
        records = data[: n * width].reshape(n, width)
        for part in parts:
            shifted = (
                column << field.shift
                for column, field in zip(_columns(cells, base, part), fields, strict=True)
            )
            words = np.bitwise_or.reduce(list(shifted)).astype("<u8")
            records[part] = words.view(np.uint8).reshape(-1, _WORD)[:, :width]
        begin = cells.begin[::BLOCK].copy()
        reach = np.maximum.accumulate(np.maximum.reduceat(cells.end, np.arange(0, n, BLOCK)))
        named = int(cells.location.max()) + 1
        return cls(cells.grid, n, begin, reach, base, (first, length, location), width, data, named)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.begin.nbytes + self.reach.nbytes + self.records.nbytes + self.grid.nbytes

    def mark(self, wanted: CodeIntervals, found: Flags) -> None:
        """Does the same as `sieve.reader.entry_table.Chunk.mark`."""
        grid = self.grid
        wanted = wanted[(wanted[:, 1] >= grid.first) & (wanted[:, 0] <= grid.last)]
        # Intervals ascend, so only the first interval can begin below the grid. No entry has cells
        # above the grid.
        ends = wanted.reshape(-1)
        ends[:1] = np.maximum(ends[:1], grid.first)
        cells = grid.cells_of(ends)
        first, last = cells[::2], cells[1::2]
        start = self.reach.searchsorted(first, side="left")
        stop = self.begin.searchsorted(last, side="right")
        # An interval skips the blocks of earlier intervals, so each block is unpacked only once.
        start[1:] = np.maximum(start[1:], stop[:-1])
        blocks = spelled_out(start, np.maximum(start, stop))
        first = np.append(first, _NO_CELL)
        for at in range(0, len(blocks), _AT_ONCE):
            begin, end, location = self._unpacked(blocks[at : at + _AT_ONCE])
            # For each entry, compare only the first interval that ends at or after the entry's
            # begin.
            behind = last.searchsorted(begin, side="left")
            found[location[end >= first[behind]]] = True

    def holds(self, codes: Codes, location: int) -> Flags:
        """Does the same as `sieve.reader.entry_table.Chunk.holds`; unpacks all entries."""
        begin, end, locations = self._unpacked(np.arange(len(self.begin)))
        low, high = self.grid.first_codes(begin), self.grid.last_codes(end)
        return assemble([Entries(low, high, locations.astype(np.int32))]).holds(codes, location)

    def _unpacked(self, blocks: Places) -> tuple[Words, Words, Places]:
        """The first cell, last cell and location of each entry of the given blocks.

        The last block is padded with copies of its last entry.
        """
        places = np.minimum(blocks[:, None] * BLOCK + np.arange(BLOCK), self.n - 1)
        records = byte_words(self.records.data)[places * self.width]
        first, size, location = (field.of(records) for field in self.fields)
        begin = (self.begin[blocks, None] + first).reshape(-1)
        return begin, begin + size.reshape(-1), location.reshape(-1).astype(np.intp) + self.base


def _columns(cells: Cells, base: int, part: slice) -> tuple[Words, Words, Words]:
    """Returns the fields of consecutive entries, of which the first entry begins a block."""
    begin = cells.begin[part]
    before = np.repeat(begin[::BLOCK], BLOCK)[: len(begin)]
    return begin - before, cells.end[part] - begin, (cells.location[part] - base).astype(np.uint64)
