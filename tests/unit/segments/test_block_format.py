"""Tests the bytes of a segment of blocks: decoding, a stored sample, and damage."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from sieve.arrays.bit_packing import bit_lengths, pack, packed_size, unpack
from sieve.encoding.encoder import GREATEST, LEAST
from sieve.errors import CorruptError, SieveError, UnsupportedError
from sieve.segments.blocks.format import CSR, Segment, decode_segment, encode_segment
from sieve.segments.payload import decode

HEAD = "<BBqqQIQI"


def segment(first=0, last=5, width=2, blocks=((0, 4), (), (9,)), rows=(1, 2, 1 << 40)):
    """A segment of three blocks; the middle block is empty."""
    offsets = np.cumsum([0, *map(len, blocks)])
    locations = np.array([location for block in blocks for location in block], np.int32)
    return Segment(first, last, width, CSR(offsets, locations, np.array(rows, np.int64)))


def same(one: Segment, other: Segment) -> bool:
    """Returns whether all fields of two segments are equal."""
    return (one.first, one.last, one.width) == (other.first, other.last, other.width) and all(
        np.array_equal(getattr(one.blocks, name), getattr(other.blocks, name))
        for name in ("offsets", "locations", "rows")
    )


@pytest.mark.parametrize(
    "made",
    [
        segment(),
        segment(LEAST, GREATEST, -(-(1 << 64) // 3)),
        segment(7, 7, 1, ((2**31 - 1,),), (2**63 - 1,)),
        segment(0, 5, 2, ((5,), (5,), (5,)), (1, 1, 1)),
    ],
)
def test_segments_survive_their_bytes(made):
    """A decoded segment has the bounds, blocks and rows of the encoded segment.

    The tested segments include the least and the greatest value of each field.
    """
    again = decode_segment(encode_segment(made))
    assert same(again, made)
    assert again.blocks.offsets.dtype == again.blocks.rows.dtype == np.int64
    assert again.blocks.locations.dtype == np.int32


def test_layout_version_1_is_unchanged():
    """A stored sample of layout version 1 is decoded, and encoded to the same bytes.

    Because layout version 1 is unchanged, this release reads the payloads of earlier releases.
    """
    sample = bytes.fromhex(
        "0101000000000000000005000000000000000200000000000000030000000300000000000000000000"
        "000200000000120400000000400901010000000202000000ffffffffff000000"
    )
    assert same(decode_segment(sample), segment())
    assert encode_segment(segment()) == sample


def test_unchanging_blocks_cost_bits_not_bytes():
    """100,000 blocks with one location each need at most 2.5 bits per block."""
    n = 100_000
    blocks = CSR(np.arange(n + 1), np.arange(n, dtype=np.int32) % 2, np.ones(n, np.int64))
    assert len(encode_segment(Segment(0, n - 1, 1, blocks))) < n * 2.5 / 8


def test_every_shortened_payload_is_corrupt():
    """A truncated payload is corrupt, and so is a payload with more bytes after it."""
    payload = encode_segment(segment())
    for length in range(len(payload)):
        with pytest.raises(CorruptError):
            decode_segment(payload[:length])
    with pytest.raises(CorruptError):
        decode_segment(payload + b"\0")


def test_flipped_bits_are_refused_or_harmless():
    """If a bit of a payload is flipped, `decode_segment` fails or returns a consistent segment."""
    payload = encode_segment(segment())
    for bit in range(8 * len(payload)):
        damaged = bytearray(payload)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            found = decode_segment(bytes(damaged))
        except SieveError:
            continue
        assert (found.last - found.first) // found.width + 2 == len(found.blocks.offsets)
        assert found.blocks.offsets[-1] == len(found.blocks.locations) == len(found.blocks.rows)


@pytest.mark.parametrize(("shape", "version"), [(1, 2), (255, 255)])
def test_later_layouts_are_too_new(shape, version):
    """A payload with the shape or layout of a later release is too new, not damaged."""
    payload = bytes([shape, version]) + encode_segment(segment())[2:]
    with pytest.raises(UnsupportedError) as refusal:
        decode(payload)
    assert refusal.value.condition == "SIEVE_VERSION_TOO_NEW"


@pytest.mark.parametrize(
    ("head", "counts", "deltas", "rows", "problem"),
    [
        ((0, 1, 0, 5, 2, 3, 3, 0), (2, 0, 1), (0, 4, 9), (0, 0, 0), "claims shape"),
        ((1, 1, 5, 0, 2, 3, 3, 0), (2, 0, 1), (0, 4, 9), (0, 0, 0), "bounds"),
        ((1, 1, 0, 5, 0, 3, 3, 0), (2, 0, 1), (0, 4, 9), (0, 0, 0), "bounds"),
        ((1, 1, 0, 6, 2, 3, 3, 0), (2, 0, 1), (0, 4, 9), (0, 0, 0), "bounds"),
        ((1, 1, 0, 5, 2, 0, 3, 0), (), (0, 4, 9), (0, 0, 0), "claims 0 blocks"),
        ((1, 1, 0, 1 << 40, 1, (1 << 32) - 1, 3, 0), (), (), (), "claims 4294967295 blocks"),
        ((1, 1, 0, 1 << 24, 1, (1 << 24) + 1, 3, 0), (), (), (), "claims 16777217 blocks"),
        ((1, 1, 0, 5, 2, 3, 1 << 60, 0), (2, 0, 1), (), (), "postings"),
        ((1, 1, 0, 5, 2, 3, (1 << 27) + 1, 0), (2, 0, 1), (), (), "134217729 postings"),
        ((1, 1, 0, 5, 2, 3, 0, 0), (0, 0, 0), (), (), "0 postings"),
        ((1, 1, 0, 5, 2, 3, 3, 0), (2, 0, 2), (0, 4, 9), (0, 0, 0), "add up"),
        ((1, 1, 0, 5, 2, 3, 3, 0), (2, (1 << 64) - 2, 3), (0, 4, 9), (0, 0, 0), "add up"),
        ((1, 1, 0, 5, 2, 3, 3, 0), (0, 2, 1), (0, 4, 9), (0, 0, 0), "empty block"),
        ((1, 1, 0, 5, 2, 3, 3, 0), (2, 1, 0), (0, 4, 9), (0, 0, 0), "empty block"),
        ((1, 1, 0, 5, 2, 3, 3, 0), (2, 0, 1), (4, 4, 9), (0, 0, 0), "ascend"),
        ((1, 1, 0, 5, 2, 3, 3, 0), (1, 0, 2), (0, 9, 4), (0, 0, 0), "ascend"),
        ((1, 1, 0, 5, 2, 3, 3, 1), (2, 0, 1), (0, 4, (1 << 31) - 1), (0, 0, 0), "location"),
        ((1, 1, 0, 5, 2, 3, 3, 1 << 31), (2, 0, 1), (0, 4, 9), (0, 0, 0), "location"),
        ((1, 1, 0, 5, 2, 3, 3, 0), (2, 0, 1), (0, 4, 9), (0, 0, (1 << 63) - 1), "rows"),
    ],
)
def test_invalid_numbers_are_corrupt(head, counts, deltas, rows, problem):
    """If a payload contains invalid numbers, it is corrupt.

    The decoder checks each number before it uses the number or allocates memory.
    """
    arrays = [pack(np.array(array, np.uint64)) for array in (counts, deltas, rows)]
    with pytest.raises(CorruptError, match=problem):
        decode(struct.pack(HEAD, *head) + b"".join(arrays))


def test_outliers_do_not_widen_an_array():
    """One huge number among thousands of small ones adds only twelve bytes."""
    values = np.full(8000, 3, np.uint64)
    plain = len(pack(values))
    values[17] = (1 << 64) - 1
    assert len(pack(values)) == plain + 12
    assert np.array_equal(unpack(pack(values), 0, 8000)[0], values)


def test_bit_lengths_are_exact():
    """For each power of two and its neighbours, `bit_lengths` returns the exact length."""
    numbers = [max(0, min((1 << k) + d, (1 << 64) - 1)) for k in range(65) for d in range(-2, 3)]
    lengths = bit_lengths(np.array(numbers, np.uint64))
    assert lengths.tolist() == [number.bit_length() for number in numbers]


@pytest.mark.parametrize("bits", [1, 7, 33, 64])
def test_packed_size_is_the_number_of_packed_bytes(bits):
    """`packed_size` is exactly the number of packed bytes, even if some numbers are outliers."""
    values = np.random.default_rng(bits).integers(
        0, (1 << bits) - 1, 1000, np.uint64, endpoint=True
    )
    values[::100] >>= np.uint64(bits // 2)
    assert packed_size(bit_lengths(values)) == len(pack(values))


@pytest.mark.parametrize(
    "payload",
    [
        struct.pack("<BI", 57, 0) + bytes(100),
        struct.pack("<BI", 0, 4) + bytes(100),
        struct.pack("<BI", 0, 1) + struct.pack("<IQ", 3, 1),
        struct.pack("<BI", 0, 2) + struct.pack("<IIQQ", 1, 1, 5, 5),
        struct.pack("<BI", 0, 2) + struct.pack("<IIQQ", 2, 1, 5, 5),
        struct.pack("<BI", 9, 0) + bytes(3),
        b"\0\0",
    ],
)
def test_impossible_arrays_are_corrupt(payload):
    """An array with an impossible width, exception count or exception position is corrupt."""
    with pytest.raises(CorruptError):
        unpack(payload, 0, 3)
