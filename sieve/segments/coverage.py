"""What the entries of a run cover: how many locations a key reads, by itself and on the average."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sieve.segments.shapes.format import Entries

Codes = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Coverage:
    """How many locations may hold a key, stretch by stretch; codes outside of all are in none.

    Attributes:
        first: int64[n], first code of each stretch, ascending.
        last: int64[n], its last code, below the next one's first.
        locations: int64[n], locations that a key of the stretch reads, at least 1.
    """

    first: Codes
    last: Codes
    locations: Counts

    @staticmethod
    def of(entries: Entries) -> Coverage:
        """The coverage of entries in any order, a location counted once where its own overlap."""
        low, high, _ = disjoint(entries)
        # A location leaves after `high`, which may be the last code there is: sort by both ends.
        borders = np.concatenate([low, high])
        last = np.repeat(np.array([False, True]), len(low))
        order = np.lexsort((last, borders))
        borders, last = borders[order], last[order]
        inside = np.cumsum(np.where(last, -1, 1))[:-1]
        first = borders[:-1] + last[:-1]
        end = borders[1:] - ~last[1:]
        # Between two of one kind at one code there is nothing, though their sums may wrap around.
        nothing = (borders[:-1] == borders[1:]) & (last[:-1] == last[1:])
        some = (inside > 0) & (first <= end) & ~nothing
        return Coverage(first[some], end[some], inside[some])

    def mean(self) -> float:
        """Locations that a covered code reads, each code alike; 0 where nothing is covered."""
        if len(self.first) == 0:
            return 0.0
        sizes = (self.last.view(np.uint64) - self.first.view(np.uint64)).astype(np.float64) + 1
        return float(np.average(self.locations, weights=sizes))


def disjoint(entries: Entries) -> tuple[Codes, Codes, npt.NDArray[np.int32]]:
    """The entries in order of location and key, those of one location that meet made one.

    Returns:
        low int64[n], high int64[n], location int32[n].
    """
    order = np.lexsort((entries.low, entries.location))
    low, high, location = entries.low[order], entries.high[order], entries.location[order]
    if len(low) == 0:
        return low, high, location
    # Ranks of the ends keep their order within a location and rise from one to the next.
    ends, rank = np.unique(high, return_inverse=True)
    reach = np.maximum.accumulate(location.astype(np.int64) * len(ends) + rank) % len(ends)
    fresh = np.append(True, (location[1:] != location[:-1]) | (low[1:] > ends[reach[:-1]]))
    start = np.flatnonzero(fresh)
    return low[start], ends[reach[np.append(start[1:] - 1, len(low) - 1)]], location[start]
