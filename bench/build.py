"""Measures the cost of CREATE SIEVE INDEX for tables of several sizes: ``make bench-build``.

By default, the table has one column of ascending 64-bit keys, but 1 % of the rows have a random
key. The table has a Parquet file for every 100,000 rows, and at most 2,000 files. With
``--scattered``, the keys are unique ids in random order, and the index is a map. Each row then has
50 bytes, and each file has 7,776 rows. With ``--strings``, the keys are the MD5 sums of unique ids,
as text. The benchmark measures each size in a new Spark application. The output shows:

- the seconds of CREATE SIEVE INDEX, and of the query ``SELECT input_file_name(), min(c), max(c)
  FROM t GROUP BY 1``. A build must do at least as much work as the query. Each number is the
  smaller of two runs. The benchmark runs a warm-up before the queries, and a DROP before the second
  CREATE. On a busy machine, CPU seconds are more reliable than wall-clock seconds.
- the seconds that each step of CREATE spends in Spark jobs, and the seconds outside of jobs.
- the peak resident memory (VmHWM) of the driver's JVM, the front end and the largest Python worker,
  before the first CREATE and after the second. The executors run inside the driver's JVM. The JVM's
  peak depends mostly on the heap's maximum size (3 GB), and less on the needs of the build. Spark
  starts one Python worker per core.
- the size of the index in bytes, and the number of files that a query reads, according to DESCRIBE.
- with ``--scattered`` or ``--strings``, the CPU microseconds per key of the whole CREATE, of a
  CREATE without a map (intervals, with a budget of 1 %), and of the tasks that build the map. The
  cost of the map is the difference between the two CREATE statements. To build a map, Spark reads
  the column again and shuffles pairs of a hash and a file. The tasks that build the map also run
  without Spark, in this process, to measure the tasks alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from rich import box
from rich.console import Console
from rich.table import Table

from bench.map import cpu_seconds_of_tasks
from bench.memory import DRIVER, FRONT_END, WORKER, PeakMemory, timed
from bench.session import start_session

SIZES = (10_000_000, 100_000_000)
FOLDER = Path(__file__).resolve().parent.parent / "build" / "bench-build"
ROWS_A_FILE, SCATTERED_A_FILE, MOST_FILES = 100_000, 7_776, 2_000
STEPS = ("counting", "sampling", "reading", "weighing", "writing")
TOLD = (
    "bytes",
    "bytes as share of column",
    "files read for a key that occurs",
    "files read for a key that does not occur",
    "files read for a range of 0.05% of the domain",
)
QUERY = "SELECT input_file_name(), min(c), max(c) FROM t GROUP BY 1"
CREATE = "CREATE SIEVE INDEX ON t (c)"
# With the budget `auto`, a build without a map can make two attempts, and a build with a map makes
# one attempt. With a fixed budget, every build makes one attempt, so the times are comparable.
INTERVALS = "shape = 'intervals', budget = '1%'"
_KEY = "CASE WHEN id % 100 = 7 THEN pmod(xxhash64(id), {rows}) ELSE id END AS c"
# Bytes of disk space per row, including the space that Spark needs to write the table.
_BYTES_A_ROW = {"ascending": 12, "scattered": 64, "strings": 64}
_NUMBER = re.compile(r"[0-9.]+")


@dataclass(frozen=True, slots=True)
class Built:
    """Measurements of one table size.

    Attributes:
        rows, files: the table's number of rows and number of files.
        query: wall-clock seconds of the query for the minimum and maximum key of each file.
        query_cpu: CPU seconds of this query in all processes.
        create: wall-clock seconds of CREATE.
        create_cpu: CPU seconds of CREATE in all processes.
        steps: for each step of CREATE, the seconds of its Spark jobs. The entry ``driver`` is the
            time outside of jobs.
        before: for each role, the peak memory of its largest process before CREATE, in MB.
        after: for each role, the peak memory of its largest process after CREATE, in MB.
        told: a dict from property to number, for the numbers in the answer of DESCRIBE.
        intervals: wall-clock and CPU seconds of a CREATE without a map. Empty if not measured.
        tasks_cpu: CPU seconds of the tasks that build the map, in a run without Spark.
    """

    rows: int
    files: int
    query: float
    query_cpu: float
    create: float
    create_cpu: float
    steps: dict[str, float]
    before: dict[str, float]
    after: dict[str, float]
    told: dict[str, float]
    intervals: tuple[float, ...] = ()
    tasks_cpu: float = 0.0


def main() -> None:
    """Measures each table size and prints one table."""
    parser = argparse.ArgumentParser(prog="python -m bench build", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=list(SIZES))
    keys = parser.add_mutually_exclusive_group()
    for name, of in (
        ("scattered", "unique ids in no order"),
        ("strings", "unique texts, likewise"),
    ):
        keys.add_argument(f"--{name}", action="store_const", const=name, dest="keys", help=of)
    parser.set_defaults(keys="ascending")
    parser.add_argument("--options", default="", help="of CREATE, e.g. \"shape = 'map'\"")
    parser.add_argument("--keep", action="store_true", help=f"leave the tables in {FOLDER}")
    parser.add_argument("--json", type=Path, help="file for all figures")
    parser.add_argument("--side", choices=("write", "measure"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        table = _Table(args.rows[0], args.keys)
        _write(table) if args.side == "write" else _measure(table, args.options)
        return
    console = Console(width=None if sys.stdout.isatty() else 130, highlight=False)
    found = []
    for rows in sorted(args.rows):
        table = _Table(rows, args.keys)
        found.append(_size(table, args.options, console))
        if not args.keep:
            shutil.rmtree(table.folder)
    _print(console, found)
    if args.json:
        args.json.write_text(json.dumps([asdict(one) for one in found], indent=1))


@dataclass(frozen=True, slots=True)
class _Table:
    """The table to index: its number of rows and its kind of keys."""

    rows: int
    keys: str

    @property
    def scattered(self) -> bool:
        """Whether the keys are unique and in random order."""
        return self.keys != "ascending"

    @property
    def folder(self) -> Path:
        return FOLDER / f"{self.keys}-{self.rows}"

    @property
    def files(self) -> int:
        each = SCATTERED_A_FILE if self.scattered else ROWS_A_FILE
        return max(1, min(MOST_FILES, self.rows // each))


def _size(table: _Table, options: str, console: Console) -> Built:
    shutil.rmtree(table.folder / "spark", ignore_errors=True)
    if not (table.folder / "data" / "_SUCCESS").exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(FOLDER).free
        needed = table.rows * _BYTES_A_ROW[table.keys]
        if free < needed:
            raise SystemExit(
                f"{table.rows:,} rows need {needed / 1e9:.1f} GB in {FOLDER}, "
                f"where {free / 1e9:.1f} GB are free; name a smaller size with --rows"
            )
        with console.status(f"writing {table.rows:,} rows"):
            _side("write", table, options)
    with console.status(f"{table.rows:,} rows"):
        tasks_cpu = 0.0
        if table.scattered:
            text = table.keys == "strings"
            tasks_cpu = cpu_seconds_of_tasks(table.rows, table.files, text=text)
        return Built(**json.loads(_side("measure", table, options)), tasks_cpu=tasks_cpu)


def _side(name: str, table: _Table, options: str) -> str:
    """Runs this module with ``--side`` in a new process. Returns the last line of its output."""
    command = [sys.executable, "-m", "bench.build", "--side", name, "--rows", str(table.rows)]
    command += [*([f"--{table.keys}"] if table.scattered else []), "--options", options]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"a Spark failed to {name}; see {table.folder}/spark/spark.log")
    return ended.stdout.strip().rpartition("\n")[2]


# -- in a separate process ------------------------------------------------------------------------


def _write(table: _Table) -> None:
    spark = start_session(table.folder / "spark", {}, indexed=False)
    if table.scattered:
        ids = spark.range(0, table.rows).repartition(table.files, sf.xxhash64("id"))
        # Further columns with hashes bring each row to about 50 bytes. The size of a row matters,
        # because the default budget of an index is a share of the table's bytes.
        text, rest = sf.col("id").cast("string"), sf.xxhash64("id", sf.lit(1)).alias("q")
        if table.keys == "strings":
            keys = ids.select(
                sf.md5(text).alias("c"), sf.xxhash64("id", sf.lit(2)).alias("p"), rest
            )
        else:
            keys = ids.select(
                sf.col("id").alias("c"), sf.unhex(sf.sha2(text, 256)).alias("p"), rest
            )
    else:
        keys = spark.range(0, table.rows, 1, table.files)
        keys = keys.selectExpr(_KEY.format(rows=table.rows))
    # Overwrite mode deletes the files of an interrupted earlier write.
    keys.write.mode("overwrite").parquet((table.folder / "data").as_uri())
    spark.stop()


def _measure(table: _Table, options: str) -> None:
    folder = table.folder
    create_index = f"{CREATE} OPTIONS ({options})" if options else CREATE
    with PeakMemory() as memory:
        spark = start_session(folder / "spark", {})
        path = (folder / "data").as_uri()
        spark.sql(f"CREATE TABLE t USING parquet LOCATION '{path}'")
        spark.sql(QUERY).collect()
        query = min(timed(lambda: spark.sql(QUERY).collect()) for _ in range(2))
        # This statement starts the front end.
        spark.sql("SHOW SIEVE INDEXES ON t").collect()
        before = memory.now()
        first = _create(spark, create_index)
        spark.sql("DROP SIEVE INDEX c_sieve ON t").collect()
        create, steps = min(first, _create(spark, create_index), key=lambda one: one[0])
        after = memory.now()
        told = _properties(spark)
        intervals: tuple[float, ...] = ()
        if table.scattered:
            spark.sql("DROP SIEVE INDEX c_sieve ON t").collect()
            intervals, _ = _create(spark, f"{CREATE} OPTIONS ({INTERVALS})")
        built = asdict(
            Built(table.rows, table.files, *query, *create, steps, before, after, told, intervals)
        )
        del built["tasks_cpu"]
        print(json.dumps(built), flush=True)
        spark.stop()


def _create(spark: SparkSession, statement: str) -> tuple[tuple[float, float], dict[str, float]]:
    """Runs a CREATE. Returns its wall-clock and CPU seconds, and the seconds of each step."""
    known = len(_jobs(spark))
    seconds, cpu = timed(lambda: spark.sql(statement).collect())
    steps: dict[str, float] = {}
    for description, taken in _jobs(spark)[known:]:
        step = description.rpartition("(")[2].rstrip(")")
        steps[step] = steps.get(step, 0.0) + taken
    return (seconds, cpu), steps | {"driver": seconds - sum(steps.values())}


def _jobs(spark: SparkSession) -> list[tuple[str, float]]:
    """The description and the seconds of each Spark job so far, the oldest job first."""
    context: Any = spark.sparkContext._jsc.sc()  # noqa: SLF001 - no public API
    # Spark's status store receives the events of completed jobs with a delay.
    context.listenerBus().waitUntilEmpty()
    found = context.statusStore().jobsList(None)
    jobs = sorted((found.apply(k) for k in range(found.size())), key=lambda job: int(job.jobId()))
    return [
        (
            job.description().get() if job.description().isDefined() else "",
            (job.completionTime().get().getTime() - job.submissionTime().get().getTime()) / 1000,
        )
        for job in jobs
    ]


def _properties(spark: SparkSession) -> dict[str, float]:
    """A dict from property to number, for each value in DESCRIBE that begins with a number."""
    rows = spark.sql("DESCRIBE SIEVE INDEX EXTENDED c_sieve ON t").collect()
    numbers = {name: _NUMBER.match(value) for name, value in rows if name in TOLD}
    return {name: float(number[0].rstrip(".")) for name, number in numbers.items() if number}


# -- the table ------------------------------------------------------------------------------------


def _print(console: Console, found: Sequence[Built]) -> None:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("", no_wrap=True)
    for one in found:
        table.add_column(f"{one.rows / 1e6:g} M rows\n{one.files:,} files", justify="right")
    first = found[0]
    lines: list[tuple[str, Callable[[Built], str]]] = [
        ("least and greatest key of each file, s", lambda one: f"{one.query:.2f}"),
        ("CREATE SIEVE INDEX, s", lambda one: f"{one.create:.2f}"),
        ("  times the query", lambda one: f"{one.create / one.query:.2f}"),
        ("  CPU s of both", lambda one: f"{one.query_cpu:.1f}, {one.create_cpu:.1f}"),
        ("  times the query's CPU", lambda one: f"{one.create_cpu / one.query_cpu:.2f}"),
        ("  ns a row", lambda one: f"{one.create / one.rows * 1e9:.0f}"),
        (
            "  a row, against the first size",
            lambda one: f"{one.create / one.rows / (first.create / first.rows):.2f}",
        ),
    ]
    if all(one.intervals for one in found):
        lines += [
            ("  CPU, us a key", lambda one: _micros(one.create_cpu, one)),
            ("    of intervals alone", lambda one: _micros(one.intervals[1], one)),
            ("    that the map adds", lambda one: _micros(one.create_cpu - one.intervals[1], one)),
            ("    of the map's own tasks", lambda one: _micros(one.tasks_cpu, one)),
        ]
    others = sorted({step for one in found for step in one.steps} - {*STEPS, "driver"})
    lines += [
        (f"  of it {step}, s", lambda one, step=step: f"{one.steps.get(step, 0):.2f}")
        for step in (*others, *STEPS, "driver")
    ]
    lines += [
        (
            f"peak of {role}, MB: before, after",
            lambda one, role=role: f"{one.before[role]:.0f}, {one.after[role]:.0f}",
        )
        for role in (DRIVER, FRONT_END, WORKER)
    ]
    table.add_section()
    for title, cell in lines:
        table.add_row(title, *(cell(one) for one in found))
    for name in TOLD:
        table.add_row(
            name, *(f"{one.told[name]:,.10g}" if name in one.told else "" for one in found)
        )
    console.print(table)
    console.print(f"  load of the machine in the last 5 and 15 minutes: {os.getloadavg()[1:]}")
    console.print()


def _micros(seconds: float, of: Built) -> str:
    return f"{seconds / of.rows * 1e6:.2f}"


if __name__ == "__main__":
    main()
