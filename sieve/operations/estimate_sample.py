"""The sample of a large table's files that ESTIMATE reads; scales results to all files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from sieve.metadata.options import IndexOptions
from sieve.metadata.records import Expected

FILES: Final = 20
"""Number of files in a sample."""
ALL_UP_TO: Final = 2 * FILES
"""ESTIMATE reads all files of a table that has at most this many files."""
FEW: Final = 2
"""The number of files that the first ESTIMATE of a session reads twice, to warm up."""
_OF_JOB: Final = 0.1
"""Seconds that a Spark job takes in a warm session if it reads nothing."""
_OF_STEP: Final = 0.3
"""Seconds that a build takes in a warm session to make a run or a map of few keys."""
_READINGS: Final = 1.5
"""The time of both jobs with which a build reads the column, divided by the second job's time.

The first job takes the sample; the second job makes the cuts.
"""


def seconds_to_make(seconds: float, times: float) -> float:
    """Scales the seconds of a step to ``times`` times as many segments in the same task."""
    return seconds + max(0.0, seconds - _OF_STEP) * (times - 1)


@dataclass(frozen=True, slots=True)
class FileSample:
    """Some of the files of a table.

    Attributes:
        numbers: numbers of the chosen files, ascending.
        share: bytes of the chosen files as a share of the table's bytes.
    """

    numbers: Sequence[int]
    files: int
    share: float

    @property
    def is_all(self) -> bool:
        """Returns whether the sample contains every file."""
        return len(self.numbers) == self.files

    def of_all(self, count: float) -> float:
        """Scales a count over the chosen files up to all files."""
        return count * self.files / max(1, len(self.numbers))

    def scaled_budget(self, options: IndexOptions, column_bytes: int) -> IndexOptions:
        """The options with the sample's share of the budget.

        Args:
            options: the options of the whole index.
            column_bytes: bytes of the column in the chosen files.
        """
        if self.is_all or options.automatic or options.every_key:
            return options
        whole = options.budget_bytes(int(column_bytes / self.share))
        return replace(options, budget=f"{max(1, int(whole * self.share))}B")

    def seconds_to_read(self, both: float, cuts: float) -> float:
        """The seconds that a build of the whole table takes to read the column.

        Args:
            both: seconds of both jobs (sample and cuts) over the chosen files.
            cuts: seconds of the second job alone, which makes the cuts.
        """
        return both + _READINGS * max(0.0, cuts - _OF_JOB) * (1 / self.share - 1)

    def reads_of_all(
        self, expected: Sequence[Expected], locations: int, location_bytes: float
    ) -> tuple[Expected, ...]:
        """The expected reads of the whole table.

        A probe with a present key draws the key from one of the chosen files, so the probe's query
        always reads that file. For every other file of the table, the probability of a read is the
        same as for the other chosen files.

        Args:
            expected: the expected reads of the chosen files.
            locations: number of locations of the chosen files.
            location_bytes: mean size of these locations in bytes.
        """
        if self.is_all:
            return tuple(expected)

        times = (self.of_all(locations) - 1) / max(1, locations - 1)

        def scaled(count: float, own: float) -> float:
            return min(own, count) + max(0.0, count - own) * times

        found = []
        for kind in expected:
            if kind.kind == "absent":
                counts = [self.of_all(n) for n in (kind.files, kind.exact, kind.minmax)]
                sizes = [self.of_all(n) for n in (kind.bytes, kind.exact_bytes)]
            else:
                counts = [scaled(n, 1.0) for n in (kind.files, kind.exact, kind.minmax)]
                sizes = [scaled(n, location_bytes) for n in (kind.bytes, kind.exact_bytes)]
            found.append(Expected(kind.kind, *counts, *sizes))
        return tuple(found)


def sample_files(lengths: Sequence[int], *, every: bool) -> FileSample:
    """Draws the files to read.

    Args:
        lengths: length in bytes of each file of the table.
        every: whether to choose all files, whatever their number.
    """
    n = len(lengths)
    if every or n <= ALL_UP_TO:
        return FileSample(range(n), n, 1.0)
    drawn = np.sort(np.random.default_rng(1).choice(n, FILES, replace=False)).tolist()
    share = sum(lengths[k] for k in drawn) / max(1, sum(lengths))
    return FileSample(drawn, n, share)
