"""The tables of large files for ``make bench-ranges``, and the queries that run on them.

A row has about a hundred bytes. A file has `GROUPS` row groups, or stripes in ORC. The columns are:

- ``id``: unique keys in random order, so that every file and row group spans the whole domain;
- ``day``: a day that ascends with the rows, with 2 % late rows, so that a file covers a few days;
- ``sorted_id``: the keys of ``id``, but sorted within each file, so that every file spans the whole
  domain;
- ``block``: the number of the row's block. The table consists of 1,000 blocks in random order;
- ``pad``: text that pads the row to a hundred bytes.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.orc as po
import pyarrow.parquet as pq

GROUPS = 16
ROW_BYTES = 100
DAYS = 4_000
BLOCKS = 1_000
SCHEMA = "id BIGINT, day INT, sorted_id BIGINT, block INT, pad STRING"
FORMATS = ("parquet", "orc", "csv")

_PAD = 68
_LATE = 50
"""One in `_LATE` rows is late."""
_PAGE = 20_000
"""Number of rows in a Parquet page, as in files that Spark writes."""

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Large:
    """The files of a table: their format, the number of rows per file, and the number of files."""

    kind: str
    rows: int
    files: int

    def ids(self, number: int) -> Ids:
        """Unique keys in random order. An odd multiplier permutes the numbers below 2^48."""
        serial = np.arange(number * self.rows, (number + 1) * self.rows, dtype=np.uint64)
        mixed = serial * np.uint64(0x9E37_79B9_7F4B) % np.uint64(1 << 48)
        return (mixed ^ (mixed >> np.uint64(24))).astype(np.int64)

    def write(self, folder: Path, number: int) -> None:
        """Writes the file with this number."""
        folder.mkdir(parents=True, exist_ok=True)
        random, rows = np.random.default_rng(number), self.rows
        serial = np.arange(number * rows, (number + 1) * rows)
        late = random.integers(0, _LATE, rows) == 0
        lateness = np.where(late, random.integers(0, DAYS // 10, rows), 0)
        day = np.maximum(serial * DAYS // (rows * self.files) - lateness, 0)
        ids = self.ids(number)
        block = serial * BLOCKS // (rows * self.files) * 617 % BLOCKS
        pad = random.integers(97, 123, rows * _PAD, np.uint8)
        offsets = np.arange(rows + 1, dtype=np.int64) * _PAD
        text = pa.LargeStringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(pad))
        columns = (ids, day.astype(np.int32), np.sort(ids), block.astype(np.int32))
        names = [column.split()[0] for column in SCHEMA.split(", ")]
        table = pa.table([*map(pa.array, columns), text.cast(pa.string())], names)
        self._write(table, folder / f"part-{number:05d}.{self.kind}", rows // GROUPS)

    def _write(self, table: pa.Table, path: Path, group: int) -> None:
        if self.kind == "parquet":
            pq.write_table(
                table,
                path,
                row_group_size=group,
                compression="zstd",
                use_dictionary=False,
                write_page_index=True,
                data_page_size=8 * _PAGE,
            )
        elif self.kind == "orc":
            po.write_table(table, path, stripe_size=group * ROW_BYTES, compression="zstd")
        else:
            pv.write_csv(table, path, pv.WriteOptions(include_header=False))

    def least(self, folder: Path, out: Path, matches: pc.Expression) -> int:
        """Writes each row group with a match to a separate file.

        Returns the number of files.
        """
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        found = 0
        for path in sorted(folder.iterdir()):
            for k, group in enumerate(self._groups(path)):
                if group.filter(matches).num_rows:
                    self._write(group, out / f"{path.stem}-{k}.{self.kind}", len(group))
                    found += 1
        return found

    def _groups(self, path: Path) -> Iterator[pa.Table]:
        if self.kind == "parquet":
            parquet = pq.ParquetFile(path)
            yield from map(parquet.read_row_group, range(parquet.num_row_groups))
        elif self.kind == "orc":
            orc = po.ORCFile(path)
            yield from (pa.table(orc.read_stripe(k)) for k in range(orc.nstripes))
        else:
            names = [column.split()[0] for column in SCHEMA.split(", ")]
            table = pv.read_csv(path, pv.ReadOptions(column_names=names))
            # Sieve divides text files into ranges of 8 MB. So this code cuts text files at the same
            # offsets.
            each = -(-len(table) * (8 << 20) // path.stat().st_size)
            yield from (table.slice(k, each) for k in range(0, len(table), each))


@dataclass(frozen=True, slots=True)
class Query:
    """A query: its title, its WHERE clause, and the same condition as an Arrow expression."""

    title: str
    where: str
    matches: pc.Expression


def queries(table: Large) -> Iterator[Query]:
    """Yields queries for one key, ten keys, ranges, half of the rows, and all rows.

    A fixed seed selects the keys, so every run queries the same keys.
    """
    random = np.random.default_rng(1)
    keys = [
        int(table.ids(int(random.integers(table.files)))[int(random.integers(table.rows))])
        for _ in range(10)
    ]
    yield Query("unique id, point", f"id = {keys[0]}", pc.field("id") == keys[0])
    some = ", ".join(map(str, keys))
    yield Query("unique id, IN of 10", f"id IN ({some})", pc.field("id").isin(keys))
    first, last = DAYS // 2, DAYS // 2 + 1
    day = pc.field("day")
    yield Query(
        "day, range of 0.05 %", f"day BETWEEN {first} AND {last}", (day >= first) & (day <= last)
    )
    key = pc.field("sorted_id") == keys[1]
    yield Query("sorted in files, point", f"sorted_id = {keys[1]}", key)
    yield Query("block, point", "block = 414", pc.field("block") == 414)
    yield Query("half of the table", f"day < {first}", day < first)
    yield Query("nothing to skip", "day >= 0", day >= 0)
