"""What the reading step counts, by location and by probe."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sieve.arrays.dtypes import Counts, Flags


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """The counts, by location and by probe.

    Attributes:
        rows, nulls, nans: int64[n].
        least, greatest: int64[n], key codes; least is above greatest if there is no key.
        hits: int64[2, k], locations that hold a key of each probe, and their bytes.
        partial: bool[n], locations of files that prove nothing: without rows, with a corrupt
            record, or read incompletely.
        cuts: of the other locations, the number of cuts, and their least and greatest key code.
        keys: distinct keys of each of these, summed.
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
        """The locations that were read completely; None: all."""
        return [int(k) for k in np.flatnonzero(~self.partial)] if self.partial.any() else None
