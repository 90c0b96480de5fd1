"""A bounded least-recently-used cache; two threads never load the same value at the same time.

The bound is a number of bytes, a number of entries, or both. Threads that request the same key at
the same time wait for one load (single flight). If a value is older than a caller's time to live,
the cache still returns the value. One background thread then reloads the value
(stale-while-revalidate, RFC 5861).
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass(slots=True)
class _Entry(Generic[Value]):
    value: Value
    nbytes: int
    loaded_s: float


class Cache(Generic[Key, Value]):
    """A thread-safe mapping of keys to values, with a maximum size.

    Args:
        max_bytes: maximum sum of ``nbytes`` over all values, 0 or more; None for no limit.
        max_entries: maximum number of values; None for no limit.
    """

    def __init__(self, max_bytes: int | None = None, max_entries: int | None = None) -> None:
        self._max_bytes = max_bytes
        self._max_entries = max_entries
        self._lock = threading.Lock()
        self._entries: OrderedDict[Key, _Entry[Value]] = OrderedDict()
        self._nbytes = 0
        self._loading: dict[Key, Future[Value]] = {}

    @property
    def nbytes(self) -> int:
        """The sum of ``nbytes`` over all values in the cache, at most `max_bytes`."""
        return self._nbytes

    @property
    def max_bytes(self) -> int | None:
        """The maximum of `nbytes`; None for no limit."""
        return self._max_bytes

    def resize(self, max_bytes: int) -> None:
        """Sets `max_bytes`, and immediately evicts entries until `nbytes` is within this limit."""
        with self._lock:
            self._max_bytes = max_bytes
            self._shrink()

    def get(self, key: Key, load: Callable[[], Value]) -> Value:
        """Returns the value of a key; loads the value if the cache does not contain it.

        Threads that request the same key at the same time wait for one load. If the load fails,
        each waiting thread gets the error. The cache keeps neither errors nor values larger than
        `max_bytes`.

        Args:
            key: the key of the value.
            load: makes the value; `load` can call `get` for other keys if the calls form no cycle.
        """
        value, _ = self._get(key, load)
        return value

    def get_fresh(self, key: Key, load: Callable[[Value | None], Value], ttl_s: float) -> Value:
        """Returns the value of a key; the value can be older than ``ttl_s`` seconds.

        If the cached value is older than ``ttl_s`` seconds, the cache returns this value at once
        and reloads the value in the background.

        If the background load fails, the old value stays for another ``ttl_s`` seconds.

        Args:
            key: the key of the value.
            load: makes the new value; its argument is the cached value, or None for a key without a
                value.
            ttl_s: time to live in seconds.
        """
        value, loaded_s = self._get(key, lambda: load(None))
        if time.monotonic() - loaded_s > ttl_s:
            self._load_later(key, value, load)
        return value

    def peek(self, key: Key) -> Value | None:
        """Returns the cached value of a key, or None; does not change the order of eviction."""
        with self._lock:
            entry = self._entries.get(key)
            return None if entry is None else entry.value

    def invalidate(self, key: Key) -> None:
        """Removes the value of a key.

        A load in progress still returns its value, but the cache does not keep this value.
        """
        with self._lock:
            self._loading.pop(key, None)
            self._drop(key)

    def _get(self, key: Key, load: Callable[[], Value]) -> tuple[Value, float]:
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
                return entry.value, entry.loaded_s
            flight = self._loading.get(key)
            first = flight is None
            if flight is None:
                flight = self._loading[key] = Future()
        value = self._load(key, load, flight) if first else flight.result()
        return value, time.monotonic()

    def _load(self, key: Key, load: Callable[[], Value], flight: Future[Value]) -> Value:
        started_s = time.monotonic()
        try:
            value = load()
            nbytes = 0 if self._max_bytes is None else int(value.nbytes)  # type: ignore[attr-defined]
        except BaseException as error:
            with self._lock:
                if self._loading.get(key) is flight:
                    del self._loading[key]
            flight.set_exception(error)
            raise
        with self._lock:
            # If `invalidate` was called during this load, the value may be outdated.
            if self._loading.get(key) is flight:
                del self._loading[key]
                self._keep(key, _Entry(value, nbytes, started_s))
        flight.set_result(value)
        return value

    def _load_later(self, key: Key, old: Value, load: Callable[[Value | None], Value]) -> None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.value is not old or key in self._loading:
                return
            flight: Future[Value] = Future()
            self._loading[key] = flight

        def reload() -> None:
            try:
                self._load(key, lambda: load(old), flight)
            except Exception:  # noqa: BLE001 - the future has the error; the old value stays
                with self._lock:
                    entry.loaded_s = time.monotonic()

        threading.Thread(target=reload, name="sieve-reload", daemon=True).start()

    def _keep(self, key: Key, entry: _Entry[Value]) -> None:
        self._drop(key)
        if self._max_bytes is not None and entry.nbytes > self._max_bytes:
            return
        self._entries[key] = entry
        self._nbytes += entry.nbytes
        self._shrink()

    def _drop(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._nbytes -= entry.nbytes

    def _shrink(self) -> None:
        while (self._max_bytes is not None and self._nbytes > self._max_bytes) or (
            self._max_entries is not None and len(self._entries) > self._max_entries
        ):
            _, entry = self._entries.popitem(last=False)
            self._nbytes -= entry.nbytes


FileCache: TypeAlias = Cache[Hashable, Any]
"""A cache of decoded index data. Index files are immutable, so their names and checksums can serve
as keys."""
