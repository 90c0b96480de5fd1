"""Top-k: the locations that can hold one of the first k rows when rows are sorted by a column.

ORDER BY ... LIMIT k, MIN and MAX need the locations that can have one of the first k rows. Only
*certain* rows count towards k: rows that the scan returns in any case. Each row has one of three
classes: NULL, NaN or key. The order defines which class is first. The function `needed` adds up the
certain rows, class by class, until there are k rows. The scan needs no class after the class of the
k-th row. If the k-th row has a key, the scan needs only keys up to a bound.

Example: ``ORDER BY x DESC NULLS LAST LIMIT 10`` has the classes NaN, key, NULL. With 3 certain NaNs
and 100 keys, the bound is the 7th key from the end, or a smaller code if `Extents` is imprecise.
Locations without NaN whose keys are all below the bound are not needed. NULLs are not needed.

A bound is a key code. Rows of the same code are ties; if codes are inexact, ties can have different
values. The scan reads all ties, so that another column of ORDER BY can order the ties. MIN and MAX
need only a value. If equal codes are equal values, one location with the value is enough for MIN
and MAX.
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

BOUNDING_FORMATS: Final = frozenset(("parquet", "orc", "hudi", "delta", "iceberg"))
"""In these formats, a query returns all rows that the file list counts. Exceptions are files with
log files, and files of which `Present` says that some rows are hidden. For a Delta scan that
filters by deletion vectors, the driver does not request the first rows."""

BOUNDING_ANY_TIME: Final = frozenset(("iceberg",))
"""In these formats, the same holds for a query of an earlier state, a branch or a tag."""


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """A sort order by one column, and the number k of first rows that a scan needs.

    Attributes:
        descending: whether greater values come first; NaN is the greatest.
        nulls: the position of rows with NULL: ``first``, ``last`` or ``never`` (the query drops
            these rows).
        rows: the number of rows needed, 1 or more.
        ties: whether the query needs all rows that are equal in this column; if not, one row is
            enough.
        against: a predicate that is true for every row that the filters exclude. For rows that the
            query drops, the predicate may be false.
    """

    column: Column
    descending: bool
    nulls: str
    rows: int
    ties: bool
    against: Predicate

    def classes(self) -> tuple[str, ...]:
        """The classes of rows, in the order in which the query sorts the rows."""
        values = ("nan", "key") if self.descending else ("key", "nan")
        if self.nulls == "never":
            return values
        return ("null", *values) if self.nulls == "first" else (*values, "null")


@dataclass(frozen=True, slots=True, eq=False)
class Present:
    """The listed files of a scan, by group; only files that are unchanged since an index saw them.

    Attributes:
        numbering: the numbering that `groups` refers to.
        groups: int64[n], the group of each numbered file, from 0; -1 for a file that the scan does
            not list. The query needs the first rows of each group.
        hide: bool[n], whether queries hide rows of the file. The rows of such a file do not count.
    """

    numbering: str
    groups: Counts
    hide: Flags


def needed(
    order: Order,
    extents: Extents,
    counts: FileRanges,
    groups: Counts,
    sure: Flags,
    *,
    one_value: bool,
) -> Flags | None:
    """Returns the locations that can hold one of the first rows of the location's group.

    Args:
        order: the order; `extents` must have the same direction.
        extents: the extents of the m locations.
        counts: the row counts of the locations.
        groups: int64[m], the group of each location, from 0; -1 for a location that the scan does
            not list.
        sure: bool[m], whether the scan returns all rows of the location, except for dropped rows.
        one_value: whether equal codes are equal values.

    Returns:
        bool[m], also true for locations without a group; None if no group has enough certain rows.
    """
    listed = groups >= 0
    counted = np.where(sure, groups, -1)
    wanting = np.full(int(groups.max(initial=-1)) + 1, order.rows, np.int64)
    keep = ~listed
    for there, rows, is_key in _classes(order, extents, counts):
        # A group that has enough rows needs no further class.
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
    # The MIN of a group that has only NULLs is NULL. So the scan must read a file of this group.
    keep |= listed & np.append(wanting > 0, False)[groups]
    return keep if np.any(wanting <= 0) else None


def _classes(
    order: Order, extents: Extents, counts: FileRanges
) -> Iterator[tuple[Flags, Counts, bool]]:
    """Yields for each class the possible locations, the certain rows, and whether it has keys."""
    for name in order.classes():
        if name == "key":
            yield extents.has_keys, counts.rows - counts.nulls - counts.nans, True
        else:
            rows = counts.nulls if name == "null" else counts.nans
            yield rows > 0, rows, False
