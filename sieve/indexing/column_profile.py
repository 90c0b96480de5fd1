"""Column profile: what a build knows of a column before it reads all rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from pyspark.sql import DataFrame

from sieve.arrays.dtypes import Counts, Weights
from sieve.encoding.encoder import Encoder
from sieve.indexing.column_sample import Sample, take_sample
from sieve.indexing.local_rows import MOST, LocalRows, Rows, WriteFile
from sieve.indexing.tiling import Tiling
from sieve.indexing.value_columns import column_values
from sieve.metadata.index_options import SMALLEST_SHARE, IndexOptions
from sieve.segments.intervals.cut_gaps import overprovisioned_total
from sieve.segments.stopping_rule import MOST_OF_TABLE, Payback
from sieve.segments.weights import weights_of
from sieve.tables.column import Column
from sieve.tables.data_file import DataFile
from sieve.tables.formats import COUNTED, RECORDED
from sieve.tables.table import LOCATION, PLACE, CatalogTable

_SHARE_BESIDE_MAP = 20
_LITTLE = 100
"""An index is negligibly small up to 1/100 of the column's size. An index of up to `_LEAST_LITTLE`
bytes is always negligibly small."""
_LEAST_LITTLE = 8 << 10
_ALLOWED = 320 << 10
"""A build makes enough cuts for at least this many bytes of intervals. One task can process enough
cuts for this many bytes."""
_WIDER = 8


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Profile:
    """The sizes and a sample of a column, from which a build computes the allowed size of an index.

    Attributes:
        sizes: int64[n], size of each location in bytes.
        sample: a sample of the column, or of windows of its domain.
        wide: whether to make more cuts than most columns need (only with the budget ``auto``).
        few: whether to make as few cuts as possible, because the build is likely to choose a hash
            map.
    """

    sizes: Counts
    sample: Sample
    wide: bool = False
    few: bool = False

    @property
    def n_files(self) -> int:
        """Number of locations."""
        return len(self.sizes)

    @property
    def table_bytes(self) -> int:
        """Total size of all locations in bytes."""
        return int(self.sizes.sum())

    @property
    def location_bytes(self) -> float:
        """Mean size of a location in bytes."""
        return max(1.0, self.table_bytes / max(1, self.n_files))

    @property
    def weights(self) -> Weights | None:
        """float32[n], each location's size divided by the mean size; None if all are equal."""
        return weights_of(self.sizes)

    def least_by_map(self, least: float) -> float:
        """Estimates what a query for one value reads with a hash map, in locations of mean size.

        Several values can share a key code, and only a hash map distinguishes them. A larger
        location is more likely to contain the value, and the rows of a value can be in several
        locations.

        Args:
            least: total weight of the locations that contain the value's key code.
        """
        if self.sample.encoder.exact:
            return least
        of_a_row = np.square(self.sizes / self.location_bytes).mean()
        return min(max(float(of_a_row), self.sample.spread), least)

    @property
    def column_bytes(self) -> int:
        """Size of the column's uncompressed values in bytes."""
        return int(self.sample.rows * self.sample.width)

    @property
    def little(self) -> float:
        """The size in bytes up to which an index is negligible compared with the column."""
        return self.sample.share * max(_LEAST_LITTLE, self.column_bytes // _LITTLE)

    def payback(self, options: IndexOptions) -> Payback:
        """Returns how the budget ``auto`` weighs the index's size against the bytes read."""
        return Payback(self.n_files, self.table_bytes, options.payback, self.sample.share)

    def budget(self, options: IndexOptions) -> int:
        """Returns the maximum size of a run in bytes."""
        if options.automatic:
            whole = max(SMALLEST_SHARE, self.table_bytes // MOST_OF_TABLE)
        else:
            whole = options.budget_bytes(self.column_bytes)
        return max(1, int(whole * self.sample.share))

    def most(self, options: IndexOptions) -> float:
        """The size in bytes above which a build makes the run again, but smaller.

        The size is infinite for a run with every key, because it has no budget. The size is also
        infinite for a run with a hash map, because the map's bits per key already fit the budget.
        """
        return math.inf if options.every_key or options.shape == "map" else self.budget(options)

    def intervals_budget(self, options: IndexOptions, shape: str) -> int:
        """The budget for intervals: the whole budget, or a small part if the run has a map.

        With the budget ``auto``, the result limits the number of cuts that the reading step makes.
        """
        budget = self.budget(options)
        if options.automatic:
            usual = max(_ALLOWED, 0 if self.few else self.column_bytes // _LITTLE)
            usual *= _WIDER if self.wide else 1
            return min(budget, max(1, int(usual * self.sample.share)))
        return beside_map(budget) if shape == "map" else budget

    def most_cuts(self, options: IndexOptions) -> int:
        """Returns the maximum number of cuts that a build keeps; approximate if keys are random."""
        if options.every_key:
            return max(1, self.sample.shown)
        budget = self.intervals_budget(options, options.shape)
        return max(1, overprovisioned_total(self.sample.shown, self.n_files, budget))

    def wider(self, options: IndexOptions) -> Self | None:
        """Returns a profile for more cuts, or None if this profile already has the maximum."""
        if self.wide or not options.automatic:
            return None
        wider = replace(self, wide=True, few=False)
        now, then = (one.intervals_budget(options, options.shape) for one in (self, wider))
        return wider if then > now else None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ColumnProfile(Profile):
    """The profile of a column in some files, with all rows of the column.

    Attributes:
        values: all rows, with the columns ``v`` (the indexed column) and `LOCATION`; see
            `value_columns`.
        owners: int64[n], for each location, the position of its file among the files.
        counted: int64, number of rows of each file, counted without reading a column; None if the
            format has no row counts.
        write_file: writes the files of a small run in this process; if None, executors write them.
    """

    values: Rows
    owners: Counts
    counted: Counts | None
    write_file: WriteFile | None = None

    def by_file(self, frame: DataFrame, column: Column, tiling: Tiling) -> ColumnProfile:
        """The profile of the same column with each whole file as one location."""
        values = column_values(frame, column)
        files = np.arange(len(tiling.lengths))
        return replace(self, sizes=tiling.lengths, values=values, owners=files)


def beside_map(budget: int) -> int:
    """The part of a budget, in bytes, for the intervals of a run that has a hash map."""
    return max(budget // _SHARE_BESIDE_MAP, min(budget // 2, SMALLEST_SHARE // 2))


def column_profile(
    values: DataFrame,
    column: Column,
    tiling: Tiling,
    *,
    counting: DataFrame | Counts | None,
    describe_job: Callable[[str], None],
    encoder: Encoder | None = None,
    write_file: WriteFile | None = None,
) -> ColumnProfile:
    """Counts rows, and draws a sample.

    If the column has few rows, the sample consists of all rows, and the later steps of the build
    run in this process.

    Args:
        values: all values in some files and their `LOCATION`, from `column_values`.
        counting: the same rows with whole files as `LOCATION`, or the number of rows of each file.
            None if Spark cannot count the rows without reading a column.
        encoder: the encoder of the values; None to choose it by the sample.
        write_file: writes the files of a small run in this process; if None, executors do the whole
            build.
    """
    if counting is not None and not isinstance(counting, np.ndarray):
        describe_job(f"counting {len(tiling.lengths)} files")
        counting = _row_counts(counting, len(tiling.lengths))
    describe_job(f"sampling {len(tiling.lengths)} files")
    total = None if counting is None else int(counting.sum())
    table_bytes = int(tiling.lengths.sum())
    sample = take_sample(values, column, total, table_bytes, encoder)
    drawn: Rows = values
    if write_file is not None and sample.drawn is not None and len(sample.drawn) <= MOST:
        drawn = LocalRows(sample.drawn.to_batches(), write_file)
    return ColumnProfile(
        sizes=tiling.sizes,
        sample=sample,
        values=drawn,
        owners=tiling.owners,
        counted=counting,
        write_file=write_file,
    )


def rows_to_count(
    table: CatalogTable, files: Sequence[DataFile], whole: DataFrame, column: Column
) -> DataFrame | Counts | None:
    """Returns the argument `counting` of `column_profile` for some files of a table.

    Args:
        whole: all rows of the files, with whole files as `LOCATION`.
    """
    if column.kind is not None or table.info.format_name not in COUNTED:
        return None
    if table.info.format_name in RECORDED:
        return np.array([file.mtime for file in files], np.int64)
    return whole


def _row_counts(frame: DataFrame, n_files: int) -> Counts:
    counts = np.zeros(n_files, np.int64)
    # If the frame has `PLACE`, Spark finds a row's file without evaluating the indexed expression.
    place = PLACE if PLACE in frame.columns else LOCATION
    for location, rows in frame.groupBy(place).count().collect():
        counts[location] = rows
    return counts
