"""Data files of a listing, the offsets where they can be cut, and possible changes of files."""

from __future__ import annotations

from dataclasses import dataclass

from sieve.storage.interface import parent


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file as listed, or a file slice of Hudi: a base file and its log files.

    Attributes:
        path: absolute qualified path, as Spark's listing writes it; for a slice, the path of its
            base file, or of its first log file if it has no base file yet.
        length: bytes; for a slice, the sum over all its files.
        mtime: modification time, ms since the epoch; for a slice, a number from 0 to 2^63 - 1
            derived from the names and lengths of its log files, 0 without log files.
    """

    path: str
    length: int
    mtime: int


@dataclass(frozen=True, slots=True)
class FileCuts:
    """The offsets at which a file can be cut into ranges.

    Attributes:
        offsets: offsets of the cuts, ascending; empty if the file is one range, or is text.
        footer: bytes at the file's end that a reader needs for each range; 0 for a file without
            ranges.
    """

    offsets: tuple[int, ...]
    footer: int


@dataclass(frozen=True, slots=True)
class Changes:
    """The part of a table that has possibly changed; all other files are unchanged.

    Attributes:
        folders: URIs of folders, dropped partitions included.
        files: all files in these folders and at these paths.
        paths: paths of files in other folders, deleted files included.
    """

    folders: frozenset[str]
    files: tuple[DataFile, ...]
    paths: frozenset[str] = frozenset()

    def cover(self, path: str) -> bool:
        """Returns whether a file is, or was, in the part that has possibly changed."""
        return path in self.paths or parent(path) in self.folders
