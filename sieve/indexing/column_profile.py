"""What a build knows of a column before it reads it all: rows of each file, and a sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sieve.arrays.dtypes import Counts
from sieve.encoding.encoder import Encoder
from sieve.indexing.column_sample import Sample, take_sample
from sieve.metadata.options import SMALLEST_SHARE, IndexOptions
from sieve.segments.intervals import generous_total
from sieve.segments.stopping_rule import MOST_OF_TABLE, Worth
from sieve.tables.table import LOCATION, Column

_SHARE_BESIDE_MAP = 20
_LITTLE = 100
"""Bytes of an index hardly count up to one in so many of its column's, or up to `_LEAST_LITTLE`."""
_LEAST_LITTLE = 8 << 10
_ALLOWED = 320 << 10
"""Bytes of intervals that cuts are read for at least: one task weighs as many cuts."""
_WIDER = 8


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Profile:
    """What is known of a column, and how many bytes its index may have.

    Attributes:
        n_files: how many locations there are.
        table_bytes: of the files.
        sample: of the column, or of a part of its domain.
        wide: whether more cuts are read than a column needs mostly, for the budget ``auto``.
    """

    n_files: int
    table_bytes: int
    sample: Sample
    wide: bool = False

    @property
    def column_bytes(self) -> int:
        """Uncompressed bytes of the column."""
        return int(self.sample.rows * self.sample.width)

    @property
    def little(self) -> float:
        """Bytes that hardly count beside the column."""
        return self.sample.share * max(_LEAST_LITTLE, self.column_bytes // _LITTLE)

    def skip_probability(self, options: IndexOptions) -> Worth:
        """What reads are worth, for the budget ``auto``."""
        return Worth(self.n_files, self.table_bytes, options.payback, self.sample.share)

    def budget(self, options: IndexOptions) -> int:
        """Bytes that a run may have."""
        if options.automatic:
            whole = max(SMALLEST_SHARE, self.table_bytes // MOST_OF_TABLE)
        else:
            whole = options.budget_bytes(self.column_bytes)
        return max(1, int(whole * self.sample.share))

    def most(self, options: IndexOptions) -> float:
        """Bytes above which a run is made again: a map keeps its budget by the bits of a key."""
        return math.inf if options.shape in ("sieve", "map") else self.budget(options)

    def intervals_budget(self, options: IndexOptions, shape: str) -> int:
        """What of it is for ranges: all, but for a map, whose intervals are the lesser part.

        Of the budget ``auto`` it is as much as the cuts that travel are read for.
        """
        budget = self.budget(options)
        if options.automatic:
            usual = max(_ALLOWED, self.column_bytes // _LITTLE) * (_WIDER if self.wide else 1)
            return min(budget, max(1, int(usual * self.sample.share)))
        return beside_map(budget) if shape == "map" else budget

    def most_cuts(self, options: IndexOptions) -> int:
        """Cuts that a build sends on at most, and about as many where keys are random."""
        if options.shape == "sieve":
            return max(1, self.sample.shown)
        budget = self.intervals_budget(options, options.shape)
        return max(1, generous_total(self.sample.shown, self.n_files, budget))

    def wider(self, options: IndexOptions) -> Self | None:
        """The same with which more cuts are read; None where no more may be."""
        if self.wide or not options.automatic:
            return None
        wider = replace(self, wide=True)
        now, then = (one.intervals_budget(options, options.shape) for one in (self, wider))
        return wider if then > now else None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ColumnProfile(Profile):
    """A column of some files.

    Attributes:
        values: all rows, the column as ``v`` and their `LOCATION`.
        counted: int64[n_files], rows of each by a count that reads no column; None where the
            format does not tell.
    """

    values: DataFrame
    counted: Counts | None


def beside_map(budget: int) -> int:
    """Bytes of a map's budget that go to the intervals that answer ranges."""
    return max(budget // _SHARE_BESIDE_MAP, min(budget // 2, SMALLEST_SHARE // 2))


def column_profile(
    frame: DataFrame,
    column: Column,
    sizes: Sequence[int],
    *,
    counted: bool,
    describe_job: Callable[[str], None],
    encoder: Encoder | None = None,
) -> ColumnProfile:
    """Count and sample.

    Args:
        frame: all rows of some files, read as a query reads them, with their `LOCATION`.
        column: which one.
        sizes: bytes of each file.
        counted: whether the format's metadata tell how many rows a file has.
        describe_job: told what the next job does, for its label.
        encoder: for the values; None: the one that suits the sample.
    """
    values = frame.select(sf.col(column.expression).alias("v"), LOCATION)
    describe_job("counting")
    counts = _row_counts(frame, len(sizes)) if counted else None
    describe_job("sampling")
    total = None if counts is None else int(counts.sum())
    sample = take_sample(values, column, total, sum(sizes), encoder)
    return ColumnProfile(
        n_files=len(sizes),
        table_bytes=sum(sizes),
        sample=sample,
        values=values,
        counted=counts,
    )


def _row_counts(frame: DataFrame, n_files: int) -> Counts:
    counts = np.zeros(n_files, np.int64)
    for location, rows in frame.groupBy(LOCATION).count().collect():
        counts[location] = rows
    return counts
