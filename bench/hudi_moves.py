"""Measures how many slices queries read after updates of an indexed column of a Hudi table.

A copy-on-write table and a merge-on-read table have ``--rows`` rows in ``--slices`` file slices
each. At first, the indexed column ``c`` equals the row's id and ascends with the slices. An
update *moves* a row: it sets ``c`` to the id plus half of the number of rows, modulo the number of
rows. The first update moves 2 % of the rows, in all slices. The second update moves 90 % of the
rows in the first quarter of the slices. The third update moves 90 % of the rows in the last three
quarters of the slices. There are four kinds of queries: for the old value of a moved row, for the
new value of a moved row, for the value of an unmoved row, and for a short range. All queried rows
are in the first quarter of the slices. For each kind, the printed table shows the mean of four
queries.

Each query must return the same rows with and without the index. The columns *held* show the number
of slices with a matching row. A query must read at least the slices with a matching row.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from statistics import mean

from pyspark.sql import SparkSession
from rich import box
from rich.console import Console
from rich.table import Table

from bench.hudi_session import HOME, KINDS, QUIET, compact, fill, passing_session, settings
from bench.session import SWITCH, files_read

FOLDER = HOME / "build" / "bench-hudi-moves"
QUESTIONS = 4


class Bench:
    """Creates one Hudi table, and runs the updates and queries on it."""

    def __init__(self, spark: SparkSession, kind: str, rows: int, slices: int) -> None:
        self.spark = spark
        self.kind = kind
        self.rows = rows
        self.slices = slices
        self.name = f"moves_{kind}"
        self.table = _table(f"{KINDS[kind]}: {rows:,} rows in {slices} slices")

    def run(self) -> Table:
        """Runs all updates and queries, and returns the printed table."""
        own = {"type": self.kind, "primaryKey": "id", "preCombineField": "ts"} | QUIET
        told = ", ".join(f"'{key}' = '{value}'" for key, value in own.items())
        self.spark.sql(
            f"CREATE TABLE {self.name} (id BIGINT, c BIGINT, ts BIGINT) USING hudi "
            f"TBLPROPERTIES ({told})"
        )
        made = f"SELECT id, id AS c, 1 AS ts FROM range(0, {self.rows}, 1, {self.slices})"
        fill(self.spark, self.name, made)
        self._show("as loaded", self._statement(f"CREATE SIEVE INDEX ON {self.name} (c)"))
        refresh = self._statement(f"REFRESH SIEVE INDEX ON {self.name}")
        quarter = self.rows // 4
        for words, rows in (
            ("a little moved", "id % 50 = 3"),
            ("a quarter moved", f"id < {quarter} AND id % 10 <> 0"),
            ("all moved", f"id >= {quarter} AND id % 10 <> 0"),
        ):
            self._show(words, self._move(rows))
            self._show("refreshed", refresh)
        if self.kind == "mor":
            self._show("compacted", lambda: compact(self.spark, self.name))
            self._show("refreshed", refresh)
        self._show("built anew", self._statement(f"REFRESH SIEVE INDEX ON {self.name} FULL"))
        return self.table

    def _statement(self, text: str) -> Callable[[], object]:
        return lambda: self.spark.sql(text).collect()

    def _move(self, rows: str) -> Callable[[], object]:
        return self._statement(
            f"UPDATE {self.name} SET c = pmod(id + {self.rows // 2}, {self.rows}), ts = 2 "
            f"WHERE {rows}"
        )

    def _show(self, words: str, work: Callable[[], object]) -> None:
        """Runs an update, and adds a row with the slices that queries read after the update."""
        started = time.perf_counter()
        work()
        took = time.perf_counter() - started
        cells: list[str] = []
        for conditions in self._questions().values():
            held, read = zip(*map(self._ask, conditions), strict=True)
            cells += [f"{mean(held):.1f}", f"{mean(read):.1f}"]
        facts = dict(
            self.spark.sql(f"DESCRIBE SIEVE INDEX EXTENDED c_sieve ON {self.name}").collect()
        )
        shown = self.spark.sql(f"SHOW SIEVE INDEXES ON {self.name}").collect()
        self.table.add_row(
            words, *cells, facts["runs"], f"{shown[0]['bytes'] / 1000:,.0f}", f"{took:.1f}"
        )

    def _questions(self) -> dict[str, list[str]]:
        """The conditions of each kind of query.

        The selected rows are spread over the first quarter of the slices.
        """
        rows = [(k * 2 + 1) * self.rows // (8 * QUESTIONS) // 50 * 50 for k in range(QUESTIONS)]
        return {
            "left": [f"c = {row + 3}" for row in rows],
            "moved to": [f"c = {row + 3 + self.rows // 2}" for row in rows],
            "kept": [f"c = {row}" for row in rows],
            "range": [f"c BETWEEN {row} AND {row + self.rows // 1000}" for row in rows],
        }

    def _ask(self, condition: str) -> tuple[int, int]:
        """Returns the number of slices with a matching row, and the number of slices read."""
        query = f"SELECT id, c, split(_hoodie_file_name, '_')[0] AS slice FROM {self.name} WHERE "
        found = {}
        for on in ("false", "true"):
            self.spark.conf.set(SWITCH, on)
            with settings(self.spark, hoodie__enable__data__skipping="false"):
                frame = self.spark.sql(query + condition)
                found[on] = sorted(map(tuple, frame.collect()))
        if found["false"] != found["true"]:
            raise SystemExit(f"WRONG: other rows with the index than without: {condition}")
        return len({row[2] for row in found["true"]}), files_read(frame)


def _table(title: str) -> Table:
    table = Table(box=box.SIMPLE, title=title)
    table.add_column("")
    for question in ("left", "moved to", "kept", "range"):
        table.add_column(f"{question}\nheld", justify="right")
        table.add_column("\nread", justify="right")
    for column in ("\nruns", "index\nKB", "took\ns"):
        table.add_column(column, justify="right")
    return table


def main() -> None:
    """Measures copy-on-write and merge-on-read tables, and prints one table of results for each."""
    parser = argparse.ArgumentParser(prog="python -m bench hudi-moves", description=__doc__)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--slices", type=int, default=16)
    args = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    with passing_session(FOLDER) as spark:
        for kind, words in KINDS.items():
            with console.status(words):
                shown = Bench(spark, kind, args.rows, args.slices).run()
            console.print(shown)


if __name__ == "__main__":
    main()
