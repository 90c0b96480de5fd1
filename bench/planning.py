"""What Sieve adds to the planning of a scan: ``make bench-planning``.

Planning is all from the text of a query to the list of files that its tasks will read, listing and
asking the index included; nothing is read. The table's files hold four rows each, and their
listing is cached, as in any session after its first query.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
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

from bench.session import SWITCH, start_session

SIZES = (1_000, 10_000)
FOLDER = Path(__file__).resolve().parent.parent / "build" / "bench-planning"
ROWS = 4

PLAIN = "no Sieve in the session"
UNINDEXED = "table without an index"
DISABLED = "spark.sieve.enabled = false"
POINT = "indexed, one file left"
NOTHING = "indexed, nothing to skip"
MODES = (PLAIN, UNINDEXED, DISABLED, POINT, NOTHING)


@dataclass(frozen=True, slots=True)
class Run:
    """How much to measure, and of what."""

    files: int
    queries: int
    warm: int


def main() -> None:
    """Measure every size, each side in a JVM of its own, and print one table."""
    parser = argparse.ArgumentParser(prog="python -m bench planning", description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--queries", type=int, default=300, help="timed queries of each kind")
    parser.add_argument("--warm", type=int, default=150, help="queries before the clock counts")
    parser.add_argument("--side", choices=("plain", "sieve", "cold"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        sides = {"plain": _plain_side, "sieve": _sieve_side, "cold": _cold_side}
        print(json.dumps(sides[args.side](Run(args.files[0], args.queries, args.warm))))
        return
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    for files in args.files:
        shutil.rmtree(FOLDER, ignore_errors=True)
        _make_files(FOLDER / "data", files)
        run = Run(files, args.queries, args.warm)
        sieve = _side("sieve", run)
        measured = _side("plain", run) | {mode: sieve[mode] for mode in MODES[1:]}
        _print(console, run, measured, _side("cold", run))


def _side(name: str, run: Run) -> dict[str, list[float]]:
    """One side's milliseconds by kind of query, measured in a process of its own."""
    command = [sys.executable, "-m", "bench.planning", "--side", name]
    command += ["--files", str(run.files), "--queries", str(run.queries), "--warm", str(run.warm)]
    result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, list[float]] = json.loads(result.stdout.splitlines()[-1])
    return found


def _make_files(folder: Path, count: int) -> None:
    """File i holds the keys 4 i to 4 i + 3."""
    folder.mkdir(parents=True)

    def make(number: int) -> None:
        ids = np.arange(ROWS, dtype=np.int64) + number * ROWS
        rows = pa.table({"id": ids, "v": ids % 7})
        pq.write_table(rows, folder / f"part-{number:05d}.parquet", store_schema=False)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(make, range(count)))


# -- in a process of its own ----------------------------------------------------------------------


def _plain_side(run: Run) -> dict[str, list[float]]:
    spark = start_session(FOLDER / "plain", {}, indexed=False)
    _register(spark, "t")
    times = _measure(run, {PLAIN: lambda key: _plan(spark, f"SELECT * FROM t WHERE id = {key}")})
    spark.stop()
    return times


def _sieve_side(run: Run) -> dict[str, list[float]]:
    spark = start_session(FOLDER / "sieve", {"spark.sieve.strict": "true"})
    _register(spark, "t")
    _register(spark, "bare")
    spark.sql("CREATE SIEVE INDEX ON t (id)").collect()

    def switched(on: str) -> Callable[[int], float]:
        def ask(key: int) -> float:
            spark.conf.set(SWITCH, on)
            return _plan(spark, f"SELECT * FROM t WHERE id = {key}")

        return ask

    times = _measure(
        run,
        {
            UNINDEXED: lambda key: _plan(spark, f"SELECT * FROM bare WHERE id = {key}"),
            DISABLED: switched("false"),
            POINT: switched("true"),
            NOTHING: lambda key: _plan(spark, f"SELECT * FROM t WHERE id > {-key - 1}"),
        },
    )
    spark.stop()
    return times


def _cold_side(run: Run) -> dict[str, list[float]]:
    """The first indexed scan of a driver, which starts the front end, and the one after it."""
    spark = start_session(FOLDER / "sieve", {"spark.sieve.strict": "true"})
    # Not Sieve's to answer for: the metastore, the listings, and Spark's own first query.
    for table in ("bare", "t"):
        spark.conf.set(SWITCH, "false")
        for key in range(5):
            _plan(spark, f"SELECT * FROM {table} WHERE id = {key}")
    spark.conf.set(SWITCH, "true")
    first = _plan(spark, f"SELECT * FROM t WHERE id = {ROWS * run.files // 2}")
    second = _plan(spark, f"SELECT * FROM t WHERE id = {ROWS * run.files // 3}")
    spark.stop()
    return {"first": [first], "second": [second]}


def _register(spark: SparkSession, table: str) -> None:
    folder = (FOLDER / "data").as_uri()
    spark.sql(f"CREATE TABLE {table} (id BIGINT, v BIGINT) USING parquet LOCATION '{folder}'")


def _measure(run: Run, kinds: dict[str, Callable[[int], float]]) -> dict[str, list[float]]:
    """Milliseconds of each kind of query; the kinds take turns, so all see the same machine."""
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    for k, key in enumerate(_keys(run)):
        for kind, ask in kinds.items():
            milliseconds = ask(key)
            if k >= run.warm:
                times[kind].append(milliseconds)
    return times


def _keys(run: Run) -> Iterator[int]:
    rng = np.random.default_rng(1)
    yield from rng.integers(0, ROWS * run.files, run.warm + run.queries).tolist()


def _plan(spark: SparkSession, sql: str) -> float:
    started = time.perf_counter()
    frame = spark.sql(sql)
    # Building the RDD lists the files and packs them into tasks; no job runs.
    frame._jdf.queryExecution().toRdd().getNumPartitions()  # noqa: SLF001 - no public door
    return (time.perf_counter() - started) * 1000


# -- the table ------------------------------------------------------------------------------------


def _print(
    console: Console, run: Run, measured: dict[str, list[float]], cold: dict[str, list[float]]
) -> None:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column(f"\n{run.files:,} files", no_wrap=True)
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
        "in the same JVM"
    )
    console.print(
        f"  first indexed scan of a driver, front end started for it: {cold['first'][0]:,.0f} ms; "
        f"the next one: {cold['second'][0]:,.0f} ms"
    )
    console.print()


def _percentiles(times: Sequence[float]) -> list[float]:
    return [float(np.percentile(times, p)) for p in (50, 95, 99)]


if __name__ == "__main__":
    main()
