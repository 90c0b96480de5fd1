"""Tiling: divides files into locations; each location is a file or a byte range of a large file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np

from sieve.arrays.dtypes import Counts, Flags
from sieve.metadata.file_list import FileState, Locations
from sieve.metadata.file_ranges import FileRanges
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.key_bounds import KeyBounds
from sieve.metadata.text_formats import TEXT_FORMATS
from sieve.tables.data_file import DataFile
from sieve.tables.formats import reads_whole_files
from sieve.tables.table import CatalogTable

LEAST_RANGE: Final = 1 << 20
"""The minimum size of a range in bytes; a range consists of neighbouring row groups or stripes. If
`range_bytes` is smaller than this constant, `range_bytes` applies. To read a range, a query must
open the file and read its footer, so smaller ranges would not be worthwhile."""

_LEAST_OF_TEXT: Final = 100
"""The minimum size of a range of a text file in bytes, even if `range_bytes` is smaller."""


@dataclass(frozen=True, slots=True, eq=False)
class Tiling:
    """n files, divided into m ranges. Each range is a location.

    Attributes:
        lengths: int64[n], length of each file in bytes.
        cuts: for each file, the ascending byte offsets at which ranges begin, except 0. A file
            without offsets is one location.
        footers: int64[n], length of the footer of each file with cuts, in bytes; 0 for other files.
    """

    lengths: Counts
    cuts: tuple[tuple[int, ...], ...]
    footers: Counts

    @property
    def counts(self) -> Counts:
        """int64[n], number of ranges in each file."""
        return np.array([len(some) + 1 for some in self.cuts], np.int64)

    @property
    def owners(self) -> Counts:
        """int64[m], for each range, the position of its file among the files, ascending."""
        return np.repeat(np.arange(len(self.cuts)), self.counts)

    @property
    def firsts(self) -> Counts:
        """int64[n], for each file, the position of its first range among all ranges."""
        return np.cumsum(self.counts) - self.counts

    @property
    def within(self) -> Counts:
        """int64[m], position of each range among the ranges of its file."""
        return np.arange(int(self.counts.sum())) - self.firsts[self.owners]

    @property
    def starts(self) -> Counts:
        """int64[m], offset of each range's first byte."""
        every = chain.from_iterable((0, *some) for some in self.cuts)
        return np.fromiter(every, np.int64, int(self.counts.sum()))

    @property
    def sizes(self) -> Counts:
        """int64[m], length of each range in bytes."""
        ends = chain.from_iterable(
            (*some, length) for some, length in zip(self.cuts, self.lengths.tolist(), strict=True)
        )
        return np.fromiter(ends, np.int64, int(self.counts.sum())) - self.starts

    @property
    def is_cut(self) -> bool:
        """Whether at least one file has several ranges."""
        return any(self.cuts)

    def chosen(self, files: Sequence[int]) -> Tiling:
        """The tiling of some of the files."""
        some = [*files]
        return Tiling(self.lengths[some], tuple(self.cuts[k] for k in some), self.footers[some])

    def of_files(self, counts: Counts) -> Counts:
        """Given a count for each range, returns int64[n]: each file's sum over its ranges."""
        total: Counts = np.add.reduceat(counts, self.firsts) if len(self.cuts) else counts
        return total

    @property
    def whole(self) -> Tiling:
        """The tiling of the same files in which each file is one location."""
        return whole_files(self.lengths.tolist())


def whole_files(lengths: Sequence[int]) -> Tiling:
    """Returns the tiling of files in which each file is one location."""
    n = len(lengths)
    return Tiling(np.array(lengths, np.int64), ((),) * n, np.zeros(n, np.int64))


def tile(
    table: CatalogTable,
    numbers: Sequence[int],
    files: Sequence[DataFile],
    options: IndexOptions,
    range_bytes: int,
) -> Tiling:
    """Divides the files that a build reads into locations.

    Args:
        numbers: the files' positions in the most recent list of the table's files.
        files: the files that the build reads.
        options: the options of the index. With the granularity ``file``, each file is one location.
        range_bytes: a file smaller than this number of bytes is one location; text files are
            divided at each multiple of this number.
    """
    whole, info = whole_files([file.length for file in files]), table.info
    is_text = info.format_name in TEXT_FORMATS
    if options.granularity == "file" or reads_whole_files(info.format_name, info.fingerprint_parts):
        return whole
    large = [k for k, file in enumerate(files) if file.length >= range_bytes]
    if not large:
        return whole
    cuts, footers = list(whole.cuts), whole.footers.copy()
    least = min(LEAST_RANGE, range_bytes)
    for k, some in zip(large, table.cuts([numbers[k] for k in large], least), strict=True):
        if some is not None:
            step = max(range_bytes, _LEAST_OF_TEXT)
            at_steps = tuple(range(step, files[k].length - least, step))
            cuts[k] = at_steps if is_text else some.offsets
            footers[k] = some.footer if cuts[k] else 0
    return Tiling(whole.lengths, tuple(cuts), footers)


def locations_of(
    files: Sequence[DataFile],
    tiling: Tiling,
    counts: Sequence[Counts],
    proven: Flags,
    first_slot: int | None,
    bounds: KeyBounds | None = None,
) -> Locations:
    """Returns the rows of the file list for the files that a build read.

    Args:
        counts: the counts of rows, NULLs and NaNs in each range.
        proven: bool[n], whether the build read a file completely and the file did not change
            meanwhile.
        first_slot: the slot of the first range; None if the files are in no run.
        bounds: the least and greatest key of each range.
    """
    columns = [np.where(proven[tiling.owners], column, 0) for column in counts]
    rows, nulls, nans = map(tiling.of_files, columns)
    slots = np.full(len(files), -1) if first_slot is None else first_slot + tiling.firsts
    return Locations(
        tuple(file.path for file in files),
        np.where(proven, FileState.READ, FileState.UNPROVEN).astype(np.int8),
        np.where(proven, tiling.lengths, 0),
        np.array([file.mtime for file in files], np.int64),
        rows,
        nulls,
        nans,
        slots,
        ranges=FileRanges(tiling.counts, tiling.footers, tiling.starts, *columns)
        if tiling.is_cut
        else None,
        bounds=bounds and bounds.only(proven[tiling.owners]),
    )
