"""Retention: how long VACUUM keeps past versions.

`sieve.operations.vacuum` decides which files no remaining version needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

HOUR_MS: Final = 3600 * 1000
FLOOR_MS: Final = 24 * HOUR_MS
"""If a pending write is older than this time in ms, and no version names its files, Sieve assumes
that its writer is dead."""


@dataclass(frozen=True, slots=True)
class Retention:
    """Decides which past versions VACUUM keeps: a number of newest versions, and all recent ones.

    Attributes:
        versions: the number of newest versions to keep in any case, at least 1.
        hours: the number of hours for which a version is kept after the next version replaced it.
    """

    versions: int
    hours: float

    def expired(self, published_ms: Sequence[int], now_ms: int) -> int:
        """Returns how many of the oldest versions VACUUM need not keep any longer.

        Args:
            published_ms: publication time of each version, ms since the epoch, oldest first.
            now_ms: the current time, by the clock of ``published_ms``.
        """
        floor = now_ms - self.hours * HOUR_MS
        # The hours for which VACUUM keeps a version count from the publication of the next version.
        old = sum(1 for after in published_ms[1:] if after < floor)
        return max(0, min(old, len(published_ms) - self.versions))
