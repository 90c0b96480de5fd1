"""Tests decisions that depend on a Hudi table's properties, timeline and log files.

These tests do not run Hudi.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError

from sieve.tables import hudi
from sieve.tables.hudi import (
    changed_partitions,
    find_appended,
    list_changed,
    refusal,
    takes_whole_records,
)

PARTS = {
    "hudi.hoodie.table.version": "9",
    "hudi.hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
}
ARCHIVE = "file:/t/.hoodie/timeline/history"


def text(value: str) -> Any:
    """Stands in for a Java object with the given text."""
    return SimpleNamespace(toString=lambda: value)


@pytest.mark.parametrize(
    ("more", "refused"),
    [
        ({}, None),
        ({"hudi.hoodie.table.version": "8"}, None),
        ({"hudi.hoodie.table.version": "6"}, "hudi version 6"),
        ({"hudi.hoodie.bootstrap.base.path": "s3://b"}, "hudi bootstrap"),
        ({"hudi.hoodie.table.multiple.base.file.formats.enable": "True"}, "hudi formats several"),
        ({"hudi.hoodie.table.multiple.base.file.formats.enable": "false"}, None),
        ({"hudi.hoodie.table.base.file.format": "orc"}, "hudi formats orc"),
        ({"hudi.hoodie.table.base.file.format": "parquet"}, None),
    ],
)
def test_tables_of_other_layouts_are_refused(more: Mapping[str, str], refused: str | None) -> None:
    """A build refuses Hudi tables of other versions or base file formats, or from bootstrap."""
    assert refusal(PARTS | more) == refused


@pytest.mark.parametrize(
    ("more", "whole"),
    [
        ({}, True),
        ({"hudi.hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}, True),
        ({"hudi.hoodie.record.merge.mode": "CUSTOM"}, False),
        ({"hudi.hoodie.table.partial.update.mode": "x"}, False),
        ({"option.hoodie.datasource.write.payload.class": "Mine"}, False),
        ({"conf.hoodie.record.merge.mode": "CUSTOM"}, False),
        ({"conf.hoodie.record.merge.mode": "EVENT_TIME_ORDERING"}, True),
        ({"conf.hoodie.metadata.enable": "true", "conf.spark.merge.x": "1"}, True),
    ],
)
def test_records_are_whole_only_in_a_standard_merge_mode(
    more: Mapping[str, str], whole: bool
) -> None:
    """With a standard merge mode and payload class, each record comes from a single write."""
    assert takes_whole_records(PARTS | more) == whole


class Timeline:
    """The shim's access to a timeline; each of its actions has a state and a time."""

    def __init__(
        self,
        *actions: tuple[str, bool, int | None],
        partitions: Sequence[str] = ("a", "b"),
        archived: Sequence[int] | None = None,
    ) -> None:
        self.actions, self.written, self.archived = actions, partitions, archived

    def history(self) -> Timeline:
        return self

    def timeline(self) -> str:
        return json.dumps(self.actions)

    def partitions(self, number: int) -> str:
        assert self.actions[number][0] == "deltacommit"
        return json.dumps(self.written)

    def client(self) -> Any:
        return SimpleNamespace(getArchivePath=lambda: text(ARCHIVE))

    def hadoopConf(self) -> None:  # noqa: N802 - the shim's name
        return None

    def path(self, uri: str) -> Any:
        assert uri == ARCHIVE
        statuses = [
            SimpleNamespace(getModificationTime=lambda at=at: at) for at in self.archived or ()
        ]
        files = SimpleNamespace(
            exists=lambda _: self.archived is not None, listStatus=lambda _: statuses
        )
        return SimpleNamespace(getFileSystem=lambda _: files)


AT = 1_000_000
OWN = ("commit", True, AT)


@pytest.mark.parametrize(
    "actions",
    [
        [OWN],
        [OWN, ("clean", True, AT + 1), ("savepoint", True, AT + 2), ("indexing", True, None)],
        [("rollback", True, AT - 1), OWN, ("deltacommit", False, None)],
    ],
)
def test_actions_that_keep_the_rows_change_no_partition(actions: Sequence[Any]) -> None:
    """Actions change no partition if they keep the rows, precede the instant, or are incomplete."""
    assert changed_partitions(Timeline(*actions), AT) == frozenset()


@pytest.mark.parametrize("at", [AT + 1, None])
def test_partitions_of_later_commits_changed(at: int | None) -> None:
    """A commit after the instant, or without a completion time, has changed its partitions."""
    found = changed_partitions(
        Timeline(("deltacommit", True, 5), OWN, ("deltacommit", True, at)), AT
    )
    assert found == {"a", "b"}


@pytest.mark.parametrize(
    "timeline",
    [
        Timeline(("deltacommit", True, AT + 1)),
        Timeline(OWN, OWN),
        Timeline(OWN, ("rollback", True, AT + 1)),
        Timeline(OWN, ("restore", False, None)),
        Timeline(OWN, ("rollback", False, None)),
        Timeline(OWN, *[("deltacommit", True, AT + 1)] * 51),
        Timeline(OWN, ("deltacommit", True, AT + 1), partitions=("a", "")),
        Timeline(OWN, ("deltacommit", True, AT + 1), partitions=[f"p{k}" for k in range(101)]),
        Timeline(OWN, archived=[0, AT - 60_000]),
        Timeline(OWN, archived=[0, AT + 1]),
    ],
    ids=[
        "no own", "two own", "rolled back", "restoring", "rolling back", "many commits",
        "no partitions", "many partitions", "archived", "archived later",
    ],
)  # fmt: skip
def test_incomplete_timeline_lists_all_slices(timeline: Timeline) -> None:
    """The result is None if the timeline does not show all changes."""
    assert changed_partitions(timeline, AT) is None


@pytest.mark.parametrize(
    "timeline",
    [
        Timeline(OWN, *[("deltacommit", True, AT + 1)] * 50),
        Timeline(OWN, ("deltacommit", True, AT + 1), partitions=[f"p{k}" for k in range(100)]),
        Timeline(OWN, archived=[AT - 60_001]),
    ],
    ids=["commits", "partitions", "archived"],
)
def test_timeline_within_its_limits_shows_the_changes(timeline: Timeline) -> None:
    """The timeline supplies the changes of up to 50 commits and 100 partitions.

    Commits that were archived long before the instant have no effect.
    """
    assert changed_partitions(timeline, AT) is not None


BASE, ONE, TWO = (100, 1), (110, 2), (120, 3)
"""The length and time of a slice with no log file, with one log file, and with two log files."""


class Slices:
    """The shim's access to a table of one slice; each log file of the slice has two blocks."""

    def __init__(
        self,
        states: Sequence[tuple[int, int]] = (BASE, ONE, TWO),
        *,
        bytes_logged: int = 25,
        kind: str = "PARQUET_DATA_BLOCK",
        headers: Sequence[str] = ("INSTANT_TIME",),
        bad: int = 0,
        error: Exception | None = None,
    ) -> None:
        self._slice = {"log_bytes": bytes_logged, "base_bytes": 100, "states": states}
        self._kind, self._headers, self._bad, self._error = kind, headers, bad, error
        self.read: list[int] = []
        self.closed = 0
        self.appends: list[tuple[int, int]] = []

    def history(self) -> Slices:
        return self

    def slice(self, _number: int) -> str:
        if self._error:
            raise self._error
        return json.dumps(self._slice if self._slice["states"] else None)

    def append(self, number: int, held: int) -> None:
        self.appends.append((number, held))

    def logReader(self, number: int, log_file: int) -> Any:  # noqa: N802 - the shim's name
        assert number == 7
        self.read.append(log_file)
        odd = [k + log_file == self._bad for k in (0, 1)]

        def block() -> Any:
            is_odd = odd.pop()
            names = [text(name) for name in (self._headers if is_odd else ["INSTANT_TIME"])]
            kind = self._kind if is_odd else "AVRO_DATA_BLOCK"
            return SimpleNamespace(
                getLogBlockHeader=lambda: SimpleNamespace(keySet=lambda: names),
                getBlockType=lambda: text(kind),
            )

        def close() -> None:
            self.closed += 1

        return SimpleNamespace(hasNext=lambda: bool(odd), next=block, close=close)


def appended(access: Slices, state: tuple[int, int] = BASE, *, all_rows: bool = False) -> bool:
    """Returns whether a refresh can read only the new log files of the slice."""
    found = find_appended(access, {7: (*state, all_rows)}, PARTS)
    assert access.closed == len(access.read)
    assert bool(found) == bool(access.appends)
    assert found <= {7}
    return bool(found)


def test_only_log_files_of_a_known_base_file_are_read() -> None:
    """If only the base file of a slice is indexed, a refresh reads only the slice's log files."""
    access = Slices()
    assert appended(access)
    assert (access.read, access.appends) == ([0, 1], [(7, 0)])


def test_only_newer_log_files_are_read_if_all_rows_are_known() -> None:
    """If the index has all rows of a slice, a refresh reads only the newer log files.

    A hidden row can become visible again. If the index lacks it, a refresh reads the whole slice.
    """
    access = Slices()
    assert appended(access, ONE, all_rows=True)
    assert (access.read, access.appends) == ([1], [(7, 1)])
    assert not appended(Slices(), ONE, all_rows=False)


@pytest.mark.parametrize("state", [TWO, (100, 2), (101, 1)])
def test_slice_without_an_earlier_state_is_read_whole(state: tuple[int, int]) -> None:
    """A refresh reads a whole slice if the indexed state is no earlier state of the slice."""
    assert not appended(Slices(), state, all_rows=True)


@pytest.mark.parametrize(
    "access",
    [
        Slices(()),
        Slices(bytes_logged=26),
        Slices(kind="DELETE_BLOCK"),
        Slices(kind="DELETE_BLOCK", bad=2),
        Slices(headers=["INSTANT_TIME", "IS_PARTIAL"]),
        Slices(headers=["COMPACTED_BLOCK_TIMES"], bad=1),
        Slices(error=Py4JError("gone")),
    ],
    ids=["gone", "much", "deletes", "deletes at last", "partial", "compacted", "failure"],
)
def test_slice_with_deleting_log_blocks_is_read_whole(access: Slices) -> None:
    """A refresh reads a whole slice if its log blocks delete rows, are partial, or were compacted.

    A refresh also reads a whole slice if its log files are large or unreadable.
    """
    assert not appended(access)


def test_log_files_within_the_byte_limit_are_read_alone() -> None:
    """A refresh reads log files alone if they have at most a quarter of the base file's bytes."""
    assert appended(Slices(bytes_logged=25))


def test_programming_error_is_raised() -> None:
    """A programming error is raised; Sieve does not take it for a failure of Hudi."""
    with pytest.raises(ArithmeticError):
        find_appended(Slices(error=ArithmeticError()), {7: (*BASE, False)}, PARTS)


def test_hudi_is_not_called_for_tables_that_merge_records() -> None:
    """If there are no slices, or the table merges records, `find_appended` does not call Hudi."""
    access = Slices(error=ArithmeticError())
    assert find_appended(access, {}, PARTS) == frozenset()
    other = PARTS | {"hudi.hoodie.record.merge.mode": "CUSTOM"}
    assert find_appended(access, {7: (*BASE, False)}, other) == frozenset()


class Folders:
    """A file system that contains only the given folders."""

    def __init__(self, *there: str, listed: str | None = "[]", error: Exception | None = None):
        self._there, self._listed, self._error = there, listed, error
        self.asked: list[list[str]] = []

    def history(self) -> Folders:
        return self

    def path(self, uri: str) -> Any:
        own = SimpleNamespace(exists=lambda path: str(path.toString()) in self._there)
        return SimpleNamespace(toString=lambda: uri, getFileSystem=lambda _: own)

    def hadoopConf(self) -> Any:  # noqa: N802 - the shim's name
        return None

    def client(self) -> Any:
        return SimpleNamespace(getBasePath=lambda: text("file:/t"))

    def listPartitions(self, partitions: list[str]) -> str | None:  # noqa: N802 - the shim's name
        if self._error is not None:
            raise self._error
        self.asked.append(partitions)
        return self._listed


def test_changed_partitions_are_listed_as_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed partition is listed as a folder, even if the partition was deleted."""
    since: list[Any] = []
    partitions: list[Any] = [frozenset({"a", "b"})] * 3 + [None]

    def changed(_: Any, instant_ms: int) -> Any:
        since.append(instant_ms)
        return partitions.pop(0)

    monkeypatch.setattr(hudi, "changed_partitions", changed)
    access = Folders("file:/t/a", listed="[1]")
    assert list_changed(access, 77) == (frozenset({"file:/t/a", "file:/t/b"}), "[1]")
    assert access.asked == [["a"]]
    # If Hudi returns no result, or a call fails, the changes are unknown.
    assert list_changed(Folders("file:/t/a", listed=None), 77) is None
    assert list_changed(Folders(error=Py4JError("gone")), 77) is None
    assert list_changed(Folders(), 77) is None
    assert since == [77] * 4
    partitions.append(frozenset({"a"}))
    with pytest.raises(ArithmeticError):
        list_changed(Folders(error=ArithmeticError()), 77)
