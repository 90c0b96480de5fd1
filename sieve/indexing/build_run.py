"""Builds a run with Spark: executors read the keys and write the run's files.

By default, a build reads the column twice. The first reading draws a sample. From the sample, the
build estimates how often queries lie in each gap between keys. The second reading reads all rows,
and divides each location's keys at every gap that is worth one more interval. Even for a large
table, the intermediate data is only a few times as large as the budget. The shape `sieve` needs
more intermediate data, because it stores every key.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame

from sieve.arrays.dtypes import Counts, Flags
from sieve.encoding.encoder import Encoder
from sieve.index_key import SUBSTRING
from sieve.indexing.auto_budget import map_is_likely
from sieve.indexing.choose_run import Choice, MadeRun
from sieve.indexing.column_profile import ColumnProfile, column_profile
from sieve.indexing.fit_budget import Make, Shared, shared_by_runs
from sieve.indexing.local_rows import WriteFile
from sieve.indexing.probes import Probes, make_probes, with_value
from sieve.indexing.read_column import read_cuts
from sieve.indexing.shared_storage import surely_shared
from sieve.indexing.signatures import Signatures
from sieve.indexing.tiling import Tiling
from sieve.indexing.value_columns import persisted_values
from sieve.indexing.write_run import extended, write_within
from sieve.metadata.index_options import AUTO, IndexOptions
from sieve.metadata.key_bounds import KeyBounds
from sieve.metadata.pending_writes import discard_run
from sieve.metadata.records import Expected, RunRef
from sieve.reader.lru_cache import FileCache
from sieve.reader.run_reader import Run
from sieve.storage.interface import Store
from sieve.tables.column import Column


@dataclass(frozen=True, slots=True, eq=False)
class BuiltRun:
    """A run, and the counts of rows from its build.

    Attributes:
        run: the run; None if no location has a key.
        tiling: the locations of the run.
        rows, nulls, nans: int64[n], counts for each location; ``rows`` is -1 if every query must
            read the location's file.
        width: mean size of the column's values in bytes.
        bounds: the least and greatest key of each location; None if the build read no files.
    """

    run: RunRef | None
    tiling: Tiling
    rows: Counts
    nulls: Counts
    nans: Counts
    expected: tuple[Expected, ...]
    width: float
    bounds: KeyBounds | None = None


def build_run(
    frame: DataFrame,
    column: Column,
    tiling: Tiling,
    options: IndexOptions,
    store: Store,
    index_dir: str,
    *,
    whole: DataFrame,
    counting: DataFrame | Counts | None,
    describe_job: Callable[[str], None],
    encoder: Encoder | None = None,
    added: npt.NDArray[np.bool_] | None = None,
    write_file: WriteFile | None = None,
) -> BuiltRun:
    """Reads a column in some files, and writes a run for them.

    Args:
        frame: all rows of some files, read as a query reads them, and the `LOCATION` of each row.
        whole: the same rows, with whole files as `LOCATION`.
        counting: the number of rows of each file, or a data frame of the same rows. None if Spark
            cannot count the rows of this frame without reading a column. If the build reads fewer
            or more rows of a file than counted, every query must read the file.
        encoder: the encoder of the runs that the version reuses; None if it reuses no run.
        added: bool[n], whether the build reads only appended rows of a file. Other runs contain the
            file's earlier rows. If any flag is true, the build chooses no hash map.
        write_file: writes the files of a small run in this process.

    Raises:
        Py4JJavaError: Spark cannot read a file; the message names the file.
    """
    with persisted_values(frame, column) as values:
        profile = column_profile(
            values,
            column,
            tiling,
            counting=counting,
            describe_job=describe_job,
            encoder=encoder,
            write_file=write_file,
        )
        if profile.write_file and not surely_shared(index_dir, frame.sparkSession.sparkContext):
            # Perhaps the executors do not see the driver's storage. Therefore executors write the
            # run, and their tasks check that they see the driver's files.
            profile = replace(profile, write_file=None)
        in_parts = np.zeros(profile.n_files, np.bool_) if added is None else added[profile.owners]
        probes = make_probes(profile.sample)
        builder = _Builder(options, probes, store, index_dir, describe_job, in_parts)
        choice = Choice(builder, options, probes, describe_job, with_maps=not in_parts.any())
        best, seen = choice.best(_with_likely_map(profile, choice))
        if best is not None and tiling.is_cut and options.granularity == AUTO:
            by_file = profile.by_file(whole, column, tiling)
            if choice.files_may_pay(by_file, best):
                whole_files = replace(builder, in_parts=np.zeros(by_file.n_files, np.bool_))
                with choice.discarded_on_failure(best.made.run):
                    other, _ = replace(choice, maker=whole_files).best(
                        _with_likely_map(by_file, choice)
                    )
                if other is not None:
                    best = choice.better(best, other)
                    tiling = tiling.whole if best is other else tiling
        if best is not None:
            seen = best.seen
        rows = np.where(seen.partial, -1, seen.rows)
        run = None if best is None else best.made.run
        rows_of, profile = profile, replace(profile, sizes=tiling.sizes)
        expected = () if best is None else with_value(best.expected, profile)
        if run is not None and column.kind == SUBSTRING:
            describe_job("signing")
            with choice.discarded_on_failure(run):
                signed = frame if rows_of.n_files == profile.n_files else whole
                signatures = Signatures(signed, profile, options)
                chosen = signatures.size(run.bytes, expected, seen.rows - seen.nulls)
                if chosen is not None:
                    segments = signatures.rows(chosen.most)
                    run = extended(run, segments, profile, store, index_dir)
                    expected = (*expected, chosen.expected)
        width, bounds = profile.sample.width, KeyBounds(seen.least, seen.greatest)
        return BuiltRun(run, tiling, rows, seen.nulls, seen.nans, expected, width, bounds)


def _with_likely_map(profile: ColumnProfile, choice: Choice[RunRef]) -> ColumnProfile:
    """Returns the profile. If a hash map is likely, the profile asks for very few cuts."""
    may_map = choice.with_maps and choice.options.shape == "auto"
    return replace(profile, few=may_map and map_is_likely(profile, choice.options))


@dataclass(frozen=True, slots=True)
class _Builder:
    """Reads the column, and writes runs to the index's folder.

    Attributes:
        in_parts: bool[n], whether the build reads only appended rows of a location's file.
    """

    options: IndexOptions
    probes: Probes
    store: Store
    index_dir: str
    describe_job: Callable[[str], None]
    in_parts: Flags

    @contextlib.contextmanager
    def reading(self, profile: ColumnProfile) -> Iterator[Shared]:
        """Reads the column; if a hash map is likely, also collects the pairs for it."""
        self.describe_job(f"reading {profile.owners[-1] + 1} files")
        with_pairs = not self.in_parts.any() and map_is_likely(profile, self.options)
        with (
            read_cuts(
                profile, self.options, self.probes, self.in_parts, with_pairs=with_pairs
            ) as read,
            shared_by_runs(read.cuts, read.seen, profile, read.pairs) as shared,
        ):
            yield shared

    def make(self, rows: Make, profile: ColumnProfile, options: IndexOptions) -> MadeRun[RunRef]:
        """Writes a run, and opens it for look-ups."""
        self.describe_job("writing")
        run = write_within(rows, profile, options, self.store, self.index_dir)
        opened = Run(self.store, self.index_dir, run, FileCache(0))
        return MadeRun(run, run.bytes, run.keys, opened)

    def discard(self, run: RunRef) -> None:
        """Deletes the files of a run to which no version refers."""
        discard_run(self.store, self.index_dir, run.id)
