"""Stop-loss: how many scans need not ask indexes that have skipped nothing for the last ones alike.

The driver counts, for each table and form of filter, the scans in a row that asked in vain, and
sends the count with each request. After eight, two scans do not ask, and after each further one
that asks in vain twice as many, up to 64:

    asked in vain   0..7   8   9   10   11   12   13   14 ...
    then rest       0      2   4   8    16   32   64   64 ...

A scan that rests reads all files, as without an index. A change of an index wakes all scans
(`Pruner.invalidate`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Final

from sieve.reader.reason import Reason

PATIENCE: Final = 8
"""Scans in a row that ask in vain before the first rest."""
LONGEST_REST: Final = 64
"""Scans that do not ask, at most, before one asks again."""

_HEALTHY: Final = frozenset((Reason.NO_PREDICATE, Reason.UNSUPPORTED_PREDICATE, Reason.UNBOUNDED))


def rest_after(vain: int, reasons: Mapping[Reason, int]) -> int | None:
    """How many scans need not ask; None after an answer that does not count as one in vain.

    Args:
        vain: scans alike in a row that have asked in vain.
        reasons: why indexes were not used; of one in trouble every scan is to tell.
    """
    if not reasons.keys() <= _HEALTHY:
        return None
    if vain < PATIENCE:
        return 0
    # A large exponent must not become a large number first.
    doublings = min(vain - PATIENCE + 1, LONGEST_REST.bit_length())
    return min(LONGEST_REST, 1 << doublings)


class IdleIndexes:
    """The indexes whose latest answer let scans rest, by folder."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._directories: set[str] = set()

    def note(self, directories: Iterable[str], rest: int | None) -> None:
        """Notes an answer of these indexes."""
        with self._lock:
            if rest:
                self._directories.update(directories)
            else:
                self._directories.difference_update(directories)

    def __contains__(self, directory: str) -> bool:
        """Whether an index is idle."""
        with self._lock:
            return directory in self._directories
