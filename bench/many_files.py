"""Measures CREATE SIEVE INDEX on tables of many tiny files: ``python -m bench many-files``.

Executors run in separate processes (``local-cluster[2,1,2048]``), so the driver's memory excludes
the executors' memory. The benchmark measures each number of files in a new Spark application. The
table has ascending keys, in Parquet files of ``--rows`` rows. ``--partitions`` is the number of the
table's partitions in the metastore. The output shows the following figures:

- the milliseconds to plan a scan for the first time and later, without and with the index. Without
  the index, the first planning lists the files.
- the seconds of CREATE, and of the query ``SELECT input_file_name(), min(id), max(id) FROM t GROUP
  BY 1``; also the CPU milliseconds of all processes per file, for the statement and for the query.
- the driver's live heap after garbage collections, before and after CREATE. The driver has already
  listed the table's files before CREATE.
- the front end's peak resident memory, and the index's bytes per file.

To see the cost of more keys, run the benchmark again with a hundred times as many ``--rows``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from rich import box
from rich.console import Console
from rich.table import Table

from bench.memory import FRONT_END, PeakMemory, timed
from bench.planning import make_files, planned
from bench.session import start_session

SIZES = (2_000, 20_000, 200_000)
MASTER = "local-cluster[2,1,2048]"
FOLDER = Path(__file__).resolve().parent.parent / "build" / "bench-files"
_PLANS = 10
_QUERY = "SELECT input_file_name(), min(id), max(id) FROM t GROUP BY 1"


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of one table size.

    Attributes:
        files, rows: the table's number of files and number of rows.
        listing, bare: milliseconds to plan a scan without an index, for the first time and later.
        opening, indexed: milliseconds to plan a scan with the index, for the first time and later.
        query, create: wall-clock seconds, and CPU seconds of all processes, as a pair.
        heap: size of the driver's live heap before and after CREATE, in MB.
        front_end: peak memory of the front end before and after CREATE, in MB.
        index: size of the index in bytes.
    """

    files: int
    rows: int
    listing: float
    bare: float
    opening: float
    indexed: float
    query: tuple[float, float]
    create: tuple[float, float]
    heap: tuple[float, float]
    front_end: tuple[float, float]
    index: int


def main() -> None:
    """Measures each number of files and prints one table."""
    parser = argparse.ArgumentParser(prog="python -m bench many-files", description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--rows", type=int, default=4, help="of each file")
    parser.add_argument("--partitions", type=int, default=0, help="of the table; 0: none")
    parser.add_argument("--side", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        _measure(args.side, args.rows, partitioned=args.partitions > 0)
        return
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    found = []
    for files in args.files:
        shutil.rmtree(FOLDER, ignore_errors=True)
        with console.status(f"{files:,} files"):
            make_files(FOLDER / "data", files, args.rows, args.rows)
            _spread(FOLDER / "data", args.partitions)
            command = [sys.executable, "-m", "bench.many_files", "--rows", str(args.rows)]
            command += ["--side", str(files), "--partitions", str(args.partitions)]
            ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if ended.returncode:
            raise SystemExit(f"a Spark failed; see {FOLDER}/spark/spark.log")
        found.append(Measured(**json.loads(ended.stdout.strip().rpartition("\n")[2])))
    shutil.rmtree(FOLDER, ignore_errors=True)
    console.print(by_size(f"{args.rows} rows a file", found, _ROWS))


def _spread(folder: Path, partitions: int) -> None:
    """Distributes the files to the folders of the partitions, if any."""
    for number in range(partitions):
        (folder / f"p={number}").mkdir()
    if partitions:
        for number, file in enumerate(sorted(folder.glob("part-*"))):
            file.rename(folder / f"p={number % partitions}" / file.name)


# -- in a separate process ------------------------------------------------------------------------


def _measure(files: int, rows: int, *, partitioned: bool) -> None:
    with PeakMemory() as memory:
        settings = {"spark.master": MASTER, "spark.pyspark.python": sys.executable}
        # By default, Spark's cache of file listings can use 250 MB. A full cache would hide the
        # smaller amounts of memory that the benchmark measures.
        settings["spark.sql.hive.filesourcePartitionFileCacheSize"] = "1"
        spark = start_session(FOLDER / "spark", settings)
        path = (FOLDER / "data").as_uri()
        columns = "id BIGINT, v BIGINT" + (", p INT" if partitioned else "")
        by = "PARTITIONED BY (p)" if partitioned else ""
        spark.sql(f"CREATE TABLE t ({columns}) USING parquet {by} LOCATION '{path}'")
        if partitioned:
            spark.sql("MSCK REPAIR TABLE t")
        # This job starts the executors, but no Python workers. SHOW starts the front end.
        spark.range(1000).repartition(4).count()
        spark.sql("SHOW SIEVE INDEXES ON t").collect()
        listing, bare = _plans(spark)
        query = timed(lambda: spark.sql(_QUERY).write.format("noop").mode("append").save())
        heap, front_end = live_heap(spark), memory.now()[FRONT_END]
        create = timed(lambda: spark.sql("CREATE SIEVE INDEX ON t (id)").collect())
        opening, indexed = _plans(spark)
        both = (heap, live_heap(spark)), (front_end, memory.now()[FRONT_END])
        (index,) = spark.sql("SELECT bytes FROM sieve_indexes()").collect()[0]
        plans = (listing, bare, opening, indexed)
        one = Measured(files, rows * files, *plans, query, create, *both, index)
        print(json.dumps(asdict(one)))
        spark.stop()


def _plans(spark: SparkSession) -> tuple[float, float]:
    """Milliseconds to plan the next scan for one key, and the median of later scans."""
    times = [planned(spark, f"SELECT * FROM t WHERE id = {key}") for key in range(_PLANS)]
    return times[0], statistics.median(times[_PLANS // 2 :])


def live_heap(spark: SparkSession) -> float:
    """Size of the live objects in the driver's heap, in MB, after a garbage collection."""
    jvm: Any = spark._jvm  # noqa: SLF001 - no public API
    runtime = jvm.java.lang.Runtime.getRuntime()
    jvm.java.lang.System.gc()
    return float((runtime.totalMemory() - runtime.freeMemory()) / 1e6)


# -- the table ------------------------------------------------------------------------------------


def by_size(title: str, found: Sequence[Any], rows: Mapping[str, Callable[[Any], str]]) -> Table:
    """A printed table with one column for each number of files."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column(title, no_wrap=True)
    for one in found:
        table.add_column(f"{one.files:,} files", justify="right")
    for name, cell in rows.items():
        table.add_row(name, *map(cell, found))
    return table


_ROWS: Final[Mapping[str, Callable[[Measured], str]]] = {
    "first plan of a scan, which lists, ms": lambda one: f"{one.listing:,.0f}",
    "a later one, ms": lambda one: f"{one.bare:,.0f}",
    "first plan with the index, ms": lambda one: f"{one.opening:,.0f}",
    "a later one with it, ms": lambda one: f"{one.indexed:,.0f}",
    "least and greatest key of each file, s": lambda one: f"{one.query[0]:.1f}",
    "CPU of the query, ms a file": lambda one: f"{one.query[1] / one.files * 1e3:.1f}",
    "CREATE SIEVE INDEX, s": lambda one: f"{one.create[0]:.1f}",
    "CPU of CREATE, ms a file": lambda one: f"{one.create[1] / one.files * 1e3:.1f}",
    "driver's heap before and after, MB": lambda one: "{:.0f}, {:.0f}".format(*one.heap),
    "front end's peak before and after, MB": lambda one: "{:.0f}, {:.0f}".format(*one.front_end),
    "index, bytes a file": lambda one: f"{one.index / one.files:.1f}",
}


if __name__ == "__main__":
    main()
