"""Piecewise linear segmentation of sorted keys with a shrinking cone, for the shape `sieve`.

Each key has a set of locations. Let R(k) count how often the location set changes between
neighbouring keys, up to the key k. The segmentation approximates the function R by one line per
segment. The line starts at the first key of its segment. At every key k of the segment, the line
may differ from R(k) by at most the error bound. The *shrinking cone* of a segment is the set of
slopes that keep the line within the bound at all keys added so far. A segment ends before the first
key outside its cone. Each segment is divided into blocks of equal width. A segment has about one
block for each change of the location set from key to key.

The error bound affects only how keys are divided into segments and blocks. For each block, the
index stores all locations of the block's keys. Therefore a larger error bound makes the index less
precise, but no query loses a row.

Source: a bachelor thesis about a sieve index in Apache Hudi (Novosibirsk 2024). The cone is from
Galakatos et al., "FITing-Tree: A Data-aware Index Structure".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.errors import InvalidInputError
from sieve.segments.blocks.format import CSR, MAX_BLOCKS, MAX_POSTINGS, Segment
from sieve.segments.blocks.key_groups import Chunk, Keys, add_up, distinct_keys

__all__ = ["DEFAULT_ERROR", "DEFAULT_MAX_KEYS", "NO_HOLE", "Segment", "cut_segments"]

DEFAULT_ERROR: Final = 100
DEFAULT_MAX_KEYS: Final = 1 << 18
# The longest possible gap between two 64-bit keys. With this value of `hole`, no segment ends at a
# gap.
NO_HOLE: Final = (1 << 64) - 1

# The maximum number of (key, location) pairs to buffer for one segment, as a multiple of
# `max_keys`. Without a limit of pairs, a few keys with very many locations could exhaust the
# memory.
_PAIRS_PER_KEY: Final = 16
_SMALLEST_WINDOW: Final = 128
_LARGEST_WINDOW: Final = 1 << 16


def cut_segments(
    chunks: Iterable[Chunk],
    *,
    error: int = DEFAULT_ERROR,
    max_keys: int = DEFAULT_MAX_KEYS,
    hole: int = NO_HOLE,
) -> Iterator[Segment]:
    """Divides sorted pairs into ordered, disjoint segments, in one pass with bounded memory.

    Args:
        chunks: the pairs, as chunks of codes int64[n], locations int32[n] and row counts int64[n].
            Codes ascend within each chunk and from chunk to chunk. A code's pairs can be in several
            chunks, and a pair can occur several times.
        error: the maximum error of a segment's line, counted in changes of the location set; at
            least 1.
        max_keys: the maximum number of distinct keys in a segment, 1 .. 2^24.
        hole: the maximum gap between neighbouring keys of a segment, at least 1.

    Raises:
        InvalidInputError: a parameter is out of range, or the pairs are not sorted.
    """
    if error < 1 or hole < 1 or not 1 <= max_keys <= MAX_BLOCKS:
        raise InvalidInputError(
            "SIEVE_BAD_OPTION",
            f"error {error} and hole {hole} must be at least 1, max_keys {max_keys} at least 1 "
            f"and at most {MAX_BLOCKS}",
        )
    cutter = _Cutter(error, max_keys, min(hole, NO_HOLE))
    for keys in distinct_keys(chunks):
        yield from cutter.take(keys)
    yield from cutter.finish()


class _Cutter:
    """The open segment, to which keys are added, and its cone: the slopes that fit its keys."""

    def __init__(self, error: int, max_keys: int, hole: int) -> None:
        self._error = error
        self._max_keys = max_keys
        self._max_pairs = min(max_keys * _PAIRS_PER_KEY, MAX_POSTINGS)
        self._hole = np.uint64(hole)
        self._previous: Keys | None = None
        self._changes = 0
        self._window = _SMALLEST_WINDOW
        self._pieces: list[Keys] = []
        self._first = self._base = 0
        self._low, self._high = -np.inf, np.inf

    def take(self, keys: Keys) -> Iterator[Segment]:
        """Adds a batch of keys; yields each segment that ends before one of these keys."""
        changes = self._changes + np.cumsum(_changed(keys, self._previous))
        holes = np.flatnonzero(_gaps(keys, self._previous) > self._hole)
        start, end = 0, len(keys.codes)
        while start < end:
            at = start
            if not self._pieces:
                self._open(int(keys.codes[start]), int(changes[start]))
                at += 1
            stop = self._follow(keys.codes, changes, at, self._limit(keys, start, at, holes))
            if stop > start:
                self._pieces.append(keys.part(start, stop))
                self._changes = int(changes[stop - 1])
            if stop < end:
                yield self._close()
            start = stop
        self._previous = keys.part(end - 1, end)

    def finish(self) -> Iterator[Segment]:
        """Yields the last segment, if there is one."""
        if self._pieces:
            yield self._close()

    def _open(self, first: int, changes: int) -> None:
        self._first, self._base = first, changes
        self._low, self._high = -np.inf, np.inf

    def _limit(self, keys: Keys, start: int, at: int, holes: npt.NDArray[np.intp]) -> int:
        """Returns where the open segment must end: at a gap above `hole`, or at its size limit."""
        open_keys = sum(len(piece.codes) for piece in self._pieces)
        open_pairs = sum(len(piece.rows) for piece in self._pieces)
        pairs_end = keys.offsets[start] + (self._max_pairs - open_pairs)
        fits = int(np.searchsorted(keys.offsets, pairs_end, side="right")) - 1
        limit = min(len(keys.codes), start + self._max_keys - open_keys, max(at, fits))
        hole = int(np.searchsorted(holes, at))
        return min(limit, int(holes[hole])) if hole < len(holes) else limit

    def _follow(
        self, codes: npt.NDArray[np.int64], changes: npt.NDArray[np.int64], at: int, limit: int
    ) -> int:
        """Narrows the cone key by key, from position `at` on.

        Returns the position of the first key outside the cone, or `limit` if the cone contains all
        keys before `limit`.
        """
        opened = at
        window = self._window
        while at < limit:
            stop = min(at + window, limit)
            outside = self._narrow(codes[at:stop], changes[at:stop])
            at += outside
            if at < stop:
                break
            window = min(2 * window, _LARGEST_WINDOW)
        # Neighbouring segments often have similar lengths, so the next segment starts with a window
        # of about the length of this segment.
        self._window = max(_SMALLEST_WINDOW, min(at - opened + 1, _LARGEST_WINDOW))
        return at

    def _narrow(self, codes: npt.NDArray[np.int64], changes: npt.NDArray[np.int64]) -> int:
        """Narrows the cone; returns the number of keys before the first key outside the cone.

        Each key narrows the cone for the next key.
        """
        run = (_unsigned(codes) - _unsigned(self._first)).astype(np.float64)
        rise = (changes - self._base).astype(np.float64)
        highs = np.minimum.accumulate(np.append(self._high, (rise + self._error) / run))
        lows = np.maximum.accumulate(np.append(self._low, (rise - self._error) / run))
        slopes = rise / run
        outside = (slopes > highs[:-1]) | (slopes < lows[:-1])
        inside = int(np.argmax(outside)) if outside.any() else len(codes)
        self._high, self._low = float(highs[inside]), float(lows[inside])
        return inside

    def _close(self) -> Segment:
        pieces, self._pieces = self._pieces, []
        return _segment(pieces, self._changes - self._base)


def _segment(pieces: list[Keys], changes: int) -> Segment:
    """Makes a segment from keys, with about one block per change of the location set."""
    codes = np.concatenate([piece.codes for piece in pieces])
    first, last = int(codes[0]), int(codes[-1])
    width = -(-(last - first + 1) // (changes + 1))
    if width > NO_HOLE:
        # The segment covers all 2^64 codes, so the width of a single block would not fit into 64
        # bits. The segment gets two blocks.
        width = 1 << 63
    n_blocks = (last - first) // width + 1
    numbers = ((_unsigned(codes) - _unsigned(first)) // np.uint64(width)).astype(np.int64)
    counts = np.concatenate([np.diff(piece.offsets) for piece in pieces])
    groups, locations, rows = add_up(
        np.repeat(numbers, counts),
        np.concatenate([piece.locations for piece in pieces]),
        np.concatenate([piece.rows for piece in pieces]),
    )
    sizes = np.bincount(groups, minlength=n_blocks)
    return Segment(
        first, last, width, CSR(np.concatenate([[0], np.cumsum(sizes)]), locations, rows)
    )


def _changed(keys: Keys, previous: Keys | None) -> npt.NDArray[np.bool_]:
    """Returns, for each key, whether its location set differs from the previous key's set."""
    counts = np.diff(keys.offsets)
    locations = keys.locations
    if len(counts) == len(locations):
        same = locations[1:] == locations[:-1]
    else:
        # Two neighbouring sets of s locations are equal if every location of the second set equals
        # the location s positions earlier.
        places = np.arange(len(locations)) - np.repeat(counts, counts)
        equal = locations == locations[np.maximum(places, 0)]
        every = np.logical_and.reduceat(equal, keys.offsets[:-1] - keys.offsets[0])
        same = (counts[1:] == counts[:-1]) & every[1:]
    leading = previous is not None and not np.array_equal(
        previous.locations, locations[: counts[0]]
    )
    return np.concatenate([[leading], ~same])


def _gaps(keys: Keys, previous: Keys | None) -> npt.NDArray[np.uint64]:
    """Returns the distance of each key from the previous key; 0 for the very first key."""
    before = keys.codes[:1] if previous is None else previous.codes
    codes = _unsigned(np.concatenate([before, keys.codes]))
    return codes[1:] - codes[:-1]


def _unsigned(codes: npt.NDArray[np.int64] | int) -> npt.NDArray[np.uint64]:
    """Returns codes modulo 2^64, so that their differences cannot overflow."""
    return np.asarray(codes, np.int64).view(np.uint64)
