"""File ranges: the byte ranges into which a version divides its large files.

Each range is a location of the index, and Spark can read it as one split. A Parquet range contains
the row groups whose middle byte is in the range. An ORC range contains the stripes that start in
the range. A text range contains the lines that start in the range. If the ranges cover a file
without overlap, each row of the file is in exactly one range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sieve.arrays.dtypes import Counts, Flags

COUNTED: Final = ("rows", "nulls", "nans")
"""The names of the row counts that each range has."""

STORED: Final = ("cuts", *(f"range_{name}" for name in COUNTED))
"""The columns of a stored file list that describe the ranges: the start of each range except a
file's first range, and the row counts of each range."""

FOOTER: Final = "footer"
"""The column of a stored file list that contains `FileRanges.footers`. The columns of `STORED`
follow this column."""


@dataclass(frozen=True, slots=True, eq=False)
class FileRanges:
    """The m ranges of n files, in the order of the files.

    Attributes:
        counts: int64[n], the number of ranges of each file; 1 if the file is one location.
        footers: int64[n], the size in bytes of each file's footer, which a reader reads again for
            each range. The size is 0 for text files, and for files that are one location.
        starts: int64[m], the offset of each range's first byte, 0 for the first range of a file. A
            range ends where the next range of its file starts; the last range ends with the file.
        rows: int64[m], the number of rows of each range.
        nulls: int64[m], the number of each range's rows whose value is NULL.
        nans: int64[m], the number of each range's rows whose value is NaN.
    """

    counts: Counts
    footers: Counts
    starts: Counts
    rows: Counts
    nulls: Counts
    nans: Counts

    @property
    def nbytes(self) -> int:
        """The size of the ranges in memory, in bytes."""
        return 2 * self.counts.nbytes + 4 * self.starts.nbytes

    @property
    def owners(self) -> Counts:
        """For each range, the position of its file among the n files, int64[m]."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @property
    def firsts(self) -> Counts:
        """For each file, the position of its first range among the m ranges, int64[n]."""
        return np.cumsum(self.counts) - self.counts

    @property
    def within(self) -> Counts:
        """For each range, its position among the ranges of its file, int64[m]."""
        return np.arange(len(self.starts)) - np.repeat(self.firsts, self.counts)

    def cuts_of(self, files: Counts) -> tuple[tuple[int, ...], ...]:
        """Returns, for each file in ``files``, int64[k], the starts of its later ranges.

        The first range of every file starts at 0, so the result omits this start.
        """
        firsts, counts = self.firsts[files].tolist(), self.counts[files].tolist()
        return tuple(
            tuple(self.starts[first + 1 : first + count].tolist())
            for first, count in zip(firsts, counts, strict=True)
        )

    def chosen(self, which: npt.NDArray[np.bool_]) -> FileRanges:
        """Returns the ranges of the files whose flag in ``which``, bool[n], is true."""
        of_them = np.repeat(which, self.counts)
        columns = (column[of_them] for column in self._columns())
        return FileRanges(self.counts[which], self.footers[which], *columns)

    def _columns(self) -> tuple[Counts, ...]:
        return self.starts, self.rows, self.nulls, self.nans

    def positions(self, files: Counts) -> Counts:
        """Returns the positions of all ranges of ``files``, int64[k], in the order of ``files``."""
        firsts, counts = self.firsts[files], self.counts[files]
        before = np.cumsum(counts) - counts
        places: Counts = np.arange(int(counts.sum())) + np.repeat(firsts - before, counts)
        return places

    def same(self, files: Counts, other: FileRanges, others: Counts) -> Flags:
        """Returns, for each file, whether ``other`` has the same ranges with the same row counts.

        Args:
            files: int64[k], positions of k files in this object.
            other: the ranges to compare with.
            others: int64[k], the positions of the same k files in ``other``.
        """
        same: Flags = self.counts[files] == other.counts[others]
        same &= self.footers[files] == other.footers[others]
        some = np.flatnonzero(same)
        here, there = self.positions(files[some]), other.positions(others[some])
        pairs = zip(self._columns(), other._columns(), strict=True)
        equal = np.logical_and.reduce([one[here] == two[there] for one, two in pairs])
        if len(some):
            counts = self.counts[files[some]]
            same[some] = np.logical_and.reduceat(equal, np.cumsum(counts) - counts)
        return same


def whole_files(rows: Counts, nulls: Counts, nans: Counts) -> FileRanges:
    """Returns the ranges of n files, one range per file, with the given row counts, int64[n]."""
    ones, zeros = np.ones(len(rows), np.int64), np.zeros(len(rows), np.int64)
    return FileRanges(ones, zeros, zeros, rows, nulls, nans)


def concat_ranges(lists: Sequence[FileRanges]) -> FileRanges:
    """Concatenates the ranges in ``lists``, which contains one or more items."""
    columns = zip(
        *((one.counts, one.footers, *one._columns()) for one in lists),  # noqa: SLF001 - own class
        strict=True,
    )
    return FileRanges(*(np.concatenate(column) for column in columns))


def range_lists(ranges: FileRanges) -> list[pa.ListArray]:
    """Returns the columns named in `STORED`; each column has one list per file.

    If a file is one location, its lists are empty.
    """
    several = ranges.counts > 1
    of_several, first = np.repeat(several, ranges.counts), ranges.within == 0
    counted = [(getattr(ranges, name)[of_several], ranges.counts) for name in COUNTED]
    cuts = (ranges.starts[of_several & ~first], ranges.counts - 1)
    return [
        pa.ListArray.from_arrays(
            pa.array(np.append(0, np.cumsum(np.where(several, counts, 0))), pa.int32()),
            pa.array(values, pa.int64()),
        )
        for values, counts in (cuts, *counted)
    ]


def parse_ranges(
    lists: Mapping[str, pa.ListArray], footers: Counts, lengths: Counts, counts: Sequence[Counts]
) -> FileRanges | None:
    """Decodes the ranges in a stored file list; the inverse of `range_lists`.

    Args:
        lists: a mapping from column name to column, with ``cuts`` and the counts named in
            `COUNTED`. The caller can omit a count that is 0 in all files.
        footers: the column `FOOTER`.
        lengths: int64[n], the length of each file in bytes, or the greatest 64-bit integer if the
            length is unknown.
        counts: for each name in `COUNTED`, an array with the count of each file, int64[n].

    Returns:
        The decoded ranges, or None if each file is one location.

    Raises:
        ValueError: a file's ranges overlap or leave a gap, the ranges' counts do not add up to the
            file's count, or a footer is longer than its file.
    """
    cuts = lists["cuts"]
    n_cuts = cuts.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    several = n_cuts > 0
    if not several.any():
        return None
    ends = np.cumsum(n_cuts + 1)
    is_first = np.zeros(int(ends[-1]), np.bool_)
    is_first[ends - n_cuts - 1] = True
    starts = np.zeros(len(is_first), np.int64)
    starts[~is_first] = cuts.flatten().to_numpy()
    of_several = np.repeat(several, n_cuts + 1)
    columns = []
    for name, whole in zip(COUNTED, counts, strict=True):
        lists_of = lists.get(name)
        if lists_of is None:
            columns.append(np.zeros(len(starts), np.int64))
            continue
        own = lists_of.value_lengths().to_numpy(zero_copy_only=False)
        if not np.array_equal(own, np.where(several, n_cuts + 1, 0)):
            raise ValueError("the counts of ranges are not those of the cuts")
        column = np.repeat(whole, n_cuts + 1)
        column[of_several] = lists_of.flatten().to_numpy()
        totals = np.add.reduceat(column, ends - n_cuts - 1)
        if column.min(initial=0) < 0 or not np.array_equal(totals, whole):
            raise ValueError("the counts of ranges do not add up to those of their file")
        columns.append(column)
    if not ((footers >= 0) & (footers <= np.where(several, lengths, 0))).all():
        raise ValueError("a footer is longer than its file")
    ranges = FileRanges(n_cuts + 1, footers, starts, *columns)
    after = np.append(starts[1:], 0)
    after[ends - 1] = np.where(several, lengths, 1)
    if not (starts < after)[of_several].all():
        raise ValueError("the ranges of a file do not tile it")
    return ranges
