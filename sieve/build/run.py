"""Building a run with Spark: the executors read, count, sort and cut; the driver sees no key."""

from __future__ import annotations

import contextlib
import hashlib
import io
import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sieve.build.tasks import KEY, NANS, NULLS, PAIRS_SCHEMA, ROWS, count_keys, segment_pairs
from sieve.errors import SieveError, UnavailableError
from sieve.keys import Encoder
from sieve.layout import run_dir
from sieve.options import IndexOptions
from sieve.runs import SPARK_SCHEMA
from sieve.store import Store, join
from sieve.tables.catalog import LOCATION, Column
from sieve.types import FileRef, RunId, RunRef

Counts = npt.NDArray[np.int64]

_PAIRS_PER_TASK = 4_000_000
_HOLES_PER_SPAN = 100
"""A gap of more than a hundredth of the keys' span closes a segment (Tong et al., PVLDB 2023)."""


@dataclass(frozen=True, slots=True, eq=False)
class BuiltRun:
    """A run and what its build saw.

    Attributes:
        run: None where no location has a key.
        rows, nulls, nans: int64[n] a location; rows is -1 for a location that proves nothing.
        expected_files: files that hold the block of a row's key, mean over rows.
    """

    run: RunRef | None
    rows: Counts
    nulls: Counts
    nans: Counts
    expected_files: float


def build_run(
    frame: DataFrame,
    column: Column,
    n_files: int,
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
        n_files: how many files there are.
        options: how to cut.
        store: where the index lies.
        index_dir: the index's folder.
        counted: compare the rows seen of each file with a count that reads no column; for formats
            whose metadata tell it. Files that differ prove nothing.
        say: told what the next job does, for its label.

    Raises:
        Py4JJavaError: a file cannot be read; names it.
    """
    path = ".".join(f"`{part.replace('`', '``')}`" for part in column.path)
    values = frame.select(sf.col(path).alias("v"), LOCATION)
    say("measuring")
    expected = _row_counts(frame, n_files) if counted else None
    encoder = _encoder(values, column)
    say("reading")
    pairs = values.mapInArrow(count_keys(encoder), PAIRS_SCHEMA)
    pairs = pairs.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        rows, nulls, nans = _location_counts(pairs, n_files)
        # A location without rows shows nothing, and one read in part shows too little.
        partial = rows == 0 if expected is None else (rows == 0) | (rows != expected)
        keys = pairs.where(sf.col("kind") == KEY)
        if partial.any():
            whole = [int(k) for k in np.flatnonzero(~partial)]
            keys = keys.where(sf.col("location").isin(whole)) if whole else keys.limit(0)
        rows = np.where(partial, -1, rows)
        say("cutting")
        run, expected_files = _write(keys, encoder, options, store, index_dir)
    finally:
        pairs.unpersist()
    return BuiltRun(run, rows, nulls, nans, expected_files)


def _row_counts(frame: DataFrame, n_files: int) -> Counts:
    counts = np.zeros(n_files, np.int64)
    for location, rows in frame.groupBy(LOCATION).count().collect():
        counts[location] = rows
    return counts


def _encoder(values: DataFrame, column: Column) -> Encoder:
    """The column's encoder; strings and binary first show what they all begin with."""
    plain = Encoder.for_type(column.type)
    if plain.exact or column.type.startswith("decimal"):
        return plain
    as_bytes = sf.col("v").cast("binary")
    low, high = values.select(sf.min(as_bytes), sf.max(as_bytes)).first() or (None, None)
    if low is None or high is None:
        return plain
    return Encoder.for_type(column.type, bytes(low), bytes(high))


def _location_counts(pairs: DataFrame, n: int) -> tuple[Counts, Counts, Counts]:
    counts = {kind: np.zeros(n, np.int64) for kind in (ROWS, NULLS, NANS)}
    grouped = pairs.where(sf.col("kind") != KEY).groupBy("kind", "location").agg(sf.sum("rows"))
    for kind, location, total in grouped.collect():
        counts[kind][location] = total
    return counts[ROWS], counts[NULLS], counts[NANS]


def _write(
    keys: DataFrame, encoder: Encoder, options: IndexOptions, store: Store, index_dir: str
) -> tuple[RunRef | None, float]:
    n, least, greatest = keys.agg(sf.count("*"), sf.min("code"), sf.max("code")).first() or (
        0,
        0,
        0,
    )
    if not n:
        return None, 0.0
    hole = max(1, (greatest - least) // _HOLES_PER_SPAN)
    tasks = math.ceil(n / _PAIRS_PER_TASK)
    ordered = keys.select("code", "location", "rows")
    ordered = ordered.repartitionByRange(tasks, "code") if tasks > 1 else ordered.coalesce(1)
    run_id = RunId(secrets.token_hex(16))
    target = run_dir(index_dir, run_id)
    try:
        (
            ordered.sortWithinPartitions("code", "location")
            .mapInArrow(segment_pairs(options.error, hole), SPARK_SCHEMA)
            .write.option("compression", "zstd")
            .parquet(target)
        )
        return _read_back(store, target, run_id, encoder)
    except BaseException:
        with contextlib.suppress(SieveError):
            store.delete(target)
        raise


def _read_back(
    store: Store, target: str, run_id: RunId, encoder: Encoder
) -> tuple[RunRef | None, float]:
    """What the executors wrote, as this process finds it: only that may be published."""
    try:
        names = [e.name for e in store.list(target) if e.name.endswith(".parquet")]
    except SieveError as error:
        raise _not_shared(target) from error
    files, totals = [], np.zeros(5, np.int64)
    for name in sorted(names):
        data = store.read(join(target, name))
        table = pq.read_table(io.BytesIO(data), columns=["keys", "rows", "blocks", "weight"])
        if table.num_rows:
            files.append(FileRef(name, len(data), hashlib.sha256(data).hexdigest()))
            totals += [table.num_rows, *(sum(c.to_pylist()) for c in table.columns)]
    if not files:
        raise _not_shared(target)
    segments, keys, rows, blocks, weight = (int(total) for total in totals)
    size = sum(file.length for file in files)
    run = RunRef(run_id, encoder.to_json(), tuple(files), segments, blocks, keys, rows, size)
    return run, weight / rows


def _not_shared(target: str) -> UnavailableError:
    return UnavailableError(
        "SIEVE_ROOT_NOT_SHARED",
        f"what the executors wrote to {target} cannot be seen by the driver; set "
        "spark.sieve.path to a folder on a file system that all of them share",
    )
