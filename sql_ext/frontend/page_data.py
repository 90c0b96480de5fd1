"""Collects the data of the page "Sieve" in Spark's web UI, in less than a second.

The driver sends the list of indexed tables, its latest scans, and its record of all scans. This
module calls Spark only to find the folder of a database. The module lists no table's files and
starts no job.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from sieve.errors import SieveError
from sieve.metadata.commit import newest
from sieve.metadata.file_list import FileState
from sieve.metadata.manifest import Manifest
from sieve.metadata.registration import Registration, registrations
from sieve.reader.version_reader import read_locations
from sieve.storage.interface import Store
from sieve.workload.driver_record import RecordedWork, add_up, parse_record
from sieve.workload.suggest import Tests, suggest
from sieve.workload.tuples import with_tuples
from sql_ext.driver.roots import Roots
from sql_ext.driver.settings import Settings, valid_settings
from sql_ext.frontend import page_html
from sql_ext.frontend.handle_event import EventHandler
from sql_ext.frontend.page_html import ShownIndex, WorthHaving
from sql_ext.frontend.request_queue import Request

_SECONDS: Final = 0.7
"""The time limit for reading indexes, in seconds. The page omits data of indexes read later."""
_MOST_FILES: Final = 100_000
"""The page computes an index's coverage if the index has at most this number of files."""
_ADVISED: Final = 5
"""Maximum number of suggested indexes on the page. ADVISE SIEVE INDEXES returns them all."""


class PageService:
    """Creates the page "Sieve".

    Args:
        roots: checks whether a folder may contain indexes.
        open_store: opens the store of a root.
        scans: returns the driver's record of its scans, as JSON.
        event_handler: supplies the state of each table's automatic refresh.
        tests: results of ADVISE's tests, by table and column.
    """

    def __init__(
        self,
        roots: Roots,
        open_store: Callable[[str], Store],
        scans: Callable[[], str],
        event_handler: EventHandler,
        tests: Tests,
    ) -> None:
        self._roots = roots
        self._open_store = open_store
        self._scans = scans
        self._event_handler = event_handler
        self._tests = tests

    def page(self, request: Request) -> Mapping[str, Any]:
        """The page's HTML.

        Args:
            request: a request whose body contains ``tables`` and ``scans``.
        """
        body = request.body
        shown = list(self._indexes(request, time.monotonic() + _SECONDS))
        record = add_up([parse_record(self._scans())], round(time.time() * 1000))
        advice = _advice(record, body["tables"], dict(self._tests))
        return {"html": page_html.page(shown, body["scans"], advice)}

    def _indexes(self, request: Request, until: float) -> Iterator[ShownIndex]:
        settings = valid_settings(request.body["settings"])
        tables = request.body["tables"]
        for table in sorted(tables, key=lambda one: (one["database"], one["table"])):
            label = f"{table['database']}.{table['table']}"
            for name, registration in registrations(table["registrations"]).items():
                shown = ShownIndex(label, name, "not read in time")
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
        label, name = shown.table, shown.name
        try:
            self._roots.check(registration.root, table["database"], settings, request.session)
            store = self._open_store(registration.root)
            manifest = newest(store, registration.directory)
            if manifest is None or manifest.state == "dropped" or not _is_of(manifest, table):
                return ShownIndex(label, name, "gone")
            state: str = manifest.state
            if state == "ready":
                # The page shows that a refresh failed, without the reason. SHOW returns the reason
                # to users with permission.
                doing, *_ = self._event_handler.state(table["database"], table["table"]).split(":")
                state = doing or state
            coverage = _coverage(store, registration.directory, manifest)
            return ShownIndex(label, name, state, manifest, coverage)
        except SieveError as error:
            return ShownIndex(label, name, f"failed: {error.message}")


def _advice(record: RecordedWork, tables: Sequence[Mapping[str, Any]], tests: Tests) -> WorthHaving:
    """Suggests the indexes that would skip the most bytes; counts the untested columns."""
    indexed = {
        ((table["database"], table["table"]), one.column): name
        for table in tables
        for name, one in registrations(table["registrations"]).items()
    }
    groups = with_tuples(record.workload, indexed)
    columns = {(group.table, column) for group in groups for column in group.left}
    untested = columns - tests.keys()
    hopeful = suggest(groups, indexed, tests, untested)
    untested_count = sum((one.table, one.column) in untested for one in hopeful)
    found = suggest(groups, indexed, tests)
    return WorthHaving(found[:_ADVISED], untested_count, record.days)


def _is_of(manifest: Manifest, table: Mapping[str, Any]) -> bool:
    """Returns whether a version belongs to this table.

    A user can copy a registration to another table. The version then belongs to the original table.
    """
    own = manifest.table
    return (own.database.lower(), own.table.lower()) == (table["database"], table["table"])


def _coverage(store: Store, directory: str, manifest: Manifest) -> float | None:
    count = manifest.locations.count
    if not 0 < count <= _MOST_FILES:
        return None
    states = read_locations(store, directory, manifest).states
    return float((states == FileState.READ).mean())
