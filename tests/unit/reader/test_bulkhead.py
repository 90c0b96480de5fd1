"""Tests the indexes for which a scan does not wait, because other scans are already waiting."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from sieve.metadata.records import IndexUuid
from sieve.metadata.registration import Registration
from sieve.reader import bulkhead
from sieve.reader.bulkhead import Bulkhead


def index(number: int, root: str = "file:/a") -> Registration:
    """An index in a root."""
    return Registration(IndexUuid(f"{number:08d}-5a55-4b1c-9d0e-012345678901"), ("x",), root)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The elapsed seconds, which a test sets."""
    now = [1000.0]
    monkeypatch.setattr(bulkhead.time, "monotonic", lambda: now[0])
    return now


def test_two_that_wait_for_an_index_are_enough(clock: list[float]) -> None:
    """Two scans have already waited longer than the next scan would wait.

    Scans still use other indexes of the root.
    """
    scans, slow = Bulkhead(), [index(1), index(2)]
    with scans.waiting([index(1)]), scans.waiting([index(1), index(3)]):
        clock[0] += 0.9
        assert scans.blocked(slow, 0.5) == set()
        clock[0] += 0.2
        assert scans.blocked(slow, 0.5) == {index(1)}
        assert scans.blocked(slow, 5) == set()
        clock[0] += 5
        assert scans.blocked(slow, 5) == {index(1)}
    assert scans.blocked(slow, 0.5) == set()


def test_eight_that_wait_in_a_root_are_enough(clock: list[float]) -> None:
    """The limit of a root counts scans of all its indexes, for any time-out of the scans."""
    scans = Bulkhead()
    with ExitStack() as waiting:
        for number in range(7):
            waiting.enter_context(scans.waiting([index(number), index(number + 10)]))
        clock[0] += 1.1
        assert scans.blocked([index(90)], 60) == set()
        with scans.waiting([index(8)]):
            assert scans.blocked([index(90)], 60) == set()
            clock[0] += 1.1
            assert scans.blocked([index(90), index(90, "file:/b")], 60) == {index(90)}
        assert scans.blocked([index(90)], 60) == set()


def test_those_that_wait_for_what_was_replaced_count_for_the_root(clock: list[float]) -> None:
    """Even if the index is replaced often, only few threads wait in a store that hangs."""
    scans = Bulkhead()
    with ExitStack() as waiting:
        for _ in range(4):
            for _ in range(2):
                waiting.enter_context(scans.waiting([index(1)]))
            clock[0] += 1.1
            assert scans.blocked([index(1)], 0.5) == {index(1)}
            scans.invalidate(index(1).directory)
        assert scans.blocked([index(1), index(2)], 0.5) == {index(1), index(2)}


def test_an_index_that_was_made_anew_is_asked_again(clock: list[float]) -> None:
    """Scans that still wait for the old files of the index do not count."""
    scans = Bulkhead()
    with (
        scans.waiting([index(1)]),
        scans.waiting([index(1), index(2)]),
        scans.waiting([index(2)]),
    ):
        clock[0] += 1.1
        assert scans.blocked([index(1), index(2)], 0.5) == {index(1), index(2)}
        scans.invalidate(index(1).directory)
        assert scans.blocked([index(1), index(2)], 0.5) == {index(2)}
