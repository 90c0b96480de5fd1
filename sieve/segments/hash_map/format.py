"""Segment format of the shape `map`: encodes a binary fuse filter with posting lists as bytes.

A payload in a run file is little-endian; `sieve.arrays.bit_packing` encodes its arrays:

=================  ==========================================================================
u8                 shape: 4, static function
u8                 version of this layout: 1
u64                first: hash of the first key
u64                last: hash of the last key
u32                keys: distinct hashes
u32                locations: n, of the run
u32                lists: c, sets of two locations or more
u64                postings: m, locations of all lists
u8                 f, bits of a fingerprint
u64                seed        \
u8                 window_bits  } `sieve.segments.hash_map.fuse_function.Layout`
u32                windows     /
cells              f + v bits each, lowest bit first; v bits hold numbers below n + c.
                   The XOR of a key's three cells has f upper and v lower bits. The upper
                   bits are the key's fingerprint. The lower bits are the key's value: a
                   location, or n + the number of a list
array of c         locations in each list, less two
array of c         least location of each list, less the least location of the list before
array of m - c     each further location of each list, less the location before, less one
u32                CRC-32 of all bytes before
=================  ==========================================================================

Without the checksum, a reader could not detect a damaged cell, and queries would lose rows.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.arrays.bit_packing import Bytes, byte_words, pack, pack_bits, unpack
from sieve.arrays.dtypes import Hashes, Words
from sieve.errors import CorruptError, InvalidInputError, UnsupportedError
from sieve.segments.hash_map.fuse_function import (
    MAX_KEYS,
    MAX_WINDOW_BITS,
    MAX_WINDOWS,
    Layout,
    solve,
)
from sieve.segments.hash_map.lookup import MapSegment, value_bits
from sieve.segments.hash_map.posting_lists import Gathered, Lists, gathered

SHAPE_MAP: Final = 4
LAYOUT_VERSION: Final = 1
MAX_FINGERPRINT_BITS: Final = 24
"""A cell with a fingerprint of 24 bits and a value of 31 bits fits into the 56 bits that bit
packing allows."""
# Limits the memory that a reader allocates for a damaged payload. The payload's length does not
# limit the memory of an array, because an array of bit width 0 takes no bytes in the payload.
MAX_POSTINGS: Final = 1 << 25

HEAD: Final = struct.Struct("<BBQQIIIQBQBI")
CHECK_BYTES: Final = 4
_LOCATIONS: Final = 1 << 31
_CELLS: Final = 1 << 31


def build_map(
    hashes: Hashes,
    locations: npt.NDArray[np.int32],
    n_locations: int,
    fingerprint_bits: int,
) -> bytes:
    """Builds the payload of one segment; equal arguments give equal payloads.

    Args:
        hashes: uint64[n], ascending in unsigned or in signed order. A hash can occur several times,
            even with the same location.
        locations: int32[n], the location of each hash. The locations of equal hashes can be in any
            order.
        n_locations: the run's number of locations; each of `locations` must be below this number.
        fingerprint_bits: bits per fingerprint, 0 to MAX_FINGERPRINT_BITS.

    Raises:
        InvalidInputError: an argument is invalid, or there are too many hashes or locations for one
            segment.
    """
    if not 0 <= fingerprint_bits <= MAX_FINGERPRINT_BITS or not 1 <= n_locations <= _LOCATIONS:
        raise InvalidInputError(
            "SIEVE_BAD_PAIRS",
            f"a map of {n_locations} locations and {fingerprint_bits} bits cannot be; build again",
        )
    keys = gathered(hashes, locations, n_locations)
    postings, room = len(keys.lists.locations), n_locations + len(keys.lists)
    if len(keys.hashes) > MAX_KEYS or postings > MAX_POSTINGS or room > _LOCATIONS:
        raise InvalidInputError(
            "SIEVE_BAD_PAIRS",
            f"{len(keys.hashes)} hashes with {postings} postings are too many for one segment; "
            "cut the hashes into more ranges",
        )
    bounds = (int(hashes[0]), int(hashes[-1])) if len(hashes) else (0, 0)
    return _encode(bounds, keys, n_locations, fingerprint_bits)


def _encode(
    bounds: tuple[int, int], keys: Gathered, n_locations: int, fingerprint_bits: int
) -> bytes:
    lists = keys.lists
    below = value_bits(n_locations, len(lists))
    layout, cells = solve(keys.hashes, keys.values, fingerprint_bits, below)
    head = HEAD.pack(
        SHAPE_MAP,
        LAYOUT_VERSION,
        *bounds,
        len(keys.hashes),
        n_locations,
        len(lists),
        len(lists.locations),
        fingerprint_bits,
        layout.seed,
        layout.window_bits,
        layout.windows,
    )
    starts = lists.offsets[:-1]
    inner = np.ones(len(lists.locations), np.bool_)
    inner[starts] = False
    body = b"".join(
        [
            head,
            pack_bits(cells, fingerprint_bits + below),
            pack((np.diff(lists.offsets) - 2).astype(np.uint64)),
            pack(np.diff(lists.locations[starts], prepend=np.int32(0)).astype(np.uint64)),
            pack((np.diff(lists.locations, prepend=np.int32(0))[inner] - 1).astype(np.uint64)),
        ]
    )
    return body + zlib.crc32(body).to_bytes(CHECK_BYTES, "little")


def decode_map(payload: Bytes) -> MapSegment:
    """Decodes a payload, and validates every field of the layout.

    The returned segment uses the payload's memory, without a copy.

    Raises:
        UnsupportedError: a newer release of Sieve wrote the payload.
        CorruptError: the payload is damaged; `build_map` cannot have made it.
    """
    if len(payload) < HEAD.size + CHECK_BYTES:
        raise _corrupt("is too short")
    shape, version, first, last, n_keys, n_locations, n_lists, n_postings, *rest = HEAD.unpack_from(
        payload
    )
    fingerprint_bits, layout = rest[0], Layout(*rest[1:])
    if shape > SHAPE_MAP or (shape == SHAPE_MAP and version > LAYOUT_VERSION):
        raise UnsupportedError(
            "SIEVE_VERSION_TOO_NEW",
            f"a segment has shape {shape}, layout {version}; upgrade Sieve or REFRESH the index",
        )
    if shape != SHAPE_MAP or version != LAYOUT_VERSION:
        raise _corrupt(f"claims shape {shape}, layout {version}")
    end = len(payload) - CHECK_BYTES
    if zlib.crc32(memoryview(payload)[:end]) != int.from_bytes(payload[end:], "little"):
        raise _corrupt("has another check sum")
    if n_locations < 1 or n_locations + n_lists > _LOCATIONS or n_lists > n_keys:
        raise _corrupt(f"claims {n_locations} locations and {n_lists} lists for {n_keys} keys")
    if not 2 * n_lists <= n_postings <= MAX_POSTINGS or (n_postings and not n_lists):
        raise _corrupt(f"claims {n_postings} postings in {n_lists} lists")
    if fingerprint_bits > MAX_FINGERPRINT_BITS:
        raise _corrupt(f"claims fingerprints of {fingerprint_bits} bits")
    _check_layout(layout, n_keys)
    width = fingerprint_bits + value_bits(n_locations, n_lists)
    at = HEAD.size + (layout.n_cells * width + 7) // 8
    counts, at = unpack(payload, at, n_lists)
    rises, at = unpack(payload, at, n_lists)
    gaps, at = unpack(payload, at, n_postings - n_lists)
    if at != end:
        raise _corrupt("is too long")
    lists = _lists(counts, rises, gaps, n_locations)
    # Even at the last cell, an 8-byte read stays within the payload, because the arrays' headers
    # follow the last cell.
    words = byte_words(payload, HEAD.size)
    return MapSegment(first, last, n_keys, n_locations, fingerprint_bits, layout, words, lists)


def _check_layout(layout: Layout, n_keys: int) -> None:
    if layout.window_bits > MAX_WINDOW_BITS or layout.windows > MAX_WINDOWS:
        raise _corrupt(f"claims {layout.windows} windows of {layout.window_bits} bits")
    if not n_keys <= layout.n_cells < _CELLS:
        raise _corrupt(f"claims {n_keys} keys in {layout.n_cells} cells")


def _lists(counts: Words, rises: Words, gaps: Words, n_locations: int) -> Lists:
    """Decodes the posting lists from the payload's three arrays, and validates them."""
    if np.any(counts > len(gaps)) or int(counts.sum()) + len(counts) != len(gaps):
        raise _corrupt("has lists that do not add up")
    if np.any(rises >= n_locations) or np.any(gaps >= n_locations):
        raise _corrupt("names a location out of range")
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts.astype(np.int64) + 2)])
    starts = offsets[:-1]
    steps = np.empty(len(counts) + len(gaps), np.int64)
    inner = np.ones(len(steps), np.bool_)
    inner[starts] = False
    steps[inner] = gaps.astype(np.int64) + 1
    firsts = np.cumsum(rises.astype(np.int64))
    steps[starts] = firsts
    total = np.cumsum(steps)
    total -= np.repeat(total[starts] - firsts, np.diff(offsets))
    if np.any(total >= n_locations):
        raise _corrupt("names a location out of range")
    return Lists(offsets, total.astype(np.int32))


def _corrupt(problem: str) -> CorruptError:
    return CorruptError(
        "SIEVE_CORRUPT_SEGMENT", f"a map segment's payload {problem}; REFRESH the index FULL"
    )
