"""Measures REFRESH after changes of a few files, a full build, and commits per second.

The table has 1,000 Parquet files of 20,000 rows (``--rows``). Its only column has ascending 64-bit
keys, but 1 % of the rows have a random key. For each number in ``--changed``, the benchmark
replaces that number of files, and then measures the times of REFRESH and of REFRESH with FULL.
REFRESH waits until the newest file is stable. The time of REFRESH includes the wait. The output
also shows the wait separately.

The benchmark also measures commits per second with 1, 4 and 8 writers. Writers are processes that
publish versions of one index on a local file system, as fast as they can. A commit has three steps:
to plan the version, to render its manifest, and to create the manifest's file if the file is
absent. If another writer publishes a version first, the writer plans its own version again, based
on the published version.

With ``--locations N``, the benchmark starts no Spark. The benchmark then measures only the write of
a version's list of N files after a change of some files. The output shows the bytes and the time of
two kinds of write. The first kind of write stores the whole list. The second kind of write stores a
delta to the previous list.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from multiprocessing.queues import SimpleQueue
from pathlib import Path

from pyspark.sql import SparkSession
from rich import box
from rich.console import Console
from rich.table import Table

from bench.built_version import TABLE, built_list, make_version
from bench.session import start_session
from sieve.indexing.write_file_list import NOTHING_STORED, Stored, store_list
from sieve.metadata.commit import publish, read_version
from sieve.metadata.file_list import Locations
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import LocationsRef, VersionId
from sieve.metadata.transitions import SetOptions, next_version
from sieve.storage.local import LocalStore
from sieve.tables.snapshot import stable_from

FILES = 1_000
CHANGED = (1, 10, 100)
WRITERS = (1, 4, 8)
FOLDER = Path(__file__).resolve().parent.parent / "build" / "bench-refresh"
_KEY = "CASE WHEN id % 100 = 7 THEN pmod(xxhash64(id), {rows}) ELSE id END AS c"
_PUBLISHING_S = 5.0


def main() -> None:
    """Measures refreshes and commits, and prints a table for each."""
    parser = argparse.ArgumentParser(prog="python -m bench refresh", description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000, help="of each file")
    parser.add_argument("--changed", type=int, nargs="+", default=list(CHANGED))
    parser.add_argument("--locations", type=int, help="measure lists of so many alone")
    args = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 130, highlight=False)
    if args.locations:
        console.print(_lists(args.locations, args.changed))
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    spark = start_session(FOLDER, {})
    try:
        with console.status("writing the table"):
            _create(spark, args.rows)
        console.print(_refreshes(spark, args.changed, console))
    finally:
        spark.stop()
        shutil.rmtree(FOLDER, ignore_errors=True)
    console.print(_versions())


def _create(spark: SparkSession, rows: int) -> None:
    total = FILES * rows
    key = _KEY.format(rows=total)
    spark.sql(f"CREATE TABLE t USING parquet AS SELECT {key} FROM range(0, {total}, 1, {FILES})")
    spark.sql("CREATE SIEVE INDEX ON t (c)")


def _refreshes(spark: SparkSession, changed: list[int], console: Console) -> Table:
    table = Table(box=box.SIMPLE, title=f"REFRESH after files of {FILES:,} have changed")
    for name in ("changed", "REFRESH s", "of it settling s", "FULL s", "share", "allowed"):
        table.add_column(name, justify="right")
    for count in changed:
        with console.status(f"{count} files changed"):
            _change(spark, count)
            started = time.perf_counter()
            settling = _young(spark)
            spark.sql("REFRESH SIEVE INDEX ON t").collect()
            took = time.perf_counter() - started
            started = time.perf_counter()
            spark.sql("REFRESH SIEVE INDEX ON t FULL").collect()
            full = time.perf_counter() - started
        allowed = f"{0.03 * full + 2:.1f}" if count == FILES // 100 else ""
        table.add_row(
            str(count),
            f"{took:.1f}",
            f"{settling:.1f}",
            f"{full:.1f}",
            f"{took / full:.1%}",
            allowed,
        )
    return table


def _files(spark: SparkSession) -> list[Path]:
    return [Path(uri.removeprefix("file:")) for uri in spark.table("t").inputFiles()]


def _change(spark: SparkSession, count: int) -> None:
    """Replaces `count` files by new files with the same rows."""
    for path in sorted(_files(spark))[:count]:
        shutil.copyfile(path, path.with_name(f"new-{time.time_ns()}.parquet"))
        path.unlink()
        (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
    spark.sql("REFRESH TABLE t")


def _young(spark: SparkSession) -> float:
    """Seconds until the newest file is stable."""
    stable = max(stable_from(int(path.stat().st_mtime * 1000)) for path in _files(spark))
    return max(0.0, stable / 1000 - time.time())


def _lists(n: int, changed: list[int]) -> Table:
    table = Table(box=box.SIMPLE, title=f"what a version writes of a list of {n:,} locations")
    for name in ("changed", "whole bytes", "whole ms", "part bytes", "part ms", "share"):
        table.add_column(name, justify="right")
    listed = built_list(n)
    for count in changed:
        times = listed.mtimes.copy()
        times[:: max(1, n // count)][:count] += 1
        now = replace(listed, mtimes=times)
        with tempfile.TemporaryDirectory() as folder:
            first, _ = _stored(folder, listed, NOTHING_STORED)
            before = Stored(first.parts, (listed,), (TABLE,), listed)
            whole, whole_ms = _stored(folder, now, NOTHING_STORED)
            last, part_ms = _stored(folder, now, before)
        (alone,), part = whole.parts, last.parts[-1]
        table.add_row(
            str(count),
            f"{alone.length:,}",
            f"{whole_ms:.0f}",
            f"{part.length:,}",
            f"{part_ms:.0f}",
            f"{part.length / alone.length:.2%}",
        )
    return table


def _stored(folder: str, now: Locations, before: Stored) -> tuple[LocationsRef, float]:
    """Writes a file list. Returns a reference to the list, and the milliseconds of the write."""
    store, directory = LocalStore(), f"file:{folder}"
    for name in ("locations", "intents"):
        store.mkdirs(f"{directory}/{name}")
    started = time.perf_counter()
    ref, _ = store_list(store, directory, now, (TABLE,), before)
    return ref, 1000 * (time.perf_counter() - started)


def _versions() -> Table:
    table = Table(box=box.SIMPLE, title="versions published a second, local file system")
    for name in ("writers", "versions a second", "each writer's"):
        table.add_column(name, justify="right")
    for writers in WRITERS:
        rate = _publish(writers) / _PUBLISHING_S
        table.add_row(str(writers), f"{rate:.0f}", f"{rate / writers:.0f}")
    return table


def _publish(writers: int) -> int:
    """Number of versions that concurrent writers publish within `_PUBLISHING_S` seconds."""
    with tempfile.TemporaryDirectory() as folder:
        first = make_version(Path(folder), 1000).manifest
        end = time.time() + 1 + _PUBLISHING_S
        forked = multiprocessing.get_context("fork")
        made: SimpleQueue[int] = forked.SimpleQueue()
        for number in range(writers):
            work = (f"file:{folder}/{first.index}", first, number, end, made)
            forked.Process(target=_write, args=work, daemon=True).start()
        return sum(made.get() for _ in range(writers))


def _write(
    directory: str, first: Manifest, number: int, end: float, told: SimpleQueue[int]
) -> None:
    """Publishes versions from the writers' common start time until `end`. Reports how many."""
    time.sleep(max(0.0, end - _PUBLISHING_S - time.time()))
    store, base, made = LocalStore(), first, 0
    while time.time() < end:
        # Sieve does not publish a version without a change. So each version sets other options than
        # the version before.
        change = SetOptions(IndexOptions("sieve", error=1 + (made * 8 + number) % 1000))

        def plan(newest: Manifest | None, change: SetOptions = change) -> Manifest:
            assert newest is not None
            fresh = VersionId(os.urandom(16).hex())
            return next_version(newest, change, fresh, first.created_by)

        base = publish(store, directory, base, plan, attempts=1000)
        made += 1
    assert read_version(store, directory, base.version).id == base.id
    told.put(made)


if __name__ == "__main__":
    main()
