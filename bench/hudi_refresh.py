"""Measures REFRESH of a Hudi merge-on-read table after commits of several kinds.

The table has ``--rows`` rows in ``--parts`` partitions. Each partition has one file slice, and one
column is indexed. There are four commits: an UPDATE in one partition, an UPDATE in all partitions,
a MERGE in all partitions, and a compaction. After each commit, the benchmark runs a REFRESH. For
the MERGE, Hudi logs only the assigned columns, so the next REFRESH reads whole slices. For each
commit, the output shows the numbers of changed slices, of changed rows, and of rows that REFRESH
read. The output also shows the seconds of REFRESH, and their share of the seconds of CREATE.

After each UPDATE and MERGE, a query for a changed key must return the same rows with and without
the index.
"""

from __future__ import annotations

import argparse
import sys
import time

from pyspark.sql import SparkSession
from rich import box
from rich.console import Console
from rich.table import Table

from bench.hudi_session import HOME, QUIET, compact, fill, passing_session, settings
from bench.session import SWITCH, files_read
from sieve.metadata.commit import newest
from sieve.metadata.manifest import Manifest
from sieve.storage.local import LocalStore

FOLDER = HOME / "build" / "bench-hudi-refresh"
NAME = "logged"
SHARE = 100
"""An UPDATE or MERGE changes one in `SHARE` rows."""


class Bench:
    """Creates the Hudi table, and measures REFRESH on it."""

    def __init__(self, spark: SparkSession, rows: int, parts: int) -> None:
        self.spark = spark
        self.rows = rows
        self.parts = parts
        self.part = f"CAST(id DIV {rows // parts} AS INT)"
        self.table = Table(box=box.SIMPLE, title=f"{rows:,} rows in {parts} slices")
        self.table.add_column("")
        for column in ("slices\nchanged", "rows\nchanged", "rows\nread", "s", "of\nCREATE"):
            self.table.add_column(column, justify="right")
        self.whole = 0.0

    def run(self) -> Table:
        """Runs all commits and refreshes, and returns the printed table."""
        own = {"type": "mor", "primaryKey": "id", "preCombineField": "ts"} | QUIET
        told = ", ".join(f"'{key}' = '{value}'" for key, value in own.items())
        self.spark.sql(
            f"CREATE TABLE {NAME} (id BIGINT, c BIGINT, word STRING, ts BIGINT, part INT) "
            f"USING hudi PARTITIONED BY (part) TBLPROPERTIES ({told})"
        )
        fill(
            self.spark,
            NAME,
            "SELECT id, id * 7919 % 1000003 AS c, concat('w', sha2(string(id), 256)) AS word, "
            f"1 AS ts, {self.part} AS part FROM range(0, {self.rows}, 1, {self.parts})",
        )
        self._show("CREATE", 0, 0, f"CREATE SIEVE INDEX ON {NAME} (c)")
        self._update("part = 0", 1)
        self._update("TRUE", 2)
        self._merge()
        compact(self.spark, NAME)
        self._show("compaction", self.parts, 0)
        return self.table

    def _update(self, where: str, number: int) -> None:
        self.spark.sql(
            f"UPDATE {NAME} SET c = {-number} - id, ts = {number + 1} "
            f"WHERE {where} AND id % {SHARE} = {number}"
        )
        slices = 1 if "part" in where else self.parts
        self._show("UPDATE", slices, self._changed(where, number))
        self._ask(f"c = {-number} - {SHARE + number}")

    def _merge(self) -> None:
        self.spark.sql(
            f"MERGE INTO {NAME} t USING (SELECT id, -3L - id AS c, 4L AS ts, {self.part} AS part "
            f"FROM range(0, {self.rows}) WHERE id % {SHARE} = 3) s "
            "ON t.id = s.id AND t.part = s.part "
            "WHEN MATCHED THEN UPDATE SET c = s.c, ts = s.ts"
        )
        self._show("MERGE, some columns", self.parts, self._changed("TRUE", 3))
        self._ask(f"c = -3 - {SHARE + 3}")

    def _changed(self, where: str, number: int) -> int:
        query = f"SELECT count(*) FROM {NAME} WHERE {where} AND id % {SHARE} = {number}"
        return int(self.spark.sql(query).collect()[0][0])

    def _show(self, words: str, slices: int, changed: int, statement: str = "") -> None:
        started = time.perf_counter()
        self.spark.sql(statement or f"REFRESH SIEVE INDEX ON {NAME}").collect()
        took = time.perf_counter() - started
        self.whole = self.whole or took
        self.table.add_row(
            words,
            *(f"{number:,}" for number in (slices, changed, self._version().runs[-1].rows)),
            f"{took:.1f}",
            f"{took / self.whole:.2f}",
        )

    def _version(self) -> Manifest:
        told = self.spark.sql(f"DESCRIBE SIEVE INDEX EXTENDED c_sieve ON {NAME}").collect()
        manifest = newest(LocalStore(), dict(told)["path"])
        assert manifest is not None
        return manifest

    def _ask(self, condition: str) -> None:
        found = {}
        for on in ("false", "true"):
            with settings(self.spark, **{SWITCH: on, "hoodie.enable.data.skipping": "false"}):
                frame = self.spark.sql(f"SELECT id, c FROM {NAME} WHERE {condition}")
                found[on] = sorted(map(tuple, frame.collect()))
        if found["false"] != found["true"] or len(found["true"]) != 1 or files_read(frame) != 1:
            raise SystemExit(f"WRONG: {condition} gives {found}, from {files_read(frame)} slices")


def main() -> None:
    """Measures the REFRESH after each commit, and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m bench hudi-refresh", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--parts", type=int, default=20)
    args = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    with passing_session(FOLDER) as spark:
        with console.status("measuring"):
            shown = Bench(spark, args.rows, args.parts).run()
        console.print(shown)


if __name__ == "__main__":
    main()
