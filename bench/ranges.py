"""Queries that read parts of large files: ``make bench-ranges``.

A table of few large files, many row groups each: a unique random key, a day that rises with 2 % of
the rows late, and a text that fills a row to about a hundred bytes. Each query runs in four modes
that take turns: Spark alone, an index of whole files (``granularity = 'file'``), an index of ranges
(``budget = 'auto'``, the default), and, as the least possible, Spark alone on just those row groups
that hold a match, written as files of their own. Rows scanned and tasks are those of the scan.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as po
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich import box
from rich.console import Console
from rich.table import Table

from bench.session import SWITCH, rows_scanned, scan_tasks, start_session, with_settings

FOLDER = Path(__file__).resolve().parent.parent / "build" / "bench-ranges"
GROUPS = 16
ROW_BYTES = 100
DAYS = 4_000
_LATE = 50
"""One row in so many is late."""
MODES: Mapping[str, Mapping[str, str]] = {
    "Spark": {SWITCH: "false"},
    "files": {"spark.sieve.strict": "true"},
    "ranges": {"spark.sieve.strict": "true"},
    "least": {SWITCH: "false"},
}

_COUNTED = ("Spark", "ranges", "least")


@dataclass(frozen=True, slots=True)
class Query:
    """A query by its title, its WHERE, and the same as an Arrow expression."""

    title: str
    where: str
    matches: pc.Expression


@dataclass(frozen=True, slots=True)
class Measured:
    """By mode: median milliseconds, rows that the scan gives, tasks of its stage."""

    groups: int
    ms: Mapping[str, float]
    rows: Mapping[str, int]
    tasks: Mapping[str, int]


def main() -> None:
    """Measure every query and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench ranges", description=__doc__)
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--megabytes", type=int, default=256, help="of each file")
    parser.add_argument("--runs", type=int, default=5, help="of each query in each mode")
    parser.add_argument("--format", choices=("parquet", "orc"), default="parquet")
    args = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 130, highlight=False)
    shutil.rmtree(FOLDER, ignore_errors=True)
    settings = {"spark.sieve.prune.timeout": "10s", "spark.master": "local[2]"}
    spark = start_session(FOLDER, settings)
    rows = args.megabytes * (1 << 20) // ROW_BYTES // GROUPS * GROUPS
    try:
        with console.status("writing the table"):
            write = partial(_write, FOLDER / "data", args.format, rows, args.files)
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(write, range(args.files)))
        builds = _create(spark, args.format)
        queries = list(_queries(args.files, rows))
        measured = [_measure(spark, args.format, one, args.runs) for one in queries]
        _print(console, queries, measured, builds, args.files * rows)
    finally:
        spark.stop()
        shutil.rmtree(FOLDER, ignore_errors=True)


def _ids(number: int, rows: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Unique keys in no order: an odd multiplier permutes the numbers below 2^48."""
    serial = np.arange(number * rows, (number + 1) * rows, dtype=np.uint64)
    mixed = serial * np.uint64(0x9E37_79B9_7F4B) % np.uint64(1 << 48)
    return (mixed ^ (mixed >> np.uint64(24))).astype(np.int64)


def _write(folder: Path, kind: str, rows: int, files: int, number: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(number)
    serial = np.arange(number * rows, (number + 1) * rows)
    late = np.where(random.integers(0, _LATE, rows) == 0, random.integers(0, DAYS // 10, rows), 0)
    day = np.maximum(serial * DAYS // (rows * files) - late, 0).astype(np.int32)
    pad = random.integers(32, 127, rows * 84, np.uint8)
    offsets = np.arange(rows + 1, dtype=np.int64) * 84
    text = pa.LargeStringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(pad))
    table = pa.table({"id": _ids(number, rows), "day": day, "pad": text.cast(pa.string())})
    path = folder / f"part-{number:05d}.{kind}"
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=rows // GROUPS, compression="zstd")
    else:
        po.write_table(table, path, stripe_size=rows * ROW_BYTES // GROUPS, compression="zstd")


def _queries(files: int, rows: int) -> Iterator[Query]:
    random = np.random.default_rng(1)
    keys = [
        int(_ids(int(random.integers(files)), rows)[int(random.integers(rows))]) for _ in range(10)
    ]
    yield Query("unique id, point", f"id = {keys[0]}", pc.field("id") == keys[0])
    some = ", ".join(map(str, keys))
    yield Query("unique id, IN of 10", f"id IN ({some})", pc.field("id").isin(keys))
    first = DAYS // 2
    yield Query(
        "day, range of 0.05 %",
        f"day BETWEEN {first} AND {first + 1}",
        (pc.field("day") >= first) & (pc.field("day") <= first + 1),
    )
    yield Query("nothing to skip", "day >= 0", pc.field("day") >= 0)


def _create(spark: SparkSession, kind: str) -> list[str]:
    """Tables over the same files, and a line on each index."""
    told = []
    for name in ("plain", "files", "ranges"):
        spark.sql(
            f"CREATE TABLE {name} (id BIGINT, day INT, pad STRING) USING {kind} "
            f"LOCATION '{FOLDER / 'data'}'"
        )
    time.sleep(2.1)  # A file is stable two seconds after its last change.
    for name, granularity in (("files", "file"), ("ranges", "auto")):
        for column in ("id", "day"):
            started = time.perf_counter()
            spark.sql(
                f"CREATE SIEVE INDEX ON {name} ({column}) OPTIONS (granularity = '{granularity}')"
            ).collect()
            seconds = time.perf_counter() - started
            (size,) = spark.sql(
                f"SELECT bytes FROM sieve_indexes() WHERE table = '{name}' "
                f"AND index = '{column}_sieve'"
            ).first() or (0,)
            whole = sum(path.stat().st_size for path in (FOLDER / "data").iterdir())
            told.append(
                f"{name} ({column}): built in {seconds:.1f} s, {size / 1e3:,.0f} KB, "
                f"{100 * size / whole:.2f} % of the table"
            )
    return told


def _least(spark: SparkSession, kind: str, query: Query) -> int:
    """Writes the row groups with a match as files of their own; returns their number."""
    folder = FOLDER / "least"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    found = 0
    for path in sorted((FOLDER / "data").iterdir()):
        file = pq.ParquetFile(path) if kind == "parquet" else po.ORCFile(path)
        count = file.num_row_groups if kind == "parquet" else file.nstripes
        for k in range(count):
            group = file.read_row_group(k) if kind == "parquet" else pa.table(file.read_stripe(k))
            if group.filter(query.matches).num_rows:
                out = folder / f"{path.stem}-{k}.{kind}"
                if kind == "parquet":
                    pq.write_table(group, out, compression="zstd")
                else:
                    po.write_table(group, out, compression="zstd")
                found += 1
    spark.sql("DROP TABLE IF EXISTS least")
    spark.sql(
        f"CREATE TABLE least (id BIGINT, day INT, pad STRING) USING {kind} LOCATION '{folder}'"
    )
    return found


def _measure(spark: SparkSession, kind: str, query: Query, runs: int) -> Measured:
    groups = _least(spark, kind, query)
    times: dict[str, list[float]] = {mode: [] for mode in MODES}
    rows: dict[str, int] = {}
    tasks: dict[str, int] = {}
    answers = set()
    for turn in range(runs + 1):
        for mode, conf in MODES.items():
            with with_settings(spark, conf):
                table = "plain" if mode == "Spark" else mode
                started = time.perf_counter()
                frame = spark.sql(f"SELECT count(*), max(pad) FROM {table} WHERE {query.where}")
                answers.add(tuple(frame.collect()[0]))
                if turn:  # The first run of a query compiles it.
                    times[mode].append((time.perf_counter() - started) * 1000)
                rows[mode], tasks[mode] = rows_scanned(frame), scan_tasks(frame)
    assert len(answers) == 1, f"the modes give different rows: {query.where}: {answers}"
    medians = {mode: statistics.median(some) for mode, some in times.items()}
    return Measured(groups, medians, rows, tasks)


def _print(
    console: Console,
    queries: list[Query],
    measured: list[Measured],
    builds: list[str],
    rows: int,
) -> None:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column(f"\n{rows:,} rows", no_wrap=True)
    titles = ["groups\nmatch", *(f"{mode}\nms" for mode in MODES), "times\nSpark", "times\nleast"]
    titles += [f"{mode}\nk rows" for mode in _COUNTED]
    for title in (*titles, *(f"{mode}\ntasks" for mode in ("Spark", "ranges"))):
        table.add_column(title, justify="right", no_wrap=True)
    for query, one in zip(queries, measured, strict=True):
        table.add_row(
            query.title,
            str(one.groups),
            *(f"{one.ms[mode]:,.0f}" for mode in MODES),
            f"{one.ms['Spark'] / one.ms['ranges']:.1f}",
            f"{one.ms['ranges'] / one.ms['least']:.2f}",
            *(f"{one.rows[mode] / 1000:,.0f}" for mode in _COUNTED),
            *(str(one.tasks[mode]) for mode in ("Spark", "ranges")),
        )
    console.print(table)
    for line in builds:
        console.print(f"  [dim]{line}[/dim]")


if __name__ == "__main__":
    main()
