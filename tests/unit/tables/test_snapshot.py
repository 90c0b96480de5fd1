"""Tests when files are stable: so old that length and time identify one state of the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sieve.errors import UnavailableError
from sieve.metadata.file_list import FileState, Locations
from sieve.metadata.records import Commit
from sieve.tables.data_file import Changes, DataFile
from sieve.tables.snapshot import Snapshot, snapshot_of, snapshot_since, stable_snapshot

NOW = 1_700_000_000_000
INDEX = "file:/warehouse/.sieve/1"


@dataclass
class Clocked:
    """A file system whose clock advances only while the test waits."""

    now: int = NOW
    waited: list[float] = field(default_factory=list)
    silent: bool = False

    def now_ms(self, directory: str) -> int:
        assert directory == INDEX
        if self.silent:
            raise UnavailableError("SIEVE_READ_ONLY", "no probe file can be written")
        return self.now

    def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.now += round(seconds * 1000)

    def snapshot(self, *listings: Sequence[DataFile], driver: int | None = None) -> Snapshot:
        """Takes a snapshot of a table whose listing differs at each call."""
        left = iter(listings)
        return stable_snapshot(
            lambda: next(left),
            self,  # type: ignore[arg-type]
            INDEX,
            self.sleep,
            lambda: (self.now if driver is None else driver) / 1000,
        )


def aged(ms: int, name: str = "a", root: str = "file:/warehouse/t") -> DataFile:
    """A data file of this age."""
    return DataFile(f"{root}/{name}", 10, NOW - ms)


def test_file_with_a_whole_second_is_stable_after_two() -> None:
    """A file whose time is a whole second is stable after exactly two seconds."""
    disk = Clocked()
    snapshot = disk.snapshot([aged(2000), aged(5000, "b")])
    assert snapshot.stable == (True, True)
    assert snapshot.instant_ms == NOW
    assert disk.waited == []


def test_file_with_a_fraction_is_stable_after_one_second() -> None:
    """A file whose time has a fraction is stable after one second.

    The fraction shows that the file system stores times in milliseconds.
    """
    disk = Clocked()
    assert disk.snapshot([aged(1001), aged(1999, "b")]).stable == (True, True)
    assert disk.waited == []
    files = [aged(999), aged(1, "b")]
    assert disk.snapshot(files, files).stable == (True, True)
    assert disk.waited == [1.009]


def test_snapshot_waits_for_young_files() -> None:
    """A snapshot waits for young files, and then lists the table again."""
    disk = Clocked(NOW + 500)
    files = [aged(1499), aged(0, "b")]
    snapshot = disk.snapshot(files, files)
    assert snapshot.stable == (True, True)
    assert disk.waited == [1.51]
    assert snapshot.instant_ms == NOW + 2010


def test_file_changed_during_the_wait_stays_unstable() -> None:
    """A file that changes during the wait stays unstable. The snapshot does not wait again."""
    disk = Clocked()
    again = DataFile("file:/warehouse/t/a", 10, NOW + 100)
    snapshot = disk.snapshot([aged(1000)], [again, aged(5000, "b")])
    assert snapshot.files == (again, aged(5000, "b"))
    assert snapshot.stable == (False, True)
    assert disk.waited == [1.01]


def test_file_with_a_future_time_causes_no_wait() -> None:
    """A file with a time in the future stays unstable and causes no wait."""
    disk = Clocked()
    assert disk.snapshot([aged(-3_600_000)]).stable == (False,)
    assert disk.waited == []
    files = [aged(-3_600_000), aged(500, "b")]
    assert disk.snapshot(files, files).stable == (False, True)
    assert disk.waited == [0.51]


def test_file_must_be_a_minute_old_without_a_probe() -> None:
    """If the file system has no clock, a file must be a minute old by the driver's clock.

    The driver's clock can be a minute fast or slow.
    """
    disk = Clocked(silent=True)
    assert disk.snapshot([aged(62_000), aged(30_000, "b")]).stable == (True, False)
    assert disk.waited == []


def test_another_file_system_has_another_clock() -> None:
    """The driver's clock measures the age of files on another file system than the index."""
    disk = Clocked()
    far = "s3a://bucket/t"
    snapshot = disk.snapshot([aged(62_000, root=far), aged(30_000, "b", far), aged(2000, "c")])
    assert snapshot.stable == (True, False, True)
    assert disk.snapshot([aged(30_000, root="file://nas/t")]).stable == (False,)
    # If all files are on the index's file system, the instant comes from this system's clock.
    late = NOW + 5000
    for root, instant in (("file:/t", NOW), (far, late), ("file://nas/t", late)):
        assert disk.snapshot([aged(99_000, root=root)], driver=late).instant_ms == instant


def test_clock_of_the_file_system_decides() -> None:
    """The clock of the file system decides, even if the driver's clock is wrong."""
    disk = Clocked()
    day = NOW + 86_400_000
    files = [aged(0)]
    snapshot = disk.snapshot(files, files, driver=day)
    assert (snapshot.stable, snapshot.instant_ms, disk.waited) == ((True,), NOW + 2010, [2.01])


def test_empty_table_has_a_snapshot_at_once() -> None:
    """A table without files has a snapshot at once."""
    disk = Clocked()
    assert disk.snapshot([]) == Snapshot((), (), NOW)


@pytest.mark.parametrize(("age_ms", "now"), [(999, NOW), (1000, NOW + 999)])
def test_file_is_racy_until_the_last_millisecond(age_ms: int, now: int) -> None:
    """A file is still racy a millisecond before it becomes stable, and the snapshot waits."""
    disk = Clocked(now)
    files = [aged(age_ms)]
    assert disk.snapshot(files, files).stable == (True,)
    assert disk.waited == [0.011]


FILES = tuple(DataFile(f"file:/t/{folder}/{n}", 10, 5) for folder in "ab" for n in range(2))
COMMIT = Commit("0b6c", 4)


class Committed:
    """A Delta table that records the calls of a snapshot.

    Attributes:
        found: the changes since a version.
        calls: the names of the calls, in order.
    """

    info = SimpleNamespace(format_name="delta")

    def __init__(self, found: Changes | None = None) -> None:
        self.found, self.calls = found, list[str]()

    def files(self) -> tuple[DataFile, ...]:
        self.calls.append("files")
        return FILES

    def changes(self, instant: str, commit: Commit | None) -> Changes | None:
        self.calls.append(f"changes {instant} {commit and commit.version}")
        return self.found

    def instant_ms(self) -> int:
        self.calls.append("instant")
        return 77

    def commit(self) -> Commit:
        self.calls.append("commit")
        return COMMIT


def _since(found: Changes | None) -> Snapshot | None:
    """Takes a snapshot of a table that contained `FILES` at commit 3."""
    table: Any = Committed(found)
    ones = np.ones(len(FILES), np.int64)
    known = Locations(
        tuple(file.path for file in FILES), np.full(len(FILES), FileState.READ, np.int8),
        ones * 10, ones * 5, ones, ones, ones, ones,
    )  # fmt: skip
    snapshot = snapshot_since(table, "2026-01-31T09:30:00.123Z", known, Commit("0b6c", 3))
    assert table.calls[0] == "changes 2026-01-31T09:30:00.123Z 3"
    return snapshot


def test_commit_of_a_table_is_that_of_its_listing() -> None:
    """A snapshot lists the files first.

    The snapshot's instant and commit belong to the listing.
    """
    table: Any = Committed()
    assert snapshot_of(table, None, INDEX) == Snapshot(FILES, (True,) * 4, 77, commit=COMMIT)  # type: ignore[arg-type]
    assert table.calls == ["files", "instant", "commit"]


@pytest.mark.parametrize("by_folder", [False, True], ids=["paths", "folders"])
def test_only_files_outside_the_changes_are_taken_over(by_folder: bool) -> None:
    """Files that commits changed come from the listing, without removed files.

    All other files come from the list of the version.
    """
    changed = (DataFile(FILES[0].path, 11, 6), DataFile("file:/t/a/9", 10, 6))
    paths = frozenset({FILES[1].path, *(file.path for file in changed)})
    folders = frozenset({"file:/t/a"})
    found = Changes(folders, changed) if by_folder else Changes(frozenset(), changed, paths)
    assert _since(found) == Snapshot((*changed, *FILES[2:]), (True,) * 4, 77, 2, COMMIT)
    assert _since(Changes(frozenset(), ())) == Snapshot(FILES, (True,) * 4, 77, 4, COMMIT)


def test_all_is_listed_if_commits_spell_some_path_differently() -> None:
    """The changes are unknown if a listed file matches no path or folder in the commits."""
    listed = (FILES[0], FILES[2])
    assert _since(Changes(frozenset(), listed, frozenset({FILES[0].path, "/t/b/0"}))) is None
    assert _since(Changes(frozenset({"file:/t/a", "/t/b"}), listed)) is None
    assert _since(None) is None
