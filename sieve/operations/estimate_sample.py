"""The sample of a table's files that ESTIMATE reads; its methods scale results to all files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from sieve.metadata.index_options import IndexOptions
from sieve.metadata.records import SIGNED, Expected

FILES: Final = 20
"""The number of files in a sample."""
ALL_UP_TO: Final = 2 * FILES
"""ESTIMATE reads all files of a table that has at most this many files."""
FEW: Final = 2
"""The first ESTIMATE of a Spark application reads this many files one extra time, to warm up."""
_OF_JOB: Final = 0.1
"""Seconds that a Spark job takes if the application is warm and the job reads no data."""
_OF_STEP: Final = 0.3
"""Seconds that a warm application takes to write a run, or to make a hash map, with few keys."""
_READINGS: Final = 1.5
"""A build reads the column with two jobs. This number is the time of both jobs, divided by the time
of the second job.

The first job takes the sample; the second job makes the cuts.
"""


def seconds_to_make(seconds: float, times: float) -> float:
    """Scales a step's seconds to a task that makes ``times`` times as many segments."""
    return seconds + max(0.0, seconds - _OF_STEP) * (times - 1)


@dataclass(frozen=True, slots=True)
class FileSample:
    """A random sample of a table's files.

    Attributes:
        numbers: positions of the sampled files among the table's files, ascending.
        share: total size of the sampled files, divided by the size of the table.
    """

    numbers: Sequence[int]
    files: int
    share: float

    @property
    def is_all(self) -> bool:
        """Returns whether the sample contains every file."""
        return len(self.numbers) == self.files

    def of_all(self, count: float) -> float:
        """Scales a count from the sampled files to all files."""
        return count * self.files / max(1, len(self.numbers))

    def scaled_budget(self, options: IndexOptions, column_bytes: int) -> IndexOptions:
        """The options with a budget in proportion to the sample's size.

        Args:
            options: the options of an index on all files.
            column_bytes: size of the column's data in the sampled files, in bytes.
        """
        if self.is_all or options.automatic or options.every_key:
            return options
        whole = options.budget_bytes(int(column_bytes / self.share))
        return replace(options, budget=f"{max(1, int(whole * self.share))}B")

    def seconds_to_read(self, both: float, cuts: float) -> float:
        """The seconds that a build on all files takes to read the column.

        Args:
            both: seconds that the two jobs (for the sample and for the cuts) took on the sampled
                files.
            cuts: seconds that the second job, which makes the cuts, took on the sampled files.
        """
        return both + _READINGS * max(0.0, cuts - _OF_JOB) * (1 / self.share - 1)

    def reads_of_all(
        self, expected: Sequence[Expected], locations: int, location_bytes: float
    ) -> tuple[Expected, ...]:
        """Scales expected reads of queries from the sampled files to all files.

        A query for a key of a sampled file always reads that file. The method assumes that the
        query reads the same share of all other files, inside and outside the sample.

        Args:
            expected: the expected reads of queries on the sampled files.
            locations: number of locations in the sampled files.
            location_bytes: mean size of the locations in bytes.
        """
        if self.is_all:
            return tuple(expected)

        times = (self.of_all(locations) - 1) / max(1, locations - 1)

        def scaled(count: float, own: float) -> float:
            return min(own, count) + max(0.0, count - own) * times

        found = []
        for kind in expected:
            if kind.kind in ("absent", SIGNED):
                counts = [self.of_all(n) for n in (kind.files, kind.exact, kind.minmax)]
                sizes = [self.of_all(n) for n in (kind.bytes, kind.exact_bytes)]
            else:
                counts = [scaled(n, 1.0) for n in (kind.files, kind.exact, kind.minmax)]
                sizes = [scaled(n, location_bytes) for n in (kind.bytes, kind.exact_bytes)]
            found.append(Expected(kind.kind, *counts, *sizes))
        return tuple(found)


def sample_files(lengths: Sequence[int], *, every: bool) -> FileSample:
    """Draws a sample of the table's files.

    Args:
        lengths: length in bytes of each file of the table.
        every: whether the sample must contain all files, even if the table has many.
    """
    n = len(lengths)
    if every or n <= ALL_UP_TO:
        return FileSample(range(n), n, 1.0)
    drawn = np.sort(np.random.default_rng(1).choice(n, FILES, replace=False)).tolist()
    share = sum(lengths[k] for k in drawn) / max(1, sum(lengths))
    return FileSample(drawn, n, share)
