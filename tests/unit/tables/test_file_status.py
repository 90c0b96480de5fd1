"""The status of a file tells whether the file has changed since a version was built."""

from __future__ import annotations

import numpy as np
import pytest

from sieve.metadata.file_list import FileState, Locations
from sieve.tables.data_file import DataFile
from sieve.tables.file_status import FileStatus, file_statuses

NOW = 1_700_000_000_000
STATES: dict[str, tuple[FileState, FileStatus, FileStatus]] = {
    "read": (FileState.READ, "same", "changed"),
    "unproven": (FileState.UNPROVEN, "unproven", "unproven"),
    "racy": (FileState.RACY, "racy", "racy"),
}
"""For each state of a listed file: the status of a file of equal length, and of different length.

Both files have the time of the listed file.
"""


def _known() -> Locations:
    """A list with one file in each state. Only the file that was read has a length in the list."""
    states = [state for state, _, _ in STATES.values()]
    ones = np.ones(len(states), np.int64)
    lengths = np.array([10 if state == FileState.READ else 0 for state in states])
    return Locations(
        tuple(STATES), np.array(states, np.int8), lengths, ones * NOW, ones, ones, ones, ones
    )


@pytest.mark.parametrize("path", STATES)
@pytest.mark.parametrize("length", [9, 10, 11])
@pytest.mark.parametrize("later_ms", [-86_400_000, -1, 0, 1, 86_400_000])
def test_file_is_unchanged_only_with_the_same_length_and_time(
    path: str, length: int, later_ms: int
) -> None:
    """A file with another length or time counts as changed, even if it is now shorter or older.

    For example, a file that is restored from a backup can have an older time.
    """
    _, same, other = STATES[path]
    expected = "changed" if later_ms else same if length == 10 else other
    assert file_statuses(_known(), [DataFile(path, length, NOW + later_ms)]) == [expected]


def test_files_are_matched_by_path() -> None:
    """The statuses are in the order of the files, and a file of another path is new."""
    files = [DataFile(path, 10, NOW) for path in ("racy", "another", "read", "unproven", "Read")]
    assert file_statuses(_known(), files) == ["racy", "new", "same", "unproven", "new"]
