"""Tests which files of a Delta table changed according to the table's log."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest
from py4j.protocol import Py4JError

from sieve.metadata.records import Commit
from sieve.tables import delta

TABLE = "0b6c"
LISTED = '[["file:/t/b", 10, 7]]'


@dataclass
class Access:
    """The shim's access to a Delta table; the newest commit of the table is ``newest``.

    Attributes:
        versions: the commits in the log after the given commit. None makes the call fail.
        table: the identity of the table.
        later: the identity of the table after the read of the log.
    """

    newest: int
    versions: list[int] | None
    table: str = TABLE
    later: str = TABLE
    asked: list[int] = field(default_factory=list)

    def history(self) -> Access:
        return self

    def commit(self) -> str:
        table = self.later if self.asked else self.table
        return json.dumps({"table": table, "version": self.newest, "time_ms": 5})

    def listSince(self, version: int) -> str:  # noqa: N802 - the shim's name
        self.asked.append(version)
        if self.versions is None:
            raise Py4JError("DELTA_MISSING_FILES_UNEXPECTED_VERSION")
        return json.dumps([self.versions, ["file:/t/a", "file:/t/b"], LISTED])


def test_changes_are_the_paths_of_a_complete_log() -> None:
    """If the log has all commits, the changes are exactly the paths in the commits.

    Existing files are described as in a listing.
    """
    access = Access(6, [4, 5, 6])
    changed = delta.list_changed(access, Commit(TABLE, 3), 2)
    assert changed == (frozenset({"file:/t/a", "file:/t/b"}), LISTED)
    assert access.asked == [3]
    assert delta.listed_commit(access) == (Commit(TABLE, 6), 5)


@pytest.mark.parametrize(
    "access",
    [
        Access(6, [5, 6]),
        Access(6, [4, 6]),
        Access(6, [4, 5]),
        Access(6, [3, 5, 6]),
        Access(6, []),
        Access(6, None),
        Access(6, [4, 5, 6], table="another"),
        Access(6, [4, 5, 6], later="another"),
        Access(2, []),
        Access(3, []),
        Access(1000, [*range(4, 1001)]),
    ],
    ids=[
        "first gone",
        "one gone",
        "last gone",
        "another in its place",
        "all gone",
        "failed",
        "replaced",
        "replaced later",
        "back",
        "another commit of this number",
        "many",
    ],
)
def test_all_is_listed_if_the_log_is_incomplete(access: Access) -> None:
    """A refresh lists all files if a commit is missing, the table differs, or a call fails.

    A refresh also lists all files if there are too many commits.
    """
    assert delta.list_changed(access, Commit(TABLE, 3), 2) is None


@pytest.mark.parametrize("commits", [0, 1, 200, 201])
def test_log_is_not_read_above_200_commits(commits: int) -> None:
    """For more than 200 commits, a refresh does not read the log.

    With so many commits, a listing of all files is as fast as a read of the log.
    """
    access = Access(3 + commits, [*range(4, 4 + commits)])
    found = delta.list_changed(access, Commit(TABLE, 3), 5 if commits == 0 else 2)
    assert (found is not None) == (commits <= 200)
    assert access.asked == ([3] if commits <= 200 else [])
