"""Records: a listed data file, the offsets that split a file, and the changes of a table."""

from __future__ import annotations

from dataclasses import dataclass

from sieve.storage.interface import parent


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file in a listing, or a Hudi file slice: a base file and its log files.

    Attributes:
        path: absolute qualified path, as in Spark's listing. For a slice, ``path`` is the path of
            the base file. For a slice without a base file, ``path`` is the path of the first log
            file.
        length: length in bytes; for a slice, the sum over all its files.
        mtime: modification time, ms since the epoch. For a slice with log files, ``mtime`` is a
            number from 0 to 2^63 - 1, derived from the names and lengths of the log files. For a
            slice without log files, ``mtime`` is 0.
    """

    path: str
    length: int
    mtime: int


@dataclass(frozen=True, slots=True)
class FileCuts:
    """The offsets at which Sieve can split a file into ranges.

    Attributes:
        offsets: the offsets, ascending; empty if the file is one range, or is text.
        footer: number of bytes at the file's end that a reader needs for each range; 0 for a file
            that is one range.
    """

    offsets: tuple[int, ...]
    footer: int


@dataclass(frozen=True, slots=True)
class Changes:
    """The part of a table that may have changed; all other files are unchanged.

    Attributes:
        folders: URIs of folders, including folders of dropped partitions.
        files: the current files in `folders` and at `paths`.
        paths: paths of files in other folders, including deleted files.
    """

    folders: frozenset[str]
    files: tuple[DataFile, ...]
    paths: frozenset[str] = frozenset()

    def cover(self, path: str) -> bool:
        """Returns whether a file is, or was, in the part that may have changed."""
        return path in self.paths or parent(path) in self.folders
