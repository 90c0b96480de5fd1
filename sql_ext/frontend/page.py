"""The page of the tab "Sieve" in Spark's web UI: collects its content within a second.

The driver passes the tables that have an index as far as it knows, its latest scans, and its record
of scans. This module calls Spark only to look up a database's folder: it lists no table and starts
no job. A picture takes longer than a page may take. So a thread draws the picture, and the page
loads itself again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from sieve.errors import SieveError
from sieve.metadata.commit import newest
from sieve.metadata.file_list import FileState
from sieve.metadata.manifest import Manifest
from sieve.metadata.registration import Registration, registrations
from sieve.operations.registered_index import Ready
from sieve.reader.version_reader import read_locations
from sieve.storage.interface import Store
from sieve.workload.column_use import Column
from sieve.workload.driver_record import RecordedWork, add_up, parse_record
from sieve.workload.rank import ColumnTest, suggest
from sieve.workload.record import ScanGroup, Table
from sql_ext.driver.roots import Roots
from sql_ext.driver.settings import Settings, valid_settings
from sql_ext.frontend import page_html
from sql_ext.frontend.events import AutoRefresh
from sql_ext.frontend.link import Request
from sql_ext.frontend.page_html import Advice, ShownIndex
from udfs.inspection.rows import anonymous_picture

log = logging.getLogger(__name__)

_SECONDS: Final = 0.7
"""Seconds for reading manifests and lists. The page does not show what is not read by then."""
_MOST_FILES: Final = 100_000
"""Maximum number of files of a list that is read for its coverage."""
_PICTURES: Final = 16
_ADVISED: Final = 5
"""Maximum number of advised indexes on the page; ADVISE SIEVE INDEXES lists all."""


class PageService:
    """Makes the page.

    Args:
        roots: checks which folders may hold indexes.
        open_store: opens the store of a root.
        scans: the driver's record of scans, as JSON.
        auto_refresh: the refreshes that follow writes.
        tests: the results of ADVISE's tests of columns, by table.
    """

    def __init__(
        self,
        roots: Roots,
        open_store: Callable[[str], Store],
        scans: Callable[[], str],
        auto_refresh: AutoRefresh,
        tests: Mapping[tuple[Table, Column], ColumnTest],
    ) -> None:
        self._roots = roots
        self._open_store = open_store
        self._scans = scans
        self._auto_refresh = auto_refresh
        self._tests = tests
        self._lock = threading.Lock()
        # By index and version: the PNG, or the reason why there is none; None while it is drawn.
        self._pictures: OrderedDict[tuple[str, str], bytes | str | None] = OrderedDict()

    def page(self, request: Request) -> Mapping[str, Any]:
        """The page's HTML.

        Args:
            request: its body has ``tables``, ``scans`` and ``index``, the uuid of the index whose
                picture to show, or None.
        """
        body = request.body
        shown = list(self._indexes(request, time.monotonic() + _SECONDS))
        chosen = next((one for one in shown if one.uuid == body["index"]), None)
        picture = None
        if chosen is not None and chosen.manifest is not None:
            picture = self._picture(chosen.manifest, self._registration(body, chosen.uuid))
        own = parse_record(self._scans())
        record = add_up([own], round(time.time() * 1000))
        advice = _advice(record, body["tables"], dict(self._tests))
        html = page_html.page(shown, body["scans"], chosen, picture, advice)
        return {"html": html}

    @staticmethod
    def _registration(body: Mapping[str, Any], uuid: str) -> Registration:
        return next(
            registration
            for table in body["tables"]
            for registration in registrations(table["registrations"]).values()
            if registration.uuid == uuid
        )

    def _indexes(self, request: Request, until: float) -> Iterator[ShownIndex]:
        settings = valid_settings(request.body["settings"])
        tables = request.body["tables"]
        for table in sorted(tables, key=lambda one: (one["database"], one["table"])):
            label = f"{table['database']}.{table['table']}"
            for name, registration in registrations(table["registrations"]).items():
                shown = ShownIndex(label, name, registration.uuid, "not read in time")
                if time.monotonic() < until:
                    shown = self._read(shown, registration, table, settings, request)
                yield shown

    def _read(
        self,
        shown: ShownIndex,
        registration: Registration,
        table: Mapping[str, Any],
        settings: Settings,
        request: Request,
    ) -> ShownIndex:
        label, name, uuid = shown.table, shown.name, shown.uuid
        try:
            self._roots.check(registration.root, table["database"], settings, request.session)
            store = self._open_store(registration.root)
            manifest = newest(store, registration.directory)
            if manifest is None or manifest.state == "dropped" or not _is_of(manifest, table):
                return ShownIndex(label, name, uuid, "gone")
            state: str = manifest.state
            if state == "ready":
                # SHOW gives the reason of a failed refresh to users who may see it.
                doing, *_ = self._auto_refresh.state(table["database"], table["table"]).split(":")
                state = doing or state
            return ShownIndex(
                label, name, uuid, state, manifest,
                _coverage(store, registration.directory, manifest),
            )  # fmt: skip
        except SieveError as error:
            return ShownIndex(label, name, uuid, f"failed: {error.message}")

    def _picture(self, manifest: Manifest, registration: Registration) -> bytes | str | None:
        """The PNG, the reason why there is none, or None while it is drawn."""
        key = (manifest.index, manifest.id)
        with self._lock:
            if isinstance(found := self._pictures.get(key, b""), str):
                # The next request draws the picture again, because the reason may have passed.
                del self._pictures[key]
                return found
            if key in self._pictures:
                return found
            self._pictures[key] = None
            while len(self._pictures) > _PICTURES:
                self._pictures.popitem(last=False)
        threading.Thread(
            target=self._draw, args=(key, manifest, registration), name="sieve-draw", daemon=True
        ).start()
        return None

    def _draw(self, key: tuple[str, str], manifest: Manifest, registration: Registration) -> None:
        drawn: bytes | str
        try:
            store = self._open_store(registration.root)
            drawn = anonymous_picture(Ready(manifest.name, registration, store, manifest))
        except SieveError as error:
            drawn = error.message
        except Exception:
            log.exception("index %s could not be drawn", manifest.name)
            drawn = "it could not be drawn; the driver's log has the reason"
        with self._lock:
            self._pictures[key] = drawn


def _advice(
    record: RecordedWork,
    tables: Sequence[Mapping[str, Any]],
    tests: Mapping[tuple[Table, Column], ColumnTest],
) -> Advice:
    """The indexes that save most, the best first, and the number of columns without a test."""
    groups: defaultdict[Table, list[ScanGroup]] = defaultdict(list)
    for group in record.workload:
        groups[group.table].append(group)
    indexed = {
        (table["database"], table["table"]): frozenset(
            one.column for one in registrations(table["registrations"]).values()
        )
        for table in tables
    }
    found, untested = [], 0
    for table, own in groups.items():
        there = indexed.get(table, frozenset())
        tested = {column: test for (name, column), test in tests.items() if name == table}
        untested += sum(one.column not in tested for one in suggest(own, there))
        found += suggest(own, there, tested)
    found.sort(key=lambda one: -one.bytes_saved)
    return Advice(found[:_ADVISED], untested, record.days)


def _is_of(manifest: Manifest, table: Mapping[str, Any]) -> bool:
    """Whether a version belongs to a table of this name: its registration may have been copied."""
    own = manifest.table
    return (own.database.lower(), own.table.lower()) == (table["database"], table["table"])


def _coverage(store: Store, directory: str, manifest: Manifest) -> float | None:
    count = manifest.locations.count
    if not 0 < count <= _MOST_FILES:
        return None
    states = read_locations(store, directory, manifest).states
    return float((states == FileState.READ).mean())
