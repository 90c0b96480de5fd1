"""Entries: the decoded form of a segment, which is the same for every shape."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Codes, Flags


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Entries of a segment: ``location[i]`` can hold keys in ``[low[i], high[i]]``.

    Attributes:
        low: int64[n].
        high: int64[n], not below `low`.
        location: int32[n]; the entries of one location can touch or overlap.
    """

    low: Codes
    high: Codes
    location: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """The entries of a segment, each given by the code ranges of the first cell and the last cell.

    The first cell and the last cell of an entry each contain a key of the entry's location. The
    exception is an entry that was split at the border of a segment: the cell at the border may
    contain no key. Two entries of a location have no key in common.

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
