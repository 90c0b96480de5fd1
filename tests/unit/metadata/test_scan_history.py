"""Tests the scan history.

Each driver has a file in the root, but any user can add files to the root.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sieve.errors import CorruptError
from sieve.metadata.scan_history import (
    AGE_MS,
    FILE_BYTES,
    FILES,
    SavedRecords,
    save_record,
    saved_records,
)
from sieve.storage.interface import GoneError
from sieve.storage.local import LocalStore
from sieve.workload.driver_record import ScanRecord, parse_record

NOW = 1_790_000_000_000
OWN, OTHER = "a" * 32, "b" * 32


def record(driver: str, size: int = 7, note: str = "id") -> ScanRecord:
    """A record that a driver writes, with the totals of one kind of scan."""
    asked = {"table": ["shop", "t"], "used": [], "filter": {"op": "=", "col": [note]}}
    row = {"asked": json.dumps(asked), "scans": 1, "bytes": size, "files": 1, "bytes_skipped": 0}
    return parse_record(json.dumps({"driver": driver, "since": NOW - 5, "scans": [row]}))


@pytest.fixture
def root(tmp_path: Path) -> str:
    """The URI of a root folder that does not exist yet."""
    return f"file:{tmp_path}/.sieve"


def folder(root: str) -> Path:
    """The folder below the root that contains the history files."""
    return Path(root.removeprefix("file:")) / "history"


def save(root: str, one: ScanRecord, at: int = NOW) -> None:
    """Saves a record at a given time. The given time is also the modification time of the file."""
    before = set(folder(root).glob("*"))
    save_record(LocalStore(), root, one, at)
    for path in set(folder(root).glob("*")) - before:
        os.utime(path, ns=(at * 10**6, at * 10**6))


def saved(root: str, at: int = NOW) -> SavedRecords:
    """Reads the records that other drivers saved."""
    return saved_records(LocalStore(), root, OWN, at)


def test_a_driver_has_one_file(root: str) -> None:
    """A driver keeps only its latest file. File numbers rise even if the clock goes back."""
    assert saved(root) == SavedRecords((), 0)
    save(root, record(OTHER, 1))
    save(root, record(OTHER, 2))
    save(root, record(OTHER, 3), NOW - 9)
    assert [path.name for path in folder(root).iterdir()] == [f"{OTHER}-{NOW + 2}.json"]
    assert saved(root) == SavedRecords((record(OTHER, 3),), 0)
    save(root, record(OTHER, 4), NOW + 9)
    assert [path.name for path in folder(root).iterdir()] == [f"{OTHER}-{NOW + 9}.json"]


def test_driver_does_not_read_its_own_file(root: str) -> None:
    """A driver does not read its own file, because it has its own record in memory."""
    save(root, record(OWN))
    save(root, record(OTHER))
    assert saved(root).records == (record(OTHER),)


def test_only_the_latest_file_of_a_driver_counts(root: str) -> None:
    """If a driver has left two files, only the later file counts.

    A driver can die between the write of a file and the deletion of the previous file.
    """
    for number, size in ((NOW + 1, 5), (NOW, 4), (NOW - 1, 3)):
        save(root, record(OTHER, size), number)
        folder(root).joinpath(f"{OTHER}-{number}.json").rename(folder(root) / f"kept-{number}")
    for path in folder(root).glob("kept-*"):
        path.rename(path.with_name(f"{OTHER}-{path.name[5:]}.json"))
        os.utime(folder(root) / f"{OTHER}-{path.name[5:]}.json", ns=(NOW * 10**6,) * 2)
    assert saved(root) == SavedRecords((record(OTHER, 5),), 0)


def test_old_files_are_ignored_and_deleted(root: str) -> None:
    """Files older than 30 days do not count. The next driver that saves a file deletes old files.

    The next driver that saves a file also deletes the drafts of dead writers.
    """
    save(root, record(OTHER))
    draft = folder(root) / f".draft-{'c' * 32}"
    draft.touch()
    os.utime(draft, ns=(NOW * 10**6,) * 2)
    assert saved(root, NOW + AGE_MS).records == (record(OTHER),)
    assert saved(root, NOW + AGE_MS + 1) == SavedRecords((), 0)
    save(root, record(OWN), NOW + AGE_MS)
    assert len(list(folder(root).iterdir())) == 3
    save(root, record(OWN), NOW + AGE_MS + 1)
    assert [path.name for path in folder(root).iterdir()] == [f"{OWN}-{NOW + AGE_MS + 1}.json"]
    assert AGE_MS == 30 * 86_400_000


def test_only_the_newest_files_are_kept_and_read(root: str) -> None:
    """Drivers keep and read only the newest 64 files, so they cannot fill a root."""
    assert FILES == 64
    drivers = [f"{k:032x}" for k in range(FILES + 2)]
    for k, driver in enumerate(drivers):
        save(root, record(driver, k), NOW + k)
    names = {path.name[:32] for path in folder(root).iterdir()}
    assert names == set(drivers[2:])
    os.utime(next(folder(root).glob(f"{drivers[2]}-*")), ns=((NOW + 1000) * 10**6,) * 2)
    extra = record("f" * 32)
    folder(root).joinpath(f"{extra.driver}-1.json").write_text("{}")
    os.utime(folder(root) / f"{extra.driver}-1.json", ns=(1, 1))
    found = saved(root, NOW)
    assert {one.driver for one in found.records} == set(drivers[2:])
    assert found.ignored == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "7",
        '{"driver": "x", "since": 1, "scans": []}',
        "[" * 100_000,
        json.dumps({"driver": OTHER, "since": -1, "scans": []}),
        json.dumps({"driver": OTHER, "since": 1, "scans": [7]}),
        " " * (FILE_BYTES + 1),
    ],
)
def test_files_that_are_no_records_are_counted(root: str, text: str) -> None:
    """Drivers count malformed files, and otherwise ignore them. Any user can write such files."""
    save(root, record("c" * 32))
    folder(root).joinpath(f"{OTHER}-{NOW}.json").write_text(text)
    os.utime(folder(root) / f"{OTHER}-{NOW}.json", ns=(NOW * 10**6,) * 2)
    folder(root).joinpath("notes.txt").touch()
    folder(root).joinpath(f"{'d' * 32}-1.json").mkdir()
    folder(root).joinpath(f".probe-{'d' * 32}").touch()
    found = saved(root)
    assert found.records == (record("c" * 32),)
    assert found.ignored == 3
    save(root, record(OWN))
    assert folder(root).joinpath("notes.txt").exists()


def test_file_replaced_while_it_is_read_is_not_malformed(root: str) -> None:
    """A file does not count as malformed if its driver replaces the file during a read."""
    save(root, record(OTHER))

    class Late(LocalStore):
        def read(self, uri: str, limit: int = 0) -> bytes:  # noqa: ARG002 - the interface's
            raise GoneError("SIEVE_FILE_GONE", uri)

    assert saved_records(Late(), root, OWN, NOW) == SavedRecords((), 0)


def test_another_users_file_cannot_be_deleted(root: str) -> None:
    """A driver saves its own record even if it cannot delete another user's file."""
    save(root, record(OTHER))

    class Denied(LocalStore):
        def delete(self, uri: str) -> None:
            raise CorruptError("SIEVE_PERMISSION_DENIED", uri)

    save_record(Denied(), root, record(OWN), NOW + AGE_MS + 1)
    assert len(list(folder(root).iterdir())) == 2


def test_a_long_record_keeps_the_sums_of_most_bytes(root: str) -> None:
    """A file has at most 256 KiB.

    From a record of more than 256 KiB, only the sums with the most scanned bytes are saved.
    """
    assert FILE_BYTES == 256 << 10
    many: Any = [record(OTHER, k, "c" * 1000).sums[0] for k in range(400)]
    save(root, ScanRecord(OTHER, NOW, tuple(many)))
    (path,) = folder(root).iterdir()
    assert FILE_BYTES - 1200 < path.stat().st_size <= FILE_BYTES
    (found,) = saved(root).records
    assert [one.bytes for one in found.sums] == list(range(399, 399 - len(found.sums), -1))
