"""Writes Parquet and ORC files with Arrow. Columns can be absent, moved, retyped or respelt."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
from foreign_rows import Rows

# For each type of column, the types in which other writers could store the column's values.
_DRIFTS: Mapping[str, tuple[pa.DataType, ...]] = {
    "smallint": (pa.int8(), pa.int32()),
    "int": (pa.int16(), pa.int8()),
    "bigint": (pa.int32(), pa.int16()),
    "double": (pa.float32(),),
    "string": (pa.binary(), pa.large_string()),
    "varchar": (pa.binary(),),
    "binary": (pa.large_binary(), pa.binary()),
    "timestamp": (pa.timestamp("ms", "UTC"), pa.timestamp("us", "Asia/Tokyo")),
    "timestamp_ntz": (pa.timestamp("ms"),),
}


def write_parquet(rng: random.Random, rows: Rows, path: Path, options: Mapping[str, str]) -> None:
    """Writes one Parquet file, with randomly chosen options of Arrow's writer."""
    del options
    pq.write_table(
        _table(rng, rows, 0.1),
        path,
        version=rng.choice(["1.0", "2.4", "2.6"]),
        compression=rng.choice(["NONE", "SNAPPY", "GZIP", "ZSTD"]),
        use_dictionary=rng.random() < 0.6,
        data_page_version=rng.choice(["1.0", "2.0"]),
        row_group_size=rng.choice([4, 1000]),
        write_statistics=rng.random() < 0.7,
        use_deprecated_int96_timestamps=rng.random() < 0.2,
        allow_truncated_timestamps=True,
        store_decimal_as_integer=rng.random() < 0.3,
        write_page_index=rng.random() < 0.3,
    )


def write_orc(rng: random.Random, rows: Rows, path: Path, options: Mapping[str, str]) -> None:
    """Writes one ORC file, with randomly chosen options of Arrow's writer."""
    del options
    po.write_table(
        _table(rng, rows, 0.05),
        path,
        compression=rng.choice(["UNCOMPRESSED", "SNAPPY", "ZLIB", "ZSTD"]),
        file_version=rng.choice(["0.11", "0.12"]),
        row_index_stride=rng.choice([1000, 10000]),
        dictionary_key_size_threshold=rng.choice([0.0, 1.0]),
    )


def _table(rng: random.Random, rows: Rows, drift: float) -> pa.Table:
    columns = []
    for name in rows.names:
        if name not in ("rid", "p") and rng.random() < drift:
            continue
        array = _array(rng, rows, name, drift)
        plain = name.strip("`")
        columns.append((plain.swapcase() if rng.random() < drift else plain, array))
    if rng.random() < 2 * drift:
        rng.shuffle(columns)
    if rng.random() < 2 * drift:
        columns.append(("more", pa.array(range(len(rows)), pa.int64())))
    return pa.table([array for _, array in columns], names=[name for name, _ in columns])


def _array(rng: random.Random, rows: Rows, name: str, drift: float) -> pa.Array:
    values = rows.values[name]
    if name == "s":
        leaf = _scalars(rng, rows, "s.a", [v and v["a"] for v in values], drift)
        other = pa.array([v and v["b"] for v in values], pa.int64())
        missing = pa.array([v is None for v in values], pa.bool_())
        parts = [("a", leaf), ("b", other)]
        parts = [part for part in parts if rng.random() >= drift] or parts
        return pa.StructArray.from_arrays(
            [array for _, array in parts], [n for n, _ in parts], mask=missing
        )
    if name == "l":
        return pa.array(values, pa.list_(pa.int32()))
    if name == "m":
        return pa.array([v and list(v.items()) for v in values], pa.map_(pa.string(), pa.int32()))
    return _scalars(rng, rows, name, values, drift)


def _scalars(
    rng: random.Random, rows: Rows, name: str, values: list[Any], drift: float
) -> pa.Array:
    kind = rows.kinds.get(name)
    if kind is None:
        return pa.array(values, pa.int64() if name == "rid" else pa.string())
    array = pa.array(values, kind.arrow)
    if rng.random() >= drift or kind.family not in _DRIFTS:
        return array
    if kind.family in {"varchar", "string"}:
        # Some programs do not write UTF-8, so these texts are encoded in Latin-1.
        image = [v and v.encode("latin-1", "replace") for v in values]
        return pa.array(image, pa.binary())
    try:
        return array.cast(rng.choice(_DRIFTS[kind.family]), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return array
