"""Measures the time from join keys to a list of files: ``python -m bench keys``.

The indexed table has 10,000 files with random keys. The benchmark joins this table with small
tables of 10,000 to 1,000,000 keys. For each small table, the output shows two times, measured in a
warm driver. The first time is for the driver, which makes a filter from the unsorted join keys. The
second time is for a call to the front end, which finds the files for the filter. The call includes
request, transfer, look-up and answer.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich import box
from rich.console import Console
from rich.table import Table

from bench.session import start_session

KEYS = (10_000, 100_000, 1_000_000)
FILES = 10_000
EACH = 4
DOMAIN = 1 << 40
FOLDER = Path(__file__).resolve().parent.parent / "build" / "bench-keys"


def main() -> None:
    """Measures the driver's and the front end's milliseconds, and prints medians and minima."""
    parser = argparse.ArgumentParser(prog="python -m bench keys", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    shutil.rmtree(FOLDER, ignore_errors=True)
    rng = np.random.default_rng(1)
    for number in range(FILES):
        _write(FOLDER / "t" / f"{number}.parquet", rng.integers(0, DOMAIN, EACH))
    for n in KEYS:
        _write(FOLDER / f"keys{n}" / "0.parquet", rng.integers(0, DOMAIN, n))
    # With these settings, each scan asks the front end and waits for the answer.
    settings = {"spark.sieve.strict": "true", "spark.sieve.prune.timeout": "60s"}
    spark = start_session(FOLDER / "spark", settings)
    for name in ("t", *(f"keys{n}" for n in KEYS)):
        spark.sql(
            f"CREATE TABLE {name} (id BIGINT, n BIGINT) USING parquet LOCATION '{FOLDER / name}'"
        )
    spark.sql("CREATE SIEVE INDEX ON t (id)").collect()
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for title in ("keys", "filter, ms", "least", "front end, ms", "least"):
        table.add_column(title, justify="right")
    for n in KEYS:
        cells = [
            *_median_and_least(_filters(spark, n, rounds)),
            *_median_and_least(_calls(spark, n, rounds)),
        ]
        table.add_row(f"{n:,}", *cells)
    spark.stop()
    shutil.rmtree(FOLDER)
    Console(highlight=False).print(table)


def _write(path: Path, keys: np.ndarray[Any, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": keys, "n": np.arange(len(keys))}), path, store_schema=False)


def _median_and_least(times: Sequence[float]) -> tuple[str, str]:
    return f"{np.median(times):.1f}", f"{min(times):.1f}"


def _filters(spark: SparkSession, n: int, rounds: int) -> list[float]:
    """For each round, the milliseconds that the driver needs to make a filter from `n` values."""
    jvm: Any = spark._jvm  # noqa: SLF001 - no public API
    rows = spark.range(1)._jdf  # noqa: SLF001 - no public API
    key = rows.queryExecution().analyzed().output().head()
    values = jvm.java.util.Random(n).longs(n, 0, DOMAIN).boxed().toArray()
    made: Callable[[], object] = partial(
        jvm.org.apache.spark.sql.sieve.plan.RunTimeFilters.oneOf, key, values
    )
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        made()
        times.append((time.perf_counter() - started) * 1e3)
    return times


def _calls(spark: SparkSession, n: int, rounds: int) -> list[float]:
    """For each round, the milliseconds of the front-end call for a join with `n` keys."""
    times = []
    for _ in range(rounds + 1):
        before = _status(spark)
        joined = f"FROM t JOIN keys{n} AS k ON t.id = k.id WHERE k.n >= 0"
        (rows,) = spark.sql(f"SELECT /*+ BROADCAST(k) */ count(*) {joined}").collect()[0]
        counted = {name: value - before[name] for name, value in _status(spark).items()}
        assert rows == 0, rows
        assert counted["prune_calls"] == 1, counted
        assert counted["keys_received"] > 0, counted
        times.append(float(counted["prune_ms"]))
    return times[1:]


def _status(spark: SparkSession) -> dict[str, int]:
    rows = spark.sql("SELECT counter, value FROM sieve_status() WHERE reason IS NULL").collect()
    return dict(map(tuple, rows))


if __name__ == "__main__":
    main()
