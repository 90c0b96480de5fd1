"""Reads bytes of variable-length values as 8-byte words, for a whole Arrow array at once.

numpy has no vectorised slicing of byte strings. The reader views the data buffer of an Arrow array
as overlapping words. So one access to the array reads the eight bytes at any position.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from sieve.arrays.dtypes import Offsets, Words

# Masks for a word in the machine's byte order: each selects the first 0 to 8 bytes.
_FIRST: Final[Words] = np.array(
    [b"\xff" * n + b"\0" * (8 - n) for n in range(9)], "S8"
).view(np.uint64)  # fmt: skip


class WordReader:
    """The values of an Arrow array of large binaries, as words.

    Attributes:
        begins, ends: int64[n], position of each value in the array's bytes.
    """

    __slots__ = ("_last", "_words", "begins", "ends")

    def __init__(self, values: pa.Array) -> None:
        _, offsets, data = values.buffers()
        bounds = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
        self.begins, self.ends = bounds[:-1], bounds[1:]
        content = np.frombuffer(b"" if data is None else data, np.uint8)
        if len(content) < 8:
            content = np.concatenate([content, np.zeros(8 - len(content), np.uint8)])
        self._last = len(content) - 8
        self._words = np.ndarray((self._last + 1,), "<u8", content, strides=(1,))

    def at(self, places: Offsets, ends: Offsets) -> Words:
        """The eight bytes from each position on, zero after each end, in the machine's byte order.

        Args:
            places: int64[k], the positions to read, possibly after the end of the value.
            ends: int64[k], ends of the values.
        """
        inside = places
        late = len(places) > 0 and int(places.max()) > self._last
        if late:
            inside = np.minimum(places, self._last)
        words = self._words[inside]
        if late:
            # Words near the end were read from an earlier position. The shift removes the bytes
            # before the position and adds zeros.
            words >>= (np.minimum(places - inside, 7) << 3).view(np.uint64)
        words &= _FIRST[np.clip(ends - places, 0, 8)]
        return words
