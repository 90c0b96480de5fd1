"""Compares Sieve with Delta's own ways to skip files: files read, bytes read, and time.

The tables are the demo's two lineitem tables, converted to Delta with statistics. Each table has
400 files, in order of arrival or of order keys, with 2 % late rows. The demo's queries run on these
tables with Delta alone and with Sieve. The queries also run on two rewritten copies of each table,
with about the same number of files. One copy is Z-ordered by the queried columns, and one copy is
liquid-clustered by the queried columns. All ways to skip must return the same rows. For each query,
the output shows the number of files read, and the number of files with a matching row. A last line
lists the queries that are slower with Sieve than with Delta alone, by more than the spread of
Delta's times.

Then UPDATE and MERGE statements select rows by order keys and change them. Each statement runs
without and with the index in turn. After each statement with the index, a REFRESH runs. After each
statement, the benchmark restores the table. At the end, queries read the table's first version. All
times are medians.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from rich import box
from rich.console import Console
from rich.table import Table

from bench.delta_session import HOME, convert, passing_session, rewrite
from bench.demo import Demo
from bench.lineitem import BY_DATE, BY_ORDER, ORDERS_PER_SCALE, order_key
from bench.queries import Query, demo_queries
from bench.session import SWITCH, bytes_read, files_read

FOLDER = HOME / "build" / "bench-delta"
KEYS = {BY_DATE: "l_shipdate, l_receiptdate", BY_ORDER: "l_orderkey"}
_WAYS = {
    "Delta alone": ("", False),
    "Z-ordered": ("_zorder", False),
    "liquid clustering": ("_liquid", False),
    "Sieve": ("", True),
}
"""For each way to skip files: the suffix of the table's name, and whether Sieve is on."""


@dataclass(slots=True)
class Measured:
    """Measurements of a query with one way to skip: files read, bytes read, and seconds."""

    files: int = 0
    bytes: int = 0
    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Median of the runs' seconds."""
        return statistics.median(self.seconds)

    def is_slower(self, other: Measured) -> bool:
        """Returns whether this way is slower than `other` by more than the spread of `other`."""
        return self.median - other.median > max(other.seconds) - min(other.seconds)

    @property
    def cells(self) -> tuple[str, str, str]:
        """The printed table's cells for this way: files, megabytes and milliseconds."""
        return str(self.files), f"{self.bytes / 1e6:,.1f}", f"{self.median * 1000:,.0f}"


class Bench:
    """Creates the Delta tables and measures queries and commits on them."""

    def __init__(self, spark: SparkSession, console: Console, scale: int, rounds: int) -> None:
        self.spark = spark
        self.console = console
        self.scale = scale
        self.rounds = rounds

    def make(self) -> Table:
        """Creates all tables and indexes.

        Returns a table with the seconds that each creation took.
        """
        shown = Table(box=box.SIMPLE, title="made")
        for column in ("", "s", "files", "index KB"):
            shown.add_column(column, justify="right" if column else "left")
        data = Demo(self.console, self.scale).data()
        for table, keys in KEYS.items():
            convert(self.spark, table, data[table], FOLDER / table)
            zorder, liquid = table + "_zorder", table + "_liquid"
            for copy, *statements in (
                (zorder, f"OPTIMIZE {zorder} ZORDER BY ({keys})"),
                (liquid, f"ALTER TABLE {liquid} CLUSTER BY ({keys})", f"OPTIMIZE {liquid} FULL"),
            ):
                started = time.perf_counter()
                rewrite(self.spark, table, copy, *statements)
                took = time.perf_counter() - started
                shown.add_row(f"{copy} ({keys})", f"{took:.1f}", str(self._files(copy)), "")
            took = self._timed(f"CREATE SIEVE INDEX ON {table} ({keys})")
            indexes = self.spark.sql(f"SHOW SIEVE INDEXES ON {table}").collect()
            size = sum(row["bytes"] for row in indexes)
            name = f"{table}: Sieve ({keys})"
            shown.add_row(name, f"{took:.1f}", str(self._files(table)), f"{size / 1000:,.0f}")
        return shown

    def queries(self) -> Table:
        """Runs the demo's queries with each way to skip. Returns a table of the measurements."""
        shown = Table(box=box.SIMPLE, title="queries")
        shown.add_column("", no_wrap=True)
        shown.add_column("hold a\nmatch", justify="right")
        for way in _WAYS:
            for column in (f"{way}\nfiles", "\nMB", "\nms"):
                shown.add_column(column, justify="right")
        slower: list[str] = []
        for query in (q for q in demo_queries(self.scale) if q.table in KEYS):
            measured = self.measure(query, {
                way: (query.sql.replace(query.table, query.table + end, 1), on)
                for way, (end, on) in _WAYS.items()
            })  # fmt: skip
            cells = (c for one in measured.values() for c in one.cells)
            shown.add_row(query.title, str(self._holding(query)), *cells)
            if measured["Sieve"].is_slower(measured["Delta alone"]):
                slower.append(query.title)
        shown.caption = _slower(slower)
        return shown

    def commits(self) -> Table:
        """Selects rows by key and changes them, without and with the index.

        Returns a table of the seconds that each change took.

        After each change with the index, a REFRESH runs.
        """
        shown = Table(box=box.SIMPLE, title=f"commits to {BY_ORDER}")
        for column in ("", "files\nremoved", "files\nadded", "without\ns", "with\ns", "REFRESH\ns"):
            shown.add_column(column, justify="right" if column else "left")
        orders = ORDERS_PER_SCALE * self.scale
        ten = ", ".join(str(order_key(orders * k // 11)) for k in range(1, 11))
        low, high = order_key(orders // 2), order_key(orders // 2 + orders // 100)
        self._make_source("ten_orders", f"l_orderkey IN ({ten})")
        self._make_source("many_orders", f"l_orderkey BETWEEN {low} AND {high}")
        merge = (
            f"MERGE INTO {BY_ORDER} t USING {{}} s "
            "ON t.l_orderkey = s.l_orderkey AND t.l_linenumber = s.l_linenumber "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        update = f"UPDATE {BY_ORDER} SET l_comment = 'new' WHERE l_orderkey IN ({ten})"
        for vectors in ("", ", vectors"):
            if vectors:
                self.spark.sql(
                    f"ALTER TABLE {BY_ORDER} SET TBLPROPERTIES "
                    "('delta.enableDeletionVectors' = 'true')"
                )
            for title, statement in (
                ("UPDATE of ten orders", update),
                ("MERGE of ten orders", merge.format("ten_orders")),
                ("MERGE of 1 % of the rows", merge.format("many_orders")),
            ):
                shown.add_row(title + vectors, *self._commit(statement))
        return shown

    def travel(self) -> Table:
        """Queries the table's first version without and with the index. Returns a table."""
        shown = Table(box=box.SIMPLE, title=f"{BY_ORDER} VERSION AS OF 0")
        for column in ("", "Delta alone\nfiles", "\nMB", "\nms", "Sieve\nfiles", "\nMB", "\nms"):
            shown.add_column(column, justify="right" if column else "left")
        slower: list[str] = []
        for query in (q for q in demo_queries(self.scale) if q.table == BY_ORDER):
            past = query.sql.replace(BY_ORDER, f"{BY_ORDER} VERSION AS OF 0", 1)
            measured = self.measure(query, {"off": (past, False), "on": (past, True)})
            shown.add_row(query.title, *(c for one in measured.values() for c in one.cells))
            if measured["on"].is_slower(measured["off"]):
                slower.append(query.title)
        shown.caption = _slower(slower)
        return shown

    def measure(self, query: Query, ways: dict[str, tuple[str, bool]]) -> dict[str, Measured]:
        """Runs a query with each way in turn, after a warm-up round.

        Exits if two ways to skip return different rows.
        """
        measured = {way: Measured() for way in ways}
        rows: dict[str, Counter[str]] = {}
        for number in range(self.rounds + 1):
            for way, (text, on) in ways.items():
                self.spark.conf.set(SWITCH, str(on).lower())
                started = time.perf_counter()
                frame = self.spark.sql(text)
                found = frame.collect()
                took = time.perf_counter() - started
                rows[way] = Counter(map(repr, found))
                one = measured[way]
                one.files, one.bytes = files_read(frame), bytes_read(frame)
                if number:
                    one.seconds.append(took)
        self.spark.conf.set(SWITCH, "true")
        if any(other != rows[next(iter(ways))] for other in rows.values()):
            raise SystemExit(f"WRONG: other rows by one of {list(ways)}: {query.sql}")
        return measured

    def _commit(self, statement: str) -> Sequence[str]:
        """Runs a statement in turn without and with the index.

        Restores the table after each run.
        """
        seconds: dict[str, list[float]] = {"off": [], "on": [], "refresh": []}
        version = self._newest()["version"]
        for number in range(self.rounds):
            # A second run finds more data in Delta's caches than a first run. So the order of the
            # two runs alternates.
            for way in ("off", "on") if number % 2 == 0 else ("on", "off"):
                self.spark.conf.set(SWITCH, str(way == "on").lower())
                seconds[way].append(self._timed(statement))
                metrics = self._newest()["operationMetrics"]
                if way == "on":
                    seconds["refresh"].append(self._timed(f"REFRESH SIEVE INDEX ON {BY_ORDER}"))
                self.spark.sql(f"RESTORE TABLE {BY_ORDER} TO VERSION AS OF {version}").collect()
                # Indexes the restored files before the next run.
                self.spark.sql(f"REFRESH SIEVE INDEX ON {BY_ORDER}").collect()
        self.spark.conf.set(SWITCH, "true")
        removed = metrics.get("numRemovedFiles", metrics.get("numTargetFilesRemoved"))
        added = metrics.get("numAddedFiles", metrics.get("numTargetFilesAdded"))
        return (removed, added, *(f"{statistics.median(took):.1f}" for took in seconds.values()))

    def _newest(self) -> dict[str, object]:
        return self.spark.sql(f"DESCRIBE HISTORY {BY_ORDER} LIMIT 1").collect()[0].asDict()

    def _make_source(self, name: str, where: str) -> None:
        self.spark.sql(
            f"CREATE TABLE {name} USING parquet AS SELECT /*+ COALESCE(1) */ * "
            f"FROM {BY_ORDER} WHERE {where}"
        )

    def _holding(self, query: Query) -> int:
        """Number of files that contain a row that satisfies the query's conditions."""
        holding = "SELECT count(DISTINCT _metadata.file_path) FROM {} WHERE {}"
        ((files,),) = self.spark.sql(holding.format(query.table, query.where)).collect()
        return int(files)

    def _files(self, table: str) -> int:
        return int(self.spark.sql(f"DESCRIBE DETAIL {table}").collect()[0]["numFiles"])

    def _timed(self, statement: str) -> float:
        started = time.perf_counter()
        self.spark.sql(statement).collect()
        return time.perf_counter() - started


def _slower(titles: Sequence[str]) -> str:
    """Caption that lists the queries that are slower with Sieve."""
    return f"slower with Sieve than with Delta alone: {', '.join(titles) or 'none'}"


def main() -> None:
    """Runs all measurements and prints their tables."""
    parser = argparse.ArgumentParser(prog="make bench-delta ARGS=...", description=__doc__)
    parser.add_argument("--scale", type=int, default=1, help="TPC-H scale factor (default: 1)")
    parser.add_argument(
        "--rounds", type=int, default=5, help="runs of each query and commit (default: 5)"
    )
    args = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 150, highlight=False)
    with passing_session(FOLDER) as spark:
        bench = Bench(spark, console, args.scale, args.rounds)
        for measure in (bench.make, bench.queries, bench.commits, bench.travel):
            console.print(measure())


if __name__ == "__main__":
    main()
