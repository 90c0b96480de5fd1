"""Extents: each location's least key, and its minimum number of rows up to any given key.

To answer ``ORDER BY x LIMIT k``, Sieve needs a bound: at least k rows must have a key code up to
the bound. Two rules give the minimum number of rows that a location has up to a code:

- If all entries of the location end at or before the code, all rows with a key count. The file list
  contains each location's number of rows with a key.
- Otherwise, each entry that ends at or before the code counts as two rows: one in its first cell
  and one in its last cell. If the build split an entry at a cell, this cell does not count
  (`sieve.segments.entries.Ends`).

A list of *steps* combines both rules. At each step, the minimum number of rows increases. Each
entry has two steps of one row: at the end of its first cell and at the end of its last cell. The
location's other rows form a step at the end of its last entry. If a location has `KeyBounds`, its
first step is at its least key, and no step is after its greatest key.

Example: a location has five rows, with the keys 1, 2, 3, 900 and 901. The location's entries are
``[1, 3]`` and ``[900, 901]``, and each cell contains one code. The steps are one row at 1, one at
3, one at 900 and two at 901. The example's location has at least two rows up to 3, and exactly five
up to 901.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Codes, Counts, Flags
from sieve.encoding.encoder import GREATEST, LEAST
from sieve.metadata.key_bounds import KeyBounds
from sieve.segments.entries import Ends


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """The minimum number of rows that each location has up to each key, stored as increments.

    Attributes:
        codes: int64[e], key code of each step, ascending.
        locations: int64[e], location of each step.
        rows: int64[e], number of rows of each step, 1 or more. The steps of a location add up
            to the number of its rows that have a key.
    """

    codes: Codes
    locations: Counts
    rows: Counts


@dataclass(frozen=True, slots=True, eq=False)
class Extents:
    """The least key code and the steps of each location. For a descending order, codes are negated.

    Attributes:
        least: int64[m], least key code of each location; `GREATEST` for a location without
            keys.
        has_keys: bool[m], whether the location has a key.
        steps: the steps of all locations.
    """

    least: Codes
    has_keys: Flags
    steps: Steps

    @property
    def nbytes(self) -> int:
        """The size of the arrays in bytes."""
        steps = self.steps.codes, self.steps.locations, self.steps.rows
        return sum(array.nbytes for array in (self.least, self.has_keys, *steps))


@dataclass(frozen=True, slots=True, eq=False)
class LocationEnds:
    """The first and last cells of a version's entries, as in `sieve.segments.entries.Ends`.

    Attributes:
        codes: int64[4, e]. Each entry has a column: the first and the last code of the entry's
            first cell, then the first and the last code of its last cell.
        locations: int64[e], location of each entry.
        begins, finishes, apart: bool[e], as in `Ends`.
    """

    codes: Codes
    locations: Counts
    begins: Flags
    finishes: Flags
    apart: Flags

    def falling(self) -> LocationEnds:
        """The same ends for a descending order, with the codes negated."""
        turned = ~self.codes[::-1]
        return LocationEnds(turned, self.locations, self.finishes, self.begins, self.apart)


def concat_ends(segments: Sequence[Ends], locations: Sequence[Counts]) -> LocationEnds:
    """Concatenates the ends of all segments' entries; omits entries whose location is -1."""
    of_entry = np.concatenate([np.empty(0, np.int64), *locations])
    kept = of_entry >= 0

    def column(name: str) -> npt.NDArray[Any]:
        none: npt.NDArray[Any] = np.empty(0, np.int64 if name in _CODES else np.bool_)
        return np.concatenate([none, *(getattr(one, name) for one in segments)])[kept]

    codes = np.stack([column(name) for name in _CODES])
    return LocationEnds(
        codes, of_entry[kept], column("begins"), column("finishes"), column("apart")
    )


_CODES: Final = ("low", "first_by", "last_from", "high")


def ends_of(bounds: KeyBounds) -> LocationEnds:
    """For each location with known bounds, returns an entry from its least to its greatest key."""
    locations = np.flatnonzero(bounds.known)
    least, greatest = bounds.least[locations], bounds.greatest[locations]
    yes = np.ones(len(locations), np.bool_)
    codes = np.stack([least, least, greatest, greatest])
    return LocationEnds(codes, locations, yes, yes, least < greatest)


def extents(ends: LocationEnds, keyed: Counts, bounds: KeyBounds | None = None) -> Extents:
    """Computes the extents of locations, for an ascending order of codes.

    Args:
        ends: the ends of all entries. The entries of a location are disjoint.
        keyed: int64[m], for each location the number of rows that have a key.
        bounds: the least and the greatest key of each location. The keys in ``bounds`` are exact
            even if the cells of entries are wide.
    """
    if bounds is not None:
        ends = _within(ends, bounds)
    (low, first_by, _, high), locations = ends.codes, ends.locations
    least = np.full(len(keyed), GREATEST, np.int64)
    np.minimum.at(least, locations, low)
    order = np.lexsort((high, locations))
    last = order[np.append(locations[order][1:] != locations[order][:-1], True)[: len(order)]]
    early = ends.begins
    # An entry of a single cell has at least one key; an entry of several cells has at least two
    # keys.
    late = ends.finishes & (ends.apart | ~early)
    late[last] = False
    counted = np.bincount(locations[early], minlength=len(keyed))
    counted += np.bincount(locations[late], minlength=len(keyed))
    rest = (keyed - counted)[locations[last]]
    left = last[rest > 0]
    ones = np.ones(int(early.sum() + late.sum()), np.int64)
    codes = np.concatenate([first_by[early], high[late], high[left]])
    places = np.concatenate([locations[early], locations[late], locations[left]])
    rows = np.concatenate([ones, rest[rest > 0]])
    by_code = np.argsort(codes, kind="stable")
    has_keys = np.zeros(len(keyed), np.bool_)
    has_keys[locations] = True
    return Extents(least, has_keys, Steps(codes[by_code], places[by_code], rows[by_code]))


def _within(ends: LocationEnds, bounds: KeyBounds) -> LocationEnds:
    """Clips each entry to the least and greatest key of the entry's location.

    The first entry of a location contains the location's least key. So the start of the first entry
    is exact, even if the build split this entry at a segment's border.
    """
    (low, first_by, last_from, high), locations = ends.codes, ends.locations
    known = bounds.known[locations]
    least = np.where(known, bounds.least[locations], LEAST)
    greatest = np.where(known, bounds.greatest[locations], GREATEST)
    order = np.lexsort((low, locations))
    exact = np.zeros(len(low), np.bool_)
    exact[order[np.append(True, np.diff(locations[order]) > 0)[: len(order)]]] = True
    exact &= known
    codes = np.stack(
        [
            np.maximum(low, least),
            np.where(exact, least, np.minimum(first_by, greatest)),
            last_from,
            np.minimum(high, greatest),
        ]
    )
    # If the least key is in the last cell of an entry, perhaps the entry contains no other key.
    apart = np.where(exact, ends.apart & (least < last_from), ends.apart)
    return replace(ends, codes=codes, begins=ends.begins | exact, apart=apart)


def bounds(steps: Steps, groups: Counts, wanted: Counts) -> tuple[Codes, Counts]:
    """Returns the bound of each group: the least code that certainly covers enough rows.

    A code covers the rows that have this code or a smaller one.

    Args:
        steps: the steps of m locations.
        groups: int64[m], group of each location, from 0 to n - 1; -1 for a location whose rows
            do not count.
        wanted: int64[n], number of rows that each group needs, at least 1.

    Returns:
        int64[n], the bound of each group; int64[n], the location of the step that reaches the
        wanted number of rows. For a group with too few rows, the code is `GREATEST`, and the
        location is -1.
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
