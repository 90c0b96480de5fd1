"""Top-k: finds the locations that can contain one of the first k rows in the order of a column.

A query with ORDER BY and LIMIT k, or with MIN or MAX, needs only the locations that can contain one
of the first k rows. A row is *certain* if the index proves that the scan returns it. Each row
belongs to one of three classes: NULL, NaN or key. The query's sort order also determines the order
of the classes. The function `needed` adds up the certain rows, class by class, until it has k rows.
The scan does not need the classes that follow the class of the k-th row. If the k-th row has a key,
the scan needs only rows with keys up to a bound.

Example: ``ORDER BY x DESC NULLS LAST LIMIT 10`` sorts the classes as NaN, key, NULL. If the index
proves 3 NaNs and 100 keys, then 7 more rows are needed, so the bound is the 7th greatest key. If
`Extents` is imprecise, the bound is a smaller key code. If a location has no NaN, and all keys of
the location are below the bound, the scan can skip this location. NULLs in the location do not
matter.

The bound is a key code. Rows with the same key code tie. If codes are inexact, rows that tie can
have different values. The scan reads all rows that tie with the bound, because another column of
ORDER BY may order them. MIN and MAX need only one value. If rows with equal codes always have equal
values, MIN and MAX need only one location with the value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from sieve.arrays.dtypes import Counts, Flags
from sieve.metadata.file_ranges import FileRanges
from sieve.predicate.parse_predicate import Column, Predicate
from sieve.reader.extents import Extents, bounds

BOUNDING_FORMATS: Final = frozenset(("parquet", "orc", "hudi", "delta", "iceberg"))
"""Table formats in which a query without filters returns all rows that the file list counts. There
are two exceptions: Hudi slices with log files, and files with rows that queries hide
(`Present.hide`). If a Delta scan applies deletion vectors, the driver does not ask for the first
rows."""

BOUNDING_ANY_TIME: Final = frozenset(("iceberg",))
"""Table formats in which even a query of a branch, a tag or an earlier state of the table returns
all rows that the file list counts."""


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """A sort order by one column, and the number of first rows that a scan needs in this order.

    Attributes:
        descending: whether greater values come first. NaN is greater than all other values.
        nulls: where rows with NULL come: ``first``, ``last`` or ``never`` (the query ignores rows
            with NULL).
        rows: the number of rows that the scan needs, 1 or more.
        ties: whether the query needs all rows with equal values in this column. If `ties` is false,
            one row with each value is enough.
        against: a predicate that is true for each row that the query's filters exclude. The
            predicate need not be true for rows that the query ignores.
    """

    column: Column
    descending: bool
    nulls: str
    rows: int
    ties: bool
    against: Predicate

    def classes(self) -> tuple[str, ...]:
        """The classes of rows, in the sort order of the query."""
        values = ("nan", "key") if self.descending else ("key", "nan")
        if self.nulls == "never":
            return values
        return ("null", *values) if self.nulls == "first" else (*values, "null")


@dataclass(frozen=True, slots=True, eq=False)
class Present:
    """The files of a scan that are unchanged since the index read them, and the files' groups.

    Attributes:
        numbering: the name of the file numbering to which `groups` refers.
        groups: int64[n], group of each numbered file, from 0; -1 for a file that the scan does
            not list. The query needs the first rows of each group separately.
        hide: bool[n], whether queries hide some rows of the file. No row of a file with hidden rows
            is certain.
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
    """Returns the locations that can contain one of the first rows of their group.

    Args:
        order: the sort order. `extents` must have the direction of this order.
        extents: the extents of the m locations.
        counts: the numbers of rows in the locations.
        groups: int64[m], group of each location, from 0; -1 for a location in a file that the
            scan does not list.
        sure: bool[m], whether the rows of the location are certain, apart from rows that the query
            ignores.
        one_value: whether rows with equal codes always have equal values.

    Returns:
        bool[m], True also for each location that belongs to no group. None if no group has enough
        certain rows.
    """
    listed = groups >= 0
    counted = np.where(sure, groups, -1)
    wanting = np.full(int(groups.max(initial=-1)) + 1, order.rows, np.int64)
    keep = ~listed
    for there, rows, is_key in _classes(order, extents, counts):
        # A group that already has enough certain rows needs no rows of later classes.
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
    # If a group has only NULLs, its MIN is NULL, so the scan must read a file of the group.
    keep |= listed & np.append(wanting > 0, False)[groups]
    return keep if np.any(wanting <= 0) else None


def _classes(
    order: Order, extents: Extents, counts: FileRanges
) -> Iterator[tuple[Flags, Counts, bool]]:
    """Yields three values for each class of rows.

    The three values are: which locations contain rows of the class, the number of these rows in
    each location, and whether the class is ``key``.
    """
    for name in order.classes():
        if name == "key":
            yield extents.has_keys, counts.rows - counts.nulls - counts.nans, True
        else:
            rows = counts.nulls if name == "null" else counts.nans
            yield rows > 0, rows, False
