"""Segment format of the shape `sieve`: encodes equal-width blocks with posting lists as bytes.

A payload in a run file is little-endian; `sieve.arrays.bit_packing` encodes its arrays:

===========  ================================================================
u8           shape: 1, equal-width blocks
u8           version of this layout: 1
i64          first: key code of the first key
i64          last: key code of the last key
u64          width: key codes per block
u32          blocks: n
u64          postings: m
u32          base: least location of the segment
array of n   locations in each block
array of m   location - base, ascending within a block
array of m   rows of that location in that block, less one
===========  ================================================================
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.arrays.bit_packing import pack, unpack
from sieve.errors import corrupt_segment
from sieve.segments.entries import Ends, Entries

SHAPE_SIEVE: Final = 1
LAYOUT_VERSION: Final = 1
# `MAX_BLOCKS` and `MAX_POSTINGS` limit the memory that a reader allocates for a damaged payload.
# The payload's length does not limit the memory of an array, because an array of bit width 0 takes
# no bytes in the payload.
MAX_BLOCKS: Final = 1 << 24
MAX_POSTINGS: Final = 1 << 27

_HEAD: Final = struct.Struct("<BBqqQIQI")
_LOCATIONS: Final = 1 << 31


@dataclass(frozen=True, slots=True, eq=False)
class CSR:
    """Blocks as compressed sparse rows: block b has the postings ``offsets[b]:offsets[b + 1]``.

    Attributes:
        offsets: int64[n_blocks + 1], ascending from 0.
        locations: int32[m], the number of each posting's location. The locations of a block are
            distinct and ascend.
        rows: int64[m], how many rows of the posting's location have a key in the block; at least 1.
    """

    offsets: npt.NDArray[np.int64]
    locations: npt.NDArray[np.int32]
    rows: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """A stretch of keys, divided into blocks; key code k is in block ``(k - first) // width``.

    Attributes:
        first: the code of the first key.
        last: the code of the last key. The first block contains `first`, and the last block
            contains `last`.
        width: the number of key codes per block, 1 .. 2^64 - 1.
        blocks: the locations of each block's keys.
    """

    first: int
    last: int
    width: int
    blocks: CSR


def encode_segment(segment: Segment) -> bytes:
    """Encodes a segment as a payload; the inverse of `decode_segment`."""
    blocks = segment.blocks
    base = int(blocks.locations.min())
    head = _HEAD.pack(
        SHAPE_SIEVE,
        LAYOUT_VERSION,
        segment.first,
        segment.last,
        segment.width,
        len(blocks.offsets) - 1,
        len(blocks.locations),
        base,
    )
    return b"".join(
        [
            head,
            pack(np.diff(blocks.offsets).astype(np.uint64)),
            pack((blocks.locations - np.int32(base)).astype(np.uint64)),
            pack((blocks.rows - 1).astype(np.uint64)),
        ]
    )


def decode_segment(payload: bytes) -> Segment:
    """Decodes a payload, and validates every field of the layout.

    Raises:
        CorruptError: the payload is damaged; `encode_segment` cannot have made it.
    """
    if len(payload) < _HEAD.size:
        raise corrupt_segment("is too short")
    _, _, first, last, width, n_blocks, n_postings, base = _HEAD.unpack_from(payload)
    if not 1 <= n_blocks <= MAX_BLOCKS or not 1 <= n_postings <= MAX_POSTINGS:
        raise corrupt_segment(f"claims {n_blocks} blocks and {n_postings} postings")
    if first > last or width < 1 or (last - first) // width + 1 != n_blocks:
        raise corrupt_segment("has bounds that do not agree with its blocks")
    counts, at = unpack(payload, _HEAD.size, n_blocks)
    deltas, at = unpack(payload, at, n_postings)
    rows, at = unpack(payload, at, n_postings)
    if at != len(payload):
        raise corrupt_segment("is too long")
    blocks = CSR(_offsets(counts, n_postings), _locations(base, deltas), _rows(rows))
    falls = blocks.locations[1:] <= blocks.locations[:-1]
    inner = blocks.offsets[1:-1]
    falls[inner[(inner > 0) & (inner < n_postings)] - 1] = False
    if np.any(falls):
        raise corrupt_segment("has a block whose locations do not ascend")
    return Segment(first, last, width, blocks)


def _offsets(counts: npt.NDArray[np.uint64], n_postings: int) -> npt.NDArray[np.int64]:
    # Each count is at most `n_postings`, so the sum of the counts cannot overflow.
    if np.any(counts > n_postings) or int(counts.sum()) != n_postings:
        raise corrupt_segment("has blocks that do not add up")
    if counts[0] == 0 or counts[-1] == 0:
        raise corrupt_segment("has an empty block at an end")
    return np.concatenate([[0], np.cumsum(counts.astype(np.int64))])


def _locations(base: int, deltas: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
    if base >= _LOCATIONS or np.any(deltas >= _LOCATIONS - base):
        raise corrupt_segment("names a location out of range")
    return (deltas + np.uint64(base)).astype(np.int32)


def _rows(less_one: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    if np.any(less_one >= (1 << 63) - 1):
        raise corrupt_segment("counts rows out of range")
    return less_one.astype(np.int64) + 1


def entries(payload: bytes) -> Entries:
    """Decodes a segment to entries: one for each location in each block."""
    segment = decode_segment(payload)
    counts = np.diff(segment.blocks.offsets)
    number = np.repeat(np.arange(len(counts), dtype=np.uint64), counts)
    origin = np.array([segment.first], np.int64).view(np.uint64)
    span = np.uint64(segment.last - segment.first)
    begin = number * np.uint64(segment.width)
    high = begin + np.minimum(np.uint64(segment.width - 1), span - begin)
    return Entries(
        (origin + begin).view(np.int64), (origin + high).view(np.int64), segment.blocks.locations
    )


def ends(payload: bytes) -> Ends:
    """Decodes a segment to its `Ends`; each location of a block has a key in the block."""
    block = entries(payload)
    there = np.ones(len(block.low), np.bool_)
    codes = block.low, block.high, block.low, block.high
    return Ends(*codes, block.location, there, there, ~there)
