"""The stopping rule of the budget `auto`: decides at which size a build stops adding to an index.

The build stops at the first of three limits. Either a further byte no longer saves enough reads, or
queries read a near-optimal number of files, or the index has its maximum share of the table's size.

The first limit is a cost per byte, a Lagrange multiplier as in rate-distortion coding. An index
byte pays back if it saves reading at least one byte of the table within `payback` queries. In a
table of L locations and B bytes, an index byte must therefore save reading ``L / (payback * B)``
locations per expected query:

    200 files of 500 KB and a payback of 10 queries give 2e-7 files per query and index byte
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sieve.arrays.dtypes import CodeIntervals, Numbers

KINDS: Final = ("present", "absent", "range")
"""The kinds of probes (sampled queries): equality with a present key, equality with an absent key,
and a short range."""

NEAR: Final = 1.05
"""A version of an index is good enough if queries read at most this multiple of the files that
contain a match."""
CLOSE: Final = 1.01
"""The multiple that replaces `NEAR` for a version so small that its bytes hardly count."""
FREE_BYTES: Final = 4096
"""On most file systems, this number of bytes is one disk block. A smaller version saves no disk
block."""
MOST_OF_TABLE: Final = 10
"""A version has at most one byte per `MOST_OF_TABLE` bytes of the table."""

# For each kind of probe, how many of the query model's six kinds of query it represents. "range"
# stands for the three kinds of range query, and "present" for the two kinds that look up an
# occurring key.
_WEIGHTS: Final[Mapping[str, int]] = {"present": 2, "absent": 1, "range": 3}
_PRICES: Final = 24
_LEAST_BYTES: Final = 2048

Trial = tuple[float, Sequence[float]]
"""The size of a version in bytes, and the files that probes read: for each of `KINDS`, the total
number over all its probes."""


def mean_read(reads: Mapping[str, float]) -> float:
    """Returns the mean number of files that queries read; the six kinds of query have equal weight.

    Args:
        reads: for some of `KINDS`, the mean number of files that queries of this kind read.
    """
    counted = sum(_WEIGHTS[kind] for kind in reads)
    return sum(_WEIGHTS[kind] * files for kind, files in reads.items()) / max(1, counted)


def served(reads: Mapping[str, float]) -> dict[str, float]:
    """Returns `reads`, but counts at least one file for a query for an absent key.

    Without this minimum, an index of fine-grained timestamps would spend bytes on every gap between
    keys, only to save less than one file per query.
    """
    return {kind: max(1.0, n) if kind == "absent" else n for kind, n in reads.items()}


def near(reads: Mapping[str, float], least: Mapping[str, float]) -> bool:
    """Returns whether each kind of query reads at most `NEAR` times the files with a match."""
    bounds = served(least)
    return all(files <= NEAR * bounds[kind] for kind, files in served(reads).items())


@dataclass(frozen=True, slots=True)
class Payback:
    """Converts a number of saved file reads into the number of index bytes that they justify.

    Attributes:
        table_bytes: total size of the locations on disk, in bytes.
        payback: number of queries after which an index byte must have saved reading one byte of the
            table.
        share: share of all expected queries that fall into the planned part of the domain.
    """

    locations: int
    table_bytes: int
    payback: int
    share: float = 1.0

    @property
    def file(self) -> float:
        """The number of index bytes that are justified if each query reads one file less."""
        each = self.table_bytes / max(1, self.locations)
        return max(1.0, self.share * self.payback * each)

    @property
    def absent(self) -> float:
        """Index bytes that are justified if each query for an absent key reads one file less."""
        return self.file * _WEIGHTS["absent"] / sum(_WEIGHTS.values())

    @property
    def price(self) -> float:
        """The cost per byte: the number of files that each index byte must save per query."""
        return 1 / self.file

    def cost(self, index_bytes: float, reads: Mapping[str, float]) -> float:
        """Returns the index's bytes plus the bytes that `payback` queries read from the table."""
        return index_bytes + self.file * mean_read(served(reads))


@dataclass(frozen=True, slots=True, eq=False)
class Stop:
    """The limits at which a build stops adding intervals; the limit that is reached first applies.

    Attributes:
        price: the cost per byte: the number of files that each index byte must save per query.
        little: a small number of bytes. A version with fewer bytes is good enough only if queries
            read at most `CLOSE` times the number of files with a match. The comparison with `CLOSE`
            does not use `served`.
        probes: for each of `KINDS`, int64[k, 2], the first and the last key code of each probe;
            both columns ascend.
        least: for each kind that has probes, the mean number of files that contain a match.
        free: a number of bytes. For a version with fewer bytes, only the price is a limit. Few
            probes hit the keys at the border of two files, so probes cannot judge a very small
            version.
    """

    price: float
    budget: float
    little: float
    probes: tuple[CodeIntervals, ...]
    least: Mapping[str, float]
    free: float = 0.0

    def prices(self, locations: int) -> Numbers:
        """Returns the prices to try, in falling order; the last one is `price`."""
        highest = max(4 * max(1, locations) / _LEAST_BYTES, 4 * self.price)
        return np.geomspace(highest, self.price, _PRICES)

    def choose(self, trials: Sequence[Callable[[], Trial]]) -> int:
        """Returns the first price with a good enough version; otherwise the last within the budget.

        If a version of at most `little` bytes is good enough, no larger version replaces it.

        Args:
            trials: for each price, in falling order, a function that returns the price's trial.
                Each function is called at most once. From one trial to the next, the bytes rise and
                the files fall.

        Returns:
            The position of the chosen price. 0 if even the version at the highest price exceeds the
            budget.
        """
        tried = functools.cache(lambda at: trials[at]())
        low, high = 0, len(trials) - 1
        while low < high:
            middle = (low + high) // 2
            size, reads = tried(middle)
            if size > self.budget or self._enough(size, reads):
                high = middle
            else:
                low = middle + 1
        size, _ = tried(low)
        if low == 0 or size <= self.little:
            return low
        if size > self.budget or near(self._means(tried(low - 1)[1]), self.least):
            return low - 1
        return low

    def _enough(self, size: float, totals: Sequence[float]) -> bool:
        reads = self._means(totals)
        if size < self.free or not near(reads, self.least):
            return False
        return size >= self.little or mean_read(reads) <= CLOSE * mean_read(self.least)

    def _means(self, totals: Sequence[float]) -> dict[str, float]:
        pairs = zip(KINDS, totals, self.probes, strict=True)
        return {kind: total / len(probes) for kind, total, probes in pairs if len(probes)}
