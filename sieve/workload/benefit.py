"""Benefit: decides whether an index on a column reduces reads enough.

CREATE, REFRESH and DESCRIBE decide from measurements of a build, and ESTIMATE from those of a
sample. ADVISE and Sieve's page in Spark's web UI decide from a test on a sample. The command
``sieve advise`` reads no data, so it does not decide.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

MOST_SHARE: Final = 0.5
"""An index helps if a query for one value reads at most this share of the table's locations."""
_UNEVEN: Final = 0.25
"""Number of locations allowed in addition to this share. Locations differ in size, so a value in
one of two files often costs slightly more than half of the bytes."""


class Benefit(StrEnum):
    """How much an index helps. ``CANNOT``: even with an exact index, queries read too much."""

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
