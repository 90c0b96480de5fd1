"""Packed cuts: the compressed offsets at which files are cut, readable file by file.

An answer to a scan contains cuts only for the files that the scan reads in part. Two levels map a
range to its file, as in a succinct rank structure. The first level stores the first range of each
page of files. The second level stores the number of ranges of each file in the page. Example: with
pages of two files, files of 1, 3, 2 and 2 ranges have ``first`` 0, 4, 8. Range 6 lies in the second
page, whose files end before the ranges 6 and 8, so range 6 is the first range of file 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Counts, Flags
from sieve.arrays.framed_column import FramedColumn
from sieve.arrays.interval_set import spelled_out

PAGE: Final = 1024
"""The number of files in a page. Counting the ranges of so many files takes some microseconds."""

# If more than one range in `_DENSE` is flagged, counting all ranges is faster than a search for
# each flagged range.
_DENSE: Final = 16


@dataclass(frozen=True, slots=True, eq=False)
class FileParts:
    """The files that a scan reads in part, because some of their ranges are skipped.

    Attributes:
        numbers: int64[k], the number of each file, ascending.
        counts: int64[k], ranges of each file, 2 or more.
        footers: int64[k], bytes of each footer.
        sizes: int64, bytes of each range except the last range of each file, file after file.
        skip: bool[sum of counts], ranges that are skipped.
    """

    numbers: Counts
    counts: Counts
    footers: Counts
    sizes: Counts
    skip: Flags


_NONE: Final = np.zeros(0, np.int64)
NO_PARTS: Final = FileParts(_NONE, _NONE, _NONE, _NONE, np.zeros(0, np.bool_))


@dataclass(frozen=True, slots=True, eq=False)
class PackedCuts:
    """The cuts of n files in p pages.

    Attributes:
        n: number of files.
        counts: unsigned[p, PAGE], ranges of each file; 0 after the last file.
        first: int64[p + 1], the first range of each page, and at the end the total number of
            ranges.
        footers: bytes of the footer of each file.
        sizes: bytes of each range except the last range of each file.
    """

    n: int
    counts: npt.NDArray[np.unsignedinteger[Any]]
    first: Counts
    footers: FramedColumn
    sizes: FramedColumn

    @classmethod
    def of(cls, cut_counts: Counts, footers: Counts, cuts: Counts) -> PackedCuts:
        """Packs columns of `sieve.reader.packed_files.Files`; requires at least one file."""
        n, ends = len(cut_counts), np.cumsum(cut_counts)
        starts = (ends - cut_counts)[cut_counts > 0]
        sizes = np.diff(cuts, prepend=0)
        sizes[starts] = cuts[starts]
        borders = np.append(np.arange(0, n, PAGE), n)
        counts = np.zeros((len(borders) - 1, PAGE), np.min_scalar_type(int(cut_counts.max()) + 1))
        counts.reshape(-1)[:n] = cut_counts + 1
        first = np.append(0, ends)[borders] + borders
        return cls(n, counts, first, FramedColumn.of(footers), FramedColumn.of(sizes))

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        columns = self.footers.nbytes + self.sizes.nbytes
        return self.counts.nbytes + self.first.nbytes + columns

    def same(self, other: PackedCuts) -> bool:
        """Returns whether cuts and footers are equal; the cuts per file must already be equal."""
        return self.footers.same(other.footers) and self.sizes.same(other.sizes)

    def unpacked(self) -> tuple[Counts, Counts]:
        """Footers and cuts of all files."""
        cut_counts = self._counts.astype(np.int64) - 1
        sizes = self.sizes.take(np.arange(int(self.first[-1]) - self.n))
        # The sums can wrap around, but their differences are exact.
        total = np.append(0, np.cumsum(sizes))
        before = total[np.cumsum(cut_counts) - cut_counts]
        return self.footers.take(np.arange(self.n)), total[1:] - np.repeat(before, cut_counts)

    def to_ranges(self, values: Counts) -> Counts:
        """Copies the value of each file to each range of the file."""
        return np.repeat(values, self._counts)

    def every(self, flags: Flags) -> Flags:
        """Returns bool[n]: True for a file if all its ranges have the flag."""
        every = np.ones(self.n, np.bool_)
        every[self._owners(~flags)[0]] = False
        return every

    def skipped(self, keep: Flags) -> tuple[Flags, FileParts]:
        """Returns the files without a range to read, bool[n], and the files to read in part.

        Args:
            keep: a flag for each range.
        """
        owners, firsts = self._owners(keep)
        whole = np.ones(self.n, np.bool_)
        whole[owners] = False
        begins = np.flatnonzero(np.append(True, owners[1:] != owners[:-1])[: len(owners)])
        files, first = owners[begins], firsts[begins]
        counts = self._counts[files].astype(np.int64)
        partly = np.diff(begins, append=len(owners)) < counts
        files, first, counts = files[partly], first[partly], counts[partly]
        cut = first - files
        return whole, FileParts(
            files,
            counts,
            self.footers.take(files),
            self.sizes.take(spelled_out(cut, cut + counts - 1)),
            ~keep[spelled_out(first, first + counts)],
        )

    @property
    def _counts(self) -> npt.NDArray[np.unsignedinteger[Any]]:
        return self.counts.reshape(-1)[: self.n]

    def _owners(self, flags: Flags) -> tuple[Counts, Counts]:
        """Returns the file of each flagged range, and the first range of that file, ascending."""
        ranges = np.flatnonzero(flags)
        if len(ranges) * _DENSE > len(flags):
            ends = np.cumsum(self._counts, dtype=np.int64)
            files = np.repeat(np.arange(self.n), self._counts)[ranges]
            return files, (ends - self._counts)[files]
        page = np.searchsorted(self.first, ranges, side="right") - 1
        pages = page[np.flatnonzero(np.append(True, page[1:] != page[:-1])[: len(page)])]
        # The end of each file in these pages, page by page.
        ends = np.cumsum(self.counts[pages], axis=1, dtype=np.int64) + self.first[pages, None]
        place = np.searchsorted(ends.reshape(-1), ranges, side="right")
        files = pages[place // PAGE] * PAGE + place % PAGE
        return files, ends.reshape(-1)[place] - self._counts[files]
