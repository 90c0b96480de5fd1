"""Tests how long VACUUM retains past versions."""

from __future__ import annotations

import pytest

from sieve.metadata.retention import Retention


@pytest.mark.parametrize(
    ("versions", "hours", "expired"),
    [(1, 0, 2), (2, 0, 1), (3, 0, 0), (9, 0, 0), (1, 1, 2), (1, 2, 1), (1, 1.5, 1), (1, 9, 0)],
)
def test_age_counts_from_the_next_version(versions: int, hours: float, expired: int) -> None:
    """A version expires once it is old enough, but the newest versions never expire.

    Of three versions, the first was replaced two hours ago, and the second one hour ago.
    """
    times = [0, 3_600_000, 7_200_000]
    assert Retention(versions, hours).expired(times, 10_800_001) == expired
