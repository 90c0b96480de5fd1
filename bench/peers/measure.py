"""Measures each system's queries (files, bytes, time), and the cost of its tables and writes."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession

from bench.answers import same_rows
from bench.memory import read_bytes
from bench.peers.data import Dataset
from bench.peers.queries import Query
from bench.peers.systems import System
from bench.session import files_read, scans_of, with_settings
from bench.task_totals import TaskMeter

_LONG = 10.0
"""If a run takes longer than `_LONG` seconds, the query runs three times instead of `RUNS`."""
RUNS = 7
_METASTORE = "metastore_db"


@dataclass(frozen=True, slots=True)
class QueryCost:
    """Measurements of a query on one system.

    Attributes:
        table, query, system: the names of the table, the query and the system.
        files: the number of files that the query's scans read.
        bytes: the bytes that all processes read to plan and run the query, as the median of the
            runs.
        tasks: the number of tasks of the query's jobs.
        ms: the median milliseconds of a run.
        spread: time of the slowest run, divided by the time of the fastest run.
    """

    table: str
    query: str
    system: str
    files: int
    bytes: int
    tasks: int
    ms: float
    spread: float


@dataclass(frozen=True, slots=True)
class TableCost:
    """Cost of a system's table: seconds to make it, rewritten bytes, and additional bytes."""

    table: str
    system: str
    seconds: float
    rewritten: int
    beside: int


@dataclass(frozen=True, slots=True)
class Written:
    """Measurements of a write to a system's table.

    Attributes:
        system: the system's name.
        kind: kind of write: "append", "update" or "merge".
        seconds: seconds of the statement and of the refresh after the statement.
        read: the bytes that all processes read while the statement ran.
        bytes: the bytes that the statement and the refresh wrote.
        right: whether a query found the new rows before the refresh.
    """

    system: str
    kind: str
    seconds: float
    read: int
    bytes: int
    right: bool


def make(spark: SparkSession, system: System, table: Dataset, root: Path) -> TableCost:
    """Makes a system's table in a new folder below `root`, and measures the cost."""
    before = _sizes(root)
    started = time.perf_counter()
    # Hudi encodes special characters of a folder's name twice, so the name has no special
    # characters.
    own = re.sub(r"\W+", "_", f"{system.name} {table.name}")
    system.make(spark, table, root / "tables" / own)
    took = time.perf_counter() - started
    rewritten = beside = 0
    for path, (size, links) in _sizes(root).items() - before.items():
        if path.suffix == ".parquet" and not _is_metadata(path):
            rewritten += size if links == 1 else 0
        else:
            beside += size
    return TableCost(table.name, system.name, took, rewritten, beside)


def ask(
    spark: SparkSession,
    query: Query,
    table: Dataset,
    asked: Sequence[System],
    versions: Mapping[str, str] | None = None,
) -> Sequence[QueryCost]:
    """Runs a query on each system in turn. An unmeasured first round compares the systems' rows.

    Args:
        spark: the session.
        query: the query.
        table: queried table.
        asked: systems to measure.
        versions: a mapping from a system's name to the SQL text after the table's name; None for no
            text.

    Raises:
        SystemExit: two systems returned different rows.
    """
    meter = TaskMeter(spark)
    expected: Sequence[Row] | None = None
    counted: dict[str, tuple[int, int]] = {}
    read: dict[str, list[int]] = {system.name: [] for system in asked}
    times: dict[str, list[float]] = {system.name: [] for system in asked}
    runs = turn = 0
    while turn == 0 or turn <= runs:
        for system in asked:
            with with_settings(spark, system.settings):
                before, started = read_bytes(), time.perf_counter()
                name = f"{system.of(table.name)} {versions[system.name] if versions else ''}"
                frame = spark.sql(query.text.format(t=name))
                rows = frame.collect()
                took = time.perf_counter() - started
            size = read_bytes() - before
            counted[system.name] = (_files(frame), meter.since_last().tasks)
            expected = rows if expected is None else expected
            if not same_rows(expected, rows):
                raise SystemExit(f"WRONG: other rows by {system.name}: {query.text}")
            if turn:
                times[system.name].append(took)
                read[system.name].append(size)
            runs = max(runs, 3 if took > _LONG else RUNS) if turn == 0 else runs
        turn += 1
    found = []
    for name, each in times.items():
        files, tasks = counted[name]
        # The count of bytes is wrong if a process has started or ended during the run. So this code
        # takes the median of the runs.
        size = int(statistics.median(read[name]))
        ms, spread = statistics.median(each) * 1000, max(each) / min(each)
        found.append(QueryCost(table.name, query.name, name, files, size, tasks, ms, spread))
    return found


def write(
    spark: SparkSession,
    system: System,
    table: str,
    root: Path,
    texts: Mapping[str, tuple[str, str]],
) -> Sequence[Written]:
    """Appends, updates and merges rows of a system's table, and measures the cost of each write.

    Args:
        spark: the session.
        system: system to measure.
        table: the table's name.
        root: folder of all files of the system's tables and indexes.
        texts: for each kind of write, the statement, and a query that counts the new rows. The
            query returns 0 if the new rows are not visible. In the texts, `{t}` stands for the
            table's name.
    """
    written = []
    for kind, (statement, check) in texts.items():
        if kind != "append" and system.version is None:
            continue
        name, before = system.of(table), _sizes(root)
        with with_settings(spark, system.settings):
            begun, started = read_bytes(), time.perf_counter()
            spark.sql(statement.format(t=name)).collect()
            took, read = time.perf_counter() - started, read_bytes() - begun
            ((seen,),) = spark.sql(check.format(t=name)).collect()
            if system.refresh:
                started = time.perf_counter()
                spark.sql(system.refresh.format(name)).collect()
                took += time.perf_counter() - started
        size = sum(size for _, (size, _) in _sizes(root).items() - before.items())
        written.append(Written(system.name, kind, took, read, size, seen > 0))
    return written


def _files(frame: DataFrame) -> int:
    """Number of files that all scans of an executed query read, including Iceberg's scans."""
    total = files_read(frame)
    for scan in scans_of(frame, ("BatchScanExec",)):
        total += scan.metrics().apply("resultDataFiles").value()
    return total


def _is_metadata(path: Path) -> bool:
    return any(
        part.startswith(("_delta_log", ".sieve", "_sieve", ".hoodie")) for part in path.parts
    )


def _sizes(root: Path) -> dict[Path, tuple[int, int]]:
    """A dict from each file of a table or index below a folder to its size and number of links."""
    files = (path for path in root.rglob("*") if path.is_file())
    stats = ((path, path.lstat()) for path in files if _METASTORE not in path.parts)
    return {path: (stat.st_size, stat.st_nlink) for path, stat in stats}
