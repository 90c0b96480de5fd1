"""ESTIMATE: predicts an index's size, its build time and the files that queries read.

If a table has many files, ESTIMATE reads a sample of the files. If the statement contains a query,
ESTIMATE reads all files, because a sample could miss the few files that contain the query's rows.

ESTIMATE reads the column once, and divides each location's keys into enough cuts (intervals of key
codes) for the largest budget. ESTIMATE then builds an index in memory for each budget. If there are
many cuts, ESTIMATE builds only windows (parts of the range of key codes), with a proportional part
of each budget. The windows include the ends of the intervals in the statement's query.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row

from sieve.environment import Environment
from sieve.errors import InvalidInputError
from sieve.index_key import SUBSTRING
from sieve.indexing.build_tasks import CUTS_PER_TASK, run_files
from sieve.indexing.check_task import FilesInMemory
from sieve.indexing.choose_run import Choice, MadeRun
from sieve.indexing.column_profile import ColumnProfile, Profile, column_profile, rows_to_count
from sieve.indexing.column_sample import zoomed
from sieve.indexing.fit_budget import (
    FILE_OVERHEAD,
    Make,
    Shared,
    shared_by_runs,
)
from sieve.indexing.local_rows import LocalRows
from sieve.indexing.probes import Probes, make_probes, with_value
from sieve.indexing.read_column import read_cuts
from sieve.indexing.signatures import Signatures, signature_bits
from sieve.indexing.tiling import Tiling, locations_of, tile, whole_files
from sieve.indexing.value_columns import column_values
from sieve.metadata.file_list import render_locations
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.paths import run_file
from sieve.metadata.records import Expected, RunId, RunRef
from sieve.operations.estimate_predicate import Asked, Reads, ends, reads
from sieve.operations.estimate_sample import FEW, FileSample, sample_files, seconds_to_make
from sieve.operations.judgement import of_queries
from sieve.operations.timed_steps import TimedSteps
from sieve.reader.lru_cache import FileCache
from sieve.reader.run_file import SCHEMA, SIGNATURE, describe_run
from sieve.reader.run_reader import Run
from sieve.segments.budget import within_budget
from sieve.segments.intervals.plan_segments import SEGMENT_OVERHEAD
from sieve.tables.column import Column
from sieve.tables.data_file import DataFile
from sieve.tables.snapshot import roots_of
from sieve.tables.table import CatalogTable
from sieve.tables.table_info import refuse_build

FRONTIER: Final = ("0.3%", "1%", "3%", "6%", "30%")
"""If the statement names no budget, ESTIMATE uses these budgets in addition to ``auto``."""

_CUTS: Final = 100_000
"""The maximum number of cuts from which ESTIMATE builds an index in memory.

With 500,000 cuts, ESTIMATE of 4 million random numbers would take 3 s longer. CREATE takes 10 s.
"""
_LEAST_CUTS: Final = 64
"""The expected number of cuts in each location if the table's files are sorted by key."""
_PER_CHANGE: Final = 4
"""The expected number of cuts for each pair of neighbouring sampled keys in different locations.

This number is above 1, because keys between the two sampled keys can be in further locations.
"""
_warm: Final[set[str]] = set()
"""The Spark applications in which ESTIMATE has already read a column.

If an application is in this set, ESTIMATE omits the warm-up, which would take 0.3 s to 1.5 s.
"""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimates for an index that CREATE would build with the given options.

    Attributes:
        shapes: the shapes that the index's segments would have; empty if the column has no key.
        bytes: size of the index, including its file list, in bytes.
        share: size of the index divided by the size of the column's data; 0 if the column has no
            data.
        seconds: duration of the build in seconds.
        files: number of locations of the table: files, and ranges of large files.
        sampled: number of files that ESTIMATE read; None if ESTIMATE read all files.
        bytes_total: size of the table in bytes.
        expected: how much each kind of query is expected to read with the index. For a substring
            index, ``present`` is a query for a text of `TEXT_BYTES` bytes.
        asked: how much the statement's query is expected to read; None if there is no query.
        with_null: number of locations that contain a NULL of the column.
    """

    options: IndexOptions
    shapes: tuple[str, ...]
    bytes: int
    share: float
    seconds: float
    files: int
    sampled: int | None
    bytes_total: int
    expected: tuple[Expected, ...]
    asked: Reads | None
    with_null: float = 0.0


def estimate_index(
    table: CatalogTable,
    column: Column,
    wanted: Sequence[IndexOptions],
    asked: Asked | None,
    environment: Environment,
) -> list[Estimate]:
    """Estimates indexes on a column of the current table.

    Args:
        wanted: the options of each index; all indexes have the same shape.
        asked: the statement's query, or None.

    Returns:
        One estimate for each element of ``wanted``. If ``wanted`` has several elements, the result
        omits each element whose budget is too small for its shape.

    Raises:
        UnsupportedError: Sieve cannot build indexes on the table; see `refuse_build`.
        InvalidInputError: ``wanted`` has one element, and its budget is too small for its shape.
        Py4JJavaError: Spark cannot read a data file; the message names the file.
    """
    refuse_build(table.info)
    every = table.files()
    if not every:
        none = None if asked is None else Reads(0, 0, 0, understood=False)
        return [Estimate(one, (), 0, 0.0, 0.0, 0, None, 0, (), none) for one in wanted]
    started = time.monotonic()
    lengths = [file.length for file in every]
    chosen = sample_files(lengths, every=asked is not None)
    numbers = chosen.numbers
    files = [every[number] for number in numbers]
    tiling = tile(table, numbers, files, wanted[0], environment.range_bytes)
    bits = signature_bits(tiling.sizes, wanted[0]) if column.kind == SUBSTRING else 0
    frame = table.frame(numbers, column, signature_bits=bits)
    ranges = frame
    if tiling.is_cut:
        ranges = table.frame(numbers, column, cuts=tiling.cuts, signature_bits=bits)
    of = column_profile(
        column_values(ranges, column),
        column,
        tiling,
        counting=rows_to_count(table, files, frame, column),
        describe_job=environment.describe_job,
    )
    # Indexes with smaller budgets can use the cuts that were made for the largest budget.
    scaled = [chosen.scaled_budget(one, of.column_bytes) for one in wanted]
    widest = max(scaled, key=lambda one: _wide(of, one).most_cuts(one))
    whole = _of_all(of, lengths, chosen)
    sample = zoomed(of.sample, _CUTS / _cuts(of, widest), ends(asked, column, of))
    of = replace(of, sample=sample)
    probes = make_probes(sample)
    environment.describe_job(f"reading {len(files)} files")
    if not chosen.is_all:
        few = of.by_file(table.frame(numbers[:FEW], column), column, tiling)
        started += _seconds_to_warm_up(few, widest, probes)
    begun = time.monotonic()
    with (
        read_cuts(_wide(of, widest), widest, probes) as reading,
        shared_by_runs(reading.cuts, reading.seen, of) as shared,
    ):
        now = time.monotonic()
        read = chosen.seconds_to_read(now - started, now - begun)
        estimating = _Estimating(
            table,
            column,
            asked,
            environment,
            files,
            every,
            chosen,
            tiling,
            of,
            probes,
            shared,
            whole,
            read,
            ranges if bits else None,
        )
        found = []
        for options, one in zip(wanted, scaled, strict=True):
            try:
                found.append(estimating.of(one, options))
            except InvalidInputError:
                if len(wanted) == 1:
                    raise
        return found


def _of_all(of: ColumnProfile, lengths: Sequence[int], chosen: FileSample) -> Profile:
    """Scales the column's profile from the chosen files to all files of the table."""
    rows, shown = (round(n / chosen.share) for n in (of.sample.rows, of.sample.shown))
    sample = replace(of.sample, rows=rows, shown=shown)
    return Profile(sizes=np.array(lengths, np.int64), sample=sample)


def _cuts(of: ColumnProfile, options: IndexOptions) -> float:
    """The expected number of cuts, which is small if the files are sorted by key."""
    most = _wide(of, options).most_cuts(options)
    if options.every_key:
        return most
    return min(most, _LEAST_CUTS * of.n_files + _PER_CHANGE * of.sample.scattered * of.sample.rows)


def _wide(of: ColumnProfile, options: IndexOptions) -> ColumnProfile:
    """The column's profile for the largest number of cuts that a build would make."""
    return of.wider(options) or of


class _Held(NamedTuple):
    """A run in memory that contains the sampled windows, and the shapes of the run's segments."""

    run: Run
    shapes: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Estimating:
    """The data from reading a column once; the method `of` estimates each index from the data.

    Attributes:
        files: the files that ESTIMATE read.
        every: all files of the table.
        chosen: the sample of files; its methods scale results from the sample to all files.
        whole: the column's profile for all files of the table and for all key codes.
        read: seconds that a build would need to read the column in all files.
        signed: the locations and their signatures; None if a build makes no signatures.
    """

    table: CatalogTable
    column: Column
    asked: Asked | None
    environment: Environment
    files: Sequence[DataFile]
    every: Sequence[DataFile]
    chosen: FileSample
    tiling: Tiling
    column_profile: ColumnProfile
    probes: Probes
    shared: Shared
    whole: Profile
    read: float
    signed: DataFrame | None

    def of(self, options: IndexOptions, wanted: IndexOptions) -> Estimate:
        """Estimates the index with the given options.

        Args:
            options: the options ``wanted``, but with a budget in proportion to the sample.
        """
        steps = TimedSteps(self.environment.describe_job)
        choice = Choice(self, options, self.probes, steps)
        best, seen = choice.best(self.column_profile)
        seconds = self.read + self._seconds(steps, seen.cuts[0], wanted)
        of, share = self.column_profile, self.column_profile.sample.share
        held = (self._held([], of) if best is None else best.made).run
        stretches = run_files(seen.cuts[0], of.sample)
        chosen, locations = self.chosen, of.n_files
        size = 0 if best is None else int(best.made.bytes / share / chosen.share)
        size += FILE_OVERHEAD * stretches + self._locations_bytes()
        column_bytes = int(seen.rows[~seen.partial].sum()) * of.sample.width / chosen.share
        query = None
        if self.asked is not None:
            query = reads(self.asked, self.column, self.files, self.tiling, of, seen, held.run)
        expected = () if best is None else with_value(best.expected, of)
        shapes = held.shapes
        if best is not None and self.signed is not None:
            signatures = Signatures(self.signed, of, options)
            signing = signatures.size(best.made.bytes, expected, seen.rows - seen.nulls)
            if signing is not None:
                expected, shapes = (*expected, signing.expected), (*shapes, SIGNATURE)
                size += int(signing.bytes / chosen.share)
        files, table_bytes = round(chosen.of_all(locations)), sum(one.length for one in self.every)
        expected = chosen.reads_of_all(expected, locations, of.location_bytes)
        return Estimate(
            wanted,
            shapes,
            size,
            size / column_bytes if column_bytes else 0.0,
            round(seconds, 3),
            files,
            None if chosen.is_all else len(self.files),
            table_bytes,
            of_queries(expected, self.column.kind, files, table_bytes),
            query,
            chosen.of_all(int(np.count_nonzero((seen.nulls > 0) | (seen.rows < 0)))),
        )

    def _seconds(self, steps: TimedSteps, cuts: int, wanted: IndexOptions) -> float:
        """Estimates how long CREATE takes to build a run, from the times of ESTIMATE's own steps.

        Building a hash map takes time for each row; building intervals takes time for each cut. The
        number of cuts has a maximum, however many rows a table has. Tasks build parts of an index
        in parallel.
        """
        mapping, other = steps.seconds("mapping")
        share = self.column_profile.sample.share * self.chosen.share
        of_build = min(cuts / share, self.whole.most_cuts(wanted))
        rows = self.shared.cuts
        assert not isinstance(rows, LocalRows)
        at_once = rows.sparkSession.sparkContext.defaultParallelism
        beside = min(max(1, math.ceil(of_build / CUTS_PER_TASK)), at_once)
        return seconds_to_make(other, of_build / max(1, cuts) / beside) + seconds_to_make(
            mapping, max(1.0, 1 / share / at_once)
        )

    @contextlib.contextmanager
    def reading(self, _: ColumnProfile) -> Iterator[Shared]:
        """Yields the data that was already read, with the cuts for the largest budget."""
        yield self.shared

    def make(self, rows: Make, profile: ColumnProfile, options: IndexOptions) -> MadeRun[_Held]:
        """Makes a run in memory from the rows of its segments."""
        found, size = _rows(rows, profile, options)
        return replace(self._held(found, profile), bytes=size)

    def discard(self, run: _Held) -> None:
        """Does nothing, because the run has no files that must be deleted."""

    def _held(self, rows: Sequence[Row], of: ColumnProfile) -> MadeRun[_Held]:
        encoder = of.sample.encoder
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist([row.asDict() for row in rows], SCHEMA), sink)
        data = sink.getvalue().to_pybytes()
        ref = describe_run(RunId("0" * 32), of.n_files, encoder, [("run", data)])
        if ref is None:
            ref = RunRef(RunId("0" * 32), of.n_files, encoder.to_json(), (), 0, 0, 0, 0, 0)
        files = FilesInMemory({run_file("", ref.id, file): data for file in ref.files})
        run = Run(files, "", ref, FileCache(sys.maxsize))
        held = _Held(run, tuple(sorted({row["shape"] for row in rows})))
        return MadeRun(held, 0, ref.keys, run)

    def _locations_bytes(self) -> int:
        files, seen, tiling = self.files, self.shared.seen, self.tiling
        counts = [seen.rows, seen.nulls, seen.nans]
        if not self.chosen.is_all:
            # The estimate assumes that each file has one range, and that files outside the sample
            # have as many rows as the chosen files.
            files = self.every
            counts = [np.resize(tiling.of_files(some), len(files)) for some in counts]
            tiling = whole_files([file.length for file in files])
        proven = np.ones(len(files), np.bool_)
        listed = locations_of(files, tiling, counts, proven, first_slot=0)
        return len(render_locations(listed, roots_of(self.table, files)))


def _seconds_to_warm_up(few: ColumnProfile, options: IndexOptions, probes: Probes) -> float:
    """Reads a few files if this is the application's first ESTIMATE; returns the seconds taken.

    The first reading takes longer than later readings, because it starts Python and compiles code.
    """
    values = few.values
    assert not isinstance(values, LocalRows)
    application = values.sparkSession.sparkContext.applicationId
    if application in _warm:
        return 0.0
    started = time.monotonic()
    with read_cuts(few, options, probes):
        _warm.add(application)
    return time.monotonic() - started


def _rows(make: Make, of: ColumnProfile, options: IndexOptions) -> tuple[list[Row], int]:
    """Makes a run's rows within the budget, as a build does; returns the rows and their bytes."""

    def collect(times: float) -> tuple[tuple[list[Row], int], float]:
        rows = make(times).collect()
        # Spark compresses at least a hundred rows together, as a page, so this code also compresses
        # all payloads together.
        page = b"".join(bytes(row["payload"]) for row in rows)
        size = len(pa.compress(page, "zstd", asbytes=True)) + SEGMENT_OVERHEAD * len(rows)
        return (rows, size), size

    return within_budget(collect, of.most(options))
