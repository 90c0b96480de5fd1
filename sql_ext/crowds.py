"""Stores that do not answer: only so many scans wait there, and the others go on at once."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from sieve.registration import Registration

_LONG_S = 1.0
_MOST_BY_INDEX, _MOST_BY_ROOT = 2, 8


class Crowds:
    """Who waits for which index since when (Nygard, "Release It!": bulkheads)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waits: dict[object, tuple[float, frozenset[Registration]]] = {}

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
        for since, waited_for in waits:
            if now - since > max(_LONG_S, patience_s):
                indexes.update(waited_for)
            if now - since > _LONG_S:
                roots.update({one.root for one in waited_for})
        return {
            one
            for one in wanted
            if indexes[one] >= _MOST_BY_INDEX or roots[one.root] >= _MOST_BY_ROOT
        }

    def forget(self, directory: str) -> None:
        """What this index was waited for has been replaced, so that the next scans ask again."""
        with self._lock:
            for ticket, (since, waited_for) in self._waits.items():
                left = frozenset(one for one in waited_for if one.directory != directory)
                self._waits[ticket] = since, left

    @contextmanager
    def at(self, wanted: Sequence[Registration]) -> Iterator[None]:
        """While the caller may have to wait for what these hold."""
        ticket = object()
        with self._lock:
            self._waits[ticket] = time.monotonic(), frozenset(wanted)
        try:
            yield
        finally:
            with self._lock:
                del self._waits[ticket]
