"""Stores that do not answer: only so many scans wait there, and the others go on at once."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sieve.metadata.registration import Registration

_LONG_S = 1.0
_MOST_BY_INDEX, _MOST_BY_ROOT = 2, 8


@dataclass(frozen=True, slots=True)
class _Wait:
    since: float
    indexes: frozenset[Registration]
    roots: frozenset[str]


class Crowds:
    """Who waits for which index since when (Nygard, "Release It!": bulkheads)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waits: dict[object, _Wait] = {}

    def stuck(self, wanted: Iterable[Registration], patience_s: float) -> set[Registration]:
        """Those that enough others wait for in vain, for themselves or for others of their root.

        Args:
            wanted: indexes that a scan would ask.
            patience_s: seconds that it would wait for an answer.
        """
        now = time.monotonic()
        indexes, roots = Counter[Registration](), Counter[str]()
        with self._lock:
            waits = list(self._waits.values())
        for wait in waits:
            if now - wait.since > max(_LONG_S, patience_s):
                indexes.update(wait.indexes)
            if now - wait.since > _LONG_S:
                roots.update(wait.roots)
        return {
            one
            for one in wanted
            if indexes[one] >= _MOST_BY_INDEX or roots[one.root] >= _MOST_BY_ROOT
        }

    def forget(self, directory: str) -> None:
        """What this index was waited for has been replaced, so that the next scans ask again.

        Those that wait still hold their threads, and count for the root.
        """
        with self._lock:
            for ticket, wait in self._waits.items():
                left = frozenset(one for one in wait.indexes if one.directory != directory)
                self._waits[ticket] = replace(wait, indexes=left)

    @contextmanager
    def at(self, wanted: Sequence[Registration]) -> Iterator[None]:
        """While the caller may have to wait for what these hold."""
        ticket = object()
        with self._lock:
            roots = frozenset(one.root for one in wanted)
            self._waits[ticket] = _Wait(time.monotonic(), frozenset(wanted), roots)
        try:
            yield
        finally:
            with self._lock:
                del self._waits[ticket]
