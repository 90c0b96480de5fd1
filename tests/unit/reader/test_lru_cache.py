"""Tests the cache of look-ups. The size of the cache in bytes is limited."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sieve.reader.lru_cache import Cache


@dataclass(frozen=True)
class Weight:
    """A value that has this many bytes."""

    nbytes: int


def absent() -> Weight:
    """Fails the test, because the key must be in the cache."""
    raise LookupError


def cached_keys(cache: Cache, keys: range) -> list[int]:
    """Returns the keys of all cached values."""
    held = []
    for key in keys:
        try:
            cache.get(key, absent)
        except LookupError:
            continue
        held.append(key)
    return held


steps = st.lists(
    st.one_of(
        st.tuples(st.just("get"), st.integers(0, 12), st.integers(0, 60)),
        st.tuples(st.just("resize"), st.just(0), st.integers(0, 150)),
    ),
    max_size=60,
)


@given(st.integers(0, 150), steps)
def test_cache_keeps_the_most_recent_values_that_fit(
    bound: int, todo: list[tuple[str, int, int]]
) -> None:
    """After each use, the cache has the right size, and the most recent values that fit."""
    cache, model = Cache(bound), OrderedDict[int, int]()
    for what, key, size in todo:
        if what == "resize":
            bound = size
            cache.resize(bound)
        elif key in model:
            model.move_to_end(key)
            assert cache.get(key, absent).nbytes == model[key]
        else:
            assert cache.get(key, lambda n=size: Weight(n)).nbytes == size
            if size <= bound:
                model[key] = size
        while sum(model.values()) > bound:
            model.popitem(last=False)
        assert cache.nbytes == sum(model.values()) <= bound
    assert cached_keys(cache, range(13)) == sorted(model)


def test_too_large_value_is_returned_but_not_cached() -> None:
    """The cache returns a value larger than the limit, but does not store it or evict others."""
    cache = Cache(10)
    cache.get(1, lambda: Weight(10))
    assert cache.get(2, lambda: Weight(11)) == Weight(11)
    assert cached_keys(cache, range(3)) == [1]


def test_concurrent_callers_share_one_load() -> None:
    """If several threads need the same key, one thread loads it, and all others wait for it."""
    cache, started, go = Cache(10), threading.Event(), threading.Event()
    loads: list[int] = []

    def load() -> Weight:
        loads.append(1)
        started.set()
        assert go.wait(30)
        return Weight(3)

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(cache.get, "a", load) for _ in range(8)]
        assert started.wait(30)
        # Threads that need another key do not wait.
        assert cache.get("b", lambda: Weight(4)) == Weight(4)
        go.set()
        values = [one.result(30) for one in asked]
    assert len(loads) == 1
    assert all(value is values[0] for value in values)


def test_failed_load_fails_all_waiting_callers() -> None:
    """If a load fails, all waiting threads get the load's error. The next call loads again."""
    cache, go = Cache(10), threading.Event()
    waiting = threading.Semaphore(0)

    def load() -> Weight:
        assert go.wait(30)
        raise OSError("gone")

    def ask() -> Weight:
        waiting.release()
        return cache.get("a", load)

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask) for _ in range(4)]
        for _ in asked:
            assert waiting.acquire(timeout=30)
        go.set()
        for one in asked:
            with pytest.raises(OSError, match="gone"):
                one.result(30)
    assert cache.get("a", lambda: Weight(1)) == Weight(1)


def test_many_threads_keep_the_byte_count_right() -> None:
    """The cache counts its bytes exactly, even while threads load values and change the limit."""
    cache = Cache(500)

    def use(seed: int) -> None:
        for k in range(400):
            key = (seed * 31 + k * k) % 97
            assert cache.get(key, lambda n=key: Weight(n)).nbytes == key
            if k % 50 == 0:
                cache.resize(400 + seed)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(8)))
    assert cache.nbytes == sum(cached_keys(cache, range(97))) <= 408


def test_a_reload_does_not_keep_its_process_alive() -> None:
    """Background reloads run in daemon threads, so a driver can end before a reload ends."""
    cache = Cache[str, int](max_entries=1)
    answer = threading.Event()

    def load(_: int | None) -> int:
        answer.wait()
        return 2

    cache.get("k", lambda: 1)
    assert cache.get_fresh("k", load, -1.0) == 1
    reloads = [thread for thread in threading.enumerate() if thread.name == "sieve-reload"]
    answer.set()
    assert [thread.daemon for thread in reloads] == [True]


def test_value_older_than_the_given_age_is_reloaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The cache loads a value again once the value is older than the given age.

    Using a cached value does not make the value younger.
    """
    now, later = [1000.0], list[str]()
    monkeypatch.setattr("sieve.reader.lru_cache.time.monotonic", lambda: now[0])
    cache = Cache[str, Weight](100)
    monkeypatch.setattr(Cache, "_load_later", lambda _, key, *__: later.append(key))
    for at, again in ((1000.0, 0), (1030.0, 0), (1030.1, 1), (999.0, 1)):
        now[0] = at
        assert cache.get_fresh("k", lambda _: Weight(1), 30.0) == Weight(1)
        assert len(later) == again


class Reloads:
    """Replaces the clock, and delays background reloads until a test runs them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.waiting = 1000.0, list[Callable[[], None]]()
        monkeypatch.setattr("sieve.reader.lru_cache.time.monotonic", lambda: self.now)

        def thread(target: Callable[[], None], **_: object) -> SimpleNamespace:
            return SimpleNamespace(start=lambda: self.waiting.append(target))

        monkeypatch.setattr("sieve.reader.lru_cache.threading.Thread", thread)

    def run(self) -> None:
        """Runs all background reloads that are waiting."""
        while self.waiting:
            self.waiting.pop(0)()


def fails(_: object) -> int:
    """Raises an error instead of loading a value."""
    raise ConnectionError


def test_old_value_is_returned_during_its_reload(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While an old value is reloaded in the background, callers get the old value.

    At most one reload of a value runs at a time. The age of the new value counts from its own load.
    """
    reloads, cache = Reloads(monkeypatch), Cache[str, int](max_entries=2)
    seen: list[int | None] = []

    def load(old: int | None) -> int:
        seen.append(old)
        return len(seen)

    assert cache.get_fresh("k", load, 30.0) == 1
    reloads.now += 31
    assert [cache.get_fresh("k", load, 30.0) for _ in range(3)] == [1, 1, 1]
    assert len(reloads.waiting) == 1
    reloads.run()
    assert cache.peek("k") == 2
    reloads.now += 30
    assert cache.get_fresh("k", load, 30.0) == 2
    assert (seen, reloads.waiting) == ([None, 1], [])
    reloads.now += 1
    assert cache.get_fresh("k", load, 30.0) == 2
    assert len(reloads.waiting) == 1


def test_failed_reload_is_repeated_after_the_usual_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next reload comes after the same time, whether a reload fails or succeeds."""
    reloads, cache = Reloads(monkeypatch), Cache[str, int](max_entries=2)
    assert cache.get_fresh("k", lambda _: 1, 30.0) == 1
    reloads.now += 31
    assert cache.get_fresh("k", fails, 30.0) == 1
    reloads.run()
    reloads.now += 30
    assert cache.get_fresh("k", fails, 30.0) == 1
    assert reloads.waiting == []
    reloads.now += 1
    assert cache.get_fresh("k", fails, 30.0) == 1
    assert len(reloads.waiting) == 1
    with pytest.raises(ConnectionError):
        cache.get("other", lambda: fails(None))
    assert cache.get("other", lambda: 5) == 5


def test_invalidated_value_is_loaded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a key is invalidated during a load, only callers of this load get the value."""
    reloads, cache = Reloads(monkeypatch), Cache[str, int](max_entries=2)

    def load(_: int | None) -> int:
        cache.invalidate("k")
        return 1

    assert cache.get_fresh("k", load, 30.0) == 1
    assert cache.peek("k") is None
    assert cache.get("k", lambda: 2) == 2
    reloads.now += 31
    assert cache.get_fresh("k", lambda _: 3, 30.0) == 2
    cache.invalidate("k")
    reloads.run()
    assert cache.peek("k") is None
    assert cache.get("k", lambda: 4) == 4
    # The cache does not reload a value that is replaced or removed before the reload begins.
    cache._load_later("k", 2, lambda _: 5)
    cache._load_later("none", 2, lambda _: 5)
    assert reloads.waiting == []
