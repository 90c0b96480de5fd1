"""What an index would cost and read, before it is built: a build of which nothing is written.

A column whose cuts one task of a build weighs is built whole, in memory. Of a larger one some
windows of its domain are, as the whole of it would be, at their share of the budget. A query that
is asked about gets windows of its own at its ends.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row

from sieve.build import tasks
from sieve.build.arrow_jobs import map_batches
from sieve.build.auto import plan_map, stop_for
from sieve.build.pricing import CUTS_PER_TASK, FILE_OVERHEAD, Make, run_files, run_maker
from sieve.build.probes import Probes, expectations, files_read, make_probes, map_may_pay
from sieve.build.reading import Seen, read_cuts
from sieve.build.sample import Sample, zoomed
from sieve.build.survey import Survey, survey
from sieve.errors import InvalidInputError
from sieve.keys import Encoder
from sieve.layout import run_dir
from sieve.local_store import LocalStore
from sieve.locations import Locations, render_locations
from sieve.map.budget import MOST_WORTHWHILE
from sieve.options import IndexOptions
from sieve.predicate import LocationIndex, Predicate, evaluate
from sieve.prices import within_budget
from sieve.requirements import Requirement
from sieve.run_files import describe_run
from sieve.runs import Run, read_run
from sieve.shapes import SEGMENT_OVERHEAD
from sieve.spending import Stop, mean_read
from sieve.store import join
from sieve.tables.catalog import CatalogTable, Column, DataFile, roots_of
from sieve.tables.kinds import COUNTED, refuse_option
from sieve.types import BuildStats, Expected, RunId, RunRef
from sieve.world import World

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Asked:
    """A query of the table.

    Attributes:
        predicate: what it asks of rows.
        files: paths of those that partition pruning leaves to it.
    """

    predicate: Predicate
    files: frozenset[str]


@dataclass(frozen=True, slots=True)
class Reads:
    """Files that a query reads.

    Attributes:
        total: without an index.
        files: with this one.
        minmax: with each file's least and greatest key.
        understood: whether the index has a part in it.
    """

    total: int
    files: int
    minmax: int
    understood: bool


@dataclass(frozen=True, slots=True)
class Estimate:
    """What CREATE is expected to say.

    Attributes:
        files: of the table.
        bytes: of the index, its list of locations included.
        stats: as a build would record them; `seconds` of the build.
        asked: of the query, if there was one.
    """

    files: int
    bytes: int
    stats: BuildStats
    asked: Reads | None


def estimate_index(
    table: CatalogTable,
    column: Column,
    options: IndexOptions,
    asked: Asked | None,
    world: World,
) -> Estimate:
    """Estimate an index of a table as it is now.

    Raises:
        UnsupportedError: the table's options make its values hang on what else a query reads.
        InvalidInputError: the budget cannot pay for the shape.
        Py4JJavaError: a data file cannot be read; Spark's message names it.
    """
    refused = refuse_option(table.info.label, table.info.fingerprint_parts)
    if refused is not None:
        raise refused
    files = table.files()
    if not files:
        stats = BuildStats(0, 0, 0, 0, 0.0, (), 0)
        return Estimate(0, 0, stats, None if asked is None else Reads(0, 0, 0, False))
    started = time.monotonic()
    of = survey(
        table.frame(range(len(files)), column),
        column,
        [file.length for file in files],
        counted=table.info.format_name in COUNTED,
        say=world.say,
    )
    sample = zoomed(of.sample, CUTS_PER_TASK / _cuts(of, options), _ends(asked, column, of))
    of = replace(of, sample=sample)
    probes = make_probes(sample)
    world.say("reading")
    with read_cuts(of, options, probes) as (cuts, seen):
        read = time.monotonic()

        def build(
            wanted: IndexOptions, stop: Stop | None = None, most_bits: int = MOST_WORTHWHILE
        ) -> _Held:
            with run_maker(cuts, seen, of, wanted, world.say, stop, most_bits) as make:
                return _held(make, of, wanted, probes, seen)

        made = _made(build, options, of, probes, seen)
        made_at = time.monotonic()
        idle = _seconds_of_a_job(cuts) if sample.share < 1 else 0.0
    stretches = run_files(seen.cuts[0], of)
    # What a job takes to begin it takes once, and stretches are weighed beside each other.
    beside = min(max(1, stretches), cuts.sparkSession.sparkContext.defaultParallelism)
    work = max(0.0, made_at - read - idle)
    seconds = read - started + idle + work / sample.share / beside
    known = ~seen.partial
    rows = int(seen.rows[known].sum())
    stats = BuildStats(
        rows=rows,
        nulls=int(seen.nulls[known].sum()),
        nans=int(seen.nans[known].sum()),
        column_bytes=int(rows * sample.width),
        seconds=round(seconds, 3),
        expected=made.expected,
        files_total=len(files),
    )
    size = int(made.bytes / sample.share) + FILE_OVERHEAD * stretches
    size += _locations_bytes(table, files, seen)
    reads = None if asked is None else _reads(asked, column, files, of, seen, made.run)
    return Estimate(len(files), size, stats, reads)


def _made(build: _Build, options: IndexOptions, of: Survey, probes: Probes, seen: Seen) -> _Held:
    """What a build would keep of its attempts."""
    if options.automatic:
        made = build(options, stop_for(of, options, probes, seen.hits))
        planned = None
        if options.shape == "auto":
            planned = plan_map(of, options, made.expected, made.keys, made.bytes)
        if planned is None or planned.limit is not None:
            return made
        with contextlib.suppress(InvalidInputError):
            worth, other = of.worth(options), build(planned.options, most_bits=0)
            return min(made, other, key=lambda m: worth.cost(m.bytes, files_read(m.expected)))
        return made
    made = build(options)
    if options.shape != "auto":
        return made
    exact = of.sample.encoder.exact
    if map_may_pay(made.expected, made.keys, of.n_files, of.budget(options), exact=exact):
        with contextlib.suppress(InvalidInputError):
            other = build(replace(options, shape="map"))
            return min(made, other, key=lambda m: mean_read(files_read(m.expected)))
    return made


def _seconds_of_a_job(cuts: DataFrame) -> float:
    """What one takes that has nothing to do."""
    started = time.monotonic()
    none = cuts.where("location < 0").coalesce(1)
    map_batches(none, tasks.split_cuts(np.empty(0, np.int64)), tasks.PIECES_SCHEMA).collect()
    return time.monotonic() - started


def _cuts(of: Survey, options: IndexOptions) -> int:
    """Cuts that a build would have to weigh at most, and about as many where keys are random."""
    return max(1, of.sample.rows) if options.shape == "sieve" else of.most_cuts(options)


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """A run of what is shown, in memory: its bytes, its keys, and what it is expected to read."""

    run: Run
    bytes: int
    keys: int
    expected: tuple[Expected, ...]


_Build = Callable[..., _Held]


def _held(
    make: Make | None, of: Survey, options: IndexOptions, probes: Probes, seen: Seen
) -> _Held:
    encoder = of.sample.encoder
    rows, size = ([], 0) if make is None else _rows(make, of, options)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist([row.asDict() for row in rows], tasks.RUN), sink)
    data = sink.getvalue().to_pybytes()
    ref = describe_run(RunId("0" * 32), of.n_files, encoder, [("run", data)])
    if ref is None:
        ref = RunRef(RunId("0" * 32), of.n_files, encoder.to_json(), (), 0, 0, 0, 0, 0)
    with tempfile.TemporaryDirectory() as folder:
        store, directory = LocalStore(), Path(folder).as_uri()
        store.mkdirs(run_dir(directory, ref.id))
        store.create(join(run_dir(directory, ref.id), "run"), data)
        run = read_run(store, directory, ref)
    told = tuple(expectations(probes, run, seen.hits, seen.least, seen.greatest))
    return _Held(run, size, ref.keys, told)


def _rows(make: Make, of: Survey, options: IndexOptions) -> tuple[list[Row], int]:
    """Rows of a run file and their bytes; made again where a build would be."""

    def collect(times: float) -> tuple[tuple[list[Row], int], float]:
        rows = make(times).collect()
        # A page of a hundred rows at least, as Spark stores them.
        page = b"".join(bytes(row["payload"]) for row in rows)
        size = len(pa.compress(page, "zstd", asbytes=True)) + SEGMENT_OVERHEAD * len(rows)
        return (rows, size), size

    return within_budget(collect, of.most(options))


def _locations_bytes(table: CatalogTable, files: Sequence[DataFile], seen: Seen) -> int:
    listed = Locations(
        tuple(file.path for file in files),
        np.array([file.length for file in files], np.int64),
        np.array([file.mtime for file in files], np.int64),
        seen.rows,
        seen.nulls,
        seen.nans,
        np.arange(len(files)),
    )
    return len(render_locations(listed, roots_of(table, files)))


def _ends(asked: Asked | None, column: Column, of: Survey) -> npt.NDArray[np.int64]:
    """What a query asks of the column, as intervals of key codes."""
    gathered = _Gathered(of.sample.encoder, of.counted is not None, of.n_files)
    if asked is not None:
        evaluate(asked.predicate, {column.path: gathered}, of.n_files)
    everything = [wanted.intervals for wanted in gathered.wanted]
    return np.unique(np.concatenate([np.empty((0, 2), np.int64), *everything]), axis=0)


class _Gathered:
    """Stands for an index and writes down what it is asked."""

    def __init__(self, encoder: Encoder, null_proof: bool, n: int) -> None:
        self.encoder = encoder
        self.null_proof = null_proof
        self.wanted: list[Requirement] = []
        self._n = n

    def keep(self, requirement: Requirement) -> Flags:
        self.wanted.append(requirement)
        return np.ones(self._n, np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class _Shown:
    """Stands for the index, by what is shown of it."""

    sample: Sample
    null_proof: bool
    seen: Seen
    run: Run | None

    @property
    def encoder(self) -> Encoder:
        return self.sample.encoder

    def keep(self, requirement: Requirement) -> Flags:
        zoom, seen = self.sample.zoom, self.seen
        intervals = requirement.intervals if zoom is None else zoom.intervals(requirement.intervals)
        keep = seen.partial.copy()
        if self.run is None:
            for first, last in intervals[intervals[:, 0] <= intervals[:, 1]]:
                keep |= (seen.least <= last) & (first <= seen.greatest)
        else:
            found = self.run.locations_in(intervals)
            if self.run.has_maps and requirement.hashes is not None:
                found &= self.run.locations_of(requirement.hashes)
            keep |= found
        if requirement.null:
            keep |= seen.nulls > 0
        if requirement.nan:
            keep |= seen.nans > 0
        return keep


def _reads(
    asked: Asked, column: Column, files: Sequence[DataFile], of: Survey, seen: Seen, run: Run
) -> Reads:
    left = np.array([file.path in asked.files for file in files], np.bool_)

    def read(by: Run | None) -> tuple[int, bool]:
        index: LocationIndex = _Shown(of.sample, of.counted is not None, seen, by)
        verdict = evaluate(asked.predicate, {column.path: index}, len(files))
        return int(np.count_nonzero(verdict.keep & left)), bool(verdict.used)

    with_index, understood = read(run)
    return Reads(int(left.sum()), with_index, read(None)[0], understood)
