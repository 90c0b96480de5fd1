"""Measures queries that read only some ranges of large files: ``make bench-ranges``.

`bench.large_files` describes the table. Each query runs in several modes in turn. The modes are
Spark without Sieve, an index of whole files (``granularity = 'file'``), and an index of ranges
(``granularity = 'auto'``, the default). The lower bound is a fourth mode: Spark without Sieve reads
files that contain only the row groups with a matching row. ``--bloom`` adds a mode in which Spark
without Sieve reads a copy of the table. In the copy, the unique keys have Parquet's Bloom filters.
Before the timed runs of a query, the fast modes run for 15 seconds, so that the JVM compiles their
code. The output also shows the number of rows and tasks of the scan.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession
from rich import box
from rich.console import Console
from rich.table import Table

from bench.large_files import FORMATS, GROUPS, ROW_BYTES, SCHEMA, Large, Query, queries
from bench.session import SWITCH, rows_scanned, scan_tasks, start_session, with_settings

FOLDER = Path(__file__).resolve().parent.parent / "build" / "bench-ranges"
INDEXED = ("id", "day", "sorted_id", "block")
MODES: Mapping[str, Mapping[str, str]] = {
    "Spark": {SWITCH: "false"},
    "bloom": {SWITCH: "false"},
    "files": {"spark.sieve.strict": "true"},
    "ranges": {"spark.sieve.strict": "true"},
    "least": {SWITCH: "false"},
}
_WARM_UP = 15.0
"""Seconds of untimed runs of a query in the `_FAST` modes, during which the JVM compiles code."""
_FAST = ("ranges", "least")
_TASKS = ("Spark", "ranges")


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of a query.

    Attributes:
        groups: number of row groups with a matching row.
        ms: median milliseconds in each mode.
        rows: number of rows that the scan returns in each mode.
        tasks: number of the scan's tasks in each mode.
    """

    groups: int
    ms: Mapping[str, float]
    rows: Mapping[str, int]
    tasks: Mapping[str, int]


def main() -> None:
    """Measures every query and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m bench ranges", description=__doc__)
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--megabytes", type=int, default=256, help="of each file")
    parser.add_argument("--runs", type=int, default=5, help="of each query in each mode")
    parser.add_argument("--format", choices=FORMATS, default="parquet")
    parser.add_argument("--bloom", action="store_true", help="Parquet's Bloom filters beside")
    parser.add_argument("--cores", type=int, default=2, help="threads of Spark")
    parser.add_argument("--columns", nargs="+", choices=INDEXED, default=list(INDEXED))
    parser.add_argument("--no-files", action="store_true", help="no index of whole files")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE")
    args = parser.parse_args()
    if args.bloom and args.format != "parquet":
        parser.error("--bloom needs --format parquet")
    console = Console(width=None if sys.stdout.isatty() else 150, highlight=False)
    shutil.rmtree(FOLDER, ignore_errors=True)
    settings = {"spark.sieve.prune.timeout": "10s", "spark.master": f"local[{args.cores}]"}
    settings |= dict(given.split("=", 1) for given in args.conf)
    spark = start_session(FOLDER, settings)
    rows = args.megabytes * (1 << 20) // ROW_BYTES // GROUPS * GROUPS
    large = Large(args.format, rows, args.files)
    left_out = {"files": args.no_files, "bloom": not args.bloom}
    modes = [mode for mode in MODES if not left_out.get(mode)]
    indexes = {m: g for m, g in (("files", "file"), ("ranges", "auto")) if m in modes}
    try:
        with console.status("writing the table"), ThreadPoolExecutor(2) as pool:
            list(pool.map(partial(large.write, FOLDER / "data"), range(args.files)))
        lines = _create(spark, args.format, args.columns, indexes)
        if args.bloom:
            lines.append(_bloom(spark, large))
        asked = [query for query in queries(large) if query.where.split()[0] in args.columns]
        measured = [_measure(spark, large, one, modes, args.runs) for one in asked]
        _print(console, asked, measured, modes, args.files * rows)
        for line in lines:
            console.print(f"  [dim]{line}[/dim]")
    finally:
        spark.stop()
        shutil.rmtree(FOLDER, ignore_errors=True)


def _create(
    spark: SparkSession, kind: str, columns: Sequence[str], indexes: Mapping[str, str]
) -> list[str]:
    """Creates tables of the same files, and their indexes. Returns a line about each index."""
    lines = []
    for name in ("plain", *indexes):
        _table(spark, name, kind, FOLDER / "data")
    time.sleep(2.1)  # A file is stable two seconds after its last change.
    whole = _bytes(FOLDER / "data")
    # This untimed build starts the executors' Python workers.
    spark.sql("CREATE SIEVE INDEX warm ON plain (block)").collect()
    spark.sql("DROP SIEVE INDEX warm ON plain").collect()
    for column in columns:
        for name, granularity in indexes.items():
            started = time.perf_counter()
            spark.sql(
                f"CREATE SIEVE INDEX ON {name} ({column}) OPTIONS (granularity = '{granularity}')"
            ).collect()
            seconds = time.perf_counter() - started
            (size,) = spark.sql(
                f"SELECT bytes FROM sieve_indexes() WHERE table = '{name}' "
                f"AND index = '{column}_sieve'"
            ).first() or (0,)
            lines.append(
                f"{name} ({column}): built in {seconds:.1f} s, {size / 1e3:,.0f} KB, "
                f"{100 * size / whole:.2f} % of the table"
            )
    return lines


def _bloom(spark: SparkSession, large: Large) -> str:
    """Writes a copy with Bloom filters on the unique keys. Returns a line about the copy."""
    started = time.perf_counter()
    # Each task rewrites one whole file, so that the copy has the same files and row groups.
    with with_settings(spark, {SWITCH: "false", "spark.sql.files.maxPartitionBytes": "1g"}):
        writer = spark.table("plain").write.option("compression", "zstd")
        for column in ("id", "sorted_id"):
            writer = writer.option(f"parquet.bloom.filter.enabled#{column}", "true").option(
                f"parquet.bloom.filter.expected.ndv#{column}", str(large.rows // GROUPS)
            )
        size = large.rows // GROUPS * ROW_BYTES
        writer.option("parquet.block.size", str(size)).parquet(str(FOLDER / "bloom"))
    seconds = time.perf_counter() - started
    _table(spark, "bloom", "parquet", FOLDER / "bloom")
    before, after = _bytes(FOLDER / "data"), _bytes(FOLDER / "bloom")
    return (
        f"Bloom filters (id, sorted_id): table rewritten in {seconds:.1f} s, "
        f"{after / 1e6:,.0f} MB instead of {before / 1e6:,.0f}"
    )


def _table(spark: SparkSession, name: str, kind: str, folder: Path) -> None:
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(f"CREATE TABLE {name} ({SCHEMA}) USING {kind} LOCATION '{folder}'")


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def _measure(
    spark: SparkSession, large: Large, query: Query, modes: Sequence[str], runs: int
) -> Measured:
    groups = large.least(FOLDER / "data", FOLDER / "least", query.matches)
    _table(spark, "least", large.kind, FOLDER / "least")
    times: dict[str, list[float]] = {mode: [] for mode in modes}
    rows: dict[str, int] = {}
    tasks: dict[str, int] = {}
    answers = set()

    def run(mode: str) -> float:
        with with_settings(spark, MODES[mode]):
            table = "plain" if mode == "Spark" else mode
            started = time.perf_counter()
            frame = spark.sql(f"SELECT count(*), max(pad) FROM {table} WHERE {query.where}")
            answers.add(tuple(frame.collect()[0]))
            seconds = time.perf_counter() - started
            rows[mode], tasks[mode] = rows_scanned(frame), scan_tasks(frame)
            return seconds

    until = time.perf_counter() + _WARM_UP
    while time.perf_counter() < until:
        for mode in _FAST:
            run(mode)
    for turn in range(runs + 1):
        for mode in modes:
            seconds = run(mode)
            if turn:  # In a mode's first run, the JVM compiles code.
                times[mode].append(seconds * 1000)
    assert len(answers) == 1, f"the modes give different rows: {query.where}: {answers}"
    medians = {mode: statistics.median(some) for mode, some in times.items()}
    return Measured(groups, medians, rows, tasks)


def _print(
    console: Console,
    asked: Sequence[Query],
    measured: Sequence[Measured],
    modes: Sequence[str],
    rows: int,
) -> None:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column(f"\n{rows:,} rows", no_wrap=True)
    titles = ["groups\nmatch", *(f"{mode}\nms" for mode in modes), "times\nSpark", "times\nleast"]
    titles += [f"{mode}\nk rows" for mode in modes]
    for title in (*titles, *(f"{mode}\ntasks" for mode in _TASKS)):
        table.add_column(title, justify="right", no_wrap=True)
    for query, one in zip(asked, measured, strict=True):
        table.add_row(
            query.title,
            str(one.groups),
            *(f"{one.ms[mode]:,.0f}" for mode in modes),
            f"{one.ms['Spark'] / one.ms['ranges']:.1f}",
            f"{one.ms['ranges'] / one.ms['least']:.2f}",
            *(f"{one.rows[mode] / 1000:,.0f}" for mode in modes),
            *(str(one.tasks[mode]) for mode in _TASKS),
        )
    console.print(table)


if __name__ == "__main__":
    main()
