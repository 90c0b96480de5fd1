"""Iceberg tables: bytes read and time of Iceberg alone, its Bloom filters, and Sieve.

The table has 200 files in order of arrival. 2 % of the rows have an id and a code of another time,
so each file has nearly the whole range of ids, and Iceberg's bounds skip no file. A copy of the
table has Parquet Bloom filters on the same columns. Each query runs by every way in turn, and every
way must return the same rows. The first run is a warm-up; times are medians of the other runs.
Bytes are the input of all tasks, with footers and Bloom filters.

At the end, a MERGE of 100 keys runs, copy-on-write and merge-on-read. The table is rolled back
after each run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession
from rich import box
from rich.console import Console
from rich.table import Table

from bench.session import SWITCH, start_session
from bench.task_totals import COUNTED_READS, TaskMeter
from sieve.client.spark_home import find_spark
from sql_ext.launcher.launch import ICEBERG_PACKAGES, iceberg_settings, shipped_settings

HOME = Path(__file__).resolve().parent.parent
FOLDER = HOME / "build" / "bench-iceberg"
FILES = 200
KEYS = ("id", "person", "code")
WAYS = {
    "Iceberg alone": ("events", False),
    "Bloom filters": ("events_bloom", False),
    "Sieve": ("events", True),
}
"""For each way to skip: its table, and true if the index is on."""


@dataclass(slots=True)
class Measured:
    """The bytes that a statement read by one way, and the milliseconds of each run."""

    bytes: int = 0
    ms: list[float] = field(default_factory=list)

    @property
    def cells(self) -> tuple[str, str]:
        """The cells of the printed table: megabytes, milliseconds."""
        return f"{self.bytes / 1e6:,.2f}", f"{statistics.median(self.ms):,.0f}"


class Bench:
    """The tables, and the measurements on them."""

    def __init__(self, spark: SparkSession, rows: int, runs: int) -> None:
        self.spark = spark
        self.rows = rows
        self.runs = runs
        self.meter = TaskMeter(spark)

    def make(self) -> Table:
        """Creates the tables and the indexes, and prints their bytes."""
        late = f"IF(pmod(xxhash64(id, 1), 50) = 0, pmod(xxhash64(id, 2), {self.rows}), id)"
        select = (
            f"SELECT n AS id, pmod(xxhash64(n DIV 200, 3), 1000000) AS person, "
            "concat('c-', lpad(n DIV 100, 8, '0')) AS code, pmod(xxhash64(n, 4), 100000) "
            f"AS amount, sha2(string(n), 256) AS text FROM (SELECT {late} AS n "
            f"FROM range(0, {self.rows}, 1, {FILES}))"
        )
        blooms = {f"write.parquet.bloom-filter-enabled.column.{key}": "true" for key in KEYS}
        # By default, a Bloom filter has a megabyte. Here it has 10 bits a row.
        blooms["write.parquet.bloom-filter-max-bytes"] = str(self.rows // FILES * 10 // 8)
        shown = Table(box=box.SIMPLE, title=f"{self.rows:,} rows in {FILES} files")
        shown.add_column("")
        shown.add_column("MB", justify="right")
        for name, properties in (("events", {}), ("events_bloom", blooms)):
            own = {"write.distribution-mode": "none", **properties}
            told = ", ".join(f"'{key}' = '{value}'" for key, value in own.items())
            self.spark.sql(f"CREATE TABLE {name} USING iceberg TBLPROPERTIES ({told}) AS {select}")
            files = f"SELECT sum(file_size_in_bytes) FROM spark_catalog.default.{name}.files"
            shown.add_row(name, f"{self.spark.sql(files).collect()[0][0] / 1e6:,.1f}")
        self.spark.sql(
            "CREATE TABLE wanted USING iceberg AS SELECT DISTINCT "
            f"pmod(xxhash64(id, 5), {self.rows}) AS id FROM range(0, 20, 1, 1)"
        )
        self.spark.sql(f"CREATE SIEVE INDEX ON events ({', '.join(KEYS)})").collect()
        indexes = self.spark.sql("SHOW SIEVE INDEXES ON events").collect()
        shown.add_row("indexes", f"{sum(row['bytes'] for row in indexes) / 1e6:,.1f}")
        return shown

    def queries(self) -> Table:
        """Runs each query by every way."""
        shown = _columns("queries")
        for title, query in self._queries().items():
            rows: dict[str, list[str]] = {}
            measured = {way: Measured() for way in WAYS}
            for number in range(self.runs + 1):
                for way, (table, on) in WAYS.items():
                    text = query.format(t=table)
                    rows[way] = self._measure(text, measured[way], on=on, counts=number > 0)
            if any(other != rows["Iceberg alone"] for other in rows.values()):
                raise SystemExit(f"WRONG: the ways return different rows: {query}")
            shown.add_row(title, *(cell for one in measured.values() for cell in one.cells))
        return shown

    def merges(self) -> Table:
        """Runs a MERGE of 100 keys by every way, and undoes it."""
        shown = _columns("MERGE of 100 keys")
        low = self.rows // 3
        merge = (
            f"MERGE INTO {{t}} t USING (SELECT id FROM range({low}, {low + 100})) s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET amount = amount + 1"
        )
        for mode in ("copy-on-write", "merge-on-read"):
            measured = {way: Measured() for way in WAYS}
            for number in range(self.runs + 1):
                for way, (table, on) in WAYS.items():
                    self.spark.sql(
                        f"ALTER TABLE {table} SET TBLPROPERTIES ('write.merge.mode' = '{mode}')"
                    )
                    refs = f"SELECT snapshot_id FROM spark_catalog.default.{table}.refs"
                    ((before,),) = self.spark.sql(refs).collect()
                    text = merge.format(t=table)
                    self._measure(text, measured[way], on=on, counts=number > 0)
                    back = f"CALL spark_catalog.system.rollback_to_snapshot('{table}', {before})"
                    self.spark.sql(back).collect()
            shown.add_row(mode, *(cell for one in measured.values() for cell in one.cells))
        return shown

    def _measure(self, text: str, to: Measured, *, on: bool, counts: bool) -> list[str]:
        self.spark.conf.set(SWITCH, str(on).lower())
        self.meter.since_last()
        started = time.perf_counter()
        rows = self.spark.sql(text).collect()
        took = time.perf_counter() - started
        to.bytes = self.meter.since_last().bytes
        if counts:
            to.ms.append(took * 1000)
        self.spark.conf.set(SWITCH, "true")
        return sorted(map(repr, rows))

    def _queries(self) -> Mapping[str, str]:
        third, spread = self.rows // 3, [self.rows * k // 11 for k in range(1, 11)]
        person = f"(SELECT pmod(xxhash64({third} DIV 200, 3), 1000000))"
        ((someone,),) = self.spark.sql(f"SELECT {person}").collect()
        sums = "SELECT count(*), sum(amount) FROM {t}"
        return {
            "one id": f"SELECT * FROM {{t}} WHERE id = {third}",
            "ten ids": f"SELECT * FROM {{t}} WHERE id IN ({', '.join(map(str, spread))})",
            "one person": f"SELECT * FROM {{t}} WHERE person = {someone}",
            "1,000 ids": f"{sums} WHERE id BETWEEN {third} AND {third + 999}",
            "codes with a prefix": f"{sums} WHERE code LIKE 'c-{third // 10000:06d}%'",
            "join with 20 ids": "SELECT t.id, amount FROM {t} t JOIN wanted USING (id)",
            "the 10 greatest ids": "SELECT id FROM {t} ORDER BY id DESC LIMIT 10",
        }


def _columns(title: str) -> Table:
    shown = Table(box=box.SIMPLE, title=title)
    shown.add_column("", no_wrap=True)
    for way in WAYS:
        shown.add_column(f"{way}\nMB", justify="right")
        shown.add_column("\nms", justify="right")
    return shown


def _session() -> SparkSession:
    """A session like that of `sieve sql --iceberg`, with the jar that the make target downloads."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    spark = find_spark(os.environ)
    _, name, version = ICEBERG_PACKAGES[spark.line].split(":")
    own = HOME / "build" / "iceberg" / version / f"{name}-{version}.jar"
    if not own.exists():
        raise SystemExit(f"{own} is missing: run `make bench-iceberg`, which fetches it")
    jars = [shipped_settings(spark, os.environ)["spark.jars"], str(own)]
    named = {"spark.jars": ",".join(jars), "spark.driver.extraClassPath": ":".join(jars)}
    settings = iceberg_settings(spark, os.environ, named) | named | COUNTED_READS
    session = start_session(FOLDER, settings | {"spark.sql.shuffle.partitions": "4"})
    session.sparkContext.setLogLevel("ERROR")
    return session


def main() -> None:
    """Measures everything and prints the tables."""
    parser = argparse.ArgumentParser(prog="make bench-iceberg ARGS=...", description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000, help="of the table")
    parser.add_argument("--runs", type=int, default=3, help="of each statement by each way")
    args = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    spark = _session()
    try:
        bench = Bench(spark, args.rows, args.runs)
        measures: tuple[Callable[[], Table], ...] = (bench.make, bench.queries, bench.merges)
        for measure in measures:
            console.print(measure())
    finally:
        spark.stop()
        shutil.rmtree(FOLDER, ignore_errors=True)


if __name__ == "__main__":
    main()
