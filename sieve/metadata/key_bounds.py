"""Key bounds: the least and greatest key code of each location, whatever the shape of the index.

A shape can widen the keys of a location to whole cells, or to one interval. The bounds are exact:
some row of the location has the least code, and some row has the greatest code. So queries with
MIN, MAX, or ORDER BY and LIMIT read few locations. A range query reads no more locations than it
would read with min/max statistics of each location.
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
"""The columns of a stored list. Each row lists the codes of the file's locations."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyBounds:
    """The exact bounds of m locations.

    Attributes:
        least, greatest: int64[m], the extreme key codes of each location. If a location has no keys
            or its bounds are unknown, ``least`` is GREATEST and ``greatest`` is LEAST.
    """

    least: Codes
    greatest: Codes

    @classmethod
    def unknown(cls, m: int) -> KeyBounds:
        """Unknown bounds of m locations."""
        return cls(np.full(m, GREATEST, np.int64), np.full(m, LEAST, np.int64))

    @classmethod
    def concat(cls, lists: Sequence[KeyBounds]) -> KeyBounds:
        """Concatenates one or more lists in order."""
        ends = [[getattr(one, name) for one in lists] for name in STORED_BOUNDS]
        return cls(*(np.concatenate(column) for column in ends))

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.least.nbytes + self.greatest.nbytes

    @property
    def known(self) -> Flags:
        """bool[m]: the locations that have bounds."""
        known: Flags = self.least <= self.greatest
        return known

    def chosen(self, which: Flags | Places) -> KeyBounds:
        """The bounds of the locations that flags or positions select."""
        return KeyBounds(self.least[which], self.greatest[which])

    def only(self, which: Flags) -> KeyBounds:
        """A copy that keeps the bounds of flagged locations; the other bounds become unknown."""
        least, greatest = self.least, self.greatest
        return KeyBounds(np.where(which, least, GREATEST), np.where(which, greatest, LEAST))

    def falling(self) -> KeyBounds:
        """The same bounds with negated codes, for a descending order."""
        return KeyBounds(~self.greatest, ~self.least)

    def lists(self, counts: Counts) -> list[pa.ListArray]:
        """The columns named in `STORED_BOUNDS`; the list of a file without known bounds is empty.

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
        """Returns, for each file, whether its locations have the same bounds in both lists.

        Args:
            other: the bounds of the same locations in another list.
            counts: int64[k], the number of locations of each file, 1 or more.
        """
        equal: Flags = (self.least == other.least) & (self.greatest == other.greatest)
        firsts = np.cumsum(counts) - counts
        return np.logical_and.reduceat(equal, firsts) if len(counts) else equal

    def meet(self, intervals: CodeIntervals, some: Places) -> Flags:
        """Returns, for each location in ``some``, whether its keys can be in an interval."""
        bounds = self.chosen(some)
        start, stop = meeting(merge(intervals), bounds.least, bounds.greatest)
        return (start < stop) | ~bounds.known

    def over(self, other: KeyBounds, keyed: Sequence[Counts]) -> KeyBounds:
        """Merges bounds that cover two parts of the rows of the same locations.

        Args:
            other: the bounds of the other part.
            keyed: the number of rows with a key, int64[m], for this part and for the other part.
        """
        pairs = zip((self, other), keyed, strict=True)
        known = np.logical_and.reduce([one.known | (rows == 0) for one, rows in pairs])
        least = np.minimum(self.least, other.least)
        return KeyBounds(least, np.maximum(self.greatest, other.greatest)).only(known)


def with_bounds(schema: pa.Schema) -> pa.Schema:
    """Extends the schema of a stored list by the columns of `STORED_BOUNDS`."""
    return pa.schema([*schema, *((name, pa.list_(pa.int64())) for name in STORED_BOUNDS)])


def parse_bounds(table: pa.Table, counts: Counts) -> KeyBounds:
    """The inverse of `KeyBounds.lists`.

    Args:
        table: a stored list.
        counts: int64[n], the number of locations of each file.

    Raises:
        ValueError: the bounds do not fit the locations.
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
    # A least code above the greatest code is damage, unless the pair stands for unknown bounds.
    none = ~found.known
    if np.any(found.least[none] != GREATEST) or np.any(found.greatest[none] != LEAST):
        raise ValueError("a least key is above its greatest key")
    return found
