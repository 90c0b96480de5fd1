"""Prune requests: which files of an indexed table a scan may leave out, and why not others."""

from __future__ import annotations

import base64
import threading
import time
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sieve.cache import Cache
from sieve.errors import CorruptError, SieveError, UnsupportedError
from sieve.expressions import Always, Column, Predicate, columns, not_understood, parse
from sieve.found import same_table
from sieve.history import vacuumed
from sieve.instants import iso
from sieve.manifest import Manifest
from sieve.opened import OpenIndex, open_version
from sieve.predicate import evaluate
from sieve.publish import newest, read_version
from sieve.registration import Registration, parse_registration
from sieve.store import GoneError, Store, join
from sieve.types import VersionId, identity_from
from sql_ext.link import Request
from sql_ext.roots import Roots
from sql_ext.settings import Settings, parse_settings
from sql_ext.table_files import (
    OverTable,
    TableFiles,
    UnreadableIndexError,
    dictionary_id,
    newest_first,
    unite,
)

Flags = npt.NDArray[np.bool_]
MOST_TABLES = 256


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """An index as last read: the version, or the reason there is none to use."""

    index: OpenIndex | None
    reason: str
    detail: str
    read_at: float


class PruneService:
    """Answers scans from versions kept in memory; looks for newer versions in the background."""

    def __init__(self, roots: Roots, open_store: Callable[[str], Store]) -> None:
        self._roots = roots
        self._open_store = open_store
        self._lock = threading.Lock()
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self.cache = Cache(Settings().cache_bytes)
        # What a dictionary is made from: the list itself may have to make room.
        self._dictionaries: OrderedDict[str, tuple[OpenIndex, ...]] = OrderedDict()
        self._reading: set[str] = set()
        self._forgotten: Counter[str] = Counter()
        self._first_reads: dict[str, threading.Lock] = {}
        # Versions of the past, by folder and number, which stay what they are.
        self._past: OrderedDict[tuple[str, int], OpenIndex] = OrderedDict()

    def forget(self, directory: str) -> None:
        """A statement has changed the index in this folder: the next scan reads it anew."""
        with self._lock:
            self._held.pop(directory, None)
            self._forgotten[directory] += 1

    def prune(self, request: Request) -> Mapping[str, Any]:
        """Body: table, registrations, fingerprints, predicate. See docs/architecture.md."""
        body = request.body
        settings = parse_settings(body["settings"])
        # One cache serves all sessions, so the latest scan has its way.
        self.cache.resize(settings.cache_bytes)
        predicate = parse(body["predicate"])
        registered = [parse_registration(text) for text in body["registrations"].values()]
        usable: dict[Column, OpenIndex] = {}
        reasons: dict[str, int] = {}
        detail = ""
        for registration in _spoken_of(predicate, registered):
            held = self._usable(registration, request, settings)
            if held.index is None:
                reasons[held.reason] = reasons.get(held.reason, 0) + 1
                detail = held.detail or detail
            else:
                usable[held.index.manifest.column] = held.index
        known = self._opened(registered, body)
        while usable:
            try:
                return self._answer(usable, known, predicate, reasons, detail)
            except UnreadableIndexError as failed:
                # The others may still serve.
                del usable[failed.manifest.column]
                reason = _reason(failed.cause)
                reasons[reason] = reasons.get(reason, 0) + 1
                detail = str(failed.cause)
        return {"reasons": reasons or {"no-predicate": 1}, "detail": detail}

    def _answer(
        self,
        usable: Mapping[Column, OpenIndex],
        known: Mapping[Column, OpenIndex],
        predicate: Predicate,
        reasons: Mapping[str, int],
        detail: str,
    ) -> Mapping[str, Any]:
        """What the indexes say, beside the reasons why others say nothing."""
        unused = _unused(predicate, frozenset(column[0] for column in usable))
        reasons = {**reasons, **({"unsupported-predicate": unused} if unused else {})}
        silent = {"reasons": reasons or {"no-predicate": 1}, "detail": detail}
        asked = {column: usable[column] for column in columns(predicate) if column in usable}
        if not asked:
            return silent
        dictionary, files = self._table_files(
            list(asked.values()), list({**known, **usable}.values())
        )
        over = {
            column: OverTable(index, files.places[index.manifest.index])
            for column, index in asked.items()
        }
        verdict = evaluate(predicate, over, len(files.paths))
        if not verdict.used:
            return silent
        used = [usable[column].manifest for column in sorted(verdict.used)]
        return {
            "dictionary": dictionary,
            "skip": _bits(~verdict.keep),
            "used": [f"{manifest.name}@{manifest.version}" for manifest in used],
            "reasons": reasons,
            "detail": detail,
        }

    def dictionary(self, request: Request) -> Mapping[str, Any]:
        """The files behind the bits of an answer, told once."""
        wanted = request.body["dictionary"]
        with self._lock:
            indexes = self._dictionaries.get(wanted)
        if indexes is None:
            raise UnsupportedError(
                "SIEVE_DICTIONARY_GONE", "the list of files was replaced meanwhile"
            )
        try:
            files = self.cache.get(wanted, lambda: unite(indexes))
        except UnreadableIndexError as failed:
            raise failed.cause from failed
        return {
            "paths": files.paths,
            "lengths": files.lengths.tolist(),
            "times": files.times.tolist(),
        }

    def _opened(
        self, registered: Sequence[Registration | None], body: Mapping[str, Any]
    ) -> dict[Column, OpenIndex]:
        """Those of a table's indexes that have been read by now and that a scan may use."""
        with self._lock:
            held = [self._held.get(_folder(one)) for one in registered if one is not None]
        indexes = [one.index for one in held if one is not None and one.index is not None]
        return {
            index.manifest.column: index
            for index in indexes
            if not _refused(index.manifest, body)
        }

    def _usable(
        self, registration: Registration | None, request: Request, settings: Settings
    ) -> _Held:
        """The index if this very scan may use it, else the reason why not."""
        if registration is None:
            return _Held(None, "no-index", "the registration is not readable", 0)
        table = request.body["table"]
        try:
            # At every scan: another session of this driver may be allowed other roots.
            self._roots.check(registration.root, table["database"], settings, request.session)
        except UnsupportedError as error:
            return _Held(None, "no-index", error.message, 0)
        held = self._get(registration, settings)
        if held.index is None:
            return held
        if (at := request.body.get("instant")) is not None and held.index.manifest.state == "ready":
            past = self._as_of(held.index, iso(at))
            if past is not None and not _refused(past.manifest, request.body):
                return replace(held, index=past)
        reason = _refused(held.index.manifest, request.body)
        return replace(held, index=None, reason=reason) if reason else held

    def _as_of(self, newest: OpenIndex, instant: str) -> OpenIndex | None:
        """The newest earlier version that is no later than an instant, else the oldest retained.

        Locations tell for themselves whether what a version says holds for them, at any instant: it
        only knows more of those of its own. None where the newest is the one, or the only one.
        """
        if newest.manifest.instant <= instant:
            return None
        store, directory = newest.store, newest.directory
        try:
            numbers = range(vacuumed(store, directory) + 1, newest.manifest.version)
            place = bisect_right(
                numbers, instant, key=lambda n: read_version(store, directory, n).instant
            )
            number = numbers[max(0, place - 1)] if numbers else 0
            return self._past_version(store, directory, number) if number else None
        except SieveError:
            return None

    def _past_version(self, store: Store, directory: str, number: int) -> OpenIndex:
        key = (directory, number)
        with self._lock:
            held = self._past.get(key)
        if held is None:
            manifest = read_version(store, directory, number)
            held = open_version(store, directory, manifest, self.cache)
        with self._lock:
            self._past[key] = held
            self._past.move_to_end(key)
            while len(self._past) > MOST_TABLES:
                self._past.popitem(last=False)
        return held

    def _get(self, registration: Registration, settings: Settings) -> _Held:
        directory = _folder(registration)
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

    def _read_later(self, registration: Registration, held: _Held) -> None:
        directory = _folder(registration)
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

    def _read(self, registration: Registration, known: OpenIndex | None) -> _Held:
        """Look for the newest version; what goes wrong becomes a reason, for this index alone."""
        now = time.monotonic()
        directory = _folder(registration)
        forgotten = self._forgotten[directory]
        try:
            store = self._open_store(registration.root)
            hint = known.manifest.version if known else 0
            manifest = newest(store, directory, hint)
            if manifest is None:
                held = _Held(None, "index-gone", f"{directory} holds no version", now)
            elif known is not None and manifest.id == known.manifest.id:
                known.retry()
                held = _Held(known, "", "", now)
            else:
                held = _Held(open_version(store, directory, manifest, self.cache), "", "", now)
        except SieveError as error:
            held = _Held(None, _reason(error), str(error), now)
        with self._lock:
            # What was read while a statement changed an index may be older than the change.
            if forgotten == self._forgotten[directory]:
                self._held[directory] = held
            while len(self._held) > MOST_TABLES:
                self._held.popitem(last=False)
        return held

    def _table_files(
        self, asked: Sequence[OpenIndex], usable: Sequence[OpenIndex]
    ) -> tuple[str, TableFiles]:
        """The files that the asked indexes know, maybe others too, and the identity of the list."""
        wanted = {index.manifest.id for index in asked}
        name, indexes = self._listed(wanted, usable)
        try:
            return name, self.cache.get(name, lambda: unite(indexes))
        except UnreadableIndexError as failed:
            if failed.manifest.id in wanted:
                raise
        # One that has no say, and may have been dropped, must not keep the others from serving.
        with self._lock:
            self._dictionaries.pop(name, None)
        name, indexes = self._listed(wanted, asked)
        return name, self.cache.get(name, lambda: unite(indexes))

    def _listed(
        self, wanted: AbstractSet[VersionId], otherwise: Sequence[OpenIndex]
    ) -> tuple[str, tuple[OpenIndex, ...]]:
        """The list used last that has all that is wanted, else a new one; and of which indexes.

        So a new version of an index that has no say does not renew the list.
        """
        with self._lock:
            name = next(
                (
                    name
                    for name, indexes in reversed(self._dictionaries.items())
                    if wanted <= {index.manifest.id for index in indexes}
                ),
                None,
            )
            if name is None:
                indexes = newest_first(otherwise)
                name = dictionary_id(indexes)
                self._dictionaries[name] = indexes
            self._dictionaries.move_to_end(name)
            while len(self._dictionaries) > MOST_TABLES:
                self._dictionaries.popitem(last=False)
            return name, self._dictionaries[name]


def _folder(registration: Registration) -> str:
    return join(registration.root, registration.uuid)


def _spoken_of(
    predicate: Predicate, registered: Sequence[Registration | None]
) -> list[Registration | None]:
    """The registrations but for those whose column a predicate leaves alone.

    What nobody asks is not opened: the scan would wait for that, each time one is made anew.
    """
    names = {column[0] for column in columns(predicate)}
    names.update(name for part in not_understood(predicate) for name in part.names)
    return [one for one in registered if one is None or one.column[0] in names]


def _reason(error: SieveError) -> str:
    """Why an index that could not be read is not used."""
    if isinstance(error, GoneError):
        return "index-gone"
    if isinstance(error, CorruptError):
        return "index-corrupt"
    return "version-too-new" if isinstance(error, UnsupportedError) else "error"


def _refused(manifest: Manifest, body: Mapping[str, Any]) -> str:
    """The reason why a scan may not use a version; empty if it may."""
    # A copied property, or a table made anew under the same name, is not this index's.
    if not same_table(manifest.table, identity_from(body["table"])):
        return "no-index"
    if manifest.state != "ready":
        return "disabled" if manifest.state == "disabled" else "no-index"
    # The marks of the relation's session and of the executing one.
    if any(mark != manifest.fingerprint for mark in body["fingerprints"]):
        return "reader-changed"
    return ""


def _unused(predicate: Predicate, indexed: frozenset[str]) -> int:
    """How many parts of a predicate speak of an indexed column in a form no index can use."""
    return sum(not indexed.isdisjoint(part.names) for part in not_understood(predicate))


def _bits(flags: Flags) -> str:
    return base64.b64encode(np.packbits(flags, bitorder="little").tobytes()).decode("ascii")
