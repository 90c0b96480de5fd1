"""The counts of the reading step, by location and by probe."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sieve.arrays.dtypes import Counts, Flags


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Counts of rows and keys, by location and by probe.

    Attributes:
        rows, nulls, nans: int64[n], counts for each location.
        least, greatest: int64[n], extreme key codes of each location; in a location without keys,
            least is above greatest.
        hits: int64[2, k], number and total bytes of the locations that hold a key of each probe.
        partial: bool[n], locations whose file queries must always read. Such a file has no rows,
            has a corrupt record, or was read incompletely.
        cuts: number of cuts, least key code, and greatest key code of the locations that are not
            partial.
        keys: number of distinct keys per location, summed over the locations that are not partial.
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
        """The locations that were read completely, or None for all."""
        return [int(k) for k in np.flatnonzero(~self.partial)] if self.partial.any() else None
