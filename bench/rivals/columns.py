"""Columns of the comparison. Some of the columns are generated, and the others come from TPC-H."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.texts import TEXTS
from bench.tpch import generate
from sieve.encoding.encoder import Encoder
from sieve.indexing.column_sample import WANTED
from sieve.indexing.fit_encoder import fit_encoder

Codes = npt.NDArray[np.int64]
Rng = np.random.Generator
ROW_BYTES: Final = 50
"""Bytes per row of a table. The budget `auto` depends on the table's size."""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The rows of a column: their key codes and their files.

    Attributes:
        name: the column's name in reports.
        codes: int64[n], the key code of each row.
        file: int32[n], the number of each row's file, from 0 to files - 1.
        files: number of files.
        width: mean size of a value, in bytes.
        encoder: size of the encoder's data, in bytes.
        spread: standard deviation of the logarithm of a file's bytes per row; 0 for equal rows.
    """

    name: str
    codes: Codes
    file: npt.NDArray[np.int32]
    files: int
    width: float = 8.0
    encoder: int = 0
    spread: float = 0.0

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """int64[files], the bytes of each file. The median file has `ROW_BYTES` bytes per row."""
        drawn = np.exp(np.random.default_rng(3).normal(0, self.spread, self.files))
        return (ROW_BYTES * np.bincount(self.file, minlength=self.files) * drawn).astype(np.int64)

    @property
    def nbytes(self) -> float:
        """Size of all values, in bytes."""
        return self.width * len(self.codes)

    def keys_of_files(self) -> Iterator[tuple[Codes, npt.NDArray[np.int64]]]:
        """Yields each file's distinct keys in ascending order, and each key's number of rows."""
        order = np.lexsort((self.codes, self.file))
        codes = self.codes[order]
        bounds = np.searchsorted(self.file[order], np.arange(self.files + 1))
        for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            distinct, rows = np.unique(codes[low:high], return_counts=True)
            yield distinct, rows.astype(np.int64)


# For each of these columns: a budget, in percent of the column's bytes. With the budget, `auto`
# must read at most 1.10 times the lower bound of files. Indexes on these columns can be small.
# Their files have few keys, few long sequences of keys or few late rows, or the keys are skewed.
GOALS: Final[Mapping[str, float]] = {
    "late rows": 1.0,
    "tenant id": 1.0,
    "random walk": 1.0,
    "one hot key": 1.0,
    "l_orderkey, natural": 1.0,
    "Zipf 1.3": 3.0,
}


def _late(rng: Rng, rows: int, files: int) -> Codes:
    """Ascending times, but one row in a hundred has a random earlier time."""
    times = np.arange(rows, dtype=np.int64) * 1_000_000 + rng.integers(0, 1_000_000, rows)
    late = rng.random(rows) < 0.01
    times[late] = (times[late] * rng.random(int(late.sum()))).astype(np.int64)
    return times


def _tenants(rng: Rng, rows: int, files: int) -> Codes:
    """Each file contains twenty of 5,000 tenants."""
    tenants = np.stack([rng.choice(5000, 20, replace=False) for _ in range(files)])
    return tenants[_in_order(rows, files), rng.integers(0, 20, rows)].astype(np.int64)


def _tenant_ids(rng: Rng, rows: int, files: int) -> Codes:
    return (_tenants(rng, rows, files) << 32) + rng.integers(0, 1 << 20, rows)


def _months(rng: Rng, rows: int, files: int) -> Codes:
    """Each file contains two of 120 months."""
    months = np.stack([rng.choice(120, 2, replace=False) for _ in range(files)])
    month = months[_in_order(rows, files), rng.integers(0, 2, rows)].astype(np.int64)
    length = 30 * 86_400_000_000
    return month * length + rng.integers(0, length, rows)


def _zipf(rng: Rng, rows: int, files: int) -> Codes:
    return np.minimum(rng.zipf(1.3, rows), 1 << 40).astype(np.int64)


def _walk(rng: Rng, rows: int, files: int) -> Codes:
    """A random walk, like the values of a sensor.

    A file contains nearly all keys between its minimum and its maximum.
    """
    return np.cumsum(rng.integers(-10, 11, rows)).astype(np.int64)


def _leaps(rng: Rng, rows: int, files: int) -> Codes:
    """A random walk with steps so large that most keys between two values do not occur."""
    return np.cumsum(rng.integers(-1000, 1001, rows)).astype(np.int64)


def _uniform(rng: Rng, rows: int, files: int) -> Codes:
    return rng.integers(-(1 << 63), (1 << 63) - 1, rows)


def _sawtooth(rng: Rng, rows: int, files: int) -> Codes:
    """Every file spans the whole domain. File f of n files has the keys f, f + n, f + 2n, ..."""
    within = np.arange(rows, dtype=np.int64) % (rows // files)
    return within * files + _in_order(rows, files)


def _hot(rng: Rng, rows: int, files: int) -> Codes:
    """Ascending keys, but half of the rows have the same key."""
    keys = np.arange(rows, dtype=np.int64)
    keys[rng.random(rows) < 0.5] = rows // 3
    return keys


def _uuids(rng: Rng, rows: int, files: int) -> pa.Array:
    digits = np.frombuffer(rng.bytes(16 * rows).hex().encode(), "S1").reshape(rows, 32)
    dash = np.full((rows, 1), b"-")
    parts = np.split(digits, [8, 12, 16, 20], axis=1)
    text = np.concatenate([x for part in parts for x in (part, dash)][:-1], axis=1)
    return pa.array(np.ascontiguousarray(text).view("S36").ravel()).cast(pa.string())


def _urls(rng: Rng, rows: int, files: int) -> pa.Array:
    """Each file has URLs of 100 out of 3,000 hosts. Some hosts are in more files than others."""
    words = rng.integers(0, 26, (3000, 9), dtype=np.uint8) + ord("a")
    names = np.ascontiguousarray(words).view("S9").ravel().astype(str)
    weight = 1 / np.arange(1, 3001)
    weight /= weight.sum()
    hosts = np.stack([rng.choice(3000, 100, replace=False, p=weight) for _ in range(files)])
    host = hosts[_in_order(rows, files), rng.integers(0, 100, rows)]
    pages = pa.array(rng.integers(0, 5000, rows)).cast(pa.string())
    text = pc.binary_join_element_wise("https://www.", names[host], "", null_handling="skip")
    return pc.binary_join_element_wise(text, "/page/", pages, "")


def _mails(rng: Rng, rows: int, files: int) -> pa.Array:
    return TEXTS["e-mail addresses"](rng, rows)


MADE: Final[Mapping[str, Callable[[Rng, int, int], Codes | pa.Array]]] = {
    "late rows": _late,
    "tenant, random id": _tenant_ids,
    "tenant id": _tenants,
    "two months of 120": _months,
    "Zipf 1.3": _zipf,
    "random walk": _walk,
    "random walk, far steps": _leaps,
    "uniformly random": _uniform,
    "UUID strings": _uuids,
    "URLs": _urls,
    "sawtooth": _sawtooth,
    "one hot key": _hot,
    "e-mail addresses": _mails,
}
# The type of each column, and the size of a value in bytes for a type of fixed size.
LINEITEM: Final = {
    "l_orderkey": ("bigint", 8),
    "l_shipdate": ("date", 4),
    "l_extendedprice": ("decimal(15,2)", 8),
    "l_comment": ("string", 0),
}
ORDERS: Final = ("natural", "shuffled")
NAMES: Final = (*MADE, *(f"{column}, {order}" for column in LINEITEM for order in ORDERS))


def column(name: str, rows: int, files: int, folder: Path) -> Column:
    """The column with this name. Calls with equal arguments return equal rows.

    Args:
        name: one of `NAMES`.
        rows: number of rows. For TPC-H, the maximum is 6,001,215.
        files: number of files, with equal numbers of rows if possible.
        folder: folder of TPC-H's lineitem. The function generates a missing table.
    """
    rng = np.random.default_rng(NAMES.index(name))
    if name in MADE:
        values = MADE[name](rng, rows, files)
        if isinstance(values, np.ndarray):
            return Column(name, values, _in_order(rows, files), files)
        return _of_strings(name, values, files, rng)
    title, order = name.split(", ")
    type_name, width = LINEITEM[title]
    values = pq.read_table(generate(folder, "lineitem", 1), columns=[title])[title].slice(0, rows)
    if type_name == "string":
        values = values.cast(pa.string())
    values = values.combine_chunks()
    if order == "shuffled":
        values = values.take(pa.array(rng.permutation(len(values))))
    if type_name == "string":
        return _of_strings(name, values, files, rng)
    codes = Encoder(type_name).encode(values).codes
    return Column(name, codes, _in_order(len(codes), files), files, width)


def _of_strings(name: str, values: pa.Array, files: int, rng: Rng) -> Column:
    """A column of strings, encoded by the encoder that a build would choose from a sample."""
    rows = len(values)
    width = pc.mean(pc.binary_length(values)).as_py()
    seen = np.sort(rng.choice(rows, min(WANTED, rows), replace=False))
    drawn = pa.chunked_array([values.take(pa.array(seen))])
    encoder = fit_encoder("string", drawn, rows, int(width * rows))
    spent = 0 if encoder.splits is None else len(encoder.splits.to_bytes())
    codes = encoder.encode(values).codes
    return Column(name, codes, _in_order(rows, files), files, width, spent)


def _in_order(rows: int, files: int) -> npt.NDArray[np.int32]:
    return (np.arange(rows) * files // rows).astype(np.int32)
