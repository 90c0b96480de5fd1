"""Piecewise linear segmentation of sorted keys with a shrinking cone, for the shape `sieve`.

Let R(k) count how often the set of locations changes from one key to the next, up to key k. The
segmentation approximates R by lines of bounded error. Each line starts at the first key of its
segment. A line must be within the error at every key of its segment. A *shrinking cone* contains
the slopes of all lines that satisfy this condition so far. A segment ends before the first key
outside the cone. The blocks of a segment have equal width. A segment has about one block for each
change of the location set.

R determines only the number of blocks. A block contains exactly the locations of its keys.
Therefore a larger error bound makes the index less precise, but no query loses a row.

Source: the bachelor thesis on a sieve index inside Apache Hudi (Novosibirsk 2024). The cone is from
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
# This value is at least as large as any gap between two 64-bit keys. With this value, only the cone
# and `max_keys` end segments.
NO_HOLE: Final = (1 << 64) - 1

# The maximum number of pairs to buffer for one segment, as a multiple of the segment's keys. A
# limit is needed because a few keys can have very many locations.
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
    """Cuts sorted pairs into ordered, disjoint segments, in one pass and bounded memory.

    Args:
        chunks: codes int64[n] ascending (over chunks too), locations int32[n], rows int64[n]. Equal
            codes can span chunks and pairs can repeat.
        error: maximum difference between a line and R, in changes of the location set; at least 1.
        max_keys: number of distinct keys after which a segment closes, 1 .. 2^24.
        hole: length of the longest gap between neighbouring keys of a segment; at least 1.

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
    """The open segment: its keys, and the cone of slopes that fit all keys."""

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
        """Adds a batch of keys; yields each segment that the keys close."""
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
        """Yields the open segment, if there is one."""
        if self._pieces:
            yield self._close()

    def _open(self, first: int, changes: int) -> None:
        self._first, self._base = first, changes
        self._low, self._high = -np.inf, np.inf

    def _limit(self, keys: Keys, start: int, at: int, holes: npt.NDArray[np.intp]) -> int:
        """Returns where the open segment ends at the latest: at a hole, or at a limit of keys."""
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
        """Narrows the cone key by key.

        Returns the position of the first key, from `at` on, that is outside the cone; `limit` if
        there is none.
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
        # Neighbouring segments often have similar lengths, so the window follows the last length.
        self._window = max(_SMALLEST_WINDOW, min(at - opened + 1, _LARGEST_WINDOW))
        return at

    def _narrow(self, codes: npt.NDArray[np.int64], changes: npt.NDArray[np.int64]) -> int:
        """Narrows the cone by the next keys, and returns how many of these keys are in the cone.

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
    """Makes the segment of some keys, with about one block per change of the location set."""
    codes = np.concatenate([piece.codes for piece in pieces])
    first, last = int(codes[0]), int(codes[-1])
    width = -(-(last - first + 1) // (changes + 1))
    if width > NO_HOLE:
        # The segment covers the whole domain. The width of a single block would not fit in 64 bits.
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
    """Returns for each key whether the key's location set differs from the previous key's set."""
    counts = np.diff(keys.offsets)
    locations = keys.locations
    if len(counts) == len(locations):
        same = locations[1:] == locations[:-1]
    else:
        # Two neighbouring sets of size s are equal if each element of the second set equals the
        # element s positions before.
        places = np.arange(len(locations)) - np.repeat(counts, counts)
        equal = locations == locations[np.maximum(places, 0)]
        every = np.logical_and.reduceat(equal, keys.offsets[:-1] - keys.offsets[0])
        same = (counts[1:] == counts[:-1]) & every[1:]
    leading = previous is not None and not np.array_equal(
        previous.locations, locations[: counts[0]]
    )
    return np.concatenate([[leading], ~same])


def _gaps(keys: Keys, previous: Keys | None) -> npt.NDArray[np.uint64]:
    """Returns the distance of each key from the previous key, or 0 for the first key of all."""
    before = keys.codes[:1] if previous is None else previous.codes
    codes = _unsigned(np.concatenate([before, keys.codes]))
    return codes[1:] - codes[:-1]


def _unsigned(codes: npt.NDArray[np.int64] | int) -> npt.NDArray[np.uint64]:
    """Codes modulo 2^64, where differences are exact."""
    return np.asarray(codes, np.int64).view(np.uint64)
