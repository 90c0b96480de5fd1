"""Stop-loss: how many scans skip their request after similar scans whose indexes skipped nothing.

The driver counts, for each table and form of filter, the successive scans whose request was
useless, and sends the count with each request. After eight useless requests, two scans read
without a request. Each further useless request doubles this number of scans, up to 64:

    useless requests         0..7   8   9   10   11   12   13   14 ...
    scans without a request  0      2   4   8    16   32   64   64 ...

A scan without a request reads all files, as without an index. After a change of an index, all
scans send requests again (`Pruner.invalidate`).
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
    """How many scans need no request; None after an answer that does not count as useless.

    Args:
        vain: the number of successive similar scans whose request was useless.
        reasons: why indexes were not used; every scan must report an index that is in trouble.
    """
    if not reasons.keys() <= _HEALTHY:
        return None
    if vain < PATIENCE:
        return 0
    # The exponent is limited so that no huge number is computed.
    doublings = min(vain - PATIENCE + 1, LONGEST_REST.bit_length())
    return min(LONGEST_REST, 1 << doublings)


class IdleIndexes:
    """The indexes, by folder, whose latest answer let scans go without a request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._directories: set[str] = set()

    def note(self, directories: Iterable[str], rest: int | None) -> None:
        """Records an answer of these indexes."""
        with self._lock:
            if rest:
                self._directories.update(directories)
            else:
                self._directories.difference_update(directories)

    def __contains__(self, directory: str) -> bool:
        """Whether an index is idle."""
        with self._lock:
            return directory in self._directories
