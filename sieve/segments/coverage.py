"""Coverage: the number of locations that a look-up of one key reads.

A look-up of a key reads each location that has an entry covering the key. The function
`sieve_segments` and the inspection page report the coverage. Example: one location has the entry
``[0, 9]``, and another has ``[5, 14]``. The coverage of these two entries is 1 on ``[0, 4]``, 2 on
``[5, 9]`` and 1 on ``[10, 14]``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Codes, Counts
from sieve.arrays.interval_set import starts
from sieve.segments.entries import Entries


@dataclass(frozen=True, slots=True, eq=False)
class Coverage:
    """For each stretch of key codes, the number of locations that may contain its keys.

    Attributes:
        first: int64[n], the first code of each stretch, ascending.
        last: int64[n], the last code of each stretch, below the first code of the next stretch.
        locations: int64[n], how many locations a look-up of a key in the stretch reads; at least 1.
    """

    first: Codes
    last: Codes
    locations: Counts

    @staticmethod
    def of(entries: Entries) -> Coverage:
        """Returns the coverage of a segment's entries, which can be in any order.

        If entries of one location overlap, the location counts once.
        """
        low, high, _ = disjoint(entries)
        # The coverage falls at ``high + 1``, which overflows if `high` is the greatest int64.
        # Therefore this method sorts `low` and `high` together, and marks the borders that come
        # from `high`.
        borders = np.concatenate([low, high])
        last = np.repeat(np.array([False, True]), len(low))
        order = np.lexsort((last, borders))
        borders, last = borders[order], last[order]
        inside = np.cumsum(np.where(last, -1, 1))[:-1]
        first = borders[:-1] + last[:-1]
        end = borders[1:] - ~last[1:]
        # Two equal borders of the same kind enclose no stretch, so `nothing` excludes them. Between
        # two equal borders, `first` or `end` can wrap around.
        nothing = (borders[:-1] == borders[1:]) & (last[:-1] == last[1:])
        some = (inside > 0) & (first <= end) & ~nothing
        return Coverage(first[some], end[some], inside[some])

    def mean(self) -> float:
        """Returns the mean number of locations over all covered codes; 0 if no code is covered."""
        if len(self.first) == 0:
            return 0.0
        sizes = (self.last.view(np.uint64) - self.first.view(np.uint64)).astype(np.float64) + 1
        return float(np.average(self.locations, weights=sizes))


def disjoint(entries: Entries) -> tuple[Codes, Codes, npt.NDArray[np.int32]]:
    """Sorts entries by location and key, and merges overlapping entries of one location.

    Returns:
        The least code, the greatest code and the location of each resulting entry: int64[n],
        int64[n] and int32[n].
    """
    order = np.lexsort((entries.low, entries.location))
    low, high, location = entries.low[order], entries.high[order], entries.location[order]
    if len(low) == 0:
        return low, high, location
    start = starts(low, high, location)
    return low[start], np.maximum.reduceat(high, start), location[start]
