"""Builds a run with Spark: executors read, cut, weigh and write; the driver sees no key.

The default build reads the column twice. The first reading takes a sample, which estimates the skip
probability of gaps between keys. The second reading reads all rows, and cuts each location's keys
at the worthwhile gaps. The intermediate data is a few times the budget, whatever the table's size.
The shape `sieve` needs every key instead.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame

from sieve.arrays.dtypes import Counts
from sieve.encoding.encoder import Encoder
from sieve.errors import InvalidInputError, SieveError
from sieve.indexing.auto_budget import (
    expected_of,
    map_is_likely,
    more_may_pay,
    plan_map,
    stop_for,
)
from sieve.indexing.column_profile import ColumnProfile, column_profile
from sieve.indexing.fit_budget import Shared, run_maker, shared_by_runs, trial_of_least_cost
from sieve.indexing.probes import (
    Probes,
    expectations,
    files_read,
    least_read,
    make_probes,
    map_may_pay,
    with_value,
)
from sieve.indexing.read_column import read_cuts
from sieve.indexing.seen import Seen
from sieve.indexing.tiling import Tiling
from sieve.indexing.write_run import write_within
from sieve.metadata.options import AUTO, IndexOptions
from sieve.metadata.pending_writes import discard_run
from sieve.metadata.records import Expected, RunRef
from sieve.reader.cache import FileCache
from sieve.reader.run_reader import Run
from sieve.segments.stopping_rule import NEAR, Stop, mean_read
from sieve.storage.interface import Store
from sieve.tables.column import Column


@dataclass(frozen=True, slots=True, eq=False)
class BuiltRun:
    """A run and the statistics of its build.

    Attributes:
        run: the run, or None if no location has a key.
        tiling: the locations of the run.
        rows, nulls, nans: int64[n], counts for each location; rows is -1 for a location of a file
            that proves nothing.
        expected: the expected reads of queries.
        width: mean bytes of a value.
    """

    run: RunRef | None
    tiling: Tiling
    rows: Counts
    nulls: Counts
    nans: Counts
    expected: tuple[Expected, ...]
    width: float


@dataclass(frozen=True, slots=True)
class _Made:
    """A run whose files are written.

    Attributes:
        run: the run.
        expected: the expected reads of queries.
        seen: the counts of the reading.
        cost: the measure that is lower for the better of two runs: bytes that queries read, plus
            the index's bytes with the budget `auto`.
        more_may_pay: whether further cuts may pay back.
    """

    run: RunRef
    expected: tuple[Expected, ...]
    seen: Seen
    cost: float
    more_may_pay: bool = False


def build_run(
    frame: DataFrame,
    column: Column,
    tiling: Tiling,
    options: IndexOptions,
    store: Store,
    index_dir: str,
    *,
    whole: DataFrame,
    counted: bool,
    describe_job: Callable[[str], None],
    encoder: Encoder | None = None,
    added: npt.NDArray[np.bool_] | None = None,
) -> BuiltRun:
    """Reads a column of some files and writes its run.

    Args:
        frame: all rows of some files, read as a query reads them, with their `LOCATION`.
        column: the column to index.
        tiling: the locations.
        options: shape and budget.
        store: the store of the index.
        index_dir: the folder of the index.
        whole: the same rows with their files as `LOCATION`.
        counted: whether to compare the rows read from each file with a count that reads no column,
            for formats with row counts in their metadata. A file whose counts differ proves
            nothing.
        describe_job: sets the description of the next Spark job.
        encoder: the encoder of the version's reused runs, if any.
        added: bool[n], files of which only a part is read, and which may have no rows: other runs
            have their other rows. If there are such files, no map is chosen.

    Raises:
        Py4JJavaError: a file cannot be read; the message names the file.
    """
    asked = column_profile(
        frame,
        column,
        tiling,
        counting=whole if counted else None,
        describe_job=describe_job,
        encoder=encoder,
    )
    in_parts = np.zeros(asked.n_files, np.bool_) if added is None else added[asked.owners]
    probes = make_probes(asked.sample)
    building = _Building(
        options, probes, store, index_dir, describe_job, with_maps=not in_parts.any()
    )
    made, seen = building.best(asked, in_parts)
    if made is not None and tiling.is_cut and options.granularity == AUTO:
        by_file = asked.by_file(whole, column, tiling)
        if building.files_may_pay(by_file, made):
            with _removed_on_failure(store, index_dir, made.run):
                other, _ = building.best(by_file, np.zeros(by_file.n_files, np.bool_))
            if other is not None:
                made = building.better(made, other)
                tiling = tiling.whole if made is other else tiling
    if made is not None:
        seen = made.seen
    rows = np.where(seen.partial, -1, seen.rows)
    run = None if made is None else made.run
    expected = () if made is None else with_value(made.expected, replace(asked, sizes=tiling.sizes))
    return BuiltRun(run, tiling, rows, seen.nulls, seen.nans, expected, asked.sample.width)


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """One reading of the column, from which runs are made with a map and without.

    Attributes:
        asked: the profile of the column at the reading.
        cuts: all cuts.
        seen: the counts of the reading.
        shared: the input of the runs.
    """

    asked: ColumnProfile
    cuts: DataFrame
    seen: Seen
    shared: Shared


@dataclass(frozen=True, slots=True)
class _Building:
    """The common state of the attempts at one run."""

    options: IndexOptions
    probes: Probes
    store: Store
    index_dir: str
    describe_job: Callable[[str], None]
    with_maps: bool

    def best(
        self, asked: ColumnProfile, in_parts: npt.NDArray[np.bool_]
    ) -> tuple[_Made | None, Seen]:
        """Writes the best run over the locations of a profile; reads the column once or twice."""
        if self.with_maps and self.options.shape == "auto" and map_is_likely(asked, self.options):
            asked = replace(asked, few=True)
        made, seen = self._run(asked, in_parts)
        wider = asked.wider(self.options)
        if made is not None and made.more_may_pay and wider is not None:
            with _removed_on_failure(self.store, self.index_dir, made.run):
                other, _ = self._run(wider, in_parts)
            if other is not None:
                made = self.better(made, other)
        return made, seen

    def files_may_pay(self, by_file: ColumnProfile, made: _Made) -> bool:
        """Whether a run over whole files could cost clearly less than one over their ranges.

        A run over whole files reads all ranges of each file with a match.
        """
        least = least_read(made.expected, by_file.location_bytes)
        return NEAR * self._cost(by_file, 0, least) < made.cost

    def _cost(self, asked: ColumnProfile, size: int, reads: Mapping[str, float]) -> float:
        if self.options.automatic:
            return asked.payback(self.options).cost(size, reads)
        return mean_read(reads) * asked.location_bytes

    def _run(
        self, asked: ColumnProfile, in_parts: npt.NDArray[np.bool_]
    ) -> tuple[_Made | None, Seen]:
        """Reads the column and writes a run, perhaps with a map."""
        self.describe_job(f"reading {asked.owners[-1] + 1} files")
        with_pairs = self.with_maps and map_is_likely(asked, self.options)
        with (
            read_cuts(asked, self.options, self.probes, in_parts, with_pairs=with_pairs) as read,
            shared_by_runs(read.cuts, read.seen, asked, read.pairs) as shared,
        ):
            cuts, seen = read.cuts, read.seen
            reading = _Reading(asked, cuts, seen, shared)
            stop = None
            if self.options.automatic:
                stop = stop_for(asked, self.options, self.probes, seen.hits)
                if (mapped := self._mapped_at_once(reading, stop)) is not None:
                    return mapped, seen
            made = self._make(reading, self.options, stop)
            if made is None:
                return None, seen
            if stop is not None:
                made = self._priced(made, reading, stop)
            elif self.options.shape == "auto" and self.with_maps:
                made = self._with_map_if_better(made, reading)
            return made, seen

    def _mapped_at_once(self, reading: _Reading, stop: Stop) -> _Made | None:
        """A run with a map, made without a run of intervals to compare it with.

        None if intervals may cost less than the map: the map must cost clearly less than the trial
        of the cheapest intervals.
        """
        asked, seen = reading.asked, reading.seen
        if self.options.shape != "auto" or not self.with_maps:
            return None
        self.describe_job("weighing")
        trial = trial_of_least_cost(reading.shared.pieces, seen, asked, stop)
        if trial is None:
            return None
        size, expected = trial[0], expected_of(trial, stop, asked.location_bytes)
        planned = plan_map(asked, self.options, expected, seen.keys, int(size))
        if planned is None or planned.limit is not None:
            return None
        try:
            made = self._make(reading, planned.options, stop, asked.payback(self.options).absent)
        except InvalidInputError:  # files share more keys than the budget pays for
            return None
        bound = self._cost(asked, int(size), files_read(expected, asked.location_bytes))
        if made is None or NEAR * made.cost < bound:
            return made
        discard_run(self.store, self.index_dir, made.run.id)
        return None

    def _make(
        self,
        reading: _Reading,
        options: IndexOptions,
        stop: Stop | None = None,
        worth: float = math.inf,
    ) -> _Made | None:
        asked, seen = reading.asked, reading.seen
        make = run_maker(
            reading.cuts,
            seen,
            asked,
            options,
            reading.shared,
            self.describe_job,
            stop,
            worth,
        )
        if make is None:
            return None
        self.describe_job("writing")
        run = write_within(make, asked, options, self.store, self.index_dir)
        with _removed_on_failure(self.store, self.index_dir, run):
            opened = Run(self.store, self.index_dir, run, FileCache(0))
            expected = tuple(
                expectations(self.probes, opened, asked.sizes, seen.hits, seen.least, seen.greatest)
            )
            reads = files_read(expected, asked.location_bytes)
            return _Made(run, expected, seen, self._cost(asked, run.bytes, reads))

    def _priced(self, made: _Made, reading: _Reading, stop: Stop) -> _Made:
        """The given run, or a run with a map if the map saves more bytes read than it costs."""
        asked, size = reading.asked, made.run.bytes
        more = more_may_pay(asked, self.options, made.expected, reading.seen.cuts[0], size)
        planned = None
        if self.options.shape == "auto" and self.with_maps:
            planned = plan_map(asked, self.options, made.expected, made.run.keys, size)
        if planned is not None and planned.limit is not None:
            # Weighing this many keys would take as long as mapping them.
            return made
        made = replace(made, more_may_pay=more)
        if planned is None:
            return made
        worth = asked.payback(self.options).absent
        other = self._map(made, reading, planned.options, stop, worth)
        return made if other is None else self.better(made, other)

    def _with_map_if_better(self, made: _Made, reading: _Reading) -> _Made:
        """The given run, or one with a map if the budget suffices and the map reads fewer bytes."""
        asked = reading.asked
        if not map_may_pay(asked, made.expected, made.run.keys, asked.budget(self.options)):
            return made
        wanted = replace(self.options, shape="map")
        other = self._map(made, reading, wanted)
        return made if other is None else self.better(made, other)

    def _map(
        self,
        made: _Made,
        reading: _Reading,
        options: IndexOptions,
        stop: Stop | None = None,
        worth: float = math.inf,
    ) -> _Made | None:
        """A run with a map, or None if the budget is too small because files share keys."""
        with _removed_on_failure(self.store, self.index_dir, made.run):
            try:
                return self._make(reading, options, stop, worth)
            except InvalidInputError:
                return None

    def better(self, made: _Made, other: _Made) -> _Made:
        """The run with the lower cost, or the first if the costs are equal.

        The run that is not returned is deleted.
        """
        better, worse = sorted((made, other), key=lambda one: one.cost)
        with _removed_on_failure(self.store, self.index_dir, better.run):
            discard_run(self.store, self.index_dir, worse.run.id)
        return better


@contextlib.contextmanager
def _removed_on_failure(store: Store, index_dir: str, run: RunRef) -> Iterator[None]:
    """Deletes the run on failure, because no version refers to it yet."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(SieveError):
            discard_run(store, index_dir, run.id)
        raise
