"""Measures the time that Sieve adds to the planning of a scan: ``make bench-planning``.

Planning comprises all steps from the query's text to the list of files that its tasks will read,
including the file listing and the index look-up. The benchmark reads no data file. Each file of the
table has four rows. With ``--ranges``, each row group has four rows. The file listing is cached, as
in any session after its first query. With ``--iceberg``, all sessions load Iceberg, and the tables
are Iceberg tables of the same files, without column bounds.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich import box
from rich.console import Console
from rich.table import Table

from bench.iceberg_session import add_files, iceberg_conf
from bench.session import SWITCH, start_session

SIZES = (1_000, 10_000)
FOLDER = Path(__file__).resolve().parent.parent / "build" / "bench-planning"
ROWS = 4

PLAIN = "no Sieve in the session"
UNINDEXED = "table without an index"
DISABLED = "spark.sieve.enabled = false"
POINT = "indexed, one file or range left"
NOTHING = "indexed, nothing to skip"
MODES = (PLAIN, UNINDEXED, DISABLED, POINT, NOTHING)


@dataclass(frozen=True, slots=True)
class Run:
    """The parameters of one measurement, such as the number of files."""

    files: int
    ranges: int
    queries: int
    warm: int
    iceberg: bool

    @property
    def keys(self) -> int:
        """Number of rows."""
        return ROWS * self.ranges * self.files


def main() -> None:
    """Measures each number of files, and prints one table for each of them."""
    parser = argparse.ArgumentParser(prog="python -m bench planning", description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--ranges", type=int, default=1, help="row groups of each file")
    parser.add_argument("--queries", type=int, default=300, help="timed queries of each kind")
    parser.add_argument("--warm", type=int, default=150, help="queries before the clock counts")
    parser.add_argument("--iceberg", action="store_true", help="measure Iceberg tables")
    parser.add_argument("--side", choices=("plain", "sieve", "cold"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        _serve(args.side, iceberg=args.iceberg)
        return
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    for files in args.files:
        shutil.rmtree(FOLDER, ignore_errors=True)
        run = Run(files, args.ranges, args.queries, args.warm, args.iceberg)
        make_files(FOLDER / "data", files, ROWS * args.ranges, ROWS)
        times = _measure(run)
        _print(console, run, times, _cold(run))


class Side:
    """A Spark application in another process.

    The process plans queries on request and reports the time.
    """

    def __init__(self, name: str, *, iceberg: bool) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.planning", "--side", name, *["--iceberg"] * iceberg],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._line()

    def plan(self, mode: str, key: int) -> float:
        """Milliseconds to plan a query for `key`."""
        assert self._process.stdin is not None
        print(json.dumps([mode, key]), file=self._process.stdin, flush=True)
        return float(self._line())

    def end(self) -> None:
        """Ends the application's process."""
        self._process.communicate(timeout=60)

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a Spark ended while it was measured; see {FOLDER}/*/spark.log")
        return line


def _measure(run: Run) -> dict[str, list[float]]:
    """A dict from kind of query to the milliseconds of each query of this kind.

    Queries of different kinds alternate, so that other load affects all kinds alike.
    """
    plain, sieve = Side("plain", iceberg=run.iceberg), Side("sieve", iceberg=run.iceberg)
    times: dict[str, list[float]] = {mode: [] for mode in MODES}
    for k, key in enumerate(_keys(run)):
        # The order of the kinds of query rotates, so that every kind follows different kinds. In
        # total, both JVMs plan the same number of queries.
        for mode in (MODES * 2)[k % len(MODES) : k % len(MODES) + len(MODES)]:
            side, repeats = (plain, len(MODES) - 1) if mode == PLAIN else (sieve, 1)
            for again in range(repeats):
                milliseconds = side.plan(mode, (key + again) % run.keys)
                if k >= run.warm:
                    times[mode].append(milliseconds)
    plain.end()
    sieve.end()
    return times


def _keys(run: Run) -> list[int]:
    rng = np.random.default_rng(1)
    return [int(key) for key in rng.integers(0, run.keys, run.warm + run.queries)]


def _cold(run: Run) -> tuple[float, float]:
    """Milliseconds to plan a driver's first scan with an index, and then the next scan."""
    side = Side("cold", iceberg=run.iceberg)
    # These unmeasured queries warm up the metastore, the file listings and Spark. So the times
    # exclude costs that Sieve does not cause.
    for key in range(5):
        side.plan(UNINDEXED, key)
        side.plan(DISABLED, key)
    found = side.plan(POINT, run.keys // 2), side.plan(POINT, run.keys // 3)
    side.end()
    return found


def make_files(folder: Path, files: int, rows: int, group: int) -> None:
    """Writes files of `rows` rows with ascending keys. Each row group has `group` rows."""
    folder.mkdir(parents=True)

    def make(number: int) -> None:
        ids = np.arange(rows, dtype=np.int64) + number * rows
        table = pa.table({"id": ids, "v": ids % 7})
        path = folder / f"part-{number:05d}.parquet"
        pq.write_table(table, path, row_group_size=group, store_schema=False)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(make, range(files)))


# -- in a separate process ------------------------------------------------------------------------


def _serve(name: str, *, iceberg: bool) -> None:
    folder = FOLDER / ("plain" if name == "plain" else "sieve")
    # In strict mode, a scan without an answer from the index fails. By default, the planning of
    # such a scan would look fast. With the second setting, every row group is a range, even a small
    # row group.
    own = {} if name == "plain" else {"spark.sieve.strict": "true", "spark.sieve.range.bytes": "1"}
    conf = iceberg_conf(indexed=name != "plain") if iceberg else {}
    spark = start_session(folder, conf | own, indexed=name != "plain")
    make = _add if iceberg else _register
    if name != "cold":
        make(spark, "bare")
    if name == "sieve":
        make(spark, "t")
        spark.sql("CREATE SIEVE INDEX ON t (id)").collect()
    print("ready", flush=True)
    for line in sys.stdin:
        mode, key = json.loads(line)
        spark.conf.set(SWITCH, str(mode != DISABLED).lower())
        table = "bare" if mode in (PLAIN, UNINDEXED) else "t"
        condition = f"id > {-key - 1}" if mode == NOTHING else f"id = {key}"
        print(planned(spark, f"SELECT * FROM {table} WHERE {condition}"), flush=True)
    spark.stop()


def _register(spark: SparkSession, table: str) -> None:
    folder = (FOLDER / "data").as_uri()
    spark.sql(f"CREATE TABLE {table} (id BIGINT, v BIGINT) USING parquet LOCATION '{folder}'")


def _add(spark: SparkSession, table: str) -> None:
    folder = FOLDER / f"{table}-{time.time_ns()}"
    no_bounds = "TBLPROPERTIES ('write.metadata.metrics.default' = 'none')"
    name = f"spark_catalog.default.{table}"
    add_files(spark, name, "(id BIGINT, v BIGINT)", FOLDER / "data", folder, no_bounds)


def planned(spark: SparkSession, sql: str) -> float:
    """Milliseconds from a query's text to the list of files that its tasks will read."""
    started = time.perf_counter()
    frame = spark.sql(sql)
    # The creation of the RDD lists the files and packs them into tasks, but runs no job.
    frame._jdf.queryExecution().toRdd().getNumPartitions()  # noqa: SLF001 - no public API
    return (time.perf_counter() - started) * 1000


# -- the table ------------------------------------------------------------------------------------


def _print(
    console: Console, run: Run, measured: dict[str, list[float]], cold: tuple[float, float]
) -> None:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    ranges = f" of {run.ranges} row groups" if run.ranges > 1 else ""
    form = " of an Iceberg table" if run.iceberg else ""
    table.add_column(f"\n{run.files:,} files{form}{ranges}", no_wrap=True)
    for title in ("p50\nms", "p95\nms", "p99\nms", "added\np50 ms", "added\np95 ms", "ratio\np50"):
        table.add_column(title, justify="right", no_wrap=True)
    base = _percentiles(measured[UNINDEXED])
    for mode in MODES:
        own = _percentiles(measured[mode])
        added = [own[0] - base[0], own[1] - base[1]]
        cells = [f"{value:.1f}" for value in own] + [f"{value:+.1f}" for value in added]
        table.add_row(mode, *cells, f"{own[0] / base[0]:.2f}")
    console.print(table)
    console.print(
        f"  {run.queries} queries of each kind; added, ratio: against a table without an index, "
        "in the same session; all kinds take turns"
    )
    console.print(
        f"  first indexed scan of a driver, front end started for it: {cold[0]:,.0f} ms; "
        f"the next one: {cold[1]:,.0f} ms"
    )
    console.print()


def _percentiles(times: Sequence[float]) -> list[float]:
    return [float(np.percentile(times, p)) for p in (50, 95, 99)]


if __name__ == "__main__":
    main()
