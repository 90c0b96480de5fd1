"""Demo: Sieve on Hudi tables of TPC-H's orders, with updates, a compaction and time travel.

A copy-on-write table and a merge-on-read table contain the same orders. In each table, the file
slices are in order of arrival, and 2 % of the orders arrive late. After each change of a table, the
same queries run without and with the index. The queries read the current snapshot, and the snapshot
of the first commit. Each query must return the same rows without and with the index.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession
from rich import box
from rich.console import Console
from rich.table import Table

from bench.hudi_session import (
    HOME,
    KINDS,
    QUIET,
    compact,
    fill,
    instants,
    settings,
    start_hudi_session,
)
from bench.session import SWITCH, files_read
from bench.tpch import generate

SLICES = 40
FOLDER = HOME / "build" / "demo-hudi"
_COLUMNS = "o_orderkey, o_custkey, o_orderstatus, o_totalprice, o_orderdate"
_ARRIVAL = (
    "CASE WHEN pmod(hash(o_orderkey), 50) = 0 THEN o_orderdate + pmod(hash(o_orderkey, 1), 700) "
    "ELSE o_orderdate END"
)
_TYPES = (
    "o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus STRING, o_totalprice DECIMAL(15,2), "
    "o_orderdate DATE, version BIGINT"
)


class Demo:
    """Runs the demo's steps, and prints the progress."""

    def __init__(self, console: Console, spark: SparkSession) -> None:
        self.console = console
        self.spark = spark

    def run(self, orders: Path) -> None:
        """Creates the two tables, and runs all changes and queries on each table."""
        self.spark.read.parquet(str(orders)).createOrReplaceTempView("raw")
        for kind, words in KINDS.items():
            self.console.print(f"\n  [bold]orders_{kind}[/bold], {words}")
            self._story(f"orders_{kind}", kind)

    def _story(self, name: str, kind: str) -> None:
        self._step("created", lambda: self._create(name, kind))
        index = f"CREATE SIEVE INDEX ON {name} (o_orderkey, o_orderdate)"
        self._step(index, lambda: self.spark.sql(index).collect())
        table = _table()
        self._ask(table, "as loaded", name)
        update = (
            f"UPDATE {name} SET o_orderstatus = 'X', version = 2 "
            "WHERE o_orderdate BETWEEN '1996-03-01' AND '1996-03-31'"
        )
        self._step(update, lambda: self.spark.sql(update))
        self._ask(table, "updated", name)
        refresh = f"REFRESH SIEVE INDEX ON {name}"
        self._step(refresh, lambda: self.spark.sql(refresh).collect())
        self._ask(table, "refreshed", name)
        if kind == "mor":
            self._step("compaction", lambda: compact(self.spark, name))
            self._step(refresh, lambda: self.spark.sql(refresh).collect())
            self._ask(table, "compacted, refreshed", name)
        self.console.print(table)

    def _step(self, title: str, work: Callable[[], object]) -> None:
        """Runs a step, and prints a line with the step's time."""
        started = time.monotonic()
        with self.console.status(title):
            work()
        self.console.print(
            f"  [green]✓[/green] {title} [dim]{time.monotonic() - started:.1f} s[/dim]"
        )

    def _create(self, name: str, kind: str) -> None:
        own = {"type": kind, "primaryKey": "o_orderkey", "preCombineField": "version"} | QUIET
        told = ", ".join(f"'{key}' = '{value}'" for key, value in own.items())
        self.spark.sql(f"CREATE TABLE {name} ({_TYPES}) USING hudi TBLPROPERTIES ({told})")
        fill(
            self.spark,
            name,
            f"SELECT {_COLUMNS}, 1 AS version FROM (SELECT /*+ REPARTITION_BY_RANGE({SLICES}, "
            f"arrival) */ {_COLUMNS}, {_ARRIVAL} AS arrival FROM raw)",
        )

    def _ask(self, table: Table, when: str, name: str) -> None:
        """Runs every query on the current and the first snapshot. Adds the results to a table."""
        first = instants(self.spark, name)[0]
        key = self.spark.sql("SELECT max(o_orderkey) FROM raw").collect()[0][0] // 64 * 32 + 1
        for words, then in (("now", ""), ("first commit", f"TIMESTAMP AS OF '{first}'")):
            for where in (
                f"o_orderkey = {key}",
                "o_orderdate = '1996-03-15'",
                "o_orderdate BETWEEN '1994-05-02' AND '1994-05-04'",
            ):
                query = f"SELECT {_COLUMNS} FROM {name} {then} WHERE {where}"
                without, off = self._slices(query, on=False)
                with_, on = self._slices(query, on=True)
                if without != with_:
                    raise SystemExit(f"WRONG: other rows with the index than without\n  {query}")
                found = f"{sum(with_.values()):,} [green]✓[/green]"
                table.add_row(when, words, where, str(off), f"[bold cyan]{on}[/bold cyan]", found)
        table.add_section()

    def _slices(self, query: str, *, on: bool) -> tuple[Counter[str], int]:
        self.spark.conf.set(SWITCH, str(on).lower())
        # Turns Hudi's own data skipping off, so that only the index skips slices.
        with settings(self.spark, hoodie__enable__data__skipping="false"):
            frame = self.spark.sql(query)
            rows = Counter(map(repr, frame.collect()))
        return rows, files_read(frame)


def _table() -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for title in ("\nthe table is", "\nas of", "\nWHERE"):
        table.add_column(title, no_wrap=True)
    for title in ("slices\nread", "[bold cyan]Sieve\nreads[/bold cyan]", "same\nrows"):
        table.add_column(title, justify="right", no_wrap=True)
    return table


def main() -> None:
    """Runs all steps of the demo."""
    parser = argparse.ArgumentParser(prog="make demo-hudi ARGS=...", description=__doc__)
    parser.add_argument(
        "--scale", type=float, default=0.1, help="TPC-H scale factor (default: 0.1)"
    )
    scale = parser.parse_args().scale
    if scale <= 0:
        parser.error("--scale is a number above 0")
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    started = time.monotonic()
    console.print(f"\n[bold]Sieve[/bold] on Hudi tables: TPC-H orders at scale {scale}")
    orders = generate(FOLDER / f"scale-{scale}", "orders", scale)
    for old in ("metastore_db", "spark-warehouse"):
        shutil.rmtree(FOLDER / old, ignore_errors=True)
    spark = start_hudi_session(FOLDER)
    try:
        Demo(console, spark).run(orders)
    finally:
        spark.stop()
    console.print(f"\n[dim]Done in {time.monotonic() - started:.0f} s.[/dim]")


if __name__ == "__main__":
    main()
