"""Bit packing of unsigned integers with exceptions (PFOR), vectorised in numpy.

`pack` stores each value of an array in `bits` bits, and chooses the number `bits` that minimises
the packed size. A value that needs more than `bits` bits is an outlier. The full values of all
outliers follow the packed bits as exceptions. Example: of 1,000 values, 999 are below 4 and one is
1,000,000. Each value takes 2 bits, and 1,000,000 is an exception. Layout, little-endian:

====================  ===============================================================
u8 bits               0..56
u32 exceptions        number of exceptions, x
u8[(n * bits + 7)/8]  value i from bit i * bits on, lowest bit first; 0 for an outlier
u32[x]                positions of the outliers, ascending
u64[x]                their values
====================  ===============================================================

Source: patched frame of reference (PFOR), Zukowski et al., "Super-Scalar RAM-CPU Cache
Compression".
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Words
from sieve.errors import corrupt_segment

Bytes = bytes | memoryview

# The reader takes each packed value from an 8-byte word. A packed value can begin inside a byte, so
# up to 7 bits of the word can belong to the previous value.
MAX_BITS: Final = 56

_HEAD: Final = struct.Struct("<BI")
EXCEPTION_BYTES: Final = 12
ARRAY_HEAD_BYTES: Final = _HEAD.size
_MANTISSA_BITS: Final = 52
_EXPONENT_OF_ONE: Final = 1023
# `pack_bits` needs one byte of memory for each packed bit, so it packs a slice of the values at a
# time. The number of values in a slice is a multiple of 8, so a packed slice has no incomplete
# byte.
_SLICE: Final = 1 << 16


def bit_lengths(values: Words) -> npt.NDArray[np.int64]:
    """Returns the number of significant bits of each value; 0 for the value 0."""
    # If a value is converted to a float, the float's exponent gives the value's bit length. The
    # conversion could round a value up to the next power of two, so the code first clears the bit
    # below the highest bit.
    image = (values & ~(values >> np.uint64(1))).astype(np.float64).view(np.int64)
    lengths: npt.NDArray[np.int64] = np.maximum(
        (image >> _MANTISSA_BITS) - (_EXPONENT_OF_ONE - 1), 0
    )
    return lengths


def packed_size(lengths: npt.NDArray[np.int64]) -> int:
    """Returns how many bytes `pack` would return for values with these `bit_lengths`."""
    return _HEAD.size + int(_sizes(lengths).min())


def pack(values: Words) -> bytes:
    """Packs an array of fewer than 2^32 numbers; the result does not contain the array's length."""
    lengths = bit_lengths(values)
    bits = int(_sizes(lengths).argmin())
    outliers = np.flatnonzero(lengths > bits)
    kept = values.astype("<u8")
    kept[outliers] = 0
    head = _HEAD.pack(bits, len(outliers))
    places, whole = outliers.astype("<u4").tobytes(), values[outliers].astype("<u8").tobytes()
    return b"".join([head, pack_bits(kept, bits), places, whole])


def unpack(payload: Bytes, at: int, count: int) -> tuple[Words, int]:
    """Unpacks `count` numbers that begin at offset `at`; also returns the offset after the numbers.

    Raises:
        CorruptError: the payload ends too early, or contains bytes that `pack` never writes.
    """
    if at + _HEAD.size > len(payload):
        raise corrupt_segment("ends inside an array")
    bits, exceptions = _HEAD.unpack_from(payload, at)
    if bits > MAX_BITS or exceptions > count:
        raise corrupt_segment("has an array with an impossible head")
    at += _HEAD.size
    end = at + (count * bits + 7) // 8
    after = end + exceptions * EXCEPTION_BYTES
    if after > len(payload):
        raise corrupt_segment("ends inside an array")
    padded = byte_words(bytes(payload[at:end]) + bytes(8))
    values = bits_at(padded, bits, np.arange(count, dtype=np.uint64))
    if exceptions:
        places = np.frombuffer(payload, "<u4", exceptions, end)
        if places[-1] >= count or np.any(places[1:] <= places[:-1]):
            raise corrupt_segment("has an array with misplaced exceptions")
        values[places] = np.frombuffer(payload, "<u8", exceptions, end + 4 * exceptions)
    return values, after


def pack_bits(values: Words, bits: int) -> bytes:
    """Packs the lowest `bits` bits (at most 56) of each value; value i begins at bit i * bits."""
    image = values.astype("<u8").view(np.uint8).reshape(-1, 8)
    return b"".join(
        np.packbits(
            np.unpackbits(image[at : at + _SLICE], axis=1, count=bits, bitorder="little"),
            bitorder="little",
        ).tobytes()
        for at in range(0, len(image), _SLICE)
    )


def byte_words(data: Bytes, start: int = 0) -> Words:
    """Returns the 8-byte word at each offset from `start` on, uint64[len(data) - start - 7]."""
    words: Words = np.ndarray((len(data) - start - 7,), "<u8", data, start, (1,))
    return words


def bits_at(words: Words, bits: int, places: Words) -> Words:
    """Reads the values at the positions `places` from packed bits.

    `words` is the result of `byte_words` for the packed bits; `places` can have any shape. The
    caller must pad the packed bits: at least seven bytes must follow the first byte of the last
    value.
    """
    start = places * np.uint64(bits)
    found = words[(start >> np.uint64(3)).astype(np.int64)] >> (start & np.uint64(7))
    return found & np.uint64((1 << bits) - 1)


def _sizes(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Returns the packed size in bytes for each bit width from 0 to 56, int64[57]."""
    longer = len(lengths) - np.cumsum(np.bincount(lengths, minlength=65))[: MAX_BITS + 1]
    widths = np.arange(MAX_BITS + 1)
    sizes: npt.NDArray[np.int64] = (len(lengths) * widths + 7) // 8 + EXCEPTION_BYTES * longer
    return sizes
