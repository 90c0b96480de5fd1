"""Extents: where the keys of a version's locations begin and end, and how many lie below a key.

ORDER BY ... LIMIT asks for a bound: a key code that so many rows surely do not exceed. Two things
say how many rows a location surely has up to a code:

- Where all its entries end there, all its rows that have a key: the file list counts them.
- Else one row for each of its entries that ends there (`Chunk.occupied`).

Both together are one list of *steps*: at the end of each entry one row is added, and at the end of
the location's last entry all its other rows.

Example: a location has five rows, with the keys 1, 2, 3 and 900, 901, in the entries ``[1, 3]`` and
``[900, 901]``. Its steps are one row at code 3 and four rows at code 901: at least one row up to 3,
and exactly five up to 901.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sieve.arrays.dtypes import Codes, Counts, Flags
from sieve.encoding.encoder import GREATEST


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """By how many rows the locations surely grow, from the first key in an order to the last.

    Attributes:
        codes: int64[e], ascending.
        locations: int64[e], the location of each step.
        rows: int64[e], 1 or more; all steps of a location add up to its rows with a key.
    """

    codes: Codes
    locations: Counts
    rows: Counts


@dataclass(frozen=True, slots=True, eq=False)
class Extents:
    """The least key code that each location may hold, and its steps, in one direction.

    Attributes:
        least: int64[m], of each location; GREATEST for one without keys.
        has_keys: bool[m], whether the location has a key.
        steps: the steps of all locations.
    """

    least: Codes
    has_keys: Flags
    steps: Steps

    @property
    def nbytes(self) -> int:
        """Bytes that the arrays take in memory."""
        steps = self.steps.codes, self.steps.locations, self.steps.rows
        return sum(array.nbytes for array in (self.least, self.has_keys, *steps))


def falling(codes: Codes) -> Codes:
    """The codes in the opposite order: of two codes the greater becomes the less."""
    return ~codes


def extents(low: Codes, high: Codes, locations: Counts, occupied: Flags, keyed: Counts) -> Extents:
    """The extents of locations by ascending codes; by descending codes with the ends exchanged.

    Args:
        low: int64[e], first code of each entry.
        high: int64[e], last code.
        locations: int64[e], its location; the entries of one location share no key.
        occupied: bool[e], whether it has a key for certain.
        keyed: int64[m], rows with a key in each location.
    """
    least = np.full(len(keyed), GREATEST, np.int64)
    np.minimum.at(least, locations, low)
    order = np.lexsort((high, locations))
    last = order[np.append(locations[order][1:] != locations[order][:-1], True)[: len(order)]]
    is_last = np.zeros(len(low), np.bool_)
    is_last[last] = True
    before = np.bincount(locations[occupied & ~is_last], minlength=len(keyed))
    rows = np.where(is_last, (keyed - before)[locations], 1)
    kept = np.flatnonzero(occupied | is_last)
    kept = kept[np.argsort(high[kept], kind="stable")]
    has_keys = np.zeros(len(keyed), np.bool_)
    has_keys[locations] = True
    return Extents(least, has_keys, Steps(high[kept], locations[kept], rows[kept]))


def bounds(steps: Steps, groups: Counts, wanted: Counts) -> tuple[Codes, Counts]:
    """For each group the least code up to which its locations surely have so many rows.

    Args:
        steps: the steps of m locations.
        groups: int64[m], the group of each location, below n; -1 for one whose rows do not count.
        wanted: int64[n], rows, at least 1.

    Returns:
        int64[n], the code, GREATEST for a group that has fewer rows; int64[n], the location of the
        step that reaches it, -1 for such a group.
    """
    of_group = groups[steps.locations]
    counted = np.flatnonzero(of_group >= 0)
    counted = counted[np.argsort(of_group[counted], kind="stable")]
    ends = np.searchsorted(of_group[counted], np.arange(len(wanted)), side="right")
    total = np.append(0, np.cumsum(steps.rows[counted]))
    before = total[np.append(0, ends[:-1])[: len(ends)]]
    reached = np.searchsorted(total[1:], before + wanted)
    codes, locations = np.full(len(wanted), GREATEST, np.int64), np.full(len(wanted), -1, np.int64)
    enough = reached < ends
    last = counted[reached[enough]]
    codes[enough], locations[enough] = steps.codes[last], steps.locations[last]
    return codes, locations
