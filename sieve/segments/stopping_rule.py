"""The stopping rule of the budget `auto`: at which size an index stops growing.

An index grows until it reaches one of three limits: a cost per byte, a near-optimal number of files
read, or a share of the table's size.

The cost per byte is a Lagrange multiplier, as in rate-distortion coding. A byte of an index pays
back if it saves at least one byte read within `payback` queries. In a table of L locations and B
bytes, an index byte must therefore save ``L / (payback * B)`` locations per expected query:

    200 files of 500 KB and a payback of 10 queries: 2e-7 files per query and byte
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sieve.arrays.dtypes import CodeIntervals, Numbers

KINDS: Final = ("present", "absent", "range")
"""Kinds of probe: equality with a present key, equality with an absent key, and a short range."""

NEAR: Final = 1.05
"""A version is good enough if queries read at most this multiple of the files with a match."""
CLOSE: Final = 1.01
"""The same multiple for a version that is so small that its bytes hardly count."""
FREE_BYTES: Final = 4096
"""On most file systems, a smaller version takes no fewer disk blocks."""
MOST_OF_TABLE: Final = 10
"""A version has at most one byte per this many bytes of the table."""

# Of the six kinds of query in the query model, "range" stands for the three kinds of range, and
# "present" for the two ways to draw a key that occurs.
_WEIGHTS: Final[Mapping[str, int]] = {"present": 2, "absent": 1, "range": 3}
_PRICES: Final = 24
_LEAST_BYTES: Final = 2048

Trial = tuple[float, Sequence[float]]
"""Bytes of a version, and the files that all probes of each of `KINDS` read."""


def mean_read(reads: Mapping[str, float]) -> float:
    """Mean number of files read over the six kinds of query, which have equal weight.

    Args:
        reads: mean number of files by kind, for some of `KINDS`.
    """
    counted = sum(_WEIGHTS[kind] for kind in reads)
    return sum(_WEIGHTS[kind] * files for kind, files in reads.items()) / max(1, counted)


def served(reads: Mapping[str, float]) -> dict[str, float]:
    """Files read by kind, counting at least one file for a query for an absent key.

    Without this rule, every gap between fine-grained timestamps would justify its bytes.
    """
    return {kind: max(1.0, n) if kind == "absent" else n for kind, n in reads.items()}


def near(reads: Mapping[str, float], least: Mapping[str, float]) -> bool:
    """Returns whether each kind of query reads at most `NEAR` times the files that hold a match."""
    bounds = served(least)
    return all(files <= NEAR * bounds[kind] for kind, files in served(reads).items())


@dataclass(frozen=True, slots=True)
class Payback:
    """Converts files read into bytes of an index, according to the payback period.

    Attributes:
        table_bytes: bytes of all locations on disk.
        payback: number of queries within which a byte of the index must save a byte read from the
            table.
        share: share of all expected queries that fall into the part of the domain under
            consideration.
    """

    locations: int
    table_bytes: int
    payback: int
    share: float = 1.0

    @property
    def file(self) -> float:
        """Index bytes that are justified if each query reads one file less."""
        each = self.table_bytes / max(1, self.locations)
        return max(1.0, self.share * self.payback * each)

    @property
    def absent(self) -> float:
        """Index bytes that are justified if each query for an absent key reads one file less."""
        return self.file * _WEIGHTS["absent"] / sum(_WEIGHTS.values())

    @property
    def price(self) -> float:
        """The cost per byte: the number of files that a byte must save in each query."""
        return 1 / self.file

    def cost(self, index_bytes: float, reads: Mapping[str, float]) -> float:
        """Bytes of the index plus the bytes that queries read during the payback period."""
        return index_bytes + self.file * mean_read(served(reads))


@dataclass(frozen=True, slots=True, eq=False)
class Stop:
    """The limits at which the build stops adding intervals.

    The first limit that is reached applies.

    Attributes:
        price: cost per byte: the number of files that a byte must save in each query.
        little: a small number of bytes. A smaller version is good enough only if queries read at
            most `CLOSE` times the files that hold a match. Queries for absent keys then count in
            full.
        probes: for each of `KINDS`, int64[k, 2], first and last key code of each probe; both
            ascend.
        least: mean number of files that hold a match, by kind, for the kinds that have probes.
        free: number of bytes below which only the price is a limit. Few probes hit the keys at the
            border of two files, so probes cannot judge a version of fewer bytes.
    """

    price: float
    budget: float
    little: float
    probes: tuple[CodeIntervals, ...]
    least: Mapping[str, float]
    free: float = 0.0

    def prices(self, locations: int) -> Numbers:
        """Falling prices to try; the last one is the least price."""
        highest = max(4 * max(1, locations) / _LEAST_BYTES, 4 * self.price)
        return np.geomspace(highest, self.price, _PRICES)

    def choose(self, trials: Sequence[Callable[[], Trial]]) -> int:
        """The first price at which a version is good enough; else the last price within the budget.

        If a version of at most `little` bytes is good enough, no larger version replaces it.

        Args:
            trials: for each price, a function that returns the price's trial; each is called at
                most once. From one trial to the next, bytes rise and files fall.

        Returns:
            The position of the chosen price; 0 if even the highest price exceeds the budget.
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
