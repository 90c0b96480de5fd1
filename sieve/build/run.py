"""Building a run with Spark: the executors read, cut, weigh and write; the driver sees no key.

The default build reads the column twice: a sample first, which tells what gaps between keys are
worth, then all of it, cut at the worthwhile gaps of each location where it is read. What travels is
a few times the budget, whatever the table's size. The seed's shape needs every key instead.
"""

from __future__ import annotations

import contextlib
import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sieve.build import tasks
from sieve.build.maps import map_rows
from sieve.build.probes import Probes, expectations, make_probes
from sieve.build.sample import Sample, take_sample
from sieve.errors import SieveError, UnavailableError
from sieve.intervals import generous_threshold
from sieve.keys import Encoder
from sieve.layout import run_dir
from sieve.mass import Mass
from sieve.options import SMALLEST_SHARE, IndexOptions
from sieve.prices import choose_price, prices_for
from sieve.run_files import describe_run
from sieve.runs import SPARK_SCHEMA, read_run
from sieve.store import Store, join
from sieve.tables.catalog import LOCATION, Column
from sieve.types import Expected, RunId, RunRef

Counts = npt.NDArray[np.int64]

_PAIRS_PER_TASK = 4_000_000
_CUTS_PER_TASK = 500_000
_HOLES_PER_SPAN = 100
"""A gap of more than a hundredth of the keys' span closes a segment (Tong et al., PVLDB 2023)."""
_SHARE_BESIDE_MAP = 20
# What the price is raised by until a run fits; past the last a run is as small as it can be.
_DEARER = (1.0, 1.3, 2.0, 8.0)
_FILE_OVERHEAD = 2_500
"""Bytes of a run file besides its segments: Parquet's footer, and the pages' heads."""


@dataclass(frozen=True, slots=True, eq=False)
class BuiltRun:
    """A run and what its build saw.

    Attributes:
        run: None where no location has a key.
        rows, nulls, nans: int64[n] a location; rows is -1 for a location that proves nothing.
        expected: what queries are expected to read.
        width: mean bytes of a value.
    """

    run: RunRef | None
    rows: Counts
    nulls: Counts
    nans: Counts
    expected: tuple[Expected, ...]
    width: float


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """What the reading step counted, by location, and by probe."""

    rows: Counts
    nulls: Counts
    nans: Counts
    least: Counts
    greatest: Counts
    hits: Counts


def build_run(
    frame: DataFrame,
    column: Column,
    sizes: Sequence[int],
    options: IndexOptions,
    store: Store,
    index_dir: str,
    *,
    counted: bool,
    say: Callable[[str], None],
) -> BuiltRun:
    """Read a column of some files and write its run.

    Args:
        frame: all rows of some files, read as a query reads them, with their `LOCATION`.
        column: the column to index.
        sizes: bytes of each file.
        options: shape and budget.
        store: where the index lies.
        index_dir: the index's folder.
        counted: compare the rows seen of each file with a count that reads no column; for formats
            whose metadata tell it. Files that differ prove nothing.
        say: told what the next job does, for its label.

    Raises:
        Py4JJavaError: a file cannot be read; names it.
    """
    n_files = len(sizes)
    path = ".".join(f"`{part.replace('`', '``')}`" for part in column.path)
    values = frame.select(sf.col(path).alias("v"), LOCATION)
    say("counting")
    expected = _row_counts(frame, n_files) if counted else None
    say("sampling")
    total = None if expected is None else int(expected.sum())
    sample = take_sample(values, column, total, sum(sizes))
    probes = make_probes(sample)
    say("reading")
    step = tasks.read_column(sample.encoder, _cutting(sample, options, n_files), probes.intervals)
    lines = values.mapInArrow(step, tasks.CUTS_SCHEMA).persist(StorageLevel.MEMORY_AND_DISK)
    with contextlib.ExitStack() as kept:
        kept.callback(lines.unpersist)
        seen = _seen(lines, n_files, len(probes.intervals))
        # A location without rows shows nothing, and one read in part shows too little.
        partial = seen.rows == 0 if expected is None else (seen.rows == 0) | (seen.rows != expected)
        cuts = lines.where(sf.col("kind") == tasks.KEY).drop("kind")
        whole = [int(k) for k in np.flatnonzero(~partial)] if partial.any() else None
        if whole is not None:
            cuts = cuts.where(sf.col("location").isin(whole)) if whole else cuts.limit(0)
        make = _run_maker(cuts, sample, options, n_files, say)
        run = None
        if make is not None and options.shape == "map":
            say("mapping")
            budget = _budget(sample, options) - _intervals_budget(sample, options)
            maps = kept.enter_context(map_rows(values, sample.encoder, whole, n_files, budget))
            say("writing")
            run = _write(make(1.0).unionByName(maps), store, index_dir, sample.encoder)
        elif make is not None:
            say("writing")
            most = math.inf if options.shape == "sieve" else _budget(sample, options)
            run = _write_within(make, most, store, index_dir, sample.encoder)
    rows = np.where(partial, -1, seen.rows)
    told = () if run is None else _expected(probes, store, index_dir, run, seen)
    return BuiltRun(run, rows, seen.nulls, seen.nans, told, sample.width)


def _row_counts(frame: DataFrame, n_files: int) -> Counts:
    counts = np.zeros(n_files, np.int64)
    for location, rows in frame.groupBy(LOCATION).count().collect():
        counts[location] = rows
    return counts


def _cutting(sample: Sample, options: IndexOptions, n_files: int) -> tasks.Cutting:
    if options.shape == "sieve" or sample.mass is None:
        return tasks.Cutting()
    budget = _intervals_budget(sample, options)
    threshold = generous_threshold(n_files, budget)
    return tasks.Cutting(sample.mass, threshold, budget, sample.rows)


def _budget(sample: Sample, options: IndexOptions) -> int:
    return options.budget_bytes(int(sample.rows * sample.width))


def _intervals_budget(sample: Sample, options: IndexOptions) -> int:
    """What of the budget is for ranges: all, but for a map, whose intervals are the lesser part."""
    budget = _budget(sample, options)
    if options.shape != "map":
        return budget
    return max(budget // _SHARE_BESIDE_MAP, min(budget // 2, SMALLEST_SHARE // 2))


def _seen(lines: DataFrame, n: int, n_probes: int) -> _Seen:
    """The counts of the reading step; what is read by several tasks is added up."""
    counts = {kind: np.zeros(n, np.int64) for kind in (tasks.ROWS, tasks.NULLS, tasks.NANS)}
    counts[tasks.PROBE] = np.zeros(n_probes, np.int64)
    least, greatest = np.zeros(n, np.int64), np.full(n, -1, np.int64)
    grouped = (
        lines.where(sf.col("kind") != tasks.KEY)
        .groupBy("kind", "location")
        .agg(sf.sum("rows"), sf.min("first"), sf.max("last"))
    )
    for kind, place, total, low, high in grouped.collect():
        counts[kind][place] = total
        if kind == tasks.ROWS:
            least[place], greatest[place] = low, high
    return _Seen(
        counts[tasks.ROWS], counts[tasks.NULLS], counts[tasks.NANS], least, greatest,
        np.minimum(counts[tasks.PROBE], n),
    )  # fmt: skip


def _run_maker(
    cuts: DataFrame,
    sample: Sample,
    options: IndexOptions,
    n_files: int,
    say: Callable[[str], None],
) -> Callable[[float], DataFrame] | None:
    """Makes the run's rows at so many times the price that the budget seems to allow.

    None where there is no key.
    """
    say("weighing")
    n, least, greatest = cuts.agg(sf.count("*"), sf.min("first"), sf.max("last")).first() or (
        0, 0, 0,
    )  # fmt: skip
    if not n:
        return None
    if options.shape == "sieve":
        return lambda _: _sieve_rows(cuts, n, greatest - least, options)
    # A sample that met no key where there are some: every query is as likely as any other.
    mass = sample.mass or Mass.of_sample(np.array([least, greatest], np.int64))
    stretches = min(math.ceil(n / _CUTS_PER_TASK), len(mass.codes))
    pieces = _in_stretches(cuts, mass, stretches)
    budget = _intervals_budget(sample, options)
    shape = "auto" if options.shape == "map" else options.shape
    left = max(1, budget - _FILE_OVERHEAD * stretches)
    prices = prices_for(n_files, left)
    curve = np.zeros(len(prices))
    weigh = tasks.weigh_stretches(mass, shape, prices, left / n)
    weighed = pieces.mapInArrow(weigh, tasks.CURVE_SCHEMA).groupBy("price").agg(sf.sum("bytes"))
    for number, size in weighed.collect():
        curve[number] = size
    price = choose_price(prices, curve, left)
    return lambda times: pieces.mapInArrow(
        tasks.write_stretches(mass, shape, price * times), SPARK_SCHEMA
    )


def _in_stretches(cuts: DataFrame, mass: Mass, stretches: int) -> DataFrame:
    """Cuts clipped to stretches of the domain; each stretch together and in one partition."""
    places = np.arange(1, stretches) * len(mass.codes) // stretches
    borders = mass.codes[places]
    pieces = cuts.mapInArrow(tasks.split_cuts(borders), tasks.PIECES_SCHEMA)
    pieces = pieces.repartition(stretches, "stretch") if stretches > 1 else pieces.coalesce(1)
    return pieces.sortWithinPartitions("stretch")


def _sieve_rows(cuts: DataFrame, n: int, span: int, options: IndexOptions) -> DataFrame:
    hole = max(1, span // _HOLES_PER_SPAN)
    partitions = math.ceil(n / _PAIRS_PER_TASK)
    ordered = cuts.select(sf.col("first").alias("code"), "location", "rows")
    ordered = (
        ordered.repartitionByRange(partitions, "code") if partitions > 1 else ordered.coalesce(1)
    )
    ordered = ordered.sortWithinPartitions("code", "location")
    return ordered.mapInArrow(tasks.segment_pairs(options.error, hole), SPARK_SCHEMA)


def _write_within(
    make: Callable[[float], DataFrame],
    budget: float,
    store: Store,
    index_dir: str,
    encoder: Encoder,
) -> RunRef:
    """The run that fits the budget; the curve that the price is read from is an estimate."""
    for times in _DEARER:
        run = _write(make(times), store, index_dir, encoder)
        if run.bytes <= budget:
            break
        if times != _DEARER[-1]:
            store.delete(run_dir(index_dir, run.id))
    return run


def _write(rows: DataFrame, store: Store, index_dir: str, encoder: Encoder) -> RunRef:
    run_id = RunId(secrets.token_hex(16))
    target = run_dir(index_dir, run_id)
    try:
        rows.write.option("compression", "zstd").parquet(target)
        return _read_back(store, target, run_id, encoder)
    except BaseException:
        with contextlib.suppress(SieveError):
            store.delete(target)
        raise


def _read_back(store: Store, target: str, run_id: RunId, encoder: Encoder) -> RunRef:
    """What the executors wrote, as this process finds it: only that may be published."""
    try:
        names = [e.name for e in store.list(target) if e.name.endswith(".parquet")]
    except SieveError as error:
        raise _not_shared(target) from error
    files = ((name, store.read(join(target, name))) for name in sorted(names))
    run = describe_run(run_id, encoder, files)
    if run is None:
        raise _not_shared(target)
    return run


def _expected(
    probes: Probes, store: Store, index_dir: str, run: RunRef, seen: _Seen
) -> tuple[Expected, ...]:
    try:
        opened = read_run(store, index_dir, run, len(seen.rows))
        return tuple(expectations(probes, opened, seen.hits, seen.least, seen.greatest))
    except BaseException:
        with contextlib.suppress(SieveError):
            store.delete(run_dir(index_dir, run.id))
        raise


def _not_shared(target: str) -> UnavailableError:
    return UnavailableError(
        "SIEVE_ROOT_NOT_SHARED",
        f"what the executors wrote to {target} cannot be seen by the driver; set "
        "spark.sieve.path to a folder on a file system that all of them share",
    )
