"""Compares ESTIMATE SIEVE INDEX with the index that CREATE builds: ``python -m bench estimate``.

The benchmark writes each column of `bench.rivals` to a Parquet table. The benchmark compares
estimates with real values: the bytes of the index, the files read, and the seconds of the build.
The files read are for a present key, an absent key and a short range.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import time
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.rivals.columns import NAMES, Column, column
from bench.session import start_session

FOLDER = Path(__file__).resolve().parent.parent / "build" / "bench-estimate"
DATA = FOLDER.parent / "bench-rivals"
TOLD = ("bytes", "a key that occurs", "a key that does not occur", "a range of 0.05% of the domain")
_NUMBER = re.compile(r"[0-9.]+")


@dataclass(frozen=True, slots=True)
class Described:
    """The estimated and the real properties of a column's index, and the statements' seconds."""

    column: str
    before: dict[str, float]
    after: dict[str, float]
    seconds_told: float
    seconds_recorded: float
    seconds_of_estimate: float
    seconds_of_create: float


def main() -> None:
    """Estimates and builds an index on each column, and prints both results."""
    parser = argparse.ArgumentParser(prog="python -m bench estimate", description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--budget", default="1%")
    parser.add_argument("--columns", nargs="+", choices=NAMES, default=NAMES, metavar="NAME")
    parser.add_argument("--json", type=Path, help="file for all figures")
    args = parser.parse_args()
    shutil.rmtree(FOLDER, ignore_errors=True)
    spark = start_session(FOLDER, {})
    console = Console(width=None if sys.stdout.isatty() else 130, highlight=False)
    with console.status("starting Python on both sides"):
        # Runs both statements on a small table first. So the seconds of the first column do not
        # include one-time work.
        spark.sql("CREATE TABLE warm USING parquet AS SELECT id AS k FROM range(1000)")
        _described(spark, "warm", "warm", args.budget)
    found = []
    for number, name in enumerate(track(args.columns, console=console, transient=True)):
        of = column(name, args.rows, args.files, DATA)
        path = _write(of, FOLDER / f"t{number}")
        spark.sql(f"CREATE TABLE t{number} (k BIGINT) USING parquet LOCATION '{path.as_uri()}'")
        found.append(_described(spark, f"t{number}", name, args.budget))
        shutil.rmtree(path)
    _print(console, found)
    if args.json:
        args.json.write_text(json.dumps([asdict(one) for one in found], indent=1))
    spark.stop()


def _write(of: Column, folder: Path) -> Path:
    folder.mkdir(parents=True)
    order = np.argsort(of.file, kind="stable")
    bounds = np.searchsorted(of.file[order], np.arange(of.files + 1)).tolist()
    for number, (low, high) in enumerate(pairwise(bounds)):
        rows = pa.table({"k": of.codes[order[low:high]]})
        pq.write_table(rows, folder / f"part-{number:05}.parquet", use_dictionary=False)
    return folder


def _described(spark: SparkSession, table: str, name: str, budget: str) -> Described:
    on = f"ON {table} (k) OPTIONS (budget = '{budget}')"
    started = time.perf_counter()
    (row,) = spark.sql(f"ESTIMATE SIEVE INDEX EXTENDED {on}").collect()
    names = zip(TOLD, ("bytes", "files_present", "files_absent", "files_range"), strict=True)
    before = {name: row[column] for name, column in names if row[column] is not None}
    estimated = time.perf_counter()
    spark.sql(f"CREATE SIEVE INDEX {on}").collect()
    created = time.perf_counter()
    after = _properties(spark, f"DESCRIBE SIEVE INDEX EXTENDED k_sieve ON {table}")
    return Described(
        name,
        before,
        {key: after[key] for key in TOLD if key in after},
        row["seconds"],
        after["build seconds"],
        estimated - started,
        created - estimated,
    )


def _properties(spark: SparkSession, statement: str) -> dict[str, float]:
    """A dict from property to number, for properties whose value begins with a number."""
    found = {}
    for name, value in spark.sql(statement).collect():
        if number := _NUMBER.match(value):
            found[name.removeprefix("files read for ")] = float(number[0].rstrip("."))
    return found


def _print(console: Console, found: list[Described]) -> None:
    table = Table(title="ESTIMATE, and what CREATE then made", box=box.SIMPLE)
    table.add_column("column")
    for title in ("bytes", "occurs", "does not", "0.05%", "worst", "seconds", "CREATE took"):
        table.add_column(title, justify="right")
    table.add_column("ESTIMATE took", justify="right")
    for one in found:
        both = [key for key in TOLD if key in one.after and key in one.before]
        pairs = [(one.before[key], one.after[key]) for key in both]
        off = max(abs(before / after - 1) if after else before for before, after in pairs)
        table.add_row(
            one.column,
            *(f"{before:.6g} / {after:.6g}" for before, after in pairs),
            *[""] * (len(TOLD) - len(pairs)),
            f"{off:.0%}",
            f"{one.seconds_told:.1f} / {one.seconds_recorded:.1f}",
            f"{one.seconds_of_create:.1f}",
            f"{one.seconds_of_estimate:.1f}",
        )
    console.print(table)


if __name__ == "__main__":
    main()
