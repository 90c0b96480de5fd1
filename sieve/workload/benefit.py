"""Benefit: the one judgement of whether an index on a column can help.

CREATE, REFRESH, DESCRIBE and ESTIMATE judge by what a build or a sample has measured, ADVISE and
the page in Spark's web UI by a test of a sample. ``sieve advise`` reads no data and does not judge.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

MOST_SHARE: Final = 0.5
"""An index helps if a query for a value reads at most this share of the table."""


class Benefit(StrEnum):
    """What an index on a column does for a query for one of its values."""

    HELPS = "helps"
    LITTLE = "helps little"
    CANNOT = "cannot help"


def benefit_of(reads: float, least: float, locations: float) -> Benefit:
    """The benefit of an index.

    Args:
        reads: locations that a query for a value reads with the index, in the mean.
        least: locations that hold the value, in the mean, which every index must read.
    """
    most = MOST_SHARE * locations
    if least > most:
        return Benefit.CANNOT
    return Benefit.LITTLE if reads > most else Benefit.HELPS
