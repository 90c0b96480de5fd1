"""Path list: the paths of many files in one buffer, without a Python object for each path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sieve.arrays.dtypes import Counts, Flags

_AT_ONCE: Final = 1 << 14
"""An iteration over a list decodes this number of strings at a time."""


class PathList(Sequence[str]):
    """An immutable sequence of strings; it equals any other sequence of the same strings.

    Args:
        array: the strings, without nulls.
    """

    __slots__ = ("array",)

    def __init__(self, array: pa.LargeStringArray) -> None:
        self.array = array

    @classmethod
    def of(cls, paths: Iterable[str]) -> PathList:
        """Converts strings to a `PathList`; returns a `PathList` unchanged."""
        return paths if isinstance(paths, cls) else cls(pa.array(paths, pa.large_string()))

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> PathList: ...
    def __getitem__(self, place: int | slice) -> str | PathList:
        found: Any = self.array[place]
        return PathList(found) if isinstance(place, slice) else str(found.as_py())

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self.array), _AT_ONCE):
            yield from self.array.slice(first, _AT_ONCE).to_pylist()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return bool(self.array.equals(PathList.of(other).array))

    __hash__ = None  # type: ignore[assignment]

    @property
    def is_distinct(self) -> bool:
        """Whether all paths of the list differ."""
        # Most listings are sorted. In a sorted list, comparing each path with the next one takes a
        # tenth of the time that `unique` takes.
        ascends = pc.all(pc.less(self.array[:-1], self.array[1:])).as_py()
        return ascends or len(pc.unique(self.array)) == len(self.array)

    def chosen(self, which: Flags) -> PathList:
        """Returns the paths whose flag in ``which``, bool[n], is true."""
        return PathList(self.array.filter(pa.array(which)))

    def at(self, places: Counts) -> PathList:
        """Returns the paths at the positions ``places``, int64[k]."""
        return PathList(self.array.take(pa.array(places)))

    def within(self, others: PathList) -> Flags:
        """Returns, for each path, whether the list ``others`` contains the path, bool[n]."""
        found: Flags = pc.is_in(self.array, others.array).to_numpy(zero_copy_only=False)
        return found

    def places_in(self, others: PathList) -> Counts:
        """Returns the position of each path in the list ``others``, int64[n].

        The paths of ``others`` must be distinct. The position of a path that ``others`` lacks is
        -1.
        """
        found = pc.fill_null(pc.index_in(self.array, others.array), -1)
        places: Counts = found.to_numpy(zero_copy_only=False).astype(np.int64)
        return places

    def repeated(self) -> PathList:
        """Returns the paths that occur more than once; the result contains each path once."""
        if self.is_distinct:
            return concat_paths([])
        counted = pc.value_counts(self.array)
        return PathList(counted.field(0).filter(pc.greater(counted.field(1), 1)))

    def numbered(self) -> Counts:
        """Returns a number for each path, int64[n]; equal paths have the same number.

        Distinct paths are numbered from 0 in the order of their first occurrence.
        """
        numbers: Counts = self.array.dictionary_encode().indices.to_numpy().astype(np.int64)
        return numbers


def concat_paths(lists: Sequence[PathList]) -> PathList:
    """Concatenates path lists, in the order of ``lists``."""
    return PathList(
        pa.concat_arrays([pa.array([], pa.large_string()), *(one.array for one in lists)])
    )
