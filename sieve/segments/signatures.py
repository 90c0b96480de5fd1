"""Segment format of the shape `signature`: bits that tell which long grams a location's texts have.

The signature of a location is an array of 2^b bits, at least 2^9. Each long gram of the location's
texts sets one bit: the bit whose number is the upper b bits of the gram's hash. A location cannot
contain a text if the bit of one of the text's long grams is not set. A segment contains the bits
of all locations for one of `PIECES` ranges of hashes, so that a look-up reads few segments.

A payload in a run file is little-endian:

===============  ================================================================================
u8               shape: 5, signature
u8               version of this layout: 1
i64              first: the least hash of the range
i64              last: the greatest hash of the range
u32              locations: n, of the run
n times u8       k, so that the location has 2^k bits in this range; 255 if the location has no
                 signature
for each         2^(k - 3) bytes; bit i of the location is bit i % 8 of byte i / 8, and belongs to
location         the i-th of 2^k equal parts of the range
u32              CRC-32 of all bytes before
===============  ================================================================================

Without the checksum, a reader could not detect a damaged bit, and queries would lose rows.

Source: Faloutsos and Christodoulakis, "Signature Files" (superimposed coding).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Flags, Integers, Offsets
from sieve.errors import UnsupportedError, corrupt_segment

SHAPE_SIGNATURE: Final = 5
LAYOUT_VERSION: Final = 1
HASH_BITS: Final = 32
PIECE_BITS: Final = 6
PIECES: Final = 1 << PIECE_BITS
LEAST_BITS: Final = PIECE_BITS + 3
"""The binary logarithm of the smallest signature's size: each piece consists of whole bytes."""
MOST_BITS: Final = 26
"""The binary logarithm of the largest signature's size; such a signature has 8 MB."""

_SPAN_BITS: Final = HASH_BITS - PIECE_BITS
_NONE: Final = 255
_HEAD: Final = struct.Struct("<BBqqI")
_CHECK_BYTES: Final = 4

Image = npt.NDArray[np.uint8]
"""The bytes of a signature, or of a piece of a signature."""


@dataclass(frozen=True, slots=True, eq=False)
class SignatureSegment:
    """The bits of all locations of a run for one range of hashes.

    Attributes:
        first: the least hash of the range.
        bits: int64[n], k for each location; -1 for a location without a signature.
        offsets: int64[n], the position of each location's first byte in `image`.
        image: the bytes of all locations.
    """

    first: int
    bits: Integers
    offsets: Offsets
    image: Image

    @property
    def last(self) -> int:
        """The greatest hash of the range."""
        return self.first + (1 << _SPAN_BITS) - 1

    @property
    def piece(self) -> int:
        """The number of the range."""
        return self.first >> _SPAN_BITS

    @property
    def n_locations(self) -> int:
        """The number of locations of the run."""
        return len(self.bits)

    def locations_with(self, value: int) -> Flags:
        """Returns bool[n], whether each location may contain a long gram with this hash.

        Args:
            value: a hash in the segment's range.
        """
        may_hold = np.ones(len(self.bits), np.bool_)
        there = np.flatnonzero(self.bits >= 0)
        place = (value - self.first) >> (_SPAN_BITS - self.bits[there])
        byte = self.image[self.offsets[there] + (place >> 3)]
        may_hold[there] = (byte >> (place & 7).astype(np.uint8)) & 1
        return may_hold

    def of(self, location: int) -> Image | None:
        """Returns the bytes of a location in this range; None if it has no signature."""
        k = int(self.bits[location])
        if k < 0:
            return None
        return self.image[self.offsets[location] :][: 1 << (k - 3)]


def first_hash(piece: int) -> int:
    """The least hash of a piece; the pieces are numbered from 0 in the order of hashes."""
    return piece << _SPAN_BITS


def last_hash(piece: int) -> int:
    """The greatest hash of a piece."""
    return first_hash(piece + 1) - 1


def cut(signature: Image) -> list[Image]:
    """Divides a signature into its pieces."""
    return np.split(signature, PIECES)


def fold(image: Image, size: int) -> Image:
    """Joins neighbouring bits by OR until the image has `size` bytes, a power of two.

    An image that is too small is returned unchanged.
    """
    if len(image) <= size:
        return image
    bits = np.unpackbits(image, bitorder="little").reshape(size * 8, -1)
    return np.packbits(bits.any(axis=1), bitorder="little")


def widen(image: Image, size: int) -> Image:
    """The inverse of `fold`: repeats each bit until the image has `size` bytes."""
    if len(image) >= size:
        return image
    bits = np.unpackbits(image, bitorder="little")
    return np.packbits(np.repeat(bits, size // len(image)), bitorder="little")


def encode_signatures(piece: int, images: Sequence[Image | None]) -> bytes:
    """Encodes the bytes of all locations for one piece as a payload.

    Args:
        images: for each location, its bytes in this piece; None for a location without a signature.
    """
    bits = bytes(_NONE if one is None else (8 * len(one)).bit_length() - 1 for one in images)
    head = _HEAD.pack(
        SHAPE_SIGNATURE, LAYOUT_VERSION, first_hash(piece), last_hash(piece), len(images)
    )
    payload = b"".join([head, bits, *(one.tobytes() for one in images if one is not None)])
    return payload + zlib.crc32(payload).to_bytes(_CHECK_BYTES, "little")


def decode_signatures(payload: npt.NDArray[np.uint8]) -> SignatureSegment:
    """Decodes a payload, and validates every field of the layout. The result shares its memory.

    Raises:
        UnsupportedError: a newer release of Sieve wrote the payload.
        CorruptError: the payload is damaged: `encode_signatures` cannot have made it.
    """
    if len(payload) < _HEAD.size + _CHECK_BYTES:
        raise corrupt_segment("is too short")
    shape, version, first, last, n = _HEAD.unpack_from(payload.data)
    if shape != SHAPE_SIGNATURE:
        raise corrupt_segment(f"claims shape {shape}")
    if version > LAYOUT_VERSION:
        raise UnsupportedError(
            "SIEVE_VERSION_TOO_NEW",
            f"a signature has layout {version}; upgrade Sieve or REFRESH the index",
        )
    end = len(payload) - _CHECK_BYTES
    if zlib.crc32(payload[:end].data) != int.from_bytes(payload[end:].tobytes(), "little"):
        raise corrupt_segment("has another check sum")
    piece = first >> _SPAN_BITS
    if not 0 <= piece < PIECES or (first, last) != (first_hash(piece), last_hash(piece)):
        raise corrupt_segment(f"claims the hashes from {first} to {last}")
    if not 1 <= n <= end - _HEAD.size:
        raise corrupt_segment(f"claims {n} locations")
    stored = payload[_HEAD.size :][:n].astype(np.int64)
    bits = np.where(stored == _NONE, -1, stored)
    if np.any((bits >= 0) & ((bits < 3) | (bits > MOST_BITS - PIECE_BITS))):
        raise corrupt_segment("has a signature of an impossible size")
    sizes = np.where(bits < 0, 0, 1 << np.maximum(bits - 3, 0))
    offsets = np.cumsum(sizes) - sizes
    image = payload[_HEAD.size + n : end]
    if len(image) != int(sizes.sum()):
        raise corrupt_segment("has another length than its signatures")
    return SignatureSegment(first, bits, offsets, image)
