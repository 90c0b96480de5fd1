"""Version cache: keeps open index versions in memory for the scans that use them.

When a scan first needs an index, the cache reads the index's newest version. If the cached version
is older than the time to live, a background thread checks whether a newer version exists. Scans of
an earlier instant use earlier versions, which are immutable.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from sieve.errors import SieveError
from sieve.metadata.commit import newest, read_version
from sieve.metadata.history import vacuumed
from sieve.metadata.registration import Registration
from sieve.predicate.parse_predicate import Column
from sieve.reader.lru_cache import Cache, FileCache
from sieve.reader.reason import Reason
from sieve.reader.request import PruneRequest
from sieve.reader.usable_version import reason_of, why_unusable
from sieve.reader.version_reader import OpenVersion, open_version
from sieve.storage.interface import Store

MAX_INDEXES = 256
MAX_INSTANTS = 4096
MAX_VERSIONS = 8
"""The maximum number of an index's versions that a scan of partially visible Hudi slices uses."""

Versions = tuple[OpenVersion, ...]
_PastVersion = tuple[str, int]
"""The folder of an index, and the number of a version."""


@dataclass(frozen=True, slots=True, eq=False)
class CachedVersion:
    """The result of the last read of an index.

    Attributes:
        index: the newest version, or None if no version exists or the newest version is unreadable.
        reason: the reason why `index` is None; None if `index` is a version.
        detail: details of the reason, as text.
    """

    index: OpenVersion | None
    reason: Reason | None = None
    detail: str = ""


class VersionCache:
    """Open index versions in memory.

    Args:
        open_store: opens the store to which a URI belongs.
        files: the cache that keeps the versions' files in memory.
    """

    def __init__(self, open_store: Callable[[str], Store], files: FileCache) -> None:
        self._open_store = open_store
        self._files = files
        self._newest = Cache[str, CachedVersion](max_entries=MAX_INDEXES)
        self._past = Cache[_PastVersion, OpenVersion](max_entries=MAX_INDEXES)
        self._instants = Cache[_PastVersion, str](max_entries=MAX_INSTANTS)

    def invalidate(self, directory: str) -> None:
        """Forgets the cached newest version of an index, because a statement has changed the index.

        The next scan reads the index again.
        """
        self._newest.invalidate(directory)

    def newest(self, registration: Registration, ttl_s: float) -> CachedVersion:
        """Returns an index's newest version, from the cache if possible.

        If the cached version is older than ``ttl_s`` seconds, the method also starts a reread in
        the background. If the index is unreadable, the result contains the reason instead of a
        version.
        """
        return self._newest.get_fresh(
            registration.directory, lambda known: self._read(registration, known), ttl_s
        )

    def in_memory(
        self, registrations: Iterable[Registration | None], request: PruneRequest
    ) -> dict[Column, OpenVersion]:
        """Returns the indexes of a table that are already in memory and that the scan can use."""
        cached = [self._newest.peek(one.directory) for one in registrations if one is not None]
        indexes = [one.index for one in cached if one is not None and one.index is not None]
        return {
            index.manifest.column: index
            for index in indexes
            if why_unusable(index.manifest, request.table, request.fingerprints) is None
        }

    def versions_for(self, newest: OpenVersion, request: PruneRequest) -> Versions:
        """Returns the versions of an index that a scan uses.

        A scan of the current state uses the newest version; a scan of an earlier instant uses the
        version of that instant. A scan of partially visible slices also uses later versions, which
        cover log files that writers appended after the instant.
        """
        found: list[OpenVersion] = []
        partial = request.partially_visible
        if request.instant is not None and newest.manifest.state == "ready":
            found = self._as_of(newest, request.instant, MAX_VERSIONS - 1 if partial else 1)
        usable = [
            one
            for one in (*found, newest)
            if why_unusable(one.manifest, request.table, request.fingerprints) is None
        ]
        return tuple(usable if partial else usable[:1])

    def _as_of(self, newest: OpenVersion, instant: str, most: int) -> list[OpenVersion]:
        """Returns the version of an instant, and later versions; at most ``most`` in total.

        A scan of any instant can use any version, because each version identifies its files by
        path, length and time. The version of the instant lists more of the scan's files than other
        versions. If all versions are later than the instant, the first result is the oldest
        retained version. The result is empty if the newest version is the only one. It is also
        empty if the newest version is not later than the instant.
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

        def version(number: int) -> OpenVersion | None:
            # If one version is unreadable, the scan can still use the other versions.
            with contextlib.suppress(SieveError):
                return self._past.get(
                    (directory, number), lambda: self._open(store, directory, number)
                )
            return None

        if all(self._past.peek((directory, number)) is not None for number in chosen):
            found = [version(number) for number in chosen]
        else:
            # Threads read the versions in parallel, so that the scan waits for a remote store only
            # once.
            with ThreadPoolExecutor(most, "sieve-past") as pool:
                found = list(pool.map(version, chosen))
        return [one for one in found if one is not None]

    def _instant_of(self, newest: OpenVersion, number: int) -> str:
        store, directory = newest.store, newest.directory
        return self._instants.get(
            (directory, number), lambda: read_version(store, directory, number).instant
        )

    def _open(self, store: Store, directory: str, number: int) -> OpenVersion:
        return open_version(store, directory, read_version(store, directory, number), self._files)

    def _read(self, registration: Registration, known: CachedVersion | None) -> CachedVersion:
        """Reads the newest version, given the cached result of the last read."""
        directory = registration.directory
        index = known.index if known is not None else None
        try:
            store = self._open_store(registration.root)
            manifest = newest(store, directory, index.manifest.version if index else 0)
            if manifest is None:
                return CachedVersion(None, Reason.INDEX_GONE, f"{directory} holds no version")
            if index is not None and manifest.id == index.manifest.id:
                index.retry()
                return CachedVersion(index)
            return CachedVersion(open_version(store, directory, manifest, self._files))
        except SieveError as error:
            return CachedVersion(None, reason_of(error), str(error))
