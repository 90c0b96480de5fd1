"""File status: compares a table's files with a version's file list, by path, length and time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from sieve.metadata.file_list import FileState, Locations
from sieve.tables.data_file import DataFile

FileStatus = Literal["same", "unproven", "racy", "changed", "new"]
"""The status of a file.

- ``same``: length and time are the same as at the build.
- ``unproven``: the time is the same, but the build proved nothing about the file (`UNPROVEN` in the
  file list).
- ``racy``: the time is the same, but the build did not read the file, because the file was racy.
- ``changed``: the length or the time differs.
- ``new``: the file is not in the file list.
"""

AS_IT_WAS: Final[tuple[FileStatus, ...]] = ("same", "unproven")
"""Statuses of unchanged files. If the build proved nothing about a file (for example, a file
without rows), only the file's time counts. Reading an unproven file again would prove nothing
new."""


def file_statuses(known: Locations, files: Sequence[DataFile]) -> list[FileStatus]:
    """The status of each file, in the order of `files`."""
    columns = (known.states, known.lengths, known.mtimes)
    facts = zip(*(column.tolist() for column in columns), strict=True)
    by_path = dict(zip(known.paths, facts, strict=True))
    return [_status_of(file, by_path.get(file.path)) for file in files]


def _status_of(file: DataFile, fact: tuple[int, int, int] | None) -> FileStatus:
    if fact is None:
        return "new"
    state, length, mtime = fact
    if mtime != file.mtime:
        return "changed"
    if state == FileState.READ:
        return "same" if length == file.length else "changed"
    return "unproven" if state == FileState.UNPROVEN else "racy"
