"""Packed cuts: the byte offsets that cut files into ranges, compressed for access by file.

An answer to a scan needs cuts only of files that the scan reads in part. A succinct rank structure
finds the file of a range. The structure stores the first range of each page of files, and the
number of ranges of each file in the page. Example, with pages of two files: if four files have 1,
3, 2 and 2 ranges, ``first`` is 0, 4, 8. The second page contains the ranges 4 to 7, and its files
have two ranges each. In the example, range 6 is the first range of the fourth file.
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
"""The number of files in a page. Adding up the range counts of all files in a page takes some
microseconds."""

# If more than one in `_DENSE` ranges is flagged, it is faster to find the files of all ranges
# together than to search for each flagged range.
_DENSE: Final = 16


@dataclass(frozen=True, slots=True, eq=False)
class FileParts:
    """The files of which a scan reads some ranges and skips others.

    Attributes:
        numbers: int64[k], number of each file, ascending.
        counts: int64[k], number of ranges in each file, 2 or more.
        footers: int64[k], length of each file's footer in bytes.
        sizes: int64, length of each range in bytes, one file after another, without each file's
            last range.
        skip: bool[sum of counts], True for each range that the scan skips.
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
    """The cuts of n files, which are divided into p pages.

    Attributes:
        n: number of files.
        counts: unsigned[p, PAGE], number of ranges in each file; 0 after the last file.
        first: int64[p + 1], position of each page's first range, then the total number of ranges.
        footers: length of each file's footer in bytes.
        sizes: length of each range in bytes, without each file's last range.
    """

    n: int
    counts: npt.NDArray[np.unsignedinteger[Any]]
    first: Counts
    footers: FramedColumn
    sizes: FramedColumn

    @classmethod
    def of(cls, cut_counts: Counts, footers: Counts, cuts: Counts) -> PackedCuts:
        """Packs three columns of a `sieve.reader.packed_files.Files` with at least one file."""
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
        """The size of the arrays in bytes."""
        columns = self.footers.nbytes + self.sizes.nbytes
        return self.counts.nbytes + self.first.nbytes + columns

    def same(self, other: PackedCuts) -> bool:
        """Returns whether cuts and footers are equal.

        Each file must have the same number of cuts in both lists.
        """
        return self.footers.same(other.footers) and self.sizes.same(other.sizes)

    def unpacked(self) -> tuple[Counts, Counts]:
        """Returns the lengths of all files' footers, and the cuts of all files."""
        cut_counts = self._counts.astype(np.int64) - 1
        sizes = self.sizes.take(np.arange(int(self.first[-1]) - self.n))
        # The sums can overflow, but their differences are nevertheless exact.
        total = np.append(0, np.cumsum(sizes))
        before = total[np.cumsum(cut_counts) - cut_counts]
        return self.footers.take(np.arange(self.n)), total[1:] - np.repeat(before, cut_counts)

    def to_ranges(self, values: Counts) -> Counts:
        """Given a value for each file, returns for each range the value of its file."""
        return np.repeat(values, self._counts)

    def every(self, flags: Flags) -> Flags:
        """Given a flag for each range, returns bool[n]: whether all flags of a file are True."""
        every = np.ones(self.n, np.bool_)
        every[self._owners(~flags)[0]] = False
        return every

    def skipped(self, keep: Flags) -> tuple[Flags, FileParts]:
        """Returns bool[n], the files that a scan skips; and the files that the scan reads in part.

        Args:
            keep: a flag for each range: whether the scan reads it.
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
        """Returns the file of each flagged range, ascending, and the first range of this file."""
        ranges = np.flatnonzero(flags)
        if len(ranges) * _DENSE > len(flags):
            ends = np.cumsum(self._counts, dtype=np.int64)
            files = np.repeat(np.arange(self.n), self._counts)[ranges]
            return files, (ends - self._counts)[files]
        page = np.searchsorted(self.first, ranges, side="right") - 1
        pages = page[np.flatnonzero(np.append(True, page[1:] != page[:-1])[: len(page)])]
        # The position after the last range of each file in the pages.
        ends = np.cumsum(self.counts[pages], axis=1, dtype=np.int64) + self.first[pages, None]
        place = np.searchsorted(ends.reshape(-1), ranges, side="right")
        files = pages[place // PAGE] * PAGE + place % PAGE
        return files, ends.reshape(-1)[place] - self._counts[files]
