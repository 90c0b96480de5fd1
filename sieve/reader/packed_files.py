"""Packed files: the compressed list of the files of a version or a numbering.

Look-ups need no paths. The front end sends paths to the driver compressed, and unpacks paths only
to number the files of several versions together. ``sql_ext/frontend/pruning.py`` describes the
layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from sieve.arrays.dtypes import Counts, Flags
from sieve.metadata.path_list import PathList
from sieve.reader.packed_cuts import NO_PARTS, FileParts, PackedCuts

_CODEC: Final = "zstd"


@dataclass(frozen=True, slots=True, eq=False)
class Files:
    """The files of a version: path, length, time, and the offsets at which a file is cut.

    Attributes:
        paths: absolute qualified URIs.
        lengths: int64[n], bytes, or a `FileState` instead; see `Locations.stored_lengths`.
        times: int64[n], modification times, ms since the epoch.
        cut_counts: int64[n], the number of cuts of each file; k cuts make k + 1 ranges.
        footers: int64[n], bytes of the footer of each cut file; 0 for other files.
        cuts: int64, the offsets at which files are cut, ascending, file after file.
    """

    paths: PathList
    lengths: Counts
    times: Counts
    cut_counts: Counts
    footers: Counts
    cuts: Counts

    @property
    def range_owners(self) -> Counts:
        """int64[m]: the file of each range."""
        return np.repeat(np.arange(len(self.paths)), self.cut_counts + 1)

    @property
    def range_starts(self) -> Counts:
        """int64[m]: the first byte of each range."""
        counts = self.cut_counts + 1
        starts = np.zeros(int(counts.sum()), np.int64)
        is_cut = np.ones(len(starts), np.bool_)
        is_cut[np.cumsum(counts) - counts] = False
        starts[is_cut] = self.cuts
        return starts

    def packed(self) -> PackedFiles:
        """The compressed form of these files."""
        array = self.paths.array
        offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset :][: len(array) + 1]
        rows = np.stack([self.lengths, self.times, self.cut_counts, np.diff(offsets)], axis=1)
        text = array.buffers()[2] or pa.py_buffer(b"")
        texts = text.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
        cuts = None
        if len(self.cuts):
            cuts = PackedCuts.of(self.cut_counts, self.footers, self.cuts)
        return PackedFiles(
            n=len(self.paths),
            is_distinct=self.paths.is_distinct,
            n_text=len(texts),
            rows=_zipped(pa.py_buffer(np.ascontiguousarray(rows, "<i8"))),
            text=_zipped(texts),
            cuts=cuts,
        )


@dataclass(frozen=True, slots=True, eq=False)
class PackedFiles:
    """Compressed `Files`.

    Attributes:
        n: number of files.
        is_distinct: whether no path occurs twice.
        n_text: bytes of all paths.
        rows: int64[n, 4] in zstd: for each file its length, time, cuts and bytes of the path.
        text: all paths in UTF-8, concatenated without separators, in zstd.
        cuts: the cuts of the files, or None if each file is one range.
    """

    n: int
    is_distinct: bool
    n_text: int
    rows: bytes
    text: bytes
    cuts: PackedCuts | None

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        cuts = 0 if self.cuts is None else self.cuts.nbytes
        return len(self.rows) + len(self.text) + cuts

    @property
    def n_ranges(self) -> int:
        """Number of ranges; an uncut file is one range."""
        return self.n if self.cuts is None else int(self.cuts.first[-1])

    def same(self, other: PackedFiles) -> bool:
        """Returns whether another list has the same files in the same order."""
        if (self.rows, self.text) != (other.rows, other.text):
            return False
        # Rows contain the number of cuts. With equal rows, either both lists have cuts or both have
        # none.
        return self.cuts is None or other.cuts is None or self.cuts.same(other.cuts)

    def to_ranges(self, values: Counts) -> Counts:
        """Copies the value of each file to each range of the file."""
        return values if self.cuts is None else self.cuts.to_ranges(values)

    def every(self, flags: Flags) -> Flags:
        """Returns bool[n]: True for a file if all its ranges have the flag."""
        return flags if self.cuts is None else self.cuts.every(flags)

    def skipped(self, keep: Flags) -> tuple[Flags, FileParts]:
        """Returns the files without a range to read, bool[n], and the files to read in part."""
        return (~keep, NO_PARTS) if self.cuts is None else self.cuts.skipped(keep)

    def unpacked(self) -> Files:
        """The inverse of `Files.packed`; a list without cuts has no footers."""
        text = pa.decompress(self.text, self.n_text, codec=_CODEC)
        buffer: Any = pa.decompress(self.rows, 8 * 4 * self.n, codec=_CODEC)
        rows = np.frombuffer(buffer, "<i8").astype(np.int64).reshape(-1, 4)
        lengths, times, counts, sizes = (np.ascontiguousarray(row) for row in rows.T)
        offsets = pa.py_buffer(np.append(0, np.cumsum(sizes)).astype(np.int64))
        paths = PathList(pa.LargeStringArray.from_buffers(self.n, offsets, text))
        footers, cuts = np.zeros(self.n, np.int64), np.zeros(0, np.int64)
        if self.cuts is not None:
            footers, cuts = self.cuts.unpacked()
        return Files(paths, lengths, times, counts, footers, cuts)


def _zipped(buffer: pa.Buffer) -> bytes:
    data: bytes = pa.compress(buffer, codec=_CODEC, asbytes=True)
    return data
