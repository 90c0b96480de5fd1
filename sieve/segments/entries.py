"""Entries: the decoded form that is the same for every shape of a segment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Codes, Flags


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """The decoded form of every shape: ``location[i]`` may hold keys in ``[low[i], high[i]]``.

    Attributes:
        low: int64[n].
        high: int64[n], not below `low`.
        location: int32[n]; the entries of one location may touch or overlap.
    """

    low: Codes
    high: Codes
    location: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """The entries of a segment, with the first and last cell of each entry as ranges of codes.

    A location has a key in the first cell and in the last cell of each of its entries, unless the
    end of the segment cut the entry. No two entries of a location have a key in common.

    Attributes:
        low, first_by: int64[n], codes of the first cell.
        last_from, high: int64[n], codes of the last cell.
        location: int32[n].
        begins: bool[n], whether the first cell certainly has a key.
        finishes: bool[n], whether the last cell certainly has a key.
        apart: bool[n], whether the first and the last cell differ.
    """

    low: Codes
    first_by: Codes
    last_from: Codes
    high: Codes
    location: npt.NDArray[np.int32]
    begins: Flags
    finishes: Flags
    apart: Flags
