"""Stores that do not answer: only so many scans wait there, and the others go on at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager

_MOST = 2
_LEAST_S = 1.0


class Crowds:
    """Who waits at which root since when (Nygard, "Release It!": bulkheads)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since: dict[str, list[float]] = {}

    def stuck(self, roots: Iterable[str], patience_s: float) -> frozenset[str]:
        """The roots where two have waited for longer than somebody else would."""
        before = time.monotonic() - max(_LEAST_S, patience_s)
        with self._lock:
            return frozenset(
                root
                for root in roots
                if sum(since < before for since in self._since.get(root, ())) >= _MOST
            )

    @contextmanager
    def at(self, roots: AbstractSet[str]) -> Iterator[None]:
        """While the caller may have to wait for what lies there."""
        since = time.monotonic()
        with self._lock:
            for root in roots:
                self._since.setdefault(root, []).append(since)
        try:
            yield
        finally:
            with self._lock:
                for root in roots:
                    self._since[root].remove(since)
                    if not self._since[root]:
                        del self._since[root]
