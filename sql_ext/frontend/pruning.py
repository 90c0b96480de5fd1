"""Prune requests: which files of an indexed table a scan may leave out, and why not others."""

from __future__ import annotations

import base64
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from sieve.encoding.encoder import Encoder
from sieve.errors import UnsupportedError
from sieve.metadata.records import VersionId
from sieve.metadata.registration import Registration, parse_registration
from sieve.predicate import evaluate
from sieve.predicate.tree import Column, Predicate, columns, not_understood, parse
from sieve.reader.bulkhead import Crowds
from sieve.reader.cache import Cache
from sieve.reader.file_numbering import (
    OverTable,
    TableFiles,
    UnreadableIndexError,
    dictionary_id,
    in_order,
    unite,
)
from sieve.reader.version_cache import HeldIndexes, Versions, reason_of, refused
from sieve.reader.version_reader import OpenIndex
from sieve.storage.interface import Store
from sql_ext.driver.roots import Roots
from sql_ext.driver.settings import DEFAULTS, Settings, valid_settings
from sql_ext.frontend.link import Request

Flags = npt.NDArray[np.bool_]
MOST_TABLES = 256


class PruneService:
    """Answers scans from the versions that a driver holds."""

    def __init__(self, roots: Roots, open_store: Callable[[str], Store]) -> None:
        self.cache = Cache(DEFAULTS.cache_bytes)
        self._indexes = HeldIndexes(roots, open_store, self.cache)
        self._crowds = Crowds()
        self._lock = threading.Lock()
        # What a dictionary is made from: the list itself may have to make room.
        self._dictionaries: OrderedDict[str, tuple[OpenIndex, ...]] = OrderedDict()

    def forget(self, directory: str) -> None:
        """A statement has changed the index in this folder: the next scan reads it anew."""
        self._indexes.forget(directory)
        self._crowds.forget(directory)

    def prune(self, request: Request) -> Mapping[str, Any]:
        """Body: table, registrations, fingerprints, predicate. See docs/architecture.md."""
        body = request.body
        settings = valid_settings(body["settings"])
        # One cache serves all sessions, so the latest scan has its way.
        self.cache.resize(settings.cache_bytes)
        predicate = parse(body["predicate"])
        registered = [parse_registration(text) for text in body["registrations"].values()]
        wanted = _spoken_of(predicate, registered)
        named = [one for one in wanted if one is not None]
        stuck = self._crowds.stuck(named, settings.prune_timeout_s)
        reasons: dict[str, int] = {"error": len(stuck)} if stuck else {}
        detail = "; ".join(f"{one.root} does not answer other scans either" for one in stuck)
        return self._prune(
            request,
            settings,
            predicate,
            [one for one in wanted if one not in stuck],
            [one for one in registered if one not in stuck],
            reasons,
            detail,
        )

    def _prune(
        self,
        request: Request,
        settings: Settings,
        predicate: Predicate,
        wanted: Sequence[Registration | None],
        registered: Sequence[Registration | None],
        reasons: dict[str, int],
        detail: str,
    ) -> Mapping[str, Any]:
        body = request.body
        usable: dict[Column, Versions] = {}
        serving: list[Registration] = []
        for registration in wanted:
            with self._crowds.at([registration] if registration is not None else []):
                held = self._indexes.usable(registration, request, settings)
                versions = self._indexes.asked(held.index, body) if held.index is not None else ()
            if versions and registration is not None:
                usable[versions[0].manifest.column] = versions
                serving.append(registration)
            else:
                reason = refused(held.index.manifest, body) if held.index else held.reason
                reasons[reason] = reasons.get(reason, 0) + 1
                detail = held.detail or detail
        known = self._indexes.opened(registered, body)
        while usable:
            try:
                with self._crowds.at(serving):
                    return self._answer(usable, known, predicate, reasons, detail, body)
            except UnreadableIndexError as failed:
                # The others may still serve, of this index those of other times.
                column, gone = failed.manifest.column, failed.manifest.id
                left = tuple(one for one in usable.pop(column) if one.manifest.id != gone)
                if left:
                    usable[column] = left
                else:
                    reason = reason_of(failed.cause)
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


def _spoken_of(
    predicate: Predicate, registered: Sequence[Registration | None]
) -> list[Registration | None]:
    """The registrations but for those whose column a predicate leaves alone.

    What nobody asks is not opened: the scan would wait for that, each time one is made anew.
    """
    names = {column[0] for column in columns(predicate)}
    names.update(name for part in not_understood(predicate) for name in part.names)
    return [one for one in registered if one is None or one.column[0] in names]


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
