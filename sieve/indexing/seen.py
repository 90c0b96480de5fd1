"""What the reading step of a build counts for each location and for each probe."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sieve.arrays.dtypes import Counts, Flags


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Counts of rows, keys and cuts in locations, and of locations that contain a probe's keys.

    Attributes:
        rows, nulls, nans: int64[n], number of rows, NULLs and NaNs in each location.
        least, greatest: int64[n], least and greatest key code of each location. If a location has
            no keys, least is above greatest.
        hits: int64[2, k], for each probe, the number and the total bytes of the locations that
            contain one of its keys.
        partial: bool[n], whether queries must always read the location's file. Queries must read
            the file if the build found no rows or a corrupt record in the file, or did not read all
            its rows.
        cuts: number of cuts, least key code, and greatest key code of all locations that are not
            partial.
        keys: number of distinct keys in each location, summed over all locations that are not
            partial.
    """

    rows: Counts
    nulls: Counts
    nans: Counts
    least: Counts
    greatest: Counts
    hits: Counts
    partial: Flags
    cuts: tuple[int, int, int]
    keys: int

    @property
    def whole(self) -> list[int] | None:
        """The locations that are not partial, or None if no location is partial."""
        return [int(k) for k in np.flatnonzero(~self.partial)] if self.partial.any() else None
