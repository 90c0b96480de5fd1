"""Coverage: the number of locations that a look-up of one key reads.

A look-up of a key reads each location whose entries cover the key. The function `sieve_segments`
and the inspection page report the coverage. Example: two locations with the entries ``[0, 9]`` and
``[5, 14]`` give the coverage 1 on ``[0, 4]``, 2 on ``[5, 9]`` and 1 on ``[10, 14]``.
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
    """The number of locations that can hold a key, by stretch of key codes; 0 elsewhere.

    Attributes:
        first: int64[n], first code of each stretch, ascending.
        last: int64[n], last code of each stretch, below the first code of the next stretch.
        locations: int64[n], number of locations that a look-up in the stretch reads, at least 1.
    """

    first: Codes
    last: Codes
    locations: Counts

    @staticmethod
    def of(entries: Entries) -> Coverage:
        """The coverage of entries in any order. Overlapping entries of one location count once."""
        low, high, _ = disjoint(entries)
        # An entry ends after `high`. ``high + 1`` would overflow for the greatest int64, so this
        # method sorts both ends instead.
        borders = np.concatenate([low, high])
        last = np.repeat(np.array([False, True]), len(low))
        order = np.lexsort((last, borders))
        borders, last = borders[order], last[order]
        inside = np.cumsum(np.where(last, -1, 1))[:-1]
        first = borders[:-1] + last[:-1]
        end = borders[1:] - ~last[1:]
        # Two equal borders of the same kind enclose no stretch, even if the arithmetic wraps
        # around.
        nothing = (borders[:-1] == borders[1:]) & (last[:-1] == last[1:])
        some = (inside > 0) & (first <= end) & ~nothing
        return Coverage(first[some], end[some], inside[some])

    def mean(self) -> float:
        """Mean number of locations over all covered codes, equally weighted; 0 without codes."""
        if len(self.first) == 0:
            return 0.0
        sizes = (self.last.view(np.uint64) - self.first.view(np.uint64)).astype(np.float64) + 1
        return float(np.average(self.locations, weights=sizes))


def disjoint(entries: Entries) -> tuple[Codes, Codes, npt.NDArray[np.int32]]:
    """The entries sorted by location and key; overlapping entries of one location are merged.

    Returns:
        low int64[n], high int64[n], location int32[n].
    """
    order = np.lexsort((entries.low, entries.location))
    low, high, location = entries.low[order], entries.high[order], entries.location[order]
    if len(low) == 0:
        return low, high, location
    start = starts(low, high, location)
    return low[start], np.maximum.reduceat(high, start), location[start]
