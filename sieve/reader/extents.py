"""Extents: the first and last key of each location, and the least number of rows up to a key.

``ORDER BY x LIMIT k`` needs a bound: a key code such that at least k rows have this code or a
smaller code. Two facts define the least number of rows that a location has up to a code:

- If all entries of the location end at or before the code, all of the location's rows with a key
  count. The file list contains the number of these rows.
- Otherwise, each entry that ends at or before the code counts as two rows: one in its first cell
  and one in its last cell. A cell where the entry was split does not count
  (`sieve.segments.entries.Ends`).

A list of *steps* combines both facts. Each entry has a step of one row at the end of its first
cell, and another step at the end of its last cell. All other rows of the location form a step at
the end of the location's last entry. If a location has `KeyBounds`, the first step is at the least
key, and no step is after the greatest key.

Example: a location has five rows, with the keys 1, 2, 3 and 900, 901, in the entries ``[1, 3]`` and
``[900, 901]`` of cells of one code. The location has steps of one row at 1, 3 and 900, and a step
of two rows at 901. Therefore the location has at least two rows up to 3, and exactly five rows up
to 901.
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
    """The least number of rows that each location has up to a key, stored as increments.

    Attributes:
        codes: int64[e], the code of each step, ascending.
        locations: int64[e], the location of each step.
        rows: int64[e], the rows of each step, 1 or more. The steps of a location add up to the
            number of the location's rows with a key.
    """

    codes: Codes
    locations: Counts
    rows: Counts


@dataclass(frozen=True, slots=True, eq=False)
class Extents:
    """The least key code and the steps of each location, for ascending or for descending order.

    Attributes:
        least: int64[m], the least code of each location; GREATEST for a location without keys.
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


@dataclass(frozen=True, slots=True, eq=False)
class LocationEnds:
    """The ends of a version's entries, as in `sieve.segments.entries.Ends`.

    Attributes:
        codes: int64[4, e]; the rows are the first and last code of each entry's first cell, and the
            first and last code of its last cell.
        locations: int64[e], the location of each entry.
        begins, finishes, apart: bool[e].
    """

    codes: Codes
    locations: Counts
    begins: Flags
    finishes: Flags
    apart: Flags

    def falling(self) -> LocationEnds:
        """The same ends with negated codes, for a descending order."""
        turned = ~self.codes[::-1]
        return LocationEnds(turned, self.locations, self.finishes, self.begins, self.apart)


def concat_ends(segments: Sequence[Ends], locations: Sequence[Counts]) -> LocationEnds:
    """Concatenates the entries of all segments, and leaves out entries of location -1."""
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
    """Returns one entry for each location with bounds; the entry begins and ends at the bounds."""
    locations = np.flatnonzero(bounds.known)
    least, greatest = bounds.least[locations], bounds.greatest[locations]
    yes = np.ones(len(locations), np.bool_)
    codes = np.stack([least, least, greatest, greatest])
    return LocationEnds(codes, locations, yes, yes, least < greatest)


def extents(ends: LocationEnds, keyed: Counts, bounds: KeyBounds | None = None) -> Extents:
    """The extents of locations, in ascending order of codes.

    Args:
        ends: the ends of all entries; two entries of a location share no key.
        keyed: int64[m], rows with a key in each location.
        bounds: the bounds of the locations; bounds are exact even where entries have wide cells.
    """
    if bounds is not None:
        ends = _within(ends, bounds)
    (low, first_by, _, high), locations = ends.codes, ends.locations
    least = np.full(len(keyed), GREATEST, np.int64)
    np.minimum.at(least, locations, low)
    order = np.lexsort((high, locations))
    last = order[np.append(locations[order][1:] != locations[order][:-1], True)[: len(order)]]
    early = ends.begins
    # An entry of a single cell certainly has one key, whereas other entries have two.
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
    """Clips each entry to the bounds of the entry's location.

    The first entry of a location contains the location's least key. Therefore the begin of the
    first entry is exact, even if the border of a segment cut the entry.
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
    # A key in the last cell differs from the least key only if the cell begins above the least key.
    apart = np.where(exact, ends.apart & (least < last_from), ends.apart)
    return replace(ends, codes=codes, begins=ends.begins | exact, apart=apart)


def bounds(steps: Steps, groups: Counts, wanted: Counts) -> tuple[Codes, Counts]:
    """Returns for each group the least code up to which the group certainly has the wanted rows.

    Args:
        steps: the steps of m locations.
        groups: int64[m], the group of each location, below n; -1 for a location whose rows do not
            count.
        wanted: int64[n], the rows that each group needs, at least 1.

    Returns:
        int64[n], the code, or GREATEST for a group with too few rows. int64[n], the location whose
        step completes the wanted rows, or -1 for a group with too few rows.
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
