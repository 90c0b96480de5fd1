"""Quantisation grid of a segment: divides key codes into cells; entries consist of whole cells.

A grid consists of pieces. All cells of a piece have the same width, which is a power of two. A
piece with dense keys has narrow cells, whose numbers need more bits. A piece with sparse keys has
wide cells, whose numbers need fewer bits. The planner makes cells narrower in pieces that more
queries ask for.

Example: a grid over the codes 0 .. 1023 has two pieces. One piece begins at code 0 with shift 0,
the other piece begins at code 256 with shift 8. The first piece has 256 cells of one code, and the
second piece has 3 cells of 256 codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Codes, Words

MAX_PIECES: Final = 256
_MAX_SHIFT: Final = 63
# The width of a piece has at most this number of significant bits, so that its encoding is short.
_WIDTH_BITS: Final = 6


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The grid over the codes ``first .. last``, with p pieces.

    Attributes:
        first: the least key code.
        last: the greatest key code.
        start: uint64[p], the distance from `first` to the begin of each piece, ascending from 0.
        shift: uint8[p]; a cell of a piece has 2^shift codes. The last cell of a piece may have
            fewer codes.
        base: uint64[p], the number of each piece's first cell.
        cells: the total number of cells.
    """

    first: int
    last: int
    start: Words
    shift: npt.NDArray[np.uint8]
    base: Words
    cells: int

    @staticmethod
    def of(first: int, last: int, start: Words, shift: npt.NDArray[np.uint8]) -> Grid | None:
        """Returns the grid of the given pieces, or None if it would have 2^64 cells or more."""
        span = last - first
        ends = [*(at - 1 for at in start[1:].tolist()), span]
        base, cells = [], 0
        for begin, end, by in zip(start.tolist(), ends, shift.tolist(), strict=True):
            base.append(cells)
            cells += ((end - begin) >> by) + 1
        if cells >= 1 << 64:
            return None
        return Grid(first, last, start, shift, np.array(base, np.uint64), cells)

    @property
    def nbytes(self) -> int:
        """The size of the grid in memory, in bytes."""
        return self.start.nbytes + self.shift.nbytes + self.base.nbytes

    def cells_of(self, codes: Codes) -> Words:
        """Returns the number of each code's cell; codes must be at or above the grid's first code.

        For a code above the grid's last code, the result is the last cell's number or a greater
        number.
        """
        offset = codes.view(np.uint64) - np.array([self.first], np.int64).view(np.uint64)
        piece = np.searchsorted(self.start, offset, side="right") - 1
        within = offset - self.start[piece]
        return self.base[piece] + (within >> self.shift[piece].astype(np.uint64))

    def first_codes(self, cells: Words) -> Codes:
        """Returns the least code of each of `cells`."""
        piece = np.searchsorted(self.base, cells, side="right") - 1
        within = (cells - self.base[piece]) << self.shift[piece].astype(np.uint64)
        return self._codes(self.start[piece] + within)

    def last_codes(self, cells: Words) -> Codes:
        """Returns the greatest code of each of `cells`."""
        piece = np.searchsorted(self.base, cells, side="right") - 1
        shift = self.shift[piece].astype(np.uint64)
        within = (cells - self.base[piece]) << shift
        # The last cell of a piece can have fewer codes than the other cells of the piece. All sums
        # in this method are below 2^64.
        rest = np.append(self.start[1:] - np.uint64(1), np.uint64(self.last - self.first))
        whole = (np.uint64(1) << shift) - np.uint64(1)
        room = rest[piece] - self.start[piece] - within
        return self._codes(self.start[piece] + within + np.minimum(whole, room))

    def _codes(self, offset: Words) -> Codes:
        origin = np.array([self.first], np.int64).view(np.uint64)
        codes: Codes = (origin + offset).view(np.int64)
        return codes


def join(grids: Sequence[Grid]) -> tuple[Grid | None, list[int]]:
    """Joins ascending, disjoint grids to one grid; adds cells for the codes between the grids.

    Returns:
        The joint grid, or None if it would have 2^64 cells or more. Also the position of each given
        grid's first piece in the joint grid.
    """
    first, start, shift, pieces = grids[0].first, [], [], []
    after = first
    for grid in grids:
        if grid.first > after:
            # The codes between two grids form one or two cells.
            start.append(np.array([after - first], np.uint64))
            shift.append(np.array([_MAX_SHIFT], np.uint8))
        pieces.append(sum(map(len, start)))
        start.append(grid.start + np.uint64(grid.first - first))
        shift.append(grid.shift)
        after = grid.last + 1
    joined = Grid.of(first, after - 1, np.concatenate(start), np.concatenate(shift))
    return joined, pieces


def short_widths(widths: Words) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Rounds each width down to m * 2^e, where m < 64; returns the m and the e of each width."""
    lengths = np.searchsorted(_POWERS, widths, side="right")
    exponent = np.maximum(lengths - _WIDTH_BITS, 0).astype(np.uint64)
    return (widths >> exponent).astype(np.uint8), exponent.astype(np.uint8)


_POWERS: Final[Words] = np.uint64(1) << np.arange(64, dtype=np.uint64)
