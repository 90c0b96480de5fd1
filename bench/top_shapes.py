"""Measures top-k queries, MIN and MAX for several types, shapes and orders: ``make bench-topk``.

The table has three columns of each type. The values of *clustered* ascend with the files. *late* is
like *clustered*, but 2 % of the rows are late, by at most a tenth of the table's rows. *random* has
random values. Each query runs with an index of each shape. The output compares the number of files
that a query reads with the number of files that the query needs. A top-k query needs the files that
contain a row of the result, or a row with an equal sort key. MIN and MAX need one file. A query for
a range of 0.1 % of the rows needs the files whose minimum and maximum overlap with the range. The
goal is to read at most 1.2 times the needed files plus one.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich import box
from rich.console import Console
from rich.table import Table

from bench.session import files_read, start_session, with_settings

FOLDER = Path(__file__).resolve().parent.parent / "build" / "bench-top-shapes"
TYPES = {
    "int": "CAST({} AS INT)",
    "bigint": "{} * 1000003",
    "double": "{} / 7D",
    "decimal": "CAST({} AS DECIMAL(18, 2))",
    "wide_decimal": "CAST({} AS DECIMAL(30, 2)) * 1000000007",
    "date": "date_add(DATE '2000-01-01', CAST({} DIV 1000 AS INT))",
    "timestamp": "timestamp_millis({} * 1000)",
    "string": "concat('order-', lpad({}, 12, '0'))",
}
SHAPES = ("auto", "intervals", "sieve", "map")
QUERIES = {
    "first 10": "SELECT {0} FROM t ORDER BY {0} LIMIT 10",
    "last 10": "SELECT {0} FROM t ORDER BY {0} DESC LIMIT 10",
    "min": "SELECT min({0}) FROM t",
    "max": "SELECT max({0}) FROM t",
}
GOAL, MORE = 1.2, 1


@dataclass(frozen=True, slots=True)
class Measured:
    """Number of files that a query has read, and number of files that the query needs."""

    column: str
    shape: str
    query: str
    read: int
    least: int

    @property
    def meets_goal(self) -> bool:
        """Whether the query has met the goal for the number of files read."""
        return self.read <= GOAL * self.least + MORE


def main() -> None:
    """Measures every query and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m bench top-shapes", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000, help="of each file")
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--types", nargs="*", default=[*TYPES], choices=[*TYPES])
    parser.add_argument("--shapes", nargs="*", default=[*SHAPES], choices=[*SHAPES])
    args = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 130, highlight=False)
    shutil.rmtree(FOLDER, ignore_errors=True)
    spark = start_session(FOLDER, {"spark.sieve.prune.timeout": "10s"})
    try:
        _create(spark, args.files, args.rows, args.types)
        with with_settings(spark, {"spark.sieve.enabled": "false"}):
            rows = spark.sql("SELECT *, _metadata.file_path AS file FROM t").toPandas()
        measured, sizes = [], []
        for shape in args.shapes:
            names = [name for name in rows.columns if name != "file"]
            with console.status(f"indexing, shape {shape}"):
                # If many files contain the same keys, a map needs more than the default budget.
                budget = ", budget = '20MB'" if shape == "map" else ""
                options = f"OPTIONS (shape = '{shape}'{budget})"
                spark.sql(f"CREATE SIEVE INDEX ON t ({', '.join(names)}) {options}").collect()
            sizes += _bounds_bytes(args.files)
            for name in names:
                measured += _measure(spark, rows, name, shape)
                spark.sql(f"DROP SIEVE INDEX ON t ({name})").collect()
    finally:
        spark.stop()
        shutil.rmtree(FOLDER, ignore_errors=True)
    _print(console, measured)
    if sizes:
        each = max(sizes)
        console.print(
            f"The bounds take at most {each:.1f} bytes of a file: {each / (128 << 20):.7%} of "
            f"128 MB, {each / (100 << 10):.3%} of 100 KB."
        )


def _create(spark: SparkSession, files: int, rows: int, types: Sequence[str]) -> None:
    n = files * rows
    late = f"IF(pmod(xxhash64(id, 1), 50) = 0, abs(id - pmod(xxhash64(id, 2), {n // 10})), id)"
    orders = {"clustered": "id", "late": late, "random": "pmod(xxhash64(id, 3), 2000000000)"}
    columns = (
        f"{TYPES[name].format(f'({base})')} AS {name}_{order}"
        for name in types
        for order, base in orders.items()
    )
    spark.sql(
        f"CREATE TABLE t USING parquet AS SELECT {', '.join(columns)} "
        f"FROM range(0, {n}, 1, {files})"
    )


def _measure(spark: SparkSession, rows: pd.DataFrame, name: str, shape: str) -> Iterator[Measured]:
    values, file = rows[name], rows["file"]
    ordered = values.sort_values(ignore_index=True)
    ends = {
        "first 10": values <= ordered.iloc[9],
        "last 10": values >= ordered.iloc[-10],
        "min": values.index == values.idxmin(),
        "max": values.index == values.idxmax(),
    }
    for query, text in QUERIES.items():
        frame = spark.sql(text.format(name))
        found = [row[0] for row in frame.collect()]
        expected = (
            [*ordered.iloc[:10]] if query in {"first 10", "min"} else [*ordered.iloc[:-11:-1]]
        )
        assert found == [_plain(one) for one in expected[: len(found)]], (name, shape, query)
        yield Measured(name, shape, query, files_read(frame), file[ends[query]].nunique())
    low, high = (
        ordered.iloc[len(ordered) // 2],
        ordered.iloc[len(ordered) // 2 + len(ordered) // 1000],
    )
    by_file = values.groupby(file).agg(["min", "max"])
    matching = int(((by_file["min"] <= high) & (by_file["max"] >= low)).sum())
    frame = spark.sql(f"SELECT {name} FROM t WHERE {name} BETWEEN {_sql(low)} AND {_sql(high)}")
    assert len(frame.collect()) == int(values.between(low, high).sum())
    yield Measured(name, shape, "range", files_read(frame), matching)


def _plain(value: object) -> object:
    """The value of a pandas column, as the Python object that Spark returns."""
    if isinstance(value, pd.Timestamp):
        return value.to_pydatetime()
    return value.item() if hasattr(value, "item") else value


def _sql(value: object) -> str:
    if isinstance(value, pd.Timestamp):
        return f"TIMESTAMP '{value}'"
    return f"'{value}'" if not isinstance(_plain(value), int | float) else f"{_plain(value)!r}D"


def _bounds_bytes(files: int) -> list[float]:
    """Size of the stored minimum and maximum values in each file list, in bytes per file."""
    sizes = []
    for path in FOLDER.glob("**/locations/*.parquet"):
        group = pq.read_metadata(path).row_group(0)
        columns = (group.column(k) for k in range(group.num_columns))
        own = (c for c in columns if c.path_in_schema.split(".")[0] in {"least", "greatest"})
        sizes.append(sum(c.total_compressed_size for c in own) / files)
    return sizes


def _print(console: Console, measured: Sequence[Measured]) -> None:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for title in ("column", "shape", *QUERIES, "range"):
        table.add_column(title, justify="left" if title in {"column", "shape"} else "right")
    for name, shape in dict.fromkeys((one.column, one.shape) for one in measured):
        cells = [
            f"{one.read} of {one.least}" + ("" if one.meets_goal else " !")
            for one in measured
            if (one.column, one.shape) == (name, shape)
        ]
        table.add_row(name, shape, *cells)
    console.print(table)
    missed = sum(not one.meets_goal for one in measured)
    console.print(f"Files read of files needed; {missed} of {len(measured)} miss the goal (!).")


if __name__ == "__main__":
    main()
