from __future__ import annotations

import pytest

from sieve.reader.idle import LONGEST_REST, PATIENCE, IdleIndexes, rest_after
from sieve.reader.reason import Reason


@pytest.mark.parametrize(
    ("vain", "rest"),
    [(0, 0), (1, 0), (7, 0), (8, 2), (9, 4), (10, 8), (11, 16), (12, 32), (13, 64), (14, 64)],
)
def test_rests_double_up_to_a_bound(vain: int, rest: int) -> None:
    """As docs/sql.md states, two scans pause after eight useless ones, then four, up to 64."""
    assert (PATIENCE, LONGEST_REST) == (8, 64)
    assert rest_after(vain, {}) == rest


def test_a_count_of_any_size_is_bounded() -> None:
    """An index may be idle for years."""
    assert rest_after(10**12, {}) == LONGEST_REST


@pytest.mark.parametrize("reason", list(Reason))
def test_an_index_in_trouble_is_asked_by_every_scan(reason: Reason) -> None:
    """Scans pause only if nothing is wrong, or if no index serves the filter."""
    harmless = reason in (Reason.NO_PREDICATE, Reason.UNSUPPORTED_PREDICATE, Reason.UNBOUNDED)
    expected = LONGEST_REST if harmless else None
    assert rest_after(20, {reason: 1}) == expected
    assert rest_after(20, {reason: 1, Reason.NO_PREDICATE: 2}) == expected
    assert rest_after(1, {reason: 1}) == (0 if harmless else None)


def test_the_latest_answer_decides_whether_an_index_is_idle() -> None:
    """The state of each index is stored by its folder."""
    idle = IdleIndexes()
    idle.note(["file:/a", "file:/b"], 2)
    assert "file:/a" in idle
    assert "file:/b" in idle
    idle.note(["file:/a", "file:/c"], 0)
    assert "file:/a" not in idle
    assert "file:/b" in idle
    assert "file:/c" not in idle
