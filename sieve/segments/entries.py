"""Entries: the decoded form of the segments of all shapes except `map`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Codes, Flags


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """The entries of a segment: ``location[i]`` may contain keys in ``[low[i], high[i]]``.

    Attributes:
        low: int64[n], the least code of each entry.
        high: int64[n], the greatest code of each entry, not below `low`.
        location: int32[n], the location of each entry. Entries of one location can touch or
            overlap.
    """

    low: Codes
    high: Codes
    location: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """The entries of a segment, each given by the code ranges of its first cell and its last cell.

    Normally, an entry's first cell and its last cell both contain a key of the entry's location. If
    the build split an entry at the border of the segment, the entry's cell at this border may
    contain no key. Entries of the same location have no key in common.

    Attributes:
        low, first_by: int64[n], the least and the greatest code of each entry's first cell.
        last_from, high: int64[n], the least and the greatest code of each entry's last cell.
        location: int32[n], the location of each entry.
        begins: bool[n], whether the entry's first cell certainly contains a key of the location.
        finishes: bool[n], whether the entry's last cell certainly contains a key of the location.
        apart: bool[n], whether the entry's first cell and its last cell differ.
    """

    low: Codes
    first_by: Codes
    last_from: Codes
    high: Codes
    location: npt.NDArray[np.int32]
    begins: Flags
    finishes: Flags
    apart: Flags
