"""History writer: saves the driver's record of scans next to the indexes (``spark.sieve.history``).

The writer has its own thread, so queries do not wait for a write. Every ten minutes, the thread
writes the record if it contains new scans. The driver requests a last write before it ends.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from py4j.protocol import Py4JError

from sieve.errors import SieveError
from sieve.metadata.scan_history import save_record
from sieve.storage.interface import Store
from sieve.workload.driver_record import ScanRecord, ScanSums, parse_record
from sql_ext.driver.roots import Roots
from sql_ext.frontend.request_queue import Request

log = logging.getLogger(__name__)

SAVE_S: Final = 600.0
"""Number of seconds between two attempts to save the driver's record."""


class HistoryWriter:
    """Writes the driver's record into the root of each database that the driver has scanned.

    Args:
        driver: entry point of the driver's gateway, a py4j object.
        roots: returns the root of each database.
        open_store: opens the store of a root.
    """

    def __init__(self, driver: Any, roots: Roots, open_store: Callable[[str], Store]) -> None:
        self._driver = driver
        self._roots = roots
        self._open_store = open_store
        self._lock = threading.Lock()
        self._saved = ""
        self._warned: set[str] = set()

    def start(self) -> None:
        """Starts the thread that saves the record every `SAVE_S` seconds."""
        threading.Thread(target=self._run, name="sieve-history", daemon=True).start()

    def save(self, _: Request) -> Mapping[str, Any]:
        """Saves the record if it contains new scans.

        The driver requests a last save before it ends.
        """
        self.save_if_changed()
        return {}

    def save_if_changed(self) -> None:
        """If the driver ran scans since the last call, writes one file per root."""
        with self._lock:
            text = self._driver.scans()
            if text == self._saved:
                return
            record = parse_record(text)
            by_database: defaultdict[str, list[ScanSums]] = defaultdict(list)
            for one in record.sums:
                by_database[one.table[0]].append(one)
            by_root: defaultdict[str, list[ScanSums]] = defaultdict(list)
            for database, sums in by_database.items():
                if (root := self._root(database)) is not None:
                    by_root[root] += sums
            for root, sums in by_root.items():
                self._write(root, replace(record, sums=tuple(sums)))
            self._saved = text

    def _run(self) -> None:
        while True:
            time.sleep(SAVE_S)
            try:
                self.save_if_changed()
            except Exception:
                # The next attempt may succeed, and no user waits for the file. So the thread only
                # logs the error.
                log.exception("the history of scans could not be saved")

    def _root(self, database: str) -> str | None:
        try:
            return self._roots.of_driver(database, self._driver.defaultSession)
        except Py4JError:
            # The database has been dropped.
            return None

    def _write(self, root: str, record: ScanRecord) -> None:
        try:
            save_record(self._open_store(root), root, record, round(time.time() * 1000))
        except SieveError as error:
            if root not in self._warned:
                self._warned.add(root)
                log.warning("what scans asked is not kept in %s: %s", root, error)
