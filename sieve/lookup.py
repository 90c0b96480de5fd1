"""A run in memory: its entries in flat arrays, and which locations may hold keys of intervals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from sieve.errors import CorruptError
from sieve.map.hashing import Hashes
from sieve.map.lookup import MapSegment
from sieve.ranges import spelled_out
from sieve.requirements import Intervals
from sieve.shapes import Entries

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """The entries of all segments of a run; segments are disjoint, so both ends ascend through.

    Attributes:
        low: int64[n], ascending.
        high: int64[n].
        reach: int64[n], the greatest `high` so far: entries before the first that reaches a key
            cannot hold it.
        location: int32[n], location ordinals of the run.
        present: bool[n_locations], locations with an entry at all.
        maps: where single keys are, by their hashes; without any, the entries alone tell.
    """

    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]
    reach: npt.NDArray[np.int64]
    location: npt.NDArray[np.int32]
    present: Flags
    maps: tuple[MapSegment, ...] = ()

    @property
    def n_locations(self) -> int:
        """Locations of the run, those without any key included."""
        return len(self.present)

    @property
    def nbytes(self) -> int:
        """Bytes that the arrays hold in memory."""
        arrays = (getattr(self, field.name) for field in fields(self) if field.name != "maps")
        return sum(int(array.nbytes) for array in arrays) + sum(one.nbytes for one in self.maps)

    def locations_of(self, hashes: Hashes) -> Flags:
        """Locations that may hold a key with any of the hashes, bool[n_locations].

        Only for a run with maps, which hold every key of it.
        """
        found = np.zeros(self.n_locations, np.bool_)
        for one in self.maps:
            found[: one.n_locations] |= one.locations_of(hashes)
        return found

    def locations_in(self, intervals: Intervals) -> Flags:
        """Locations that may hold a key of any interval.

        Args:
            intervals: int64[k, 2], key codes from first to last, both included, in any order; one
                whose first is above its last holds nothing.

        Returns:
            bool[n_locations]; a superset of the truth, by what the shapes put together.
        """
        asked = _united(intervals[intervals[:, 0] <= intervals[:, 1]])
        found = np.zeros(self.n_locations, np.bool_)
        if len(asked) == 0 or len(self.low) == 0:
            return found
        if len(asked) == 1 and asked[0, 0] <= self.low[0] and asked[0, 1] >= self.reach[-1]:
            return self.present.copy()
        start = np.searchsorted(self.reach, asked[:, 0], side="left")
        stop = np.searchsorted(self.low, asked[:, 1], side="right")
        if len(asked) == 1:
            few = slice(int(start[0]), int(stop[0]))
            found[self.location[few][self.high[few] >= asked[0, 0]]] = True
            return found
        # Both ends ascend, so what an interval before has asked for is left out.
        start = np.maximum(start, np.append(0, stop[:-1]))
        near = spelled_out(start, np.maximum(start, stop))
        # The first interval that does not end before an entry begins is the only one to compare.
        next_one = np.minimum(np.searchsorted(asked[:, 1], self.low[near]), len(asked) - 1)
        meets = asked[next_one, 0] <= self.high[near]
        found[self.location[near][meets]] = True
        return found


def assemble(
    segments: Iterable[Entries], n_locations: int | None = None, maps: Iterable[MapSegment] = ()
) -> Run:
    """The run made of some segments, given in any order.

    Args:
        segments: disjoint segments, as decoded.
        n_locations: locations of the run, which may have more than the segments name; without it,
            one more than the greatest ordinal.
        maps: that hold every key of the run, or none.

    Raises:
        CorruptError: two segments overlap, or one names a location that the run does not have.
    """
    ordered = sorted((s for s in segments if len(s.low)), key=lambda segment: int(segment.low[0]))
    none = np.empty(0, np.int64)
    low = np.concatenate([none, *(segment.low for segment in ordered)])
    high = np.concatenate([none, *(segment.high for segment in ordered)])
    location = np.concatenate([none.astype(np.int32), *(s.location for s in ordered)])
    reach = np.maximum.accumulate(high)
    begins = np.cumsum([len(segment.low) for segment in ordered], dtype=np.int64)[:-1]
    if np.any(low[begins] <= reach[begins - 1]):
        raise _corrupt("has segments that overlap")
    named = int(location.max()) + 1 if len(location) else 0
    if n_locations is None:
        n_locations = named
    if named > n_locations:
        raise _corrupt(f"names location {named - 1} of {n_locations}")
    maps = tuple(maps)
    if any(one.n_locations > n_locations for one in maps):
        raise _corrupt(f"maps more than {n_locations} locations")
    present = np.zeros(n_locations, np.bool_)
    present[location] = True
    return Run(low, high, reach, location, present, maps)


def _united(intervals: Intervals) -> Intervals:
    """The same codes as ascending intervals that do not overlap."""
    if len(intervals) < 2:
        return intervals
    intervals = intervals[np.argsort(intervals[:, 0], kind="stable")]
    first, reach = intervals[:, 0], np.maximum.accumulate(intervals[:, 1])
    apart = np.flatnonzero(first[1:] > reach[:-1])
    starts = np.append(0, apart + 1)
    return np.stack([first[starts], reach[np.append(apart, len(first) - 1)]], axis=1)


def _corrupt(problem: str) -> CorruptError:
    return CorruptError("SIEVE_CORRUPT_RUN", f"a run {problem}; REFRESH the index FULL")
