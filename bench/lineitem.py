"""Writes TPC-H's lineitem in three file layouts, with late rows as they occur in practice.

The files of ``lineitem_by_date`` contain the rows in order of arrival. Most rows arrive on their
ship date, but 2 % of the rows arrive 1 to 730 days later. A late row is more than d days late with
probability 1/d. So half of the late rows arrive within 2 days, and nine in ten within 10 days. One
late row in a hundred arrives after more than three months. The files of ``lineitem_by_order`` are
in order of order keys, but 2 % of the orders are in a random later file. ``lineitem_large``
contains the rows of ``lineitem_by_order`` in the same order, but in four large files.

A hash of a row's key decides whether the row is late. So every run at the same scale writes the
same files.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

FILES = 400
LARGE_FILES = 4
LATE_SHARE = 0.02
LATEST_DAYS = 730
ORDERS_PER_SCALE = 1_500_000

BY_DATE = "lineitem_by_date"
BY_ORDER = "lineitem_by_order"
LARGE = "lineitem_large"

_BATCH = 1 << 19
_ROWS_HELD = 60_000
"""The buffer of an output file becomes a row group when it contains this number of rows."""

Numbers = npt.NDArray[np.int64]
Say = Callable[[float], None]


def cut(raw: Path, table: str, scale: int, say: Say) -> Path:
    """Creates the files of one table, unless they exist. Returns the folder that contains them.

    Args:
        raw: file of the raw table. The function creates the new folder next to the raw file.
        table: name of the table to create, `BY_DATE` or `BY_ORDER`.
        scale: scale factor of the raw table.
        say: a callback that receives the progress, a share from 0 to 1.
    """
    target = raw.parent / table
    if target.exists():
        return target
    part = raw.parent / f"{table}.tmp"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    if table == BY_DATE:
        edges = _arrival_edges(raw)
        _write(raw, part, lambda rows: _file_by_date(rows, edges), "l_shipdate", say)
    else:
        _write(raw, part, lambda rows: _file_by_order(rows, scale), "l_orderkey", say)
    part.rename(target)
    return target


def join_files(folder: Path, say: Say) -> Path:
    """Creates the files of `LARGE`. Each row group has the rows of four files of `BY_ORDER`.

    Args:
        folder: folder of `BY_ORDER`. The function creates the new folder next to the given folder.
        say: a callback that receives the progress, a share from 0 to 1.
    """
    target = folder.parent / LARGE
    if target.exists():
        return target
    part = target.with_suffix(".tmp")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    small = sorted(folder.glob("*.parquet"))
    each = len(small) // LARGE_FILES

    def write(number: int) -> None:
        mine = small[number * each : (number + 1) * each]
        path = part / f"part-{number:05d}.parquet"
        with pq.ParquetWriter(path, pq.read_schema(mine[0]), store_schema=False) as writer:
            for k in range(0, each, 4):
                writer.write_table(pa.concat_tables(map(pq.read_table, mine[k : k + 4])))

    with ThreadPoolExecutor(2) as pool:
        for done, _ in enumerate(pool.map(write, range(LARGE_FILES)), 1):
            say(done / LARGE_FILES)
    part.rename(target)
    return target


def order_key(number: int) -> int:
    """The key of order number n. TPC-H uses the first 8 of every 32 keys (specification, 4.2.3)."""
    return (number >> 3 << 5) | (number & 7)


def _order_number(keys: Numbers) -> Numbers:
    return (keys >> 5 << 3) | (keys & 7)


def _uniform(keys: Numbers, stream: int) -> npt.NDArray[np.float64]:
    """Uniform pseudorandom numbers in [0, 1), one per key, from SplitMix64's last mixing step."""
    with np.errstate(over="ignore"):
        x = keys.astype(np.uint64) * np.uint64(8) + np.uint64(stream)
        x = x * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return (x >> np.uint64(11)).astype(np.float64) / float(1 << 53)


def _arrival(rows: pa.RecordBatch) -> npt.NDArray[np.float64]:
    """Arrival time of each row, in days."""
    shipped = rows["l_shipdate"].cast(pa.int32()).to_numpy().astype(np.float64)
    lines = rows["l_orderkey"].to_numpy() * 8 + rows["l_linenumber"].to_numpy()
    late = _uniform(lines, 1) < LATE_SHARE
    # The inverse of the tail probability 1/d turns a uniform number into a delay of 1 to 730 days.
    draw = _uniform(lines, 2) * (1 - 1 / LATEST_DAYS)
    return shipped + _uniform(lines, 3) + np.where(late, 1 / (1 - draw), 0)


def _batches(raw: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    file = pq.ParquetFile(raw)
    for batch in file.iter_batches(_BATCH, columns=columns, use_threads=True):
        fields = [
            pa.field(f.name, pa.string() if f.type == pa.string_view() else f.type)
            for f in batch.schema
        ]
        yield batch.cast(pa.schema(fields))


def _arrival_edges(raw: Path) -> npt.NDArray[np.float64]:
    """The arrival times at which new files begin; the files have about equal sizes."""
    columns = ["l_orderkey", "l_linenumber", "l_shipdate"]
    arrivals = np.concatenate([_arrival(rows) for rows in _batches(raw, columns)])
    return np.quantile(arrivals, np.arange(1, FILES) / FILES)


def _file_by_date(rows: pa.RecordBatch, edges: npt.NDArray[np.float64]) -> Numbers:
    return np.searchsorted(edges, _arrival(rows), side="right").astype(np.int64)


def _file_by_order(rows: pa.RecordBatch, scale: int) -> Numbers:
    keys = rows["l_orderkey"].to_numpy()
    own = _order_number(keys) * FILES // (ORDERS_PER_SCALE * scale + 1)
    later = own + 1 + (_uniform(keys, 5) * (FILES - 1 - own)).astype(np.int64)
    late = (_uniform(keys, 4) < LATE_SHARE) & (own < FILES - 1)
    return np.where(late, later, own)


def _write(
    raw: Path, folder: Path, file_of: Callable[[pa.RecordBatch], Numbers], order: str, say: Say
) -> None:
    """Writes rows to `FILES` files in bounded memory. Sorts each row group by one column."""
    total, seen = pq.ParquetFile(raw).metadata.num_rows, 0
    held: list[list[pa.RecordBatch]] = [[] for _ in range(FILES)]
    counts = np.zeros(FILES, np.int64)
    writers: dict[int, pq.ParquetWriter] = {}

    def flush(number: int) -> None:
        rows = pa.Table.from_batches(held[number]).sort_by(order)
        held[number], counts[number] = [], 0
        if number not in writers:
            writers[number] = pq.ParquetWriter(
                folder / f"part-{number:05d}.parquet", rows.schema, store_schema=False
            )
        writers[number].write_table(rows)

    def finish(number: int) -> None:
        if counts[number]:
            flush(number)
        writers.pop(number).close()

    with ThreadPoolExecutor(2) as pool:
        for rows in _batches(raw):
            files = file_of(rows)
            by_file = np.argsort(files, kind="stable")
            sorted_rows = rows.take(pa.array(by_file))
            ends = np.searchsorted(files[by_file], np.arange(FILES + 1))
            for number in np.flatnonzero(np.diff(ends)):
                start, end = int(ends[number]), int(ends[number + 1])
                held[number].append(sorted_rows.slice(start, end - start))
                counts[number] += end - start
            list(pool.map(flush, np.flatnonzero(counts >= _ROWS_HELD).tolist()))
            seen += rows.num_rows
            say(seen / total / 2)
        for done, _ in enumerate(pool.map(finish, range(FILES)), 1):
            say((1 + done / FILES) / 2)
