"""Integer coding: encodes unsigned integers in a number of bits close to their entropy.

As in Elias gamma coding, a number is divided into two parts. The *class* of a number is the count
of its significant bits. The *low bits* of a number are all bits below its highest significant bit.
Many numbers have the same class, so each class is written as a byte, and Deflate compresses these
bytes. Low bits look random, so they are stored without compression. If bit packing gives a shorter
result, `encode` uses bit packing instead. Example: 13 = 0b1101 has the class 4 and the low bits
0b101. Layout, little-endian:

==========  ============================================================
u8 mode     0: bit packing; 1: classes; 2: the numbers, all below 256, as bytes
...         mode 0: the packed array
u32         modes 1 and 2: d, the length of the Deflate data in bytes
u8[d]       modes 1 and 2: raw Deflate (RFC 1951) of one byte for each
            number: its class (mode 1) or the number itself (mode 2)
bits        mode 1: for each number of class c > 1 its c - 1 lowest bits, lowest first
==========  ============================================================
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.arrays.bit_packing import bit_lengths, pack, packed_size, unpack
from sieve.arrays.dtypes import Words
from sieve.errors import corrupt_segment

_PACKED, _CLASSES, _BYTES = 0, 1, 2
_SIZE: Final = struct.Struct("<BI")
_RAW: Final = -15
# Low bits can begin at any bit of the first byte of an 8-byte word. The rest of the word has at
# least this number of bits. The decoder reads longer low bits in two parts.
_WINDOW: Final = 56
# For each class, the highest bit of its numbers, and the mask of all bits below that bit.
_FIRST: Final[Words] = np.append(np.uint64(0), np.uint64(1) << np.arange(64, dtype=np.uint64))
_BELOW: Final[Words] = _FIRST - np.minimum(_FIRST, np.uint64(1))


def encode(values: Words) -> bytes:
    """Encodes an array of fewer than 2^32 numbers; the result lacks the array's length."""
    if not len(values):
        return bytes([_PACKED]) + pack(values)
    classes = bit_lengths(values)
    # The function compares the sizes of all modes first, and then makes only the shortest result.
    deflated = {_CLASSES: _deflated(classes.astype(np.uint8))}
    if classes.max() <= 8:
        deflated[_BYTES] = _deflated(values.astype(np.uint8))
    sizes = {_PACKED: 1 + packed_size(classes)}
    sizes |= {mode: _SIZE.size + len(made) for mode, made in deflated.items()}
    sizes[_CLASSES] += (int(np.maximum(classes - 1, 0).sum()) + 7) // 8
    mode = min(sizes, key=sizes.__getitem__)
    if mode == _PACKED:
        return bytes([_PACKED]) + pack(values)
    below = _packed_low_bits(values, classes) if mode == _CLASSES else b""
    return _SIZE.pack(mode, len(deflated[mode])) + deflated[mode] + below


def expected_size(values: Words) -> float:
    """Estimates how many bytes `encode` would return, without encoding."""
    if len(values) == 0:
        return 0.0
    classes = bit_lengths(values)
    counts = np.bincount(classes)
    counts = counts[counts > 0]
    entropy = float((counts * np.log2(len(values) / counts)).sum())
    below = float(np.maximum(classes - 1, 0).sum())
    # The compressed classes take about as many bytes as their entropy, plus one byte per distinct
    # class. A Deflate block needs the byte per class to describe its codes.
    return (entropy + below) / 8 + 8 + len(counts)


def decode(payload: bytes, at: int, count: int) -> tuple[Words, int]:
    """Decodes `count` numbers that begin at offset `at`; also returns the offset after the numbers.

    Raises:
        CorruptError: the payload ends too early, or contains bytes that `encode` never writes.
    """
    if at >= len(payload):
        raise corrupt_segment("ends inside an array")
    mode = payload[at]
    if mode == _PACKED:
        return unpack(payload, at + 1, count)
    if mode not in {_CLASSES, _BYTES} or at + _SIZE.size > len(payload):
        raise corrupt_segment("has an array with an impossible head")
    (size,) = struct.unpack_from("<I", payload, at + 1)
    at += _SIZE.size
    if at + size > len(payload):
        raise corrupt_segment("ends inside an array")
    symbols = _inflated(payload[at : at + size], count)
    at += size
    if mode == _BYTES:
        return symbols.astype(np.uint64), at
    if np.any(symbols > 64):
        raise corrupt_segment("has an array with an impossible class")
    return _with_low_bits(payload, at, symbols)


def _deflated(symbols: npt.NDArray[np.uint8]) -> bytes:
    # Deflate's search for repetitions lengthens the codes of symbols that do not repeat. So this
    # function runs Deflate with and without the search, and returns the shortest result.
    made = []
    for strategy in (zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE, zlib.Z_DEFAULT_STRATEGY):
        coder = zlib.compressobj(6, zlib.DEFLATED, _RAW, 9, strategy)
        made.append(coder.compress(symbols.tobytes()) + coder.flush())
    return min(made, key=len)


def _inflated(data: bytes, count: int) -> npt.NDArray[np.uint8]:
    decoder = zlib.decompressobj(_RAW)
    try:
        # The function asks for one byte more than `count`, to detect data with too many symbols.
        found = decoder.decompress(data, count + 1)
    except zlib.error as error:
        raise corrupt_segment(f"has an array that does not inflate ({error})") from error
    if len(found) != count or not decoder.eof or decoder.unused_data:
        raise corrupt_segment("has an array of another length")
    return np.frombuffer(found, np.uint8)


def _packed_low_bits(values: Words, classes: npt.NDArray[np.int64]) -> bytes:
    sizes = np.maximum(classes - 1, 0)
    ends = np.cumsum(sizes)
    bits = np.zeros(int(ends[-1]), np.uint8)
    starts = ends - sizes
    for bit in range(int(sizes.max())):
        longer = np.flatnonzero(sizes > bit)
        bits[starts[longer] + bit] = (values[longer] >> np.uint64(bit)) & np.uint64(1)
    return np.packbits(bits, bitorder="little").tobytes()


def _with_low_bits(payload: bytes, at: int, classes: npt.NDArray[np.uint8]) -> tuple[Words, int]:
    sizes = np.maximum(classes, 1) - np.uint8(1)
    ends = np.cumsum(sizes, dtype=np.int64)
    after = at + (int(ends[-1]) + 7) // 8 if len(ends) else at
    if after > len(payload):
        raise corrupt_segment("ends inside an array")
    padded = np.frombuffer(payload[at:after] + bytes(16), np.uint8)
    words: Words = np.ndarray((len(padded) - 7,), "<u8", padded, strides=(1,))
    starts = ends - sizes
    values = words[starts >> 3] >> (starts & 7).astype(np.uint64) & _BELOW[classes]
    long = np.flatnonzero(sizes > _WINDOW)
    if len(long):
        # A number's low bits from the 57th on may lie outside the word that contains the first low
        # bit.
        start, rest = starts[long] + _WINDOW, sizes[long] - np.uint8(_WINDOW)
        above = words[start >> 3] >> (start & 7).astype(np.uint64) & _BELOW[rest + np.uint8(1)]
        values[long] = values[long] & _BELOW[_WINDOW + 1] | above << np.uint64(_WINDOW)
    values |= _FIRST[classes]
    return values, after
