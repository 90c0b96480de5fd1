"""Bulkhead: limits how many scans wait for the same unresponsive store.

A store that does not answer must not block every scan of a driver. If a scan waits for index files
for longer than a second, it counts as blocked on the root folder of its indexes. If the wait also
exceeds the scan's time-out, the scan counts as blocked on its indexes, too. If two scans are
blocked on an index, other scans do not use the index. If eight scans are blocked on a root folder,
other scans use no index in this folder. So a store that hangs delays only two scans of each index,
by the time-out of 500 ms. The store occupies at most 8 of the 32 threads that answer scans.

Source: the pattern "Bulkheads" in Nygard, "Release It!".
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sieve.metadata.registration import Registration

_LONG_S = 1.0
_MAX_BY_INDEX, _MAX_BY_ROOT = 2, 8


@dataclass(frozen=True, slots=True)
class _Wait:
    since_s: float
    indexes: frozenset[Registration]
    roots: frozenset[str]


class Bulkhead:
    """Records which scans wait for index files, and when each of these waits began."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waits: dict[object, _Wait] = {}

    def blocked(self, wanted: Iterable[Registration], timeout_s: float) -> set[Registration]:
        """Returns the indexes of ``wanted`` that the scan must not use.

        A scan must not use an index if too many scans are blocked on the index or on its root
        folder.

        Args:
            wanted: the indexes that the scan could use.
            timeout_s: the time-out of the scan in seconds.
        """
        now = time.monotonic()
        indexes, roots = Counter[Registration](), Counter[str]()
        with self._lock:
            waits = list(self._waits.values())
        for wait in waits:
            if now - wait.since_s > max(_LONG_S, timeout_s):
                indexes.update(wait.indexes)
            if now - wait.since_s > _LONG_S:
                roots.update(wait.roots)
        return {
            one
            for one in wanted
            if indexes[one] >= _MAX_BY_INDEX or roots[one.root] >= _MAX_BY_ROOT
        }

    def invalidate(self, directory: str) -> None:
        """Resets an index's count of blocked scans after a statement changed the index.

        Later scans use the index again. Scans that wait for the index's old files still occupy
        threads, so the count of the root folder does not change.
        """
        with self._lock:
            for ticket, wait in self._waits.items():
                left = frozenset(one for one in wait.indexes if one.directory != directory)
                self._waits[ticket] = replace(wait, indexes=left)

    @contextmanager
    def waiting(self, wanted: Sequence[Registration]) -> Iterator[None]:
        """Counts the caller as waiting for the files of these indexes while the context is open."""
        ticket = object()
        with self._lock:
            roots = frozenset(one.root for one in wanted)
            self._waits[ticket] = _Wait(time.monotonic(), frozenset(wanted), roots)
        try:
            yield
        finally:
            with self._lock:
                del self._waits[ticket]
