"""The versions of indexes that scans ask, read when first needed and looked for again later."""

from __future__ import annotations

import contextlib
import threading
import time
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from sieve.errors import CorruptError, RootRefusedError, SieveError, UnsupportedError
from sieve.metadata.commit import newest, read_version
from sieve.metadata.history import vacuumed
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import identity_from
from sieve.metadata.registration import Registration
from sieve.metadata.timestamps import iso
from sieve.operations.registered_index import same_table
from sieve.predicate.tree import Column
from sieve.reader.cache import Cache
from sieve.reader.version_reader import OpenIndex, open_version
from sieve.storage.interface import GoneError, Store
from sieve.tables.formats import is_outdated
from sql_ext.driver.roots import Roots
from sql_ext.driver.settings import Settings
from sql_ext.frontend.link import Request

MOST_HELD = 256
MOST_INSTANTS = 4096
MOST_VERSIONS = 8
"""Versions of an index asked for a scan that sees file slices in part."""

Versions = tuple[OpenIndex, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """An index as last read: the version, or the reason there is none to use."""

    index: OpenIndex | None
    reason: str
    detail: str
    read_at: float


class HeldIndexes:
    """Versions kept in memory; looks for newer ones in the background."""

    def __init__(self, roots: Roots, open_store: Callable[[str], Store], cache: Cache) -> None:
        self._roots = roots
        self._open_store = open_store
        self._cache = cache
        self._lock = threading.Lock()
        self._held: OrderedDict[str, Held] = OrderedDict()
        self._reading: set[str] = set()
        self._forgotten: Counter[str] = Counter()
        self._first_reads: dict[str, threading.Lock] = {}
        # Versions of the past, by folder and number, which stay what they are.
        self._past: OrderedDict[tuple[str, int], OpenIndex] = OrderedDict()
        self._instants: dict[tuple[str, int], str] = {}

    def forget(self, directory: str) -> None:
        """A statement has changed the index in this folder: the next scan reads it anew."""
        with self._lock:
            self._held.pop(directory, None)
            self._first_reads.pop(directory, None)
            self._forgotten[directory] += 1

    def opened(
        self, registered: Sequence[Registration | None], body: Mapping[str, Any]
    ) -> dict[Column, OpenIndex]:
        """Those of a table's indexes that have been read by now and that a scan may use."""
        with self._lock:
            held = [self._held.get(one.directory) for one in registered if one is not None]
        indexes = [one.index for one in held if one is not None and one.index is not None]
        return {
            index.manifest.column: index for index in indexes if not refused(index.manifest, body)
        }

    def usable(
        self, registration: Registration | None, request: Request, settings: Settings
    ) -> Held:
        """The index if scans may use it, else the reason why not."""
        if registration is None:
            return Held(None, "no-index", "the registration is not readable", 0)
        table = request.body["table"]
        try:
            # At every scan: another session of this driver may be allowed other roots.
            self._roots.check(registration.root, table["database"], settings, request.session)
        except RootRefusedError as error:
            return Held(None, "root-refused", error.message, 0)
        return self._get(registration, settings)

    def asked(self, newest: OpenIndex, body: Mapping[str, Any]) -> Versions:
        """The versions that this very scan asks, of those that it may use.

        The newest one; of a scan as of an earlier instant the one of that. If it sees slices in
        part, it is shown them with what was logged later, as later versions know them.
        """
        found: list[OpenIndex] = []
        at, in_part = body.get("instant"), body.get("in_part", False)
        if at is not None and newest.manifest.state == "ready":
            found = self._as_of(newest, iso(at), MOST_VERSIONS - 1 if in_part else 1)
        allowed = [one for one in (*found, newest) if not refused(one.manifest, body)]
        return tuple(allowed if in_part else allowed[:1])

    def _as_of(self, newest: OpenIndex, instant: str, most: int) -> list[OpenIndex]:
        """So many earlier versions: the last one no later than an instant, and those after it.

        Locations tell for themselves whether what a version says holds for them, at any instant: it
        only knows more of those of its own. Where all are later, the oldest retained is the first;
        where the newest is the one, or the only one, there are none.
        """
        if newest.manifest.instant <= instant:
            return []
        store, directory = newest.store, newest.directory
        try:
            numbers = range(vacuumed(store, directory) + 1, newest.manifest.version)
            place = bisect_right(numbers, instant, key=lambda n: self._instant_of(newest, n))
            first = max(0, place - 1)
            chosen = numbers[first : first + most]
        except SieveError:
            return []

        def version(number: int) -> OpenIndex | None:
            # The others may serve without it.
            with contextlib.suppress(SieveError):
                return self._past_version(store, directory, number)
            return None

        with self._lock:
            held = all((directory, number) in self._past for number in chosen)
        if held:
            found = [version(number) for number in chosen]
        else:
            # A store far away is waited for once.
            with ThreadPoolExecutor(most, "sieve-past") as pool:
                found = list(pool.map(version, chosen))
        return [one for one in found if one is not None]

    def _instant_of(self, newest: OpenIndex, number: int) -> str:
        key = (newest.directory, number)
        told = self._instants.get(key)
        if told is None:
            told = read_version(newest.store, newest.directory, number).instant
            if len(self._instants) >= MOST_INSTANTS:
                self._instants.clear()
            self._instants[key] = told
        return told

    def _past_version(self, store: Store, directory: str, number: int) -> OpenIndex:
        key = (directory, number)
        with self._lock:
            held = self._past.get(key)
        if held is None:
            manifest = read_version(store, directory, number)
            held = open_version(store, directory, manifest, self._cache)
        with self._lock:
            self._past[key] = held
            self._past.move_to_end(key)
            while len(self._past) > MOST_HELD:
                self._past.popitem(last=False)
        return held

    def _get(self, registration: Registration, settings: Settings) -> Held:
        directory = registration.directory
        with self._lock:
            held = self._held.get(directory)
            if held is not None:
                self._held.move_to_end(directory)
            first = self._first_reads.setdefault(directory, threading.Lock())
        if held is None:
            # Scans that come together wait for one of them to read, rather than all reading.
            with first:
                with self._lock:
                    held = self._held.get(directory)
                return held or self._read(registration, None)
        if time.monotonic() - held.read_at > settings.registry_ttl_s:
            self._read_later(registration, held)
        return held

    def _read_later(self, registration: Registration, held: Held) -> None:
        directory = registration.directory
        with self._lock:
            if directory in self._reading:
                return
            self._reading.add(directory)

        def read() -> None:
            try:
                self._read(registration, held.index)
            finally:
                with self._lock:
                    self._reading.discard(directory)

        threading.Thread(target=read, name="sieve-reread", daemon=True).start()

    def _read(self, registration: Registration, known: OpenIndex | None) -> Held:
        """Look for the newest version; what goes wrong becomes a reason, for this index alone."""
        now = time.monotonic()
        directory = registration.directory
        forgotten = self._forgotten[directory]
        try:
            store = self._open_store(registration.root)
            hint = known.manifest.version if known else 0
            manifest = newest(store, directory, hint)
            if manifest is None:
                held = Held(None, "index-gone", f"{directory} holds no version", now)
            elif known is not None and manifest.id == known.manifest.id:
                known.retry()
                held = Held(known, "", "", now)
            else:
                held = Held(open_version(store, directory, manifest, self._cache), "", "", now)
        except SieveError as error:
            held = Held(None, reason_of(error), str(error), now)
        with self._lock:
            # What was read while a statement changed an index may be older than the change.
            if forgotten == self._forgotten[directory]:
                self._held[directory] = held
            while len(self._held) > MOST_HELD:
                evicted, _ = self._held.popitem(last=False)
                self._first_reads.pop(evicted, None)
        return held


def reason_of(error: SieveError) -> str:
    """Why an index that could not be read is not used."""
    if isinstance(error, GoneError):
        return "index-gone"
    if isinstance(error, CorruptError):
        return "index-corrupt"
    return "version-too-new" if isinstance(error, UnsupportedError) else "error"


def refused(manifest: Manifest, body: Mapping[str, Any]) -> str:
    """The reason why a scan may not use a version; empty if it may."""
    # A copied property, or a table made anew under the same name, is not this index's.
    if not same_table(manifest.table, identity_from(body["table"])):
        return "no-index"
    if manifest.state != "ready":
        return "disabled" if manifest.state == "disabled" else "no-index"
    if is_outdated(manifest.format_name, manifest.fingerprint_parts):
        return "version-too-old"
    # The marks of the relation's session and of the executing one.
    if any(mark != manifest.fingerprint for mark in body["fingerprints"]):
        return "reader-changed"
    return ""
