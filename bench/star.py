"""Measures joins of a star schema in which join keys select files: ``make bench-joins``.

The fact table ``sales`` has 200 files in order of arrival. Rows arrive in order of their day, but 2
% of the rows arrive up to thirty days late. Each row has a random customer. The dimension tables
are ``days`` and ``customers``. Each query runs in turn in the three modes that `bench.joins`
describes. The output counts only the files of ``sales``. The lower bound is the number of files
that contain a row of the join's result. The benchmark gets this number from
``_metadata.file_path``.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from rich import box
from rich.console import Console
from rich.table import Table

from bench.in_turns import in_turns
from bench.join_modes import MODES
from bench.session import files_read, start_session, with_settings

FILES = 200
DAYS = 4_000
CUSTOMERS = 100_000
FOLDER = Path(__file__).resolve().parent.parent / "build" / "bench-joins"
# The filter ``kind = 'fair'`` selects four of 4,000 days, so it selects a thousandth of the rows.
QUERIES = {
    "star, 0.1 % of the rows": "sales JOIN days ON sales.day = days.day WHERE days.kind = 'fair'",
    "star with two dimensions": (
        "sales JOIN days ON sales.day = days.day JOIN customers "
        "ON sales.customer = customers.customer WHERE days.kind = 'fair' AND customers.city = 7"
    ),
    "IN (SELECT ...)": "sales WHERE day IN (SELECT day FROM days WHERE kind = 'fair')",
    "customers at random": (
        "sales JOIN customers ON sales.customer = customers.customer WHERE customers.city = 7"
    ),
    "= (SELECT max ...)": "sales WHERE day = (SELECT max(day) FROM days WHERE kind = 'fair')",
    "nothing to skip": "sales JOIN days ON sales.day = days.day WHERE days.kind = 'plain'",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of a query.

    Attributes:
        least: number of files that contain a row of the join's result.
        files: number of files read in each mode.
        ms: median milliseconds in each mode.
    """

    least: int
    files: dict[str, int]
    ms: dict[str, float]


def measure(console: Console, rows: int, runs: int) -> None:
    """Measures every query and prints a table.

    Args:
        console: console on which the function prints the table.
        rows: number of rows of each file.
        runs: number of runs of each query in each mode.
    """
    shutil.rmtree(FOLDER, ignore_errors=True)
    # This time-out suffices on a busy machine. In strict mode, a query fails after a time-out.
    spark = start_session(FOLDER, {"spark.sieve.prune.timeout": "10s"})
    try:
        with console.status("writing the tables"):
            _create(spark, rows)
        measured = {title: _measure(spark, query, runs) for title, query in QUERIES.items()}
    finally:
        spark.stop()
        shutil.rmtree(FOLDER, ignore_errors=True)
    _print(console, measured, rows * FILES)


def _create(spark: SparkSession, rows: int) -> None:
    total = rows * FILES
    late = "IF(pmod(xxhash64(id, 1), 50) = 0, pmod(xxhash64(id, 2), 30), 0)"
    spark.sql(
        f"CREATE TABLE sales USING parquet AS SELECT id, "
        f"CAST(greatest(id * {DAYS} DIV {total} - {late}, 0) AS INT) AS day, "
        f"CAST(pmod(xxhash64(id), {CUSTOMERS}) AS INT) AS customer, "
        f"pmod(xxhash64(id, 3), 100000) / 100 AS amount FROM range(0, {total}, 1, {FILES})"
    )
    spark.sql(
        "CREATE TABLE days USING parquet AS SELECT CAST(id AS INT) AS day, "
        f"IF(id % 1000 = 500, 'fair', 'plain') AS kind FROM range({DAYS})"
    )
    spark.sql(
        "CREATE TABLE customers USING parquet AS SELECT CAST(id AS INT) AS customer, "
        f"CAST(id % 10000 AS INT) AS city FROM range({CUSTOMERS})"
    )
    spark.sql("CREATE SIEVE INDEX ON sales (day, customer)").collect()


def _measure(spark: SparkSession, query: str, runs: int) -> Measured:
    with with_settings(spark, MODES["Spark alone"]):
        found = spark.sql(f"SELECT count(DISTINCT sales._metadata.file_path) FROM {query}").first()
        others = files_read_of_others(spark, query)
    assert found is not None
    turns = in_turns(spark, f"SELECT count(*), sum(amount) FROM {query}", MODES, runs)
    assert turns.differing is None, f"the modes give different rows: {query}"
    files = {mode: count - others for mode, count in turns.files.items()}
    return Measured(found[0], files, turns.ms)


def files_read_of_others(spark: SparkSession, query: str) -> int:
    """Number of files of dimension tables that a query reads, the same in all modes."""
    frame = spark.sql(f"SELECT count(*), sum(amount) FROM {query}")
    frame.collect()
    return files_read(frame) - FILES


def _print(console: Console, measured: dict[str, Measured], rows: int) -> None:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column(f"\n{rows:,} rows in {FILES} files", no_wrap=True)
    titles = ("hold a\npartner", "constants\nread", "Sieve\nreads", "Spark\nms", "constants\nms")
    for title in (*titles, "Sieve\nms", "times\nSpark", "times\nconstants"):
        table.add_column(title, justify="right", no_wrap=True)
    for title, one in measured.items():
        spark, constants, sieve = (one.ms[mode] for mode in MODES)
        table.add_row(
            title,
            str(one.least),
            str(one.files["constants"]),
            str(one.files["Sieve"]),
            *(f"{ms:,.0f}" for ms in (spark, constants, sieve)),
            f"{spark / sieve:.2f}",
            f"{constants / sieve:.2f}",
        )
    console.print(table)
