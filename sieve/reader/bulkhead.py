"""Bulkhead: bounds how many scans may block on one unresponsive store.

The others read without the index at once (Nygard, "Release It!": bulkheads).
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
    """Which scan waits for which index, and since when."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waits: dict[object, _Wait] = {}

    def blocked(self, wanted: Iterable[Registration], timeout_s: float) -> set[Registration]:
        """The indexes that enough scans wait for in vain, by index or by root.

        Args:
            wanted: indexes that a scan would ask.
            timeout_s: seconds that it would wait for an answer.
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
        """This index has been replaced: the next scans ask it again.

        Scans that wait for its old files still hold their threads, and count for the root.
        """
        with self._lock:
            for ticket, wait in self._waits.items():
                left = frozenset(one for one in wait.indexes if one.directory != directory)
                self._waits[ticket] = replace(wait, indexes=left)

    @contextmanager
    def waiting(self, wanted: Sequence[Registration]) -> Iterator[None]:
        """While the caller may have to wait for the files of these indexes."""
        ticket = object()
        with self._lock:
            roots = frozenset(one.root for one in wanted)
            self._waits[ticket] = _Wait(time.monotonic(), frozenset(wanted), roots)
        try:
            yield
        finally:
            with self._lock:
                del self._waits[ticket]
