"""Prints the second table of ``make bench-start``: times of cold and warm CREATE statements.

The indexed table has 100 files and 1 million rows. For each column, a new Spark application begins
with the cold CREATE. Each application also runs a query for the column's minimum and maximum.
Another application, without Sieve, runs only the query.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.session import start_session

ROWS, FILES = 1_000_000, 100
COLUMNS = {
    "id": "in order",
    "number": "unique, scattered numbers",
    "text": "unique, scattered texts",
    "city": "50 values in all files",
}
_SELECT = (
    "id",
    "xxhash64(id) AS number",
    "md5(CAST(id AS STRING)) AS text",
    "concat('city ', pmod(xxhash64(id, 1), 50)) AS city",
)
_SETTLED_S = 2.5


def report() -> None:
    """Measures each column of the table in a new Spark application, and prints one table."""
    table = Table("column", "start", "min, max: first", "warm", "CREATE: first", "second", "warm")
    with tempfile.TemporaryDirectory() as folder:
        _side(folder, "write")
        plain = _side(folder, "query")
        table.add_row("Spark without Sieve", *(f"{one:.2f}" for one in plain))
        for column, what in COLUMNS.items():
            start, create, second, warm, query = _side(folder, column)
            ratio = f"{warm:.2f} ({warm / query:.1f} times)"
            cells = (f"{start:.1f}", "", f"{query:.2f}", f"{create:.1f}", f"{second:.1f}", ratio)
            table.add_row(what, *cells)
    Console().print(table)


def _side(folder: str, what: str) -> list[float]:
    command = [sys.executable, "-m", "bench.first_create", folder, what]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    seconds: list[float] = json.loads(ended.stdout.strip().rpartition("\n")[2])
    return seconds


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def _measure(folder: Path, what: str) -> list[float]:
    """Seconds that Spark needs to start, and then the seconds of each step."""
    started = time.perf_counter()
    spark = start_session(folder / what, {}, indexed=what in COLUMNS)
    start = time.perf_counter() - started
    data = (folder / "data").as_uri()
    if what == "write":
        spark.range(0, ROWS, 1, FILES).selectExpr(*_SELECT).write.parquet(data)
        time.sleep(_SETTLED_S)
        return [start]
    spark.sql(f"CREATE TABLE t USING parquet LOCATION '{data}'")

    def sql(text: str) -> float:
        return _seconds(lambda: spark.sql(text).collect())

    column = what if what in COLUMNS else "number"
    query = f"SELECT min({column}), max({column}) FROM t"
    if what not in COLUMNS:
        first = sql(query)
        return [start, first, statistics.median(sql(query) for _ in range(5))]
    creates = []
    for _ in range(5):
        creates.append(sql(f"CREATE SIEVE INDEX ON t ({column})"))
        sql(f"DROP SIEVE INDEX {column}_sieve ON t")
    warm = statistics.median(creates[2:])
    sql(query)
    return [start, *creates[:2], warm, statistics.median(sql(query) for _ in range(5))]


if __name__ == "__main__":
    print(json.dumps(_measure(Path(sys.argv[1]), sys.argv[2])), flush=True)
