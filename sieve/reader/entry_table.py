"""Entry table: the entries of decoded segments in flat arrays, which look-ups search.

The entries never change, so sorted arrays replace an interval tree. The entries are sorted by their
low ends. A binary search in the running maximum of the high ends (`Chunk.reach`) finds the first
entry that can contain a key. Another binary search in the low ends finds the last entry that can
contain a key.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import CodeIntervals, Flags
from sieve.errors import CorruptError
from sieve.segments.entries import Entries

# The binary searches for one interval take as long as a linear pass through `_PASS` entries.
_PASS: Final = 8192


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """The entries of several disjoint segments, sorted by `low`.

    Attributes:
        low: int64[n], first key code of each entry, ascending.
        high: int64[n], last key code of each entry.
        reach: int64[n], running maximum of `high`. If ``reach[i]`` is below a key, no entry up to i
            contains the key.
        location: int32[n], location of each entry, as its ordinal in the run.
        n_locations: greatest ordinal plus one; 0 if there are no entries.
    """

    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]
    reach: npt.NDArray[np.int64]
    location: npt.NDArray[np.int32]
    n_locations: int

    @property
    def nbytes(self) -> int:
        """The size of the arrays in bytes."""
        arrays = (getattr(self, field.name) for field in fields(self))
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))

    def mark(self, wanted: CodeIntervals, found: Flags) -> None:
        """Sets the flags of all locations that can contain a key in at least one of the intervals.

        Args:
            wanted: int64[k, 2], ascending and disjoint intervals, as from `merge`.
            found: bool[at least n_locations], a flag for each location; the method updates the
                array.
        """
        if len(wanted) <= 1 or len(wanted) * _PASS < len(self.low):
            for first, last in wanted.tolist():
                start = int(self.reach.searchsorted(first, side="left"))
                stop = int(self.low.searchsorted(last, side="right"))
                meets = self.high[start:stop] >= first
                found[self.location[start:stop][meets]] = True
            return
        # Compare each entry only with the first interval that ends at or after the entry's start.
        # If any interval overlaps the entry, this first interval does.
        stops = self.low.searchsorted(wanted[:, 1], side="right")
        begun = stops.copy()
        begun[1:] -= stops[:-1]
        met = np.flatnonzero(self.high[: stops[-1]] >= np.repeat(wanted[:, 0], begun))
        found[self.location[met]] = True

    def holds(self, codes: npt.NDArray[np.int64], location: int) -> Flags:
        """Returns for each code whether `mark` would flag the location for this code alone."""
        own = np.flatnonzero(self.location == location)
        if len(own) == 0:
            return np.zeros(len(codes), np.bool_)
        before = self.low[own].searchsorted(codes, side="right") - 1
        # The location can contain a code if an entry of the location begins at or below the code
        # and ends at or above the code.
        reach = np.maximum.accumulate(self.high[own])
        return (before >= 0) & (reach[before] >= codes)


def assemble(segments: Iterable[Entries]) -> Chunk:
    """Builds a chunk from segments, which can be in any order.

    Args:
        segments: the entries of each segment; two segments have no key code in common.

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
