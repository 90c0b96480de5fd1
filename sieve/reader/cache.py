"""What look-ups hold of an index's files: least recently used goes first, bounded by bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar


class Sized(Protocol):
    """What can be held."""

    @property
    def nbytes(self) -> int:
        """Bytes that it takes in memory; asked once, when it is put in."""


Held = TypeVar("Held", bound=Sized)


class Cache:
    """Values by key, of so many bytes at most. Safe for threads.

    A key says what its value is made from, for good: files of an index are never overwritten, so a
    name and a checksum are such a key.

    Args:
        bound: bytes, 0 or more.
    """

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._lock = threading.Lock()
        self._held: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._nbytes = 0
        self._loading: dict[Hashable, Future[Any]] = {}

    @property
    def nbytes(self) -> int:
        """Bytes held now, never more than the bound."""
        return self._nbytes

    @property
    def bound(self) -> int:
        """Bytes that may be held."""
        return self._bound

    def resize(self, bound: int) -> None:
        """Set another bound, in bytes, and keep to it at once."""
        with self._lock:
            self._bound = bound
            self._shrink()

    def get(self, key: Hashable, load: Callable[[], Held]) -> Held:
        """The value of a key, loaded if it is not held.

        Threads that ask for the same key together wait for one load, and for its error. A value of
        more bytes than the bound is given out and not held. What fails to load is forgotten.

        Args:
            key: what the value is made from.
            load: makes the value; may ask for other keys, but not in a circle.
        """
        with self._lock:
            found = self._held.get(key)
            if found is not None:
                self._held.move_to_end(key)
                value: Held = found[0]
                return value
            flight = self._loading.get(key)
            first = flight is None
            if flight is None:
                flight = self._loading[key] = Future()
        return self._load(key, load, flight) if first else flight.result()

    def _load(self, key: Hashable, load: Callable[[], Held], flight: Future[Any]) -> Held:
        try:
            value = load()
            size = value.nbytes
        except BaseException as error:
            with self._lock:
                del self._loading[key]
            flight.set_exception(error)
            raise
        with self._lock:
            del self._loading[key]
            if size <= self._bound:
                self._held[key] = value, size
                self._nbytes += size
                self._shrink()
        flight.set_result(value)
        return value

    def _shrink(self) -> None:
        while self._nbytes > self._bound:
            _, (_, size) = self._held.popitem(last=False)
            self._nbytes -= size
