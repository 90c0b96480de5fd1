"""Tests which files changed according to an Iceberg table's metadata."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest
from py4j.protocol import Py4JError

from sieve.metadata.records import Commit
from sieve.tables import iceberg

TABLE = "7d1c"
LISTED = '[["file:/t/b", 10, 7]]'


@dataclass
class Access:
    """The shim's access to a table with the given snapshots in its metadata.

    Attributes:
        snapshots: the snapshots' sequence numbers, the current snapshot last.
        instant: the commit time of all snapshots, ms since the epoch.
        table: the table's id.
        fails: whether a comparison of snapshots fails.
        compared: the sequence numbers of the snapshots that were compared with the current
            snapshot.
    """

    snapshots: list[int]
    instant: int = 77
    table: str = TABLE
    fails: bool = False
    compared: list[int] = field(default_factory=list)

    def history(self) -> Access:
        return self

    def commit(self) -> str | None:
        if not self.snapshots:
            return None
        return json.dumps({"table": self.table, "version": self.snapshots[-1]})

    def listSince(self, number: int, instant: int) -> str | None:  # noqa: N802 - the shim's name
        self.compared.append(number)
        if self.fails:
            raise Py4JError("NotFoundException")
        if number not in self.snapshots or instant != self.instant:
            return None
        return json.dumps([["file:/t/a", "file:/t/b"], LISTED])


@pytest.mark.parametrize("snapshots", [[3, 5], [3], [5, 3]], ids=["later", "same", "rolled back"])
def test_changes_are_the_paths_in_changed_manifests(snapshots: list[int]) -> None:
    """If the metadata has the commit's snapshot, the changed paths come from the shim."""
    access = Access(snapshots)
    changed = iceberg.list_changed(access, Commit(TABLE, 3), 77)
    assert changed == (frozenset({"file:/t/a", "file:/t/b"}), LISTED)
    assert access.compared == [3]
    assert iceberg.listed_commit(access) == Commit(TABLE, snapshots[-1])


@pytest.mark.parametrize(
    ("access", "compared"),
    [
        (Access([5]), [3]),
        (Access([3, 5], instant=78), [3]),
        (Access([3, 5], fails=True), [3]),
        (Access([3, 5], table="another"), []),
        (Access([]), []),
    ],
    ids=[
        "snapshot gone",
        "another snapshot of this number",
        "failed",
        "another table",
        "no snapshot",
    ],
)
def test_all_is_listed_if_snapshots_cannot_be_compared(access: Access, compared: list[int]) -> None:
    """A refresh lists all files if the table differs, a snapshot is gone, or a comparison fails."""
    assert iceberg.list_changed(access, Commit(TABLE, 3), 77) is None
    assert access.compared == compared
