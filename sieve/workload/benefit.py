"""Benefit: decides whether an index on a column reduces reads enough.

CREATE, REFRESH, DESCRIBE and ESTIMATE decide from the measurements of a build or a sample. ADVISE
and the page in Spark's web UI decide from a test on a sample. ``sieve advise`` reads no data, so
the command does not decide.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

MOST_SHARE: Final = 0.5
"""An index helps if a query for one value reads at most this share of the table."""
_UNEVEN: Final = 0.25
"""Tolerance above this share, in locations. Locations differ in size, so a value in one of two
files often costs slightly more than half of the bytes."""


class Benefit(StrEnum):
    """How much an index helps. ``CANNOT``: even an exact index would read too many locations."""

    HELPS = "helps"
    LITTLE = "helps little"
    CANNOT = "cannot help"


def benefit_of(reads: float, least: float, locations: float) -> Benefit:
    """The benefit of an index.

    Args:
        reads: mean number of locations that a query for one value reads with the index.
        least: mean number of locations that contain the value, which every query must read.
    """
    most = MOST_SHARE * locations + _UNEVEN
    if least > most:
        return Benefit.CANNOT
    return Benefit.LITTLE if reads > most else Benefit.HELPS
