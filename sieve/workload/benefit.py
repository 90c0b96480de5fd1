"""Benefit: decides whether an index on a column reduces reads enough.

CREATE, REFRESH and DESCRIBE use measurements of a finished build. ESTIMATE uses measurements of a
sample. ADVISE and Sieve's page in Spark's web UI use a test on a sample of the table's files. The
command ``sieve advise`` reads no data, so it cannot decide whether an index helps.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

WORTHWHILE_SHARE: Final = 0.01
"""An index is useless if it skips at most this share of the bytes that queries would read."""
MOST_SHARE: Final = 0.5
"""An index helps if a query for one value reads at most this share of the table's locations."""
_UNEVEN: Final = 0.25
"""An index that helps may read this many locations more than `MOST_SHARE` allows. Locations differ
in size, so a value in one of two files often costs slightly more than half of the bytes."""


class Benefit(StrEnum):
    """How much an index helps queries for one value.

    ``LITTLE``: this index helps little, but an exact index would help. ``SCATTERED``: even with an
    exact index, queries read most of the table. ``CANNOT``: even with an exact index, queries read
    almost all of the table.
    """

    HELPS = "helps"
    LITTLE = "helps little"
    SCATTERED = "helps little, whatever its options"
    CANNOT = "cannot help"

    @property
    def is_suggested(self) -> bool:
        """Whether ADVISE suggests an index with this benefit."""
        return self in (Benefit.HELPS, Benefit.LITTLE)


def benefit_of(reads: float, least: float, locations: float) -> Benefit:
    """The benefit of an index.

    Args:
        reads: mean number of locations that a query for one value reads with the index.
        least: mean number of locations that contain the value. With any index, a query for the
            value reads at least this many locations.
    """
    most = MOST_SHARE * locations + _UNEVEN
    if least > most:
        useless = least >= (1 - WORTHWHILE_SHARE) * locations
        return Benefit.CANNOT if useless else Benefit.SCATTERED
    return Benefit.LITTLE if reads > most else Benefit.HELPS
