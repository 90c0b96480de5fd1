"""Key bounds: the least and greatest key code of each location; indexes of all shapes have bounds.

Some shapes store the keys of a location inexactly: they widen the keys to whole cells, or to one
interval. Key bounds are exact: some row of the location has the least code, and some row has the
greatest code. With key bounds, queries with MIN, MAX, or ORDER BY and LIMIT read few locations. A
range query reads at most the locations that it would read with min/max statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from sieve.arrays.dtypes import CodeIntervals, Codes, Counts, Flags, Places
from sieve.arrays.interval_set import meeting, merge
from sieve.encoding.encoder import GREATEST, LEAST

STORED_BOUNDS: Final = ("least", "greatest")
"""The columns of a stored file list that contain the bounds. Each row is for a file, and lists the
least or the greatest codes of the file's locations."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyBounds:
    """The key bounds of m locations.

    Attributes:
        least, greatest: int64[m], the least and the greatest key code of each location. A location
            without keys, or with unknown bounds, has reversed bounds: its ``least`` is GREATEST,
            and its ``greatest`` is LEAST.
    """

    least: Codes
    greatest: Codes

    @classmethod
    def unknown(cls, m: int) -> KeyBounds:
        """Returns the `KeyBounds` of m locations whose bounds are unknown."""
        return cls(np.full(m, GREATEST, np.int64), np.full(m, LEAST, np.int64))

    @classmethod
    def concat(cls, lists: Sequence[KeyBounds]) -> KeyBounds:
        """Concatenates the bounds in ``lists``, which contains one or more items."""
        ends = [[getattr(one, name) for one in lists] for name in STORED_BOUNDS]
        return cls(*(np.concatenate(column) for column in ends))

    @property
    def nbytes(self) -> int:
        """The size of the bounds in memory, in bytes."""
        return self.least.nbytes + self.greatest.nbytes

    @property
    def known(self) -> Flags:
        """Whether the bounds of each location are known, bool[m]."""
        known: Flags = self.least <= self.greatest
        return known

    def chosen(self, which: Flags | Places) -> KeyBounds:
        """Returns the bounds of the locations that ``which`` selects by flags or by positions."""
        return KeyBounds(self.least[which], self.greatest[which])

    def only(self, which: Flags) -> KeyBounds:
        """Returns a copy; bounds become unknown if their flag in ``which`` is false."""
        least, greatest = self.least, self.greatest
        return KeyBounds(np.where(which, least, GREATEST), np.where(which, greatest, LEAST))

    def falling(self) -> KeyBounds:
        """Returns the same bounds for a descending order, with inverted codes."""
        return KeyBounds(~self.greatest, ~self.least)

    def lists(self, counts: Counts) -> list[pa.ListArray]:
        """Returns the columns of `STORED_BOUNDS`; a file without known bounds has empty lists.

        Args:
            counts: int64[n], the number of locations of each file, 1 or more.
        """
        firsts = np.cumsum(counts) - counts
        some = np.logical_or.reduceat(self.known, firsts) if len(counts) else counts > 0
        ends = pa.array(np.append(0, np.cumsum(np.where(some, counts, 0))), pa.int32())
        own = self.chosen(np.repeat(some, counts))
        codes = (pa.array(column, pa.int64()) for column in (own.least, own.greatest))
        return [pa.ListArray.from_arrays(ends, column) for column in codes]

    def same(self, other: KeyBounds, counts: Counts) -> Flags:
        """Returns, for each file, whether its locations have the same bounds in ``other``.

        Args:
            other: other bounds of the same locations.
            counts: int64[k], the number of locations of each file, 1 or more.
        """
        equal: Flags = (self.least == other.least) & (self.greatest == other.greatest)
        firsts = np.cumsum(counts) - counts
        return np.logical_and.reduceat(equal, firsts) if len(counts) else equal

    def meet(self, intervals: CodeIntervals, some: Places) -> Flags:
        """Returns, for each location in ``some``, whether an interval can contain its keys."""
        bounds = self.chosen(some)
        start, stop = meeting(merge(intervals), bounds.least, bounds.greatest)
        return (start < stop) | ~bounds.known

    def over(self, other: KeyBounds, keyed: Sequence[Counts]) -> KeyBounds:
        """Merges two `KeyBounds` of the same locations, each for a different set of rows.

        Args:
            other: the bounds of the second set of rows.
            keyed: two arrays, int64[m]: for each location, the number of rows with a key in the
                first and in the second set of rows.
        """
        pairs = zip((self, other), keyed, strict=True)
        known = np.logical_and.reduce([one.known | (rows == 0) for one, rows in pairs])
        least = np.minimum(self.least, other.least)
        return KeyBounds(least, np.maximum(self.greatest, other.greatest)).only(known)


def with_bounds(schema: pa.Schema) -> pa.Schema:
    """Adds the columns named in `STORED_BOUNDS` to the schema of a stored file list."""
    return pa.schema([*schema, *((name, pa.list_(pa.int64())) for name in STORED_BOUNDS)])


def parse_bounds(table: pa.Table, counts: Counts) -> KeyBounds:
    """Decodes the bounds in a stored file list; the inverse of `KeyBounds.lists`.

    Args:
        table: the stored file list.
        counts: int64[n], the number of locations of each file.

    Raises:
        ValueError: the numbers of bounds and of locations differ, a bound is missing, or a least
            bound is above its greatest bound.
    """
    lists = [table[name].combine_chunks() for name in STORED_BOUNDS]
    lengths = [column.value_lengths().to_numpy(zero_copy_only=False) for column in lists]
    some = lengths[0] > 0
    if any(not np.array_equal(own, np.where(some, counts, 0)) for own in lengths):
        raise ValueError("the bounds of keys are not those of the locations")
    codes = [column.flatten() for column in lists]
    if any(column.null_count for column in codes):
        raise ValueError("a bound of keys is missing")
    found, of_some = KeyBounds.unknown(int(counts.sum())), np.repeat(some, counts)
    found.least[of_some], found.greatest[of_some] = (column.to_numpy() for column in codes)
    # The pair (GREATEST, LEAST) stands for unknown bounds. Any other pair with a least code above
    # its greatest code means that the list is damaged.
    none = ~found.known
    if np.any(found.least[none] != GREATEST) or np.any(found.greatest[none] != LEAST):
        raise ValueError("a least key is above its greatest key")
    return found
