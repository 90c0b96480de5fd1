"""Tests the bulkhead: if some scans wait too long for an index, other scans do without it."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from sieve.metadata.records import IndexUuid
from sieve.metadata.registration import Registration
from sieve.reader import bulkhead
from sieve.reader.bulkhead import Bulkhead


def index(number: int, root: str = "file:/a") -> Registration:
    """An index below a root."""
    return Registration(IndexUuid(f"{number:08d}-5a55-4b1c-9d0e-012345678901"), ("x",), root)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock whose time in seconds a test sets."""
    now = [1000.0]
    monkeypatch.setattr(bulkhead.time, "monotonic", lambda: now[0])
    return now


def test_third_scan_does_not_wait_for_a_slow_index(clock: list[float]) -> None:
    """If two scans wait too long for an index, a third scan does not wait for the same index.

    A scan that does not wait for one index still uses the other indexes. A wait is too long if it
    exceeds both the third scan's time-out and one second.
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


def test_ninth_scan_does_not_wait_for_a_slow_root(clock: list[float]) -> None:
    """If eight scans wait too long for indexes of a root, a ninth scan uses no index of this root.

    For a root, a wait of more than a second is too long, for any time-out.
    """
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


def test_scans_of_a_replaced_index_count_only_for_the_root(clock: list[float]) -> None:
    """Scans that wait for a replaced index count as waiting for the root, not for the new index.

    The limit for a root means that only few threads wait for a store that hangs.
    """
    scans = Bulkhead()
    with ExitStack() as waiting:
        for _ in range(4):
            for _ in range(2):
                waiting.enter_context(scans.waiting([index(1)]))
            clock[0] += 1.1
            assert scans.blocked([index(1)], 0.5) == {index(1)}
            scans.invalidate(index(1).directory)
        assert scans.blocked([index(1), index(2)], 0.5) == {index(1), index(2)}


def test_scans_of_old_files_do_not_block_a_replaced_index(clock: list[float]) -> None:
    """Scans that wait for files of a replaced index do not block the new index."""
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
