"""Whole numbers in as few bits as they need, packed and unpacked by numpy without a Python loop.

An array is cut to the `bits` that make it shortest. The few values that need more (outliers, such
as one key with a million rows) are kept whole behind the packed bits. Layout, little-endian:

====================  ===============================================================
u8 bits               0..56
u32 exceptions        x
u8[(n * bits + 7)/8]  value i in bits i * bits onwards, lowest bit first, 0 for outliers
u32[x]                positions of the outliers, ascending
u64[x]                their values
====================  ===============================================================

Source: the idea of patched frames of reference, Zukowski et al., "Super-Scalar RAM-CPU Cache
Compression".
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.errors import CorruptError

Words = npt.NDArray[np.uint64]
Bytes = bytes | memoryview

# A value that begins inside a byte must fit, with the up to 7 bits before it, in one 8-byte word.
MAX_BITS: Final = 56

_HEAD: Final = struct.Struct("<BI")
EXCEPTION_BYTES: Final = 12
ARRAY_HEAD_BYTES: Final = _HEAD.size
_MANTISSA_BITS: Final = 52
_EXPONENT_OF_ONE: Final = 1023
# Packing goes through one byte a bit; a slice of a multiple of 8 values ends on a byte.
_SLICE: Final = 1 << 16


def bit_lengths(values: Words) -> npt.NDArray[np.int64]:
    """Position of each value's highest set bit plus one; 0 for 0."""
    # A float's exponent tells it. Without the bit below the highest, no value rounds up to the
    # next power of two.
    image = (values & ~(values >> np.uint64(1))).astype(np.float64).view(np.int64)
    lengths: npt.NDArray[np.int64] = np.maximum(
        (image >> _MANTISSA_BITS) - (_EXPONENT_OF_ONE - 1), 0
    )
    return lengths


def packed_size(lengths: npt.NDArray[np.int64]) -> int:
    """The bytes that `pack` makes of values of these `bit_lengths`."""
    return _HEAD.size + int(_sizes(lengths).min())


def pack(values: Words) -> bytes:
    """The bytes of an array of fewer than 2^32 numbers; its length is not among them."""
    lengths = bit_lengths(values)
    bits = int(_sizes(lengths).argmin())
    outliers = np.flatnonzero(lengths > bits)
    kept = values.astype("<u8")
    kept[outliers] = 0
    head = _HEAD.pack(bits, len(outliers))
    places, whole = outliers.astype("<u4").tobytes(), values[outliers].astype("<u8").tobytes()
    return b"".join([head, pack_bits(kept, bits), places, whole])


def unpack(payload: Bytes, at: int, count: int) -> tuple[Words, int]:
    """`count` numbers whose bytes begin at `at`, and where the bytes after them begin.

    Raises:
        CorruptError: the bytes end too early or cannot have come from `pack`.
    """
    if at + _HEAD.size > len(payload):
        raise _corrupt("ends inside an array")
    bits, exceptions = _HEAD.unpack_from(payload, at)
    if bits > MAX_BITS or exceptions > count:
        raise _corrupt("has an array with an impossible head")
    at += _HEAD.size
    end = at + (count * bits + 7) // 8
    after = end + exceptions * EXCEPTION_BYTES
    if after > len(payload):
        raise _corrupt("ends inside an array")
    padded = byte_words(bytes(payload[at:end]) + bytes(8))
    values = bits_at(padded, bits, np.arange(count, dtype=np.uint64))
    if exceptions:
        places = np.frombuffer(payload, "<u4", exceptions, end)
        if places[-1] >= count or np.any(places[1:] <= places[:-1]):
            raise _corrupt("has an array with misplaced exceptions")
        values[places] = np.frombuffer(payload, "<u8", exceptions, end + 4 * exceptions)
    return values, after


def pack_bits(values: Words, bits: int) -> bytes:
    """The lowest `bits` bits, at most 56, of each value, value i in bits i * bits onwards."""
    if bits == 0:
        return b""
    image = values.astype("<u8").view(np.uint8).reshape(-1, 8)
    return b"".join(
        np.packbits(
            np.unpackbits(image[at : at + _SLICE], axis=1, count=bits, bitorder="little"),
            bitorder="little",
        ).tobytes()
        for at in range(0, len(image), _SLICE)
    )


def byte_words(data: Bytes, start: int = 0) -> Words:
    """The words of 8 bytes that begin at each byte from `start` on, u64[len(data) - start - 7]."""
    words: Words = np.ndarray((len(data) - start - 7,), "<u8", data, start, (1,))
    return words


def bits_at(words: Words, bits: int, places: Words) -> Words:
    """The values at some places, any shape, of what `pack_bits` made, given as `byte_words`.

    Seven bytes must follow the last value's first byte.
    """
    start = places * np.uint64(bits)
    found = words[(start >> np.uint64(3)).astype(np.int64)] >> (start & np.uint64(7))
    return found & np.uint64((1 << bits) - 1)


def _sizes(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Bytes of an array's values when cut to each width in bits, int64[57], from their lengths."""
    longer = len(lengths) - np.cumsum(np.bincount(lengths, minlength=65))[: MAX_BITS + 1]
    widths = np.arange(MAX_BITS + 1)
    sizes: npt.NDArray[np.int64] = (len(lengths) * widths + 7) // 8 + EXCEPTION_BYTES * longer
    return sizes


def _corrupt(problem: str) -> CorruptError:
    return CorruptError(
        "SIEVE_CORRUPT_SEGMENT", f"a segment's payload {problem}; REFRESH the index FULL"
    )
