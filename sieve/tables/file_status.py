"""What files of a table are to a version of an index, by path, length and time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from sieve.metadata.file_list import FileState, Locations
from sieve.tables.table import DataFile

FileStatus = Literal["same", "unproven", "unsettled", "changed", "new"]
"""As it was when it was read; the same by its time, but it proved nothing, or was too young to be
read; of another length or time; unknown."""

AS_IT_WAS: Final[tuple[FileStatus, ...]] = ("same", "unproven")
"""Of settled files: what proves nothing, such as a file without rows, is so by its time alone, and
to read it again would prove no more."""


def file_statuses(known: Locations, files: Sequence[DataFile]) -> list[FileStatus]:
    """The standing of each file, in order."""
    columns = (known.states, known.lengths, known.mtimes)
    facts = zip(*(column.tolist() for column in columns), strict=True)
    by_path = dict(zip(known.paths, facts, strict=True))
    return [_standing(file, by_path.get(file.path)) for file in files]


def _standing(file: DataFile, fact: tuple[int, int, int] | None) -> FileStatus:
    if fact is None:
        return "new"
    state, length, mtime = fact
    if mtime != file.mtime:
        return "changed"
    if state == FileState.READ:
        return "same" if length == file.length else "changed"
    return "unproven" if state == FileState.UNPROVEN else "unsettled"
