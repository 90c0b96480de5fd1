"""Retention: how long VACUUM keeps past versions.

`sieve.operations.vacuum` finds the files that the remaining versions do not need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

HOUR_MS: Final = 3600 * 1000
FLOOR_MS: Final = 24 * HOUR_MS
"""A time in ms. If no version names the file of a pending write after this time, Sieve assumes that
the writer is dead."""


@dataclass(frozen=True, slots=True)
class Retention:
    """Decides which past versions VACUUM keeps: a number of newest versions, and all recent ones.

    Attributes:
        versions: the number of newest versions to keep in any case, at least 1.
        hours: the number of hours for which VACUUM keeps a version after its replacement.
    """

    versions: int
    hours: float

    def expired(self, published_ms: Sequence[int], now_ms: int) -> int:
        """Returns how many of the oldest versions have expired, so that VACUUM need not keep them.

        Args:
            published_ms: publication time of each version, ms since the epoch, oldest first.
            now_ms: the current time, by the clock of ``published_ms``.
        """
        floor = now_ms - self.hours * HOUR_MS
        # VACUUM counts the age of a version from the publication of the next version.
        old = sum(1 for after in published_ms[1:] if after < floor)
        return max(0, min(old, len(published_ms) - self.versions))
