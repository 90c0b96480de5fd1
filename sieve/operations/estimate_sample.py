"""The sample of files that ESTIMATE reads of a large table, and what it says of all files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from sieve.metadata.options import IndexOptions
from sieve.metadata.records import Expected

FILES: Final = 20
"""Files of a sample."""
ALL_UP_TO: Final = 2 * FILES
"""A table of at most so many files is read whole."""
FEW: Final = 2
"""Files of a sample whose reading tells what a job takes whatever it reads."""
_READINGS: Final = 2
"""Jobs of a build that read the column: the sample's, and the one that cuts."""


@dataclass(frozen=True, slots=True)
class FileSample:
    """Some of the files of a table.

    Attributes:
        numbers: of the chosen files, ascending.
        share: of the table's bytes, the part in the chosen files.
    """

    numbers: Sequence[int]
    files: int
    share: float

    @property
    def is_all(self) -> bool:
        """Whether it has every file."""
        return len(self.numbers) == self.files

    def of_all(self, count: float) -> float:
        """A count over the chosen files, scaled up to all files."""
        return count * self.files / max(1, len(self.numbers))

    def scaled_budget(self, options: IndexOptions, column_bytes: int) -> IndexOptions:
        """The options with the sample's share of the budget.

        Args:
            options: of the whole index.
            column_bytes: of the chosen files.
        """
        if self.is_all or options.automatic or options.shape == "sieve":
            return options
        whole = options.budget_bytes(int(column_bytes / self.share))
        return replace(options, budget=f"{max(1, int(whole * self.share))}B")

    def seconds_of_all(self, reading: float, few: float, making: float) -> float:
        """Seconds of a build of the whole table, in a session that has run such jobs before.

        Args:
            reading: seconds of the job that reads the column of the chosen files.
            few: the same of `FEW` of them.
            making: seconds that making the run of these takes.
        """
        of_chosen = max(0.0, reading - few) / (1 - FEW / len(self.numbers))
        return _READINGS * (reading + of_chosen * (1 / self.share - 1)) + making / self.share

    def reads_of_all(
        self, expected: Sequence[Expected], locations: int, location_bytes: float
    ) -> tuple[Expected, ...]:
        """The expected reads of the whole table.

        A key that occurs was drawn from a chosen file, which is read with every sample. The other
        files are as likely to be read as the other chosen ones.

        Args:
            expected: those of the chosen files.
            locations: of the chosen files.
            location_bytes: mean bytes of these.
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
        lengths: bytes of each file of the table.
        every: read all of them, whatever their number.
    """
    n = len(lengths)
    if every or n <= ALL_UP_TO:
        return FileSample(range(n), n, 1.0)
    drawn = np.sort(np.random.default_rng(1).choice(n, FILES, replace=False)).tolist()
    share = sum(lengths[k] for k in drawn) / max(1, sum(lengths))
    return FileSample(drawn, n, share)
