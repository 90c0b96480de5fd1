"""Top rows: which locations can hold one of the first k rows in the order of an indexed column.

ORDER BY ... LIMIT k, MIN and MAX need the locations whose rows can come before the k-th of the rows
that a scan *surely* gives. A row falls into one of three classes, NULL, NaN or a key, and the order
says which class comes first. Rows are counted class by class until there are k of them; the class
in which the k-th row lies is the last one that is needed, and of its keys those up to a bound.

Example: ``ORDER BY x DESC NULLS LAST LIMIT 10`` has the classes NaN, keys, NULL. With 3 NaN for
certain and 100 keys, the bound is the 7th key from the end, as far as `Extents` proves where it
lies. Locations without a NaN whose keys all lie below the bound, and NULL, are not needed.

A bound is one of key codes. Rows of the same code, which may differ where codes are not exact, are
ties: none of them is left out. Whichever column orders ties, it decides among kept rows. MIN and
MAX ask for a value, not for rows: where equal codes are equal values, one location that has it is
enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from sieve.arrays.dtypes import Counts, Flags
from sieve.metadata.file_ranges import FileRanges
from sieve.predicate.tree import Column, Predicate
from sieve.reader.extents import Extents, bounds

BOUNDING_FORMATS: Final = frozenset(("parquet", "orc", "hudi"))
"""Formats whose files, or slices without log files, give queries all rows that the list counts."""


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """What a scan wants of a column: the first rows in an order.

    Attributes:
        column: the column.
        descending: whether greater values come first; NaN is the greatest.
        nulls: where rows with NULL come: ``first``, ``last`` or ``never`` (the query drops them).
        rows: how many rows are wanted, 1 or more.
        ties: whether rows may differ that are equal in this column; if not, one row is wanted.
        against: true for every row, other than those dropped, that the filters leave out.
    """

    column: Column
    descending: bool
    nulls: str
    rows: int
    ties: bool
    against: Predicate

    def classes(self) -> tuple[str, ...]:
        """The classes of rows in order."""
        values = ("nan", "key") if self.descending else ("key", "nan")
        if self.nulls == "never":
            return values
        return ("null", *values) if self.nulls == "first" else (*values, "null")


@dataclass(frozen=True, slots=True, eq=False)
class Present:
    """The files that a scan lists, in the state that an index knows, by the group of their rows.

    Attributes:
        numbering: the numbering that `groups` refers to.
        groups: int64[n], the group of each numbered file, from 0; -1 if the scan does not list it.
            First rows are wanted of each group.
    """

    numbering: str
    groups: Counts


def needed(
    order: Order,
    extents: Extents,
    counts: FileRanges,
    groups: Counts,
    sure: Flags,
    *,
    one_value: bool,
) -> Flags | None:
    """Which of m locations can hold one of the first rows of their group.

    Args:
        order: the order; the extents are those of its direction.
        extents: of the locations.
        counts: of the locations.
        groups: int64[m], the group of each location, from 0; -1 for one that the scan does not
            list.
        sure: bool[m], locations all of whose rows the scan surely gives, but for dropped ones.
        one_value: whether values of one code are one value.

    Returns:
        bool[m], true for locations of no group; None if no group surely has so many rows.
    """
    listed = groups >= 0
    counted = np.where(sure, groups, -1)
    wanting = np.full(int(groups.max(initial=-1)) + 1, order.rows, np.int64)
    keep = ~listed
    for there, rows, is_key in _classes(order, extents, counts):
        # A group that has its rows needs no further class.
        open_groups = wanting > 0
        still = there & listed & np.append(open_groups, False)[groups]
        if is_key:
            limits, owners = bounds(extents.steps, counted, np.maximum(wanting, 1))
            of_group = np.append(limits, 0)[groups]
            if order.ties or not one_value:
                still &= extents.least <= of_group
            else:
                owner = np.append(owners, -1)[groups]
                still &= (owner < 0) | (extents.least < of_group) | (owner == np.arange(len(owner)))
        keep |= still
        own = counted >= 0
        np.subtract.at(wanting, counted[own], rows[own])
    # MIN of a group of NULLs is NULL: the group must not vanish with them.
    keep |= listed & np.append(wanting > 0, False)[groups]
    return keep if np.any(wanting <= 0) else None


def _classes(
    order: Order, extents: Extents, counts: FileRanges
) -> Iterator[tuple[Flags, Counts, bool]]:
    """For each class in order: who may have a row of it, rows of it, and whether it has keys."""
    for name in order.classes():
        if name == "key":
            yield extents.has_keys, counts.rows - counts.nulls - counts.nans, True
        else:
            rows = counts.nulls if name == "null" else counts.nans
            yield rows > 0, rows, False
