"""Compares Sieve with Hudi's own data skipping on Hudi tables: slices read, and time.

A copy-on-write table and a merge-on-read table have ``--rows`` rows in ``--slices`` file slices
each. An UPDATE has changed one row in ten. The record key ``k`` is a random string. The values of
column ``c`` ascend with the slices, but 2 % of the rows have a random value.
There are four queries: a point query on ``c``, a short range on ``c``, a point query on ``k``, and
the point query on ``c`` as of the first commit.

Each table has three copies. Sieve indexes the first copy, which is plain. The second copy has
Hudi's column statistics. The third copy has Hudi's record-level index, and Hudi's secondary index
on ``c``. Queries of all copies must return the same rows.

Each round runs all ways to skip in turn, and the times are medians of five rounds. The benchmark
also measures a write to each copy: an upsert of 1,000 rows, 100 of them with existing keys. For the
plain copy, the output also shows the time of a REFRESH after the write.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from rich import box
from rich.console import Console
from rich.table import Table

from bench.hudi_session import (
    HOME,
    KINDS,
    QUIET,
    fill,
    folder_of,
    instants,
    passing_session,
    settings,
)
from bench.session import SWITCH, files_read

FOLDER = HOME / "build" / "bench-hudi"
ROUNDS = 5
_COPIES = {
    "plain": QUIET,
    "stats": QUIET | {"hoodie.metadata.index.column.stats.enable": "true"},
    "keyed": QUIET | {"hoodie.metadata.record.index.enable": "true"},
}
# Hudi's CREATE INDEX supports concurrent writers. So CREATE INDEX requires a lock provider, even
# with a single writer.
_LOCK = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
_ROWS = (
    "SELECT hex(xxhash64(id)) AS k, "
    "CASE WHEN id % 50 = 7 THEN pmod(xxhash64(id, 1), {all}) ELSE id END AS c, "
    "id % 1000 AS v, {ts} AS ts FROM range({first}, {last}, 1, {slices})"
)


@dataclass(frozen=True, slots=True)
class Way:
    """A way to skip slices, with the copy of the table to read, and the supported queries."""

    label: str
    copy: str
    skipping: bool
    sieve: bool
    queries: tuple[str, ...]
    folders: tuple[str, ...] = ()
    """The partitions of Hudi's metadata table that contain this way's index."""


_POINT, _RANGE, _KEY, _PAST = "point on c", "range on c", "point on key", "point on c, earlier"
_ALL = (_POINT, _RANGE, _KEY, _PAST)
WAYS = (
    Way("Hudi, skipping off", "plain", skipping=False, sieve=False, queries=_ALL),
    Way("column statistics", "stats", True, False, _ALL, ("column_stats",)),
    Way("record-level index", "keyed", True, False, (_KEY,), ("record_index",)),
    Way("secondary index", "keyed", True, False, (_POINT, _PAST), ("secondary_index_*",)),
    Way("Sieve", "plain", skipping=False, sieve=True, queries=_ALL),
)


@dataclass(slots=True)
class Measured:
    """Measurements of a query with one way to skip: slices read, and seconds of each run."""

    slices: int = 0
    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Median of the runs' seconds."""
        return statistics.median(self.seconds)


class Bench:
    """Creates and measures the copies of one kind of table: copy-on-write or merge-on-read."""

    def __init__(self, spark: SparkSession, kind: str, rows: int, slices: int) -> None:
        self.spark = spark
        self.kind = kind
        self.rows = rows
        self.slices = slices
        self.written: dict[str, float] = {}
        self.refreshed = 0.0
        self.key = str(spark.sql(f"SELECT hex(xxhash64({rows // 2 + 1}L))").collect()[0][0])

    def table(self, copy: str) -> str:
        """Name of a copy's table."""
        return f"{self.kind}_{copy}"

    def make(self) -> None:
        """Creates and updates all copies, and indexes the plain copy.

        The function creates Sieve's index on the plain copy before the update, and refreshes the
        index after all updates.
        """
        for copy, properties in _COPIES.items():
            name = self.table(copy)
            own = {"type": self.kind, "primaryKey": "k"} | properties
            told = ", ".join(f"'{key}' = '{value}'" for key, value in own.items())
            self.spark.sql(
                f"CREATE TABLE {name} (k STRING, c BIGINT, v BIGINT, ts BIGINT) USING hudi "
                f"TBLPROPERTIES ({told})"
            )
            fill(self.spark, name, self._rows(0, self.rows, 1, self.slices))
            if copy == "plain":
                self.spark.sql(f"CREATE SIEVE INDEX ON {name} (c, k)").collect()
            if copy == "keyed":
                with settings(self.spark, hoodie__write__lock__provider=_LOCK):
                    self.spark.sql(f"CREATE INDEX by_c ON {name} (c)")
            self.spark.sql(f"UPDATE {name} SET v = v + 1, ts = 2 WHERE v % 10 = 3")
        self._refresh()

    def write(self) -> None:
        """Writes rows to each copy, and measures the times. Then refreshes Sieve's index."""
        with settings(self.spark, hoodie__spark__sql__insert__into__operation="upsert"):
            rows = self._rows(self.rows - 100, self.rows + 900, 3)
            for copy in _COPIES:
                started = time.perf_counter()
                self.spark.sql(f"INSERT INTO {self.table(copy)} {rows}")
                self.written[copy] = time.perf_counter() - started
        self.refreshed = self._refresh()

    def measure(self) -> dict[tuple[str, str], Measured]:
        """Measures every query with each way that supports the query.

        The result's keys are pairs of the query's name and the way's label.
        """
        measured: dict[tuple[str, str], Measured] = {}
        for query in _ALL:
            ways = [way for way in WAYS if query in way.queries]
            rows: dict[str, Counter[str]] = {}
            # The first round is a warm-up.
            for number in range(ROUNDS + 1):
                for way in ways:
                    one = measured.setdefault((query, way.label), Measured())
                    rows[way.label], one.slices, took = self._run(query, way)
                    if number:
                        one.seconds.append(took)
            if len(set(map(frozenset, (r.items() for r in rows.values())))) != 1:
                raise SystemExit(f"WRONG: other rows by one of {list(rows)}: {query}, {self.kind}")
        return measured

    def index_bytes(self, way: Way) -> int:
        """Bytes that a way to skip stores on disk in addition to the table."""
        if way.sieve:
            shown = self.spark.sql(f"SHOW SIEVE INDEXES ON {self.table(way.copy)}").collect()
            return sum(row["bytes"] for row in shown)
        metadata = folder_of(self.spark, self.table(way.copy)) / ".hoodie" / "metadata"
        found = (path for name in way.folders for path in metadata.glob(f"{name}/*"))
        return sum(path.stat().st_size for path in found if path.is_file())

    def _run(self, query: str, way: Way) -> tuple[Counter[str], int, float]:
        name = self.table(way.copy)
        self.spark.conf.set(SWITCH, str(way.sieve).lower())
        with settings(self.spark, hoodie__enable__data__skipping=str(way.skipping).lower()):
            started = time.perf_counter()
            frame = self.spark.sql(f"SELECT k, c, v, ts FROM {self._where(query, name)}")
            rows = Counter(map(repr, frame.collect()))
            took = time.perf_counter() - started
        self.spark.conf.set(SWITCH, "true")
        return rows, files_read(frame), took

    def _where(self, query: str, name: str) -> str:
        middle = self.rows // 2 + 1
        if query == _RANGE:
            return f"{name} WHERE c BETWEEN {middle} AND {middle + self.rows // 1000}"
        if query == _KEY:
            return f"{name} WHERE k = '{self.key}'"
        then = f"TIMESTAMP AS OF '{instants(self.spark, name)[0]}'" if query == _PAST else ""
        return f"{name} {then} WHERE c = {middle}"

    def _rows(self, first: int, last: int, ts: int, slices: int = 1) -> str:
        return _ROWS.format(all=self.rows, first=first, last=last, ts=ts, slices=slices)

    def _refresh(self) -> float:
        started = time.perf_counter()
        self.spark.sql(f"REFRESH SIEVE INDEX ON {self.table('plain')}").collect()
        return time.perf_counter() - started


def _shown(bench: Bench, measured: dict[tuple[str, str], Measured]) -> Table:
    table = Table(
        box=box.SIMPLE,
        title=f"{KINDS[bench.kind]}: {bench.rows:,} rows in {bench.slices} slices, 10 % updated",
    )
    table.add_column("", no_wrap=True)
    for query in _ALL:
        table.add_column(f"{query}\nslices", justify="right")
        table.add_column("\nms", justify="right")
    table.add_column("index\nKB", justify="right")
    table.add_column("write\ns", justify="right")
    for way in WAYS:
        cells: list[str] = []
        for query in _ALL:
            one = measured.get((query, way.label))
            cells += ["", ""] if one is None else [str(one.slices), f"{one.median * 1000:.0f}"]
        size = bench.index_bytes(way)
        took = bench.written[way.copy]
        wrote = f"{took:.1f} + {bench.refreshed:.1f}" if way.sieve else f"{took:.1f}"
        table.add_row(way.label, *cells, f"{size / 1000:,.0f}" if size else "", wrote)
    return table


def main() -> None:
    """Measures copy-on-write and merge-on-read tables, and prints one table of results for each."""
    parser = argparse.ArgumentParser(prog="make bench-hudi ARGS=...", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--slices", type=int, default=20)
    args = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
    with passing_session(FOLDER) as spark:
        for kind, words in KINDS.items():
            bench = Bench(spark, kind, args.rows, args.slices)
            with console.status(f"{words}: writing"):
                bench.make()
                bench.write()
            with console.status(f"{words}: {len(_ALL)} queries"):
                measured = bench.measure()
            console.print(_shown(bench, measured))
    console.print("  record-level and secondary index are in one table, whose write keeps both")


if __name__ == "__main__":
    main()
