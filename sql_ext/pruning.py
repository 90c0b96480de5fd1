"""Prune requests: which files of an indexed table a scan may leave out, and why not others."""

from __future__ import annotations

import base64
import contextlib
import threading
import time
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from sieve.cache import Cache
from sieve.errors import CorruptError, SieveError, UnsupportedError
from sieve.expressions import Column, Predicate, columns, not_understood, parse
from sieve.found import same_table
from sieve.history import vacuumed
from sieve.instants import iso
from sieve.keys import Encoder
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
    in_order,
    unite,
)

Flags = npt.NDArray[np.bool_]
MOST_TABLES = 256
MOST_VERSIONS = 8
"""Versions of an index asked for a scan that sees file slices in part."""

MOST_INSTANTS = 4096

Versions = tuple[OpenIndex, ...]


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
        self._instants: dict[tuple[str, int], str] = {}

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
        usable: dict[Column, Versions] = {}
        reasons: dict[str, int] = {}
        detail = ""
        for registration in _spoken_of(predicate, registered):
            held = self._usable(registration, request, settings)
            versions = self._asked(held.index, body) if held.index is not None else ()
            if versions:
                usable[versions[0].manifest.column] = versions
            else:
                reason = _refused(held.index.manifest, body) if held.index else held.reason
                reasons[reason] = reasons.get(reason, 0) + 1
                detail = held.detail or detail
        known = self._opened(registered, body)
        while usable:
            try:
                return self._answer(usable, known, predicate, reasons, detail, body)
            except UnreadableIndexError as failed:
                # The others may still serve, of this index those of other times.
                column, gone = failed.manifest.column, failed.manifest.id
                left = tuple(one for one in usable.pop(column) if one.manifest.id != gone)
                if left:
                    usable[column] = left
                else:
                    reason = _reason(failed.cause)
                    reasons[reason] = reasons.get(reason, 0) + 1
                    detail = str(failed.cause)
        return {"reasons": reasons or {"no-predicate": 1}, "detail": detail}

    def _answer(
        self,
        usable: Mapping[Column, Versions],
        known: Mapping[Column, OpenIndex],
        predicate: Predicate,
        reasons: Mapping[str, int],
        detail: str,
        body: Mapping[str, Any],
    ) -> Mapping[str, Any]:
        """What the indexes say, beside the reasons why others say nothing."""
        unused = _unused(predicate, frozenset(column[0] for column in usable))
        reasons = {**reasons, **({"unsupported-predicate": unused} if unused else {})}
        silent = {"reasons": reasons or {"no-predicate": 1}, "detail": detail}
        asked = {column: usable[column] for column in columns(predicate) if column in usable}
        if not asked:
            return silent
        others = [(index,) for column, index in known.items() if column not in usable]
        dictionary, files = self._table_files(
            list(chain(*asked.values())), list(chain(*usable.values(), *others))
        )
        groups = {column: _alike(versions) for column, versions in asked.items()}
        keep, used = _verdict(predicate, groups, files, in_part=False)
        if not used:
            return silent
        answer = {
            "dictionary": dictionary,
            "skip": _bits(~keep),
            "used": [
                f"{version.manifest.name}@{version.manifest.version}"
                for column in sorted(used)
                for version in asked[column]
            ],
            "reasons": reasons,
            "detail": detail,
        }
        if body.get("in_part", False):
            hidden, _ = _verdict(predicate, groups, files, in_part=True)
            known_of = [
                OverTable(group, files, in_part=True).knows_all_rows()
                for column in used
                for group in groups[column]
            ]
            answer["skip_in_part"] = _bits(~hidden)
            answer["known_in_part"] = _bits(np.any(known_of, axis=0))
        return answer

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
            index.manifest.column: index for index in indexes if not _refused(index.manifest, body)
        }

    def _usable(
        self, registration: Registration | None, request: Request, settings: Settings
    ) -> _Held:
        """The index if scans may use it, else the reason why not."""
        if registration is None:
            return _Held(None, "no-index", "the registration is not readable", 0)
        table = request.body["table"]
        try:
            # At every scan: another session of this driver may be allowed other roots.
            self._roots.check(registration.root, table["database"], settings, request.session)
        except UnsupportedError as error:
            return _Held(None, "no-index", error.message, 0)
        return self._get(registration, settings)

    def _asked(self, newest: OpenIndex, body: Mapping[str, Any]) -> Versions:
        """The versions that this very scan asks, of those that it may use.

        The newest one; of a scan as of an earlier instant the one of that. If it sees slices in
        part, it is shown them with what was logged later, as later versions know them.
        """
        found: list[OpenIndex] = []
        at, in_part = body.get("instant"), body.get("in_part", False)
        if at is not None and newest.manifest.state == "ready":
            found = self._as_of(newest, iso(at), MOST_VERSIONS - 1 if in_part else 1)
        allowed = [one for one in (*found, newest) if not _refused(one.manifest, body)]
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
        found = []
        for number in chosen:
            # The others may serve without it.
            with contextlib.suppress(SieveError):
                found.append(self._past_version(store, directory, number))
        return found

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
        own = in_order(asked)
        with self._lock:
            self._dictionaries.pop(name, None)
            name = dictionary_id(own)
            self._dictionaries[name] = own
        return name, self.cache.get(name, lambda: unite(own))

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
                indexes = in_order(otherwise)
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


def _alike(versions: Versions) -> list[Versions]:
    """Versions by how they code values, the newest first."""
    groups: dict[Encoder, list[OpenIndex]] = {}
    for version in reversed(versions):
        groups.setdefault(version.encoder, []).append(version)
    return [tuple(group) for group in groups.values()]


def _verdict(
    predicate: Predicate,
    groups: Mapping[Column, Sequence[Versions]],
    files: TableFiles,
    *,
    in_part: bool,
) -> tuple[Flags, frozenset[Column]]:
    """bool[n]: which of the table's files may hold a row; and the columns that had a part in it."""
    keep, used = np.ones(len(files.paths), np.bool_), frozenset[Column]()
    for turn in range(max(map(len, groups.values()))):
        over = {
            column: OverTable(group[min(turn, len(group) - 1)], files, in_part)
            for column, group in groups.items()
        }
        verdict = evaluate(predicate, over, len(files.paths))
        keep &= verdict.keep
        used |= verdict.used
    return keep, used


def _bits(flags: Flags) -> str:
    return base64.b64encode(np.packbits(flags, bitorder="little").tobytes()).decode("ascii")
