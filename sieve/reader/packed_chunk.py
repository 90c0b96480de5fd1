"""Packed chunk: entries of segments in a compact form of six to eight bytes for each entry.

If the cache is too small for a run's decoded entries, the run reader keeps the entries in packed
blocks. A look-up unpacks only blocks that can contain the wanted keys. The block index has two
cells for each block: the block's first cell, and the greatest cell of all entries up to the block's
end. A record stores an entry in three fields: the first cell minus the block's first cell, the
number of cells, and the location.

Example, with blocks of two entries: the entries cover the cells [0, 9], [2, 2], [5, 6] and [8, 8].
The two blocks begin at the cells 0 and 5; for both blocks, the greatest cell is 9. A look-up of a
key in cell 7 unpacks both blocks; a look-up of a key in cell 3 unpacks only the first.
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
"""The number of entries in a block. With 64 entries in a block, the block index takes a quarter of
a byte for each entry."""

# The maximum number of blocks that the code packs or unpacks at once. Unpacked entries need ten
# times as much memory as packed entries.
_AT_ONCE: Final = 2048
# The maximum number of bits in a record. Within this limit, each field begins in a word of 64 bits.
_RECORD_BITS: Final = 63
_WORD: Final = 8
# The number that means "no cell"; a grid has fewer than 2^64 cells.
_NO_CELL: Final = np.uint64((1 << 64) - 1)


@dataclass(frozen=True, slots=True, eq=False)
class _Field:
    """A field of a record: a number in some consecutive bits of the record."""

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
        reach: uint64[b], the greatest cell of all entries up to the end of each block.
        base: the least location.
        fields: the fields of a record: the entry's first cell minus the block's first cell, the
            entry's number of cells minus one, and the entry's location minus `base`.
        width: number of bytes in a record.
        records: uint8, n * width bytes of records, followed by padding.
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
        """Packs entries; returns None if a record would have more than `_RECORD_BITS` bits."""
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
        """The size of the arrays in bytes."""
        return self.begin.nbytes + self.reach.nbytes + self.records.nbytes + self.grid.nbytes

    def mark(self, wanted: CodeIntervals, found: Flags) -> None:
        """Does the same as `sieve.reader.entry_table.Chunk.mark`."""
        grid = self.grid
        wanted = wanted[(wanted[:, 1] >= grid.first) & (wanted[:, 0] <= grid.last)]
        # The intervals are ascending, so only the first one can begin below the grid. The last
        # interval can end above the grid, where no entry has cells.
        ends = wanted.reshape(-1)
        ends[:1] = np.maximum(ends[:1], grid.first)
        cells = grid.cells_of(ends)
        first, last = cells[::2], cells[1::2]
        start = self.reach.searchsorted(first, side="left")
        stop = self.begin.searchsorted(last, side="right")
        # If two intervals need the same block, the code unpacks the block only for the first
        # interval.
        start[1:] = np.maximum(start[1:], stop[:-1])
        blocks = spelled_out(start, np.maximum(start, stop))
        first = np.append(first, _NO_CELL)
        for at in range(0, len(blocks), _AT_ONCE):
            begin, end, location = self._unpacked(blocks[at : at + _AT_ONCE])
            # Compare each entry only with the first interval that ends at or after the entry's
            # first cell. If any interval overlaps the entry, this first interval does.
            behind = last.searchsorted(begin, side="left")
            found[location[end >= first[behind]]] = True

    def holds(self, codes: Codes, location: int) -> Flags:
        """Does the same as `sieve.reader.entry_table.Chunk.holds`; unpacks all entries."""
        begin, end, locations = self._unpacked(np.arange(len(self.begin)))
        low, high = self.grid.first_codes(begin), self.grid.last_codes(end)
        return assemble([Entries(low, high, locations.astype(np.int32))]).holds(codes, location)

    def _unpacked(self, blocks: Places) -> tuple[Words, Words, Places]:
        """The first cell, the last cell and the location of each entry in some blocks.

        If the last block has fewer than `BLOCK` entries, copies of the last entry fill the block.
        """
        places = np.minimum(blocks[:, None] * BLOCK + np.arange(BLOCK), self.n - 1)
        records = byte_words(self.records.data)[places * self.width]
        first, size, location = (field.of(records) for field in self.fields)
        begin = (self.begin[blocks, None] + first).reshape(-1)
        return begin, begin + size.reshape(-1), location.reshape(-1).astype(np.intp) + self.base


def _columns(cells: Cells, base: int, part: slice) -> tuple[Words, Words, Words]:
    """Returns the three fields of consecutive entries. The first entry must begin a block."""
    begin = cells.begin[part]
    before = np.repeat(begin[::BLOCK], BLOCK)[: len(begin)]
    return begin - before, cells.end[part] - begin, (cells.location[part] - base).astype(np.uint64)
