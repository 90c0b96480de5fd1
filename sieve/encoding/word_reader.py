"""Reads bytes of variable-length values as 8-byte words, for a whole Arrow array at once.

numpy cannot slice many byte strings at once. Therefore the reader views the data buffer of an Arrow
array as overlapping 8-byte words, one for each byte offset. To read at many positions, the reader
indexes the array of words with the positions.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from sieve.arrays.dtypes import Offsets, Words

# Mask number n selects the first n bytes of a word in the machine's byte order.
_FIRST: Final[Words] = np.array(
    [b"\xff" * n + b"\0" * (8 - n) for n in range(9)], "S8"
).view(np.uint64)  # fmt: skip


class WordReader:
    """Reads the values of an Arrow array of large binaries as 8-byte words.

    Attributes:
        begins, ends: int64[n], the offsets in the array's data buffer at which each value begins
            and ends.
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
        """Returns the eight bytes from each position on, in the machine's byte order.

        The bytes after the end of a value are zero.

        Args:
            places: int64[k], the positions to read; a position can be after the end of its value.
            ends: int64[k], the end of the value that each position belongs to.
        """
        inside = places
        late = len(places) > 0 and int(places.max()) > self._last
        if late:
            inside = np.minimum(places, self._last)
        words = self._words[inside]
        if late:
            # A word near the end of the buffer was read from an earlier position. The shift removes
            # the bytes before the wanted position, and appends zeros.
            words >>= (np.minimum(places - inside, 7) << 3).view(np.uint64)
        words &= _FIRST[np.clip(ends - places, 0, 8)]
        return words
