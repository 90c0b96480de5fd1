"""Compares string encoders without Spark: distinct codes, files read per key, and time.

Each file contains neighbouring values, but one row in a hundred is in a random file. The benchmark
compares three kinds of key codes, and builds an index of shape `auto` within a budget for each
kind. The first kind of code is the eight bytes after the common prefix of all values. The second
kind of code comes from the encoder that a build would choose from a sample. The encoder's split
points use part of the budget. The third kind of code is the value's rank, which is different for
every value. The benchmark runs on one core.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table

from bench.rivals.budgeted import cut, sample, shaped
from bench.rivals.columns import Codes, Column
from bench.texts import TEXTS, texts
from sieve.encoding.encoder import Encoder
from sieve.indexing.fit_encoder import fit_encoder

SAMPLED = 40_000
BATCH = 10_000
STRAYS = 0.01


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of one encoder with one kind of values.

    Attributes:
        values: name of the kind of values.
        encoder: name of the encoder.
        points: the encoder's number of split points.
        bytes: size of the split points in bytes.
        apart: number of distinct codes divided by the number of distinct values.
        files: mean number of files that a query for an existing key reads.
        nanoseconds: CPU time to encode one value.
    """

    values: str
    encoder: str
    points: int
    bytes: int
    apart: float
    files: float
    nanoseconds: float


def main() -> None:
    """Measures all encoders with each kind of values, and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m bench encoders", description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--budget", type=float, default=1.0, help="percent of the values' bytes")
    parser.add_argument("--values", nargs="+", choices=TEXTS, default=list(TEXTS), metavar="NAME")
    parser.add_argument("--json", type=Path, help="file for all figures")
    args = parser.parse_args()
    found = [row for name in args.values for row in measure(name, args)]
    _print(found, args)
    if args.json:
        args.json.write_text(json.dumps([asdict(row) for row in found], indent=1))


def measure(name: str, args: argparse.Namespace) -> list[Measured]:
    """Measures the three kinds of codes with one kind of values."""
    values = texts(name, args.rows)
    rng = np.random.default_rng(1)
    rows = len(values)
    size = values.nbytes - 4 * rows
    file = (np.arange(rows) * args.files // rows).astype(np.int32)
    strays = rng.random(rows) < STRAYS
    file[strays] = rng.integers(0, args.files, int(strays.sum()))
    seen = np.sort(rng.choice(rows, min(rows, SAMPLED), replace=False))
    drawn = values.take(pa.array(seen))
    ends = [drawn[at].as_py().encode() for at in (0, -1)]
    encoders = {
        "prefix": Encoder.for_type("string", *ends),
        "chosen": fit_encoder("string", pa.chunked_array([drawn]), rows, size),
    }
    shuffled = values.take(pa.array(rng.permutation(rows)))
    budget = args.budget / 100 * size
    asked = rng.integers(0, rows, args.queries)
    found = []
    for title, encoder in encoders.items():
        codes = encoder.encode(values).codes
        points, taken = 0, 0
        if encoder.splits is not None:
            points, taken = len(encoder.splits.points), len(encoder.splits.to_bytes())
        column = Column(name, codes, file, args.files)
        apart = len(np.unique(codes)) / rows
        files = _read(column, asked, budget - taken)
        spent = _nanoseconds(encoder, shuffled)
        found.append(Measured(name, title, points, taken, apart, files, spent))
    ranks = Column(name, np.arange(rows, dtype=np.int64), file, args.files)
    found.append(Measured(name, "ranks", 0, 0, 1.0, _read(ranks, asked, budget), 0.0))
    return found


def _read(column: Column, asked: npt.NDArray[np.int64], budget: float) -> float:
    """Mean number of files read for some rows' keys; exits if the index omits a row's file."""
    query_model = sample(column)
    index = shaped(column, query_model, cut(column, query_model, budget), "auto", budget)
    keys: Codes = column.codes[asked]
    answer = index.may_hold(keys, keys)
    if not answer[np.arange(len(asked)), column.file[asked]].all():
        raise SystemExit(f"an index of {column.name} misses a file")
    return float(answer.sum(axis=1).mean())


def _nanoseconds(encoder: Encoder, values: pa.Array) -> float:
    """CPU nanoseconds per encoded value, for batches as large as Spark's batches."""
    batches = [values.slice(at, BATCH) for at in range(0, len(values), BATCH)]
    encoder.encode(batches[0])
    start = time.process_time()
    for batch in batches:
        encoder.encode(batch)
    return (time.process_time() - start) / len(values) * 1e9


def _print(rows: list[Measured], args: argparse.Namespace) -> None:
    table = Table(box=box.SIMPLE_HEAD, title=f"encoders, `auto` at {args.budget:g} %")
    table.add_column("values")
    table.add_column("encoder")
    for title in ("points", "bytes", "told apart", "files read", "ns a value"):
        table.add_column(title, justify="right")
    for row in rows:
        table.add_row(
            row.values if row.encoder == "prefix" else "",
            row.encoder,
            f"{row.points:,}" if row.points else "-",
            f"{row.bytes:,}" if row.bytes else "-",
            f"{row.apart:.2%}",
            f"{row.files:.2f}",
            f"{row.nanoseconds:.0f}" if row.nanoseconds else "-",
            end_section=row.encoder == "ranks",
        )
    Console(width=None if sys.stdout.isatty() else 110, highlight=False).print(table)


if __name__ == "__main__":
    main()
