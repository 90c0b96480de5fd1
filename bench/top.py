"""Measures top-k queries, MIN and MAX: ``make bench-topk``.

The table has 1,000 files in order of arrival, and the ids of the rows ascend. In 2 % of the rows,
the time is up to thirty minutes earlier than in the neighbouring rows. Amounts and keys are random.
Each query runs in turn with Spark alone (``spark.sieve.enabled = false``) and with Sieve. The lower
bound is the number of files that contain a row of the result, or a row with an equal sort key. The
benchmark gets this number from ``_metadata.file_path``.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from rich import box
from rich.console import Console
from rich.table import Table

from bench.answers import same_first_column
from bench.in_turns import in_turns
from bench.session import SWITCH, start_session, with_settings

FILES = 1_000
FOLDER = Path(__file__).resolve().parent.parent / "build" / "bench-top"
MODES = {"Spark alone": {SWITCH: "false"}, "Sieve": {"spark.sieve.strict": "true"}}


@dataclass(frozen=True, slots=True)
class Query:
    """A query, and a predicate for the rows of its result and all rows with equal sort keys."""

    text: str
    rows: str


QUERIES = {
    "the 10 latest": Query(
        "SELECT arrived, id, amount FROM events ORDER BY arrived DESC LIMIT 10",
        "arrived >= (SELECT min(x) FROM (SELECT arrived x FROM events ORDER BY x DESC LIMIT 10))",
    ),
    "the 10 first": Query(
        "SELECT arrived, id, amount FROM events ORDER BY arrived LIMIT 10",
        "arrived <= (SELECT max(x) FROM (SELECT arrived x FROM events ORDER BY x LIMIT 10))",
    ),
    "10 by random keys": Query(
        "SELECT key, id, amount FROM events ORDER BY key DESC LIMIT 10",
        "key >= (SELECT min(x) FROM (SELECT key AS x FROM events ORDER BY x DESC LIMIT 10))",
    ),
    "a page of 10": Query(
        "SELECT id, amount FROM events WHERE id > 5000000 ORDER BY id LIMIT 10",
        "id BETWEEN 5000001 AND 5000010",
    ),
    "min and max": Query(
        "SELECT min(arrived), max(arrived) FROM events",
        "arrived IN ((SELECT min(arrived) FROM events), (SELECT max(arrived) FROM events))",
    ),
    "no bound: a filter of no index": Query(
        "SELECT arrived, id FROM events WHERE amount < 500 ORDER BY arrived, id LIMIT 10",
        "amount < 500",
    ),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of a query.

    Attributes:
        least: number of files that contain a row of the result, or a row with an equal sort key.
        files: number of files read in each mode.
        ms: median milliseconds in each mode.
    """

    least: int
    files: dict[str, int]
    ms: dict[str, float]


def main() -> None:
    """Measures every query and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m bench top", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000, help="of each file")
    parser.add_argument("--runs", type=int, default=5, help="of each query in each mode")
    args = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 130, highlight=False)
    shutil.rmtree(FOLDER, ignore_errors=True)
    # This time-out suffices on a busy machine. In strict mode, a query fails after a time-out.
    spark = start_session(FOLDER, {"spark.sieve.prune.timeout": "10s"})
    try:
        with console.status("writing the table"):
            _create(spark, args.rows)
        measured = {title: _measure(spark, query, args.runs) for title, query in QUERIES.items()}
    finally:
        spark.stop()
        shutil.rmtree(FOLDER, ignore_errors=True)
    _print(console, measured, args.rows * FILES)


def _create(spark: SparkSession, rows: int) -> None:
    late = "IF(pmod(xxhash64(id, 1), 50) = 0, pmod(xxhash64(id, 2), 1800), 0)"
    spark.sql(
        "CREATE TABLE events USING parquet AS SELECT id, "
        f"timestamp_seconds(1700000000 + id DIV 4 - {late}) AS arrived, xxhash64(id, 4) AS key, "
        f"pmod(xxhash64(id, 3), 100000) / 100 AS amount FROM range(0, {rows * FILES}, 1, {FILES})"
    )
    spark.sql("CREATE SIEVE INDEX ON events (arrived, id, key)").collect()


def _measure(spark: SparkSession, query: Query, runs: int) -> Measured:
    with with_settings(spark, MODES["Spark alone"]):
        found = spark.sql(
            f"SELECT count(DISTINCT _metadata.file_path) FROM events WHERE {query.rows}"
        ).first()
    assert found is not None
    turns = in_turns(spark, query.text, MODES, runs, same_first_column)
    assert turns.differing is None, f"the modes give different rows: {query.text}"
    return Measured(found[0], turns.files, turns.ms)


def _print(console: Console, measured: dict[str, Measured], rows: int) -> None:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column(f"\n{rows:,} rows in {FILES:,} files", no_wrap=True)
    titles = ("hold one of\nthe rows", "Sieve\nreads", "Spark\nms", "Sieve\nms", "times\nSpark")
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    for title, one in measured.items():
        spark, sieve = (one.ms[mode] for mode in MODES)
        table.add_row(
            title,
            f"{one.least:,}",
            f"{one.files['Sieve']:,}",
            f"{spark:,.0f}",
            f"{sieve:,.0f}",
            f"{spark / sieve:.1f}",
        )
    console.print(table)


if __name__ == "__main__":
    main()
