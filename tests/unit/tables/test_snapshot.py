"""The files so old that length and time tell them apart from any later state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sieve.errors import UnavailableError
from sieve.tables.data_file import DataFile
from sieve.tables.snapshot import Snapshot, stable_snapshot

NOW = 1_700_000_000_000
INDEX = "file:/warehouse/.sieve/1"


@dataclass
class Clocked:
    """A file system with a clock that advances only when the test waits."""

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
        """A snapshot of a table with a listing that changes at each call."""
        left = iter(listings)
        return stable_snapshot(
            lambda: next(left),
            self,  # type: ignore[arg-type]
            INDEX,
            self.sleep,
            lambda: (self.now if driver is None else driver) / 1000,
        )


def aged(ms: int, name: str = "a", root: str = "file:/warehouse/t") -> DataFile:
    """A file of the given age."""
    return DataFile(f"{root}/{name}", 10, NOW - ms)


def test_two_seconds_are_enough_and_need_no_wait() -> None:
    """If the time of a file is a whole second, the file is stable after exactly two seconds."""
    disk = Clocked()
    snapshot = disk.snapshot([aged(2000), aged(5000, "b")])
    assert snapshot.stable == (True, True)
    assert snapshot.instant_ms == NOW
    assert disk.waited == []


def test_a_time_with_a_part_of_a_second_needs_one_second() -> None:
    """If a time has a fraction, the file system counts milliseconds.

    If a time is a whole second, the file system can count seconds or milliseconds.
    """
    disk = Clocked()
    assert disk.snapshot([aged(1001), aged(1999, "b")]).stable == (True, True)
    assert disk.waited == []
    files = [aged(999), aged(1, "b")]
    assert disk.snapshot(files, files).stable == (True, True)
    assert disk.waited == [1.009]


def test_a_young_file_is_waited_for() -> None:
    """When the remaining time has passed, the table is listed again."""
    disk = Clocked(NOW + 500)
    files = [aged(1499), aged(0, "b")]
    snapshot = disk.snapshot(files, files)
    assert snapshot.stable == (True, True)
    assert disk.waited == [1.51]
    assert snapshot.instant_ms == NOW + 2010


def test_what_changes_during_the_wait_stays_unsettled() -> None:
    """The second listing is used, and there is no second wait for a file that has changed again."""
    disk = Clocked()
    again = DataFile("file:/warehouse/t/a", 10, NOW + 100)
    snapshot = disk.snapshot([aged(1000)], [again, aged(5000, "b")])
    assert snapshot.files == (again, aged(5000, "b"))
    assert snapshot.stable == (False, True)
    assert disk.waited == [1.01]


def test_a_time_in_the_future_is_never_settled_and_holds_up_nobody() -> None:
    """A file from a clock that was fast stays unsettled.

    If there is also a young file, the build waits for the young file.
    """
    disk = Clocked()
    assert disk.snapshot([aged(-3_600_000)]).stable == (False,)
    assert disk.waited == []
    files = [aged(-3_600_000), aged(500, "b")]
    assert disk.snapshot(files, files).stable == (False, True)
    assert disk.waited == [0.51]


def test_without_a_probe_a_minute_must_have_passed_by_the_drivers_clock() -> None:
    """If the clock of a file system cannot be read, it can be a minute fast or slow."""
    disk = Clocked(silent=True)
    assert disk.snapshot([aged(62_000), aged(30_000, "b")]).stable == (True, False)
    assert disk.waited == []


def test_another_file_system_has_another_clock() -> None:
    """If files are not on the index's file system, the driver's clock measures their age."""
    disk = Clocked()
    far = "s3a://bucket/t"
    snapshot = disk.snapshot([aged(62_000, root=far), aged(30_000, "b", far), aged(2000, "c")])
    assert snapshot.stable == (True, False, True)


def test_the_probe_decides_against_the_drivers_clock() -> None:
    """Young files of the file system count as young, even if the driver's clock is a day fast."""
    disk = Clocked()
    day = NOW + 86_400_000
    files = [aged(0)]
    snapshot = disk.snapshot(files, files, driver=day)
    assert (snapshot.stable, snapshot.instant_ms, disk.waited) == ((True,), NOW + 2010, [2.01])


def test_an_empty_table_is_settled() -> None:
    """A table without files needs no wait."""
    disk = Clocked()
    assert disk.snapshot([]) == Snapshot((), (), NOW)
