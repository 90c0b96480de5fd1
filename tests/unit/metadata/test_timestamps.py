"""Tests times as text: for any year, a time is read back unchanged, to the millisecond."""

from __future__ import annotations

import pytest

from sieve.metadata.timestamps import iso, ms_since_epoch


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (7, "1970-01-01T00:00:00.007Z"),
        (1_740_830_400_123, "2025-03-01T12:00:00.123Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
    ],
)
def test_a_time_is_text_in_utc(ms: int, text: str) -> None:
    """A time is written as text in UTC, and the texts sort in the order of the times."""
    assert iso(ms) == text
    assert ms_since_epoch(text) == ms


def test_a_time_may_be_of_another_zone() -> None:
    """A time from another program, in another time zone, is readable, too."""
    assert ms_since_epoch("2025-03-01T13:00:00.5+01:00") == 1_740_830_400_500
