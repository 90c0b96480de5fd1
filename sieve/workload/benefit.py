"""Benefit: decides whether an index on a column reduces reads enough.

CREATE, REFRESH and DESCRIBE decide from measurements of the index's build. ESTIMATE decides from
measurements of a sample. ADVISE and Sieve's page in Spark's web UI decide from a test on a sample
of the table's files. The command ``sieve advise`` reads no data files, so it does not judge the
benefit.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

MOST_SHARE: Final = 0.5
"""An index helps if a query for one value reads at most this share of the table's locations."""
_UNEVEN: Final = 0.25
"""Number of locations that a query may read in addition to that share. Locations differ in size. So
if a table has two files and a value occurs in one, a query often reads slightly more than half of
the bytes."""


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
