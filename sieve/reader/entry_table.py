"""Decoded segments in flat arrays, and which locations may hold keys of some intervals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.errors import CorruptError
from sieve.predicate.key_ranges import Intervals
from sieve.segments.shapes.format import Entries

Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]

# Entries that a pass over all of them compares in the time of a search for one interval.
_PASS: Final = 8192


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """The entries of some segments; segments are disjoint, so both ends ascend through.

    Attributes:
        low: int64[n], ascending.
        high: int64[n].
        reach: int64[n], the greatest `high` so far: entries before the first that reaches a key
            cannot hold it.
        location: int32[n], location ordinals of the run.
        n_locations: one more than the greatest of them; 0 without entries.
    """

    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]
    reach: npt.NDArray[np.int64]
    location: npt.NDArray[np.int32]
    n_locations: int

    @property
    def nbytes(self) -> int:
        """Bytes that the arrays hold in memory."""
        arrays = (getattr(self, field.name) for field in fields(self))
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))

    def mark(self, asked: Intervals, found: Flags) -> None:
        """Set the flags of the locations that may hold a key of any interval.

        Args:
            asked: int64[k, 2], as `united` gives them.
            found: bool[at least n_locations].
        """
        if len(asked) <= 1 or len(asked) * _PASS < len(self.low):
            for first, last in asked.tolist():
                start = int(self.reach.searchsorted(first, side="left"))
                stop = int(self.low.searchsorted(last, side="right"))
                meets = self.high[start:stop] >= first
                found[self.location[start:stop][meets]] = True
            return
        # Of the intervals that end at an entry's begin or later, the first is the only one to
        # compare: an entry that holds keys of a later one holds this one's last key too.
        stops = self.low.searchsorted(asked[:, 1], side="right")
        begun = stops.copy()
        begun[1:] -= stops[:-1]
        met = np.flatnonzero(self.high[: stops[-1]] >= np.repeat(asked[:, 0], begun))
        found[self.location[met]] = True

    def holds(self, codes: npt.NDArray[np.int64], location: int) -> Flags:
        """Which of the codes `mark` would find that location for, each asked by itself: bool[k]."""
        own = np.flatnonzero(self.location == location)
        if len(own) == 0:
            return np.zeros(len(codes), np.bool_)
        before = self.low[own].searchsorted(codes, side="right") - 1
        # Some entry that begins at the code or below it reaches it if the farthest does.
        reach = np.maximum.accumulate(self.high[own])
        return (before >= 0) & (reach[before] >= codes)


def assemble(segments: Iterable[Entries]) -> Chunk:
    """The chunk made of some segments, given in any order.

    Args:
        segments: disjoint segments, as decoded.

    Raises:
        CorruptError: two segments overlap.
    """
    ordered = sorted((s for s in segments if len(s.low)), key=lambda segment: int(segment.low[0]))
    none = np.empty(0, np.int64)
    low = np.concatenate([none, *(segment.low for segment in ordered)])
    high = np.concatenate([none, *(segment.high for segment in ordered)])
    location = np.concatenate([none.astype(np.int32), *(s.location for s in ordered)])
    reach = np.maximum.accumulate(high)
    begins = np.cumsum([len(segment.low) for segment in ordered], dtype=np.int64)[:-1]
    if np.any(low[begins] <= reach[begins - 1]):
        raise CorruptError(
            "SIEVE_CORRUPT_RUN", "a run has segments that overlap; REFRESH the index FULL"
        )
    return Chunk(low, high, reach, location, int(location.max()) + 1 if len(location) else 0)


def united(intervals: Intervals) -> Intervals:
    """The same codes as ascending intervals that do not overlap.

    Args:
        intervals: int64[k, 2], key codes from first to last, both included, in any order; one whose
            first is above its last holds nothing.
    """
    intervals = intervals[intervals[:, 0] <= intervals[:, 1]]
    if np.all(intervals[1:, 0] > intervals[:-1, 1]):
        return intervals
    intervals = intervals[np.argsort(intervals[:, 0], kind="stable")]
    first, reach = intervals[:, 0], np.maximum.accumulate(intervals[:, 1])
    apart = np.flatnonzero(first[1:] > reach[:-1])
    starts = np.append(0, apart + 1)
    return np.stack([first[starts], reach[np.append(apart, len(first) - 1)]], axis=1)


def meeting(
    asked: Intervals, first: npt.NDArray[np.int64], last: npt.NDArray[np.int64]
) -> tuple[Places, Places]:
    """For each of some ranges the intervals that meet it, as places ``start:stop``.

    Args:
        asked: int64[k, 2], as `united` gives them.
        first: int64[n], the ranges' first codes.
        last: int64[n], their last ones.

    Returns:
        intp[n] each; no interval meets a range where start is not below stop.
    """
    start = np.searchsorted(asked[:, 1], first, side="left")
    return start, np.searchsorted(asked[:, 0], last, side="right")
