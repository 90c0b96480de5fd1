"""Framed column: a compressed integer array with random access.

The column is divided into blocks (frames) of 1,024 numbers. A block stores its least number, and
the difference of every number from the least number. All differences of a block have the same width
in bytes. A block of equal numbers stores no differences.

Source: frame of reference, Goldstein, Ramakrishnan and Shaft, "Compressing Relations and Indexes".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.arrays.bit_packing import byte_words
from sieve.arrays.dtypes import Counts, Integers, Words

FRAME: Final = 1024
_WORD: Final = 8
# Mask number n selects the n lowest bytes of a word.
_MASKS: Final[Words] = np.array([(1 << 8 * width) - 1 for width in range(_WORD + 1)], np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class FramedColumn:
    """A compressed column of n integers, divided into f frames.

    Attributes:
        least: int64[f], the least number of each frame.
        width: uint8[f], the number of bytes per difference in each frame, 0 to 8.
        start: int64[f], the offset in `data` at which each frame begins.
        data: uint8, the differences of all frames, followed by eight bytes of padding.
    """

    least: Integers
    width: npt.NDArray[np.uint8]
    start: Counts
    data: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, values: Integers) -> FramedColumn:
        """Packs the numbers ``values``, int64[n], into a column."""
        frames = -(-len(values) // FRAME)
        # The column's last number is repeated until the last frame is full.
        padded = np.append(values, np.repeat(values[-1:], frames * FRAME - len(values)))
        blocks = padded.reshape(-1, FRAME)
        least = blocks.min(axis=1, initial=np.iinfo(np.int64).max)
        # Each difference is from 0 to 2^64 - 1. So a subtraction in uint64 is exact, even if the
        # same subtraction in int64 would overflow.
        above = blocks.view(np.uint64) - least.view(np.uint64)[:, None]
        width = np.searchsorted(_MASKS, above.max(axis=1, initial=0)).astype(np.uint8)
        sizes = width.astype(np.int64) * FRAME
        start = np.cumsum(sizes) - sizes
        data = np.zeros(int(sizes.sum()) + _WORD, np.uint8)
        image = above.astype("<u8").view(np.uint8).reshape(-1, FRAME, _WORD)
        for size in np.unique(width).tolist():
            own = np.flatnonzero(width == size)
            data[start[own, None] + np.arange(size * FRAME)] = image[own, :, :size].reshape(
                len(own), -1
            )
        return cls(least, width, start, data)

    @property
    def nbytes(self) -> int:
        """The size of the column in memory, in bytes."""
        return self.least.nbytes + self.width.nbytes + self.start.nbytes + self.data.nbytes

    def same(self, other: FramedColumn) -> bool:
        """Returns whether two columns have the same numbers and the same padding at the end."""
        pairs = (self.least, other.least), (self.width, other.width), (self.data, other.data)
        return all(np.array_equal(one, two) for one, two in pairs)

    def take(self, places: Counts) -> Integers:
        """Returns the column's numbers, int64, at the given positions (from 0 to n - 1)."""
        frame = places // FRAME
        width = self.width[frame]
        at = self.start[frame] + places % FRAME * width
        found: Words = byte_words(self.data.data)[at] & _MASKS[width]
        numbers: Integers = found.view(np.int64) + self.least[frame]
        return numbers
