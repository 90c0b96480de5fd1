"""Tests the writer of scan histories: where and when it writes, and missing permissions."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError

from sieve.errors import DeniedError
from sieve.metadata.scan_history import saved_records
from sieve.storage.local import LocalStore
from sql_ext.frontend import save_scans as module
from sql_ext.frontend.save_scans import SAVE_S, HistoryWriter

DRIVER = "ab" * 16


class Scanned:
    """A fake driver, which has scanned some tables."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: list[dict[str, Any]] = []
        roots: Any = SimpleNamespace(of_driver=self._root)
        self.writer = HistoryWriter(self, roots, self.open_store)
        self.denied = False

    def scan(self, database: str, table: str) -> None:
        """Records one more scan of a table."""
        asked = {"table": [database, table], "used": [], "filter": {"op": "=", "col": ["id"]}}
        sums = {"scans": 1, "bytes": 1, "files": 1, "files_skipped": 0, "bytes_skipped": 0}
        self.rows.append({"asked": json.dumps(asked)} | sums)

    def scans(self) -> str:
        """Returns the driver's record of its scans, as JSON."""
        return json.dumps({"driver": DRIVER, "since": 1, "scans": self.rows})

    def defaultSession(self) -> Any:  # noqa: N802 - the shim's
        """Replaces the session that queries the metastore."""
        return "session"

    def _root(self, database: str, session: Any) -> str:
        assert session() == "session"
        if database == "gone":
            raise Py4JError("no such database")
        return f"file:{self.folder}/{database[0]}"

    def open_store(self, uri: str) -> LocalStore:
        """Opens the store of a root, or raises an error if permission for the root is missing."""
        if self.denied:
            raise DeniedError("SIEVE_PERMISSION_DENIED", uri)
        return LocalStore()

    def saved_tables(self, root: str) -> list[tuple[str, ...]]:
        """The tables in the records that were saved below a root."""
        found = saved_records(LocalStore(), f"file:{self.folder}/{root}", "", 1)
        return [one.table for record in found.records for one in record.sums]


def test_databases_of_one_root_share_a_history_file(tmp_path: Path) -> None:
    """Databases with the same root share a file of scans.

    The file omits scans of dropped databases.
    """
    driver = Scanned(tmp_path)
    for database in ("a1", "a2", "b", "gone"):
        driver.scan(database, "t")
    request: Any = None
    assert driver.writer.save(request) == {}
    assert driver.saved_tables("a") == [("a1", "t"), ("a2", "t")]
    assert driver.saved_tables("b") == [("b", "t")]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_driver_without_new_scans_writes_no_file(tmp_path: Path) -> None:
    """A driver without new scans does not write its file again.

    A driver that has scanned no table has no file.
    """
    driver = Scanned(tmp_path)
    driver.writer.save_if_changed()
    assert list(tmp_path.iterdir()) == []
    driver.scan("a", "t")
    driver.writer.save_if_changed()
    (first,) = tmp_path.glob("a/history/*")
    driver.writer.save_if_changed()
    assert list(tmp_path.glob("a/history/*")) == [first]
    driver.scan("a", "u")
    driver.writer.save_if_changed()
    assert list(tmp_path.glob("a/history/*")) != [first]
    assert driver.saved_tables("a") == [("a", "t"), ("a", "u")]


def test_driver_without_permission_warns_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A driver without write permission for a root warns once, and tries again after new scans."""
    driver = Scanned(tmp_path)
    driver.denied = True
    for table in ("t", "u"):
        driver.scan("a", table)
        driver.writer.save_if_changed()
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert f"{tmp_path}/a" in caplog.text
    driver.scan("b", "t")
    driver.writer.save_if_changed()
    assert len(caplog.records) == 2
    driver.denied = False
    driver.scan("b", "u")
    driver.writer.save_if_changed()
    assert driver.saved_tables("a") == [("a", "t"), ("a", "u")]


def test_history_is_saved_every_ten_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The first save happens after ten minutes.

    If saving fails, the failure is logged, and the thread continues.
    """
    driver = Scanned(tmp_path)
    driver.scan("a", "t")
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        assert (len(list(tmp_path.iterdir())) > 0) == (len(slept) == 3)
        driver.rows[0].pop("scans", None)
        if len(slept) == 2:
            driver.rows[0]["scans"] = 1
        if len(slept) == 3:
            raise SystemExit

    def run_here(target: Any, name: str, daemon: bool) -> Any:
        assert (name, daemon) == ("sieve-history", True)
        return SimpleNamespace(start=target)

    monkeypatch.setattr(module.time, "sleep", sleep)
    monkeypatch.setattr(module.threading, "Thread", run_here)
    with pytest.raises(SystemExit):
        driver.writer.start()
    assert slept == [SAVE_S] * 3 == [600] * 3
    assert caplog.text.count("could not be saved") == 1
