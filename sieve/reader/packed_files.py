"""Packed files: the file list of an index version or of a numbering, in compressed form.

Look-ups need no paths. The front end sends compressed paths to the driver. The front end unpacks
paths only to number the files of several versions together. ``sql_ext/frontend/pruning.py``
describes the layout.
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
    """A list of files: their paths, lengths, times, and the byte offsets that cut them into ranges.

    Attributes:
        paths: absolute qualified URIs.
        lengths: int64[n], length of each file in bytes, or a `FileState`; see
            `Locations.stored_lengths`.
        times: int64[n], modification time of each file in ms since the epoch.
        cut_counts: int64[n], number of cuts in each file. A file with k cuts has k + 1 ranges.
        footers: int64[n], length of the footer of each file with cuts, in bytes; 0 for other
            files.
        cuts: int64, the byte offsets of the cuts: ascending within a file, one file after another.
    """

    paths: PathList
    lengths: Counts
    times: Counts
    cut_counts: Counts
    footers: Counts
    cuts: Counts

    @property
    def range_owners(self) -> Counts:
        """int64[m], number of the file to which each range belongs."""
        return np.repeat(np.arange(len(self.paths)), self.cut_counts + 1)

    @property
    def range_starts(self) -> Counts:
        """int64[m], offset of the first byte of each range."""
        counts = self.cut_counts + 1
        starts = np.zeros(int(counts.sum()), np.int64)
        is_cut = np.ones(len(starts), np.bool_)
        is_cut[np.cumsum(counts) - counts] = False
        starts[is_cut] = self.cuts
        return starts

    def packed(self) -> PackedFiles:
        """The compressed form of this list."""
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
    """The compressed form of `Files`.

    Attributes:
        n: number of files.
        is_distinct: whether all paths are different.
        n_text: number of bytes of all paths, uncompressed.
        rows: int64[n, 4], compressed with Zstandard: for each file its length, its time, its number
            of cuts, and the number of bytes in its path.
        text: all paths in UTF-8, concatenated without separators, compressed with Zstandard.
        cuts: the cuts of the files, or None if no file has cuts.
    """

    n: int
    is_distinct: bool
    n_text: int
    rows: bytes
    text: bytes
    cuts: PackedCuts | None

    @property
    def nbytes(self) -> int:
        """The size of the arrays in bytes."""
        cuts = 0 if self.cuts is None else self.cuts.nbytes
        return len(self.rows) + len(self.text) + cuts

    @property
    def n_ranges(self) -> int:
        """Number of ranges of all files. A file without cuts is one range."""
        return self.n if self.cuts is None else int(self.cuts.first[-1])

    def same(self, other: PackedFiles) -> bool:
        """Returns whether another list has the same files in the same order."""
        if (self.rows, self.text) != (other.rows, other.text):
            return False
        # `rows` contains each file's number of cuts and is equal in both lists. So `cuts` is None
        # either in both lists or in neither.
        return self.cuts is None or other.cuts is None or self.cuts.same(other.cuts)

    def to_ranges(self, values: Counts) -> Counts:
        """Given a value for each file, returns for each range the value of its file."""
        return values if self.cuts is None else self.cuts.to_ranges(values)

    def every(self, flags: Flags) -> Flags:
        """Given a flag for each range, returns bool[n]: whether all flags of a file are True."""
        return flags if self.cuts is None else self.cuts.every(flags)

    def skipped(self, keep: Flags) -> tuple[Flags, FileParts]:
        """Returns bool[n], the files that a scan skips; and the files that a scan reads in part."""
        return (~keep, NO_PARTS) if self.cuts is None else self.cuts.skipped(keep)

    def unpacked(self) -> Files:
        """Decompresses the list. If no file has cuts, the lengths of all footers are 0."""
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
