"""What a build knows of a column before it reads it all: rows of each file, and a sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sieve.build.sample import Sample, take_sample
from sieve.keys import Encoder
from sieve.options import SMALLEST_SHARE, IndexOptions
from sieve.tables.catalog import LOCATION, Column

Counts = npt.NDArray[np.int64]

_SHARE_BESIDE_MAP = 20


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """A column of some files.

    Attributes:
        values: all rows, the column as ``v`` and their `LOCATION`.
        n_files: how many locations there are.
        counted: int64[n_files], rows of each by a count that reads no column; None where the
            format does not tell.
        sample: of the column, or of a part of its domain.
    """

    values: DataFrame
    n_files: int
    counted: Counts | None
    sample: Sample

    def budget(self, options: IndexOptions) -> int:
        """Bytes that a run may have."""
        whole = options.budget_bytes(int(self.sample.rows * self.sample.width))
        return max(1, int(whole * self.sample.share))

    def most(self, options: IndexOptions) -> float:
        """Bytes above which a run is made again: a map keeps its budget by the bits of a key."""
        return math.inf if options.shape in ("sieve", "map") else self.budget(options)

    def intervals_budget(self, options: IndexOptions, shape: str) -> int:
        """What of it is for ranges: all, but for a map, whose intervals are the lesser part."""
        budget = self.budget(options)
        return beside_map(budget) if shape == "map" else budget


def beside_map(budget: int) -> int:
    """Bytes of a map's budget that go to the intervals that answer ranges."""
    return max(budget // _SHARE_BESIDE_MAP, min(budget // 2, SMALLEST_SHARE // 2))


def survey(
    frame: DataFrame,
    column: Column,
    sizes: Sequence[int],
    *,
    counted: bool,
    say: Callable[[str], None],
    encoder: Encoder | None = None,
) -> Survey:
    """Count and sample.

    Args:
        frame: all rows of some files, read as a query reads them, with their `LOCATION`.
        column: which one.
        sizes: bytes of each file.
        counted: whether the format's metadata tell how many rows a file has.
        say: told what the next job does, for its label.
        encoder: for the values; None: the one that suits the sample.
    """
    values = frame.select(sf.col(column.expression).alias("v"), LOCATION)
    say("counting")
    counts = _row_counts(frame, len(sizes)) if counted else None
    say("sampling")
    total = None if counts is None else int(counts.sum())
    sample = take_sample(values, column, total, sum(sizes), encoder)
    return Survey(values, len(sizes), counts, sample)


def _row_counts(frame: DataFrame, n_files: int) -> Counts:
    counts = np.zeros(n_files, np.int64)
    for location, rows in frame.groupBy(LOCATION).count().collect():
        counts[location] = rows
    return counts
