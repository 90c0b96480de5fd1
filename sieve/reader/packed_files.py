"""Packed files: which files a version or a numbering has, compressed, to be sent or compared.

No look-up needs paths: they are unpacked when versions are numbered together, and go to the driver
as they are. ``docs/read-path.md`` has the layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from sieve.arrays.dtypes import Counts
from sieve.metadata.path_list import PathList

_CODEC: Final = "zstd"


@dataclass(frozen=True, slots=True, eq=False)
class Files:
    """Files by path, length and time, and the offsets at which they are cut.

    Attributes:
        paths: absolute qualified URIs.
        lengths: int64[n], bytes, or a `FileState` in their place; see `Locations.stored_lengths`.
        times: int64[n], modification times, ms since the epoch.
        cut_counts: int64[n], the number of cuts of each file; k cuts make k + 1 ranges.
        footers: int64[n], bytes of the footer of each file that is cut, else 0.
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
        """Compresses them."""
        array = self.paths.array
        offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset :][: len(array) + 1]
        rows = (self.lengths, self.times, self.cut_counts, self.footers, np.diff(offsets))
        text = array.buffers()[2] or pa.py_buffer(b"")
        texts = text.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
        parts = (np.stack(rows, axis=1), self.cuts)
        buffers = (*(pa.py_buffer(np.ascontiguousarray(part, "<i8")) for part in parts), texts)
        is_distinct = self.paths.is_distinct
        packed = (pa.compress(one, codec=_CODEC, asbytes=True) for one in buffers)
        return PackedFiles(len(self.paths), len(self.cuts), is_distinct, len(texts), *packed)


@dataclass(frozen=True, slots=True, eq=False)
class PackedFiles:
    """Compressed `Files`.

    Attributes:
        n: number of files.
        n_cuts: number of cuts.
        is_distinct: whether no path occurs twice.
        n_text: bytes of all paths.
        rows: of each file length, time, cuts, footer and bytes of the path, int64[n, 5], in zstd.
        cuts: int64, in zstd.
        text: all paths in UTF-8, without anything between them, in zstd.
    """

    n: int
    n_cuts: int
    is_distinct: bool
    n_text: int
    rows: bytes
    cuts: bytes
    text: bytes

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return len(self.rows) + len(self.cuts) + len(self.text)

    @property
    def n_ranges(self) -> int:
        """Number of ranges; a file that is not cut is one."""
        return self.n + self.n_cuts

    def same(self, other: PackedFiles) -> bool:
        """Whether another has the same files in the same order."""
        return (self.rows, self.cuts, self.text) == (other.rows, other.cuts, other.text)

    def unpacked(self) -> Files:
        """Inverse of `Files.packed`."""
        text = pa.decompress(self.text, self.n_text, codec=_CODEC)
        rows = _integers(self.rows, 5 * self.n).reshape(-1, 5)
        lengths, times, counts, footers, sizes = (np.ascontiguousarray(row) for row in rows.T)
        offsets = pa.py_buffer(np.append(0, np.cumsum(sizes)).astype(np.int64))
        paths = pa.LargeStringArray.from_buffers(self.n, offsets, text)
        return Files(
            PathList(paths), lengths, times, counts, footers, _integers(self.cuts, self.n_cuts)
        )


def _integers(data: bytes, n: int) -> Counts:
    buffer: Any = pa.decompress(data, 8 * n, codec=_CODEC)
    return np.frombuffer(buffer, "<i8").astype(np.int64)
