"""Retention: how long VACUUM keeps past versions, and the files of writers that seem dead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

HOUR_MS: Final = 3600 * 1000
FLOOR_MS: Final = 24 * HOUR_MS
"""If a pending write has this age in ms and no version names its files, its writer is dead."""


@dataclass(frozen=True, slots=True)
class Retention:
    """The rule that decides, by number and by age, which past versions are retained.

    Attributes:
        versions: the number of newest versions to retain, at least 1.
        hours: hours for which a version is retained after the next version replaced it.
    """

    versions: int
    hours: float

    def expired(self, published_ms: Sequence[int], now_ms: int) -> int:
        """How many of the oldest versions are no longer retained.

        Args:
            published_ms: publication time of each version, in order.
            now_ms: the current time by the same clock.
        """
        floor = now_ms - self.hours * HOUR_MS
        # The age of a version counts from the publication of the next version.
        old = sum(1 for after in published_ms[1:] if after < floor)
        return max(0, min(old, len(published_ms) - self.versions))
