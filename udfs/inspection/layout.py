"""Converts an index's entries to a raster of files and keys for a picture.

An index can have millions of entries, so the picture shows a raster. Each row of the raster stands
for one or more files, sorted by their least key. Each column stands for an interval of keys. The
value of a cell is the share of the cell's area that entries cover.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sieve.arrays.dtypes import Numbers, Offsets
from sieve.segments.coverage import Coverage, disjoint
from sieve.segments.entries import Entries
from udfs.inspection.axis import KeyAxis

_VISIBLE: Final = 0.3
_NOTHING: Final = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class FileLayout:
    """The files that contain keys, sorted by their least key.

    Attributes:
        paths: the paths of the f files.
        entries: the index's entries; each entry's location is a position in `paths`.
        spans: one interval for each file, from the file's least to its greatest key in the index.
        axis: maps key codes to horizontal positions.
        without: number of files that contain no key; the picture omits these files.
    """

    paths: tuple[str, ...]
    entries: Entries
    spans: Entries
    axis: KeyAxis
    without: int

    def width(self) -> Numbers:
        """Returns float64[f]: the share of the axis between each file's least and greatest key."""
        return self.axis.end(self.spans.high) - self.axis.begin(self.spans.low)

    def covered(self) -> Numbers:
        """Returns float64[f]: the share of the axis that each file's entries cover."""
        sizes = self.axis.end(self.entries.high) - self.axis.begin(self.entries.low)
        return np.bincount(self.entries.location, sizes, len(self.paths)).astype(np.float64)


def lay_out(entries: Entries, paths: Sequence[str]) -> FileLayout | None:
    """Returns the layout of an index's files, or None if no file contains a key.

    Args:
        entries: the entries of all runs of the index, in any order.
        paths: the paths of all locations of the index.
    """
    low, high, location = disjoint(entries)
    if len(low) == 0:
        return None
    start = np.flatnonzero(np.append(True, location[1:] != location[:-1]))
    end = np.append(start[1:], len(low)) - 1
    least, greatest, ordinal = low[start], high[end], location[start]
    order = np.lexsort((greatest, least))
    place = np.zeros(len(paths), np.int32)
    place[ordinal[order]] = np.arange(len(order), dtype=np.int32)
    return FileLayout(
        tuple(paths[k] for k in ordinal[order].tolist()),
        Entries(low, high, place[location]),
        Entries(least[order], greatest[order], np.arange(len(order), dtype=np.int32)),
        KeyAxis.over(low, high),
        len(paths) - len(order),
    )


def raster(entries: Entries, axis: KeyAxis, n_files: int, rows: int, columns: int) -> Numbers:
    """Returns the share of each raster cell that entries cover.

    If a file's entries touch a column, at least the share `_VISIBLE` of the column counts as
    covered. So single keys are visible.

    Returns:
        float64[rows, columns], 0 to 1.
    """
    begin, end, head, tail = _columns(entries, axis, columns)
    # Several entries of a file can touch the same column. So the code computes the cells of each
    # file separately, for a small batch of files at a time.
    order = np.argsort(entries.location, kind="stable")
    location = entries.location[order].astype(np.int64)
    drawn = np.zeros((rows, columns))
    step = max(1, (1 << 22) // columns)
    for first in range(0, n_files, step):
        few = slice(*np.searchsorted(location, [first, first + step]))
        some, file = order[few], location[few] - first
        n = min(step, n_files - first)
        covered, touched = np.zeros((n, columns + 1)), np.zeros((n, columns + 1), np.int32)
        np.add.at(touched, (file, begin[some]), 1)
        np.add.at(touched, (file, end[some] + 1), -1)
        # An entry can cover its first and last column only in part. Subtracts the uncovered parts.
        for at, part in ((begin, 1 - head), (end, 1 - tail)):
            np.add.at(covered, (file, at[some]), -part[some])
            np.add.at(covered, (file, at[some] + 1), part[some])
        touched, covered = np.cumsum(touched, axis=1), np.cumsum(covered, axis=1)
        share = np.where(touched > 0, np.clip(touched + covered, _VISIBLE, 1), 0)
        np.add.at(drawn, np.arange(first, first + n) * rows // n_files, share[:, :columns])
    return drawn / np.bincount(np.arange(n_files) * rows // n_files)[:, None]


def reads(entries: Entries, axis: KeyAxis, columns: int) -> tuple[Numbers, Numbers]:
    """Returns the mean and maximum number of files that a query for a key of each column reads.

    Returns:
        Two float64[columns]; NaN in columns that no entry touches.
    """
    coverage = Coverage.of(entries)
    begin, end, head, tail = _columns(coverage, axis, columns)
    sums, weights = np.zeros(columns + 1), np.zeros(columns + 1)
    most = np.zeros(columns)
    for into, times in ((weights, 1), (sums, coverage.locations)):
        np.add.at(into, begin, times)
        np.add.at(into, end + 1, -times)
        for at, part in ((begin, 1 - head), (end, 1 - tail)):
            np.add.at(into, at, -part * times)
            np.add.at(into, at + 1, part * times)
    np.maximum.at(most, begin, coverage.locations)
    np.maximum.at(most, end, coverage.locations)
    # The intervals of `Coverage` are disjoint, so at most one of them covers a whole column.
    for k in np.flatnonzero(end > begin + 1).tolist():
        inner = most[begin[k] + 1 : end[k]]
        np.maximum(inner, coverage.locations[k], out=inner)
    sums, weights = np.cumsum(sums)[:columns], np.cumsum(weights)[:columns]
    mean = np.clip(sums / np.maximum(weights, _NOTHING), 1, most)
    # A weight up to `_NOTHING` may be a rounding error, so the maximum then replaces the mean.
    mean = np.where(weights > _NOTHING, mean, most)
    return np.where(most > 0, mean, np.nan), np.where(most > 0, most, np.nan)


def _columns(
    of: Entries | Coverage, axis: KeyAxis, columns: int
) -> tuple[Offsets, Offsets, Numbers, Numbers]:
    """Returns each interval's first and last column, and the share of each column that it covers.

    An interval inside a single column covers the sum of its two shares, minus one.
    """
    low, high = (of.low, of.high) if isinstance(of, Entries) else (of.first, of.last)
    start, stop = axis.begin(low) * columns, axis.end(high) * columns
    begin = np.minimum(start.astype(np.int64), columns - 1)
    end = np.clip(np.ceil(stop).astype(np.int64) - 1, begin, columns - 1)
    return begin, end, begin + 1 - start, stop - end
