"""Demo: queries of TPC-H's lineitem with and without Sieve, ``make demo``.

Generates the data (once per scale factor), indexes the tables, and runs queries with the index off
and on. Prints a table that shows the files read and the time of each query. A second table is for
large files. It also shows the ranges read and the number of tasks.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from bench import report
from bench.lineitem import BY_DATE, BY_ORDER, FILES, LARGE, LARGE_FILES, cut, join_files
from bench.queries import Footers, Query, demo_queries
from bench.session import SWITCH, files_read, scan_tasks, start_session
from bench.tpch import generate

ROUNDS = 5
INDEXES = (
    (BY_DATE, "l_shipdate, l_receiptdate"),
    (BY_ORDER, "l_orderkey"),
    # This index is deliberately useless, because every file contains all 50 values of l_quantity.
    (BY_ORDER, "l_quantity"),
    (LARGE, "l_orderkey"),
)
HOME = Path(__file__).resolve().parent.parent
FOLDER = HOME / "build" / "demo"


@dataclass(frozen=True, slots=True)
class Side:
    """One run of a query with the index on or off: the rows, the files read, and the scan tasks."""

    rows: Counter[str]
    files: int
    tasks: int


class Demo:
    """Runs the demo's steps at one scale factor, and prints the progress."""

    def __init__(self, console: Console, scale: int) -> None:
        self.console = console
        self.scale = scale

    @contextmanager
    def step(self, title: str) -> Iterator[Callable[[float], None]]:
        """Shows a progress bar on a terminal while the block runs, and then prints the time."""
        started = time.monotonic()
        bar = Progress(
            TextColumn("  {task.description}"),
            BarColumn(bar_width=30),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        with bar:
            task = bar.add_task(title, total=None)
            yield lambda share: bar.update(task, completed=share, total=1.0)
        seconds = time.monotonic() - started
        self.console.print(f"  [green]✓[/green] {title} [dim]{seconds:.1f} s[/dim]")

    def data(self) -> dict[str, Path]:
        """Generates the tables' files, unless they exist. Returns the folder of each table."""
        folder = FOLDER / "data" / f"scale-{self.scale}"
        folder.mkdir(parents=True, exist_ok=True)
        found = {table: folder / table for table in (BY_DATE, BY_ORDER, LARGE)}
        if all(path.exists() for path in found.values()):
            self.console.print(
                f"  [green]✓[/green] data of an earlier run [dim]{folder.relative_to(HOME)}[/dim]"
            )
            return found
        with self.step(f"TPC-H lineitem at scale {self.scale}"):
            raw = generate(folder, "lineitem", self.scale)
        for table in (BY_DATE, BY_ORDER):
            with self.step(f"{table}: {FILES} Parquet files") as say:
                cut(raw, table, self.scale, say)
        with self.step(f"{LARGE}: {LARGE_FILES} Parquet files") as say:
            join_files(found[BY_ORDER], say)
        raw.unlink()
        return found

    def session(self, data: dict[str, Path]) -> SparkSession:
        """Starts a Spark session with a new metastore that contains the tables."""
        with self.step("Spark with an embedded Hive metastore"):
            for old in ("metastore_db", "spark-warehouse", "derby.log"):
                path = FOLDER / old
                shutil.rmtree(path, ignore_errors=True)
                path.unlink(missing_ok=True)
            spark = start_session(FOLDER, {})
            for table, folder in data.items():
                spark.sql(f"CREATE TABLE {table} USING parquet LOCATION '{folder.as_uri()}'")
        return spark

    def index(self, spark: SparkSession) -> None:
        """Creates all indexes of the demo."""
        for table, columns in INDEXES:
            statement = f"CREATE SIEVE INDEX ON {table} ({columns})"
            with self.step(f"[bold]{statement}[/bold]"):
                spark.sql(statement).collect()

    def measure(self, spark: SparkSession, data: dict[str, Path]) -> list[report.Measured]:
        """Measures all queries with the index off and on in turn."""
        queries = demo_queries(self.scale)
        footers = {table: Footers(folder) for table, folder in data.items()}
        with self.step(f"{len(queries)} queries, {ROUNDS} times each without and with") as say:
            measured = []
            for k, query in enumerate(queries):
                measured.append(_measure(spark, query, footers[query.table].left_by(query)))
                say((k + 1) / len(queries))
        return measured


def _measure(spark: SparkSession, query: Query, by_footers: int) -> report.Measured:
    """Measures a query with the index off and on.

    The first run with the index off, and the first run with the index on, are warm-ups. All runs
    must return the same rows.
    """
    _switch(spark, on=False)
    holding = (
        f"SELECT count(*), count(DISTINCT _metadata.file_path) FROM {query.table} "
        f"WHERE {query.where}"
    )
    found, least = spark.sql(holding).collect()[0]
    sides = {}
    for on in (False, True):
        _switch(spark, on=on)
        sides[on] = _run(spark, query)
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(ROUNDS):
        for on in (False, True):
            _switch(spark, on=on)
            started = time.perf_counter()
            rows = spark.sql(query.sql).collect()
            seconds[on].append(time.perf_counter() - started)
            _compare(query, sides[False].rows, Counter(map(repr, rows)))
    _compare(query, sides[False].rows, sides[True].rows)
    (scan,) = spark.sql(f"EXPLAIN SIEVE {query.sql}").collect()
    return report.Measured(
        query,
        rows=found,
        files_without=sides[False].files,
        files_minmax=by_footers,
        files_with=sides[True].files,
        files_least=least,
        without=statistics.median(seconds[False]),
        with_=statistics.median(seconds[True]),
        tasks=(sides[False].tasks, sides[True].tasks),
        ranges=(scan["ranges_total"], scan["ranges_read"]),
        bytes=(scan["bytes_total"], scan["bytes_read"]),
    )


def _run(spark: SparkSession, query: Query) -> Side:
    frame = spark.sql(query.sql)
    rows = Counter(map(repr, frame.collect()))
    return Side(rows, files_read(frame), scan_tasks(frame))


def _switch(spark: SparkSession, *, on: bool) -> None:
    spark.conf.set(SWITCH, str(on).lower())


def _compare(query: Query, without: Counter[str], with_: Counter[str]) -> None:
    if without != with_:
        raise SystemExit(
            f"WRONG: other rows with the index than without\n  {query.sql}\n"
            f"  only without: {list((without - with_).elements())[:3]}\n"
            f"  only with:    {list((with_ - without).elements())[:3]}"
        )


def main() -> None:
    """Runs all steps of the demo."""
    parser = argparse.ArgumentParser(prog="make demo ARGS=...", description=__doc__)
    parser.add_argument("--scale", type=int, default=1, help="TPC-H scale factor (default: 1)")
    scale = parser.parse_args().scale
    if scale < 1:
        parser.error("--scale is a whole number of 1 or more")
    # Without a terminal, the width is unknown. The table needs at least 100 characters.
    width = None if sys.stdout.isatty() else 120
    console = Console(width=width, highlight=False)
    demo = Demo(console, scale)
    started = time.monotonic()
    report.headline(console, scale)
    data = demo.data()
    spark = demo.session(data)
    try:
        demo.index(spark)
        measured = demo.measure(spark, data)
        report.results(console, measured)
        report.indexes(console, spark, INDEXES)
        report.explained(console, spark, measured[3].query.sql)
    finally:
        spark.stop()
    report.next_lines(console, FOLDER, time.monotonic() - started)


if __name__ == "__main__":
    main()
