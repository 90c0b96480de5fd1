"""Random tables: columns of all indexable types, with values that often break statistics."""

from __future__ import annotations

import datetime as dt
import math
import random
import string
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ZONES = (
    "UTC UTC America/St_Johns Antarctica/Troll Pacific/Apia Europe/Amsterdam Australia/Lord_Howe "
    "America/Havana Asia/Kolkata +01:30"
).split()
FORMATS = ("parquet", "parquet", "parquet", "orc", "orc", "csv", "json")
_MICROS_PER_DAY = 86_400_000_000
# At these instants, the clocks of the time zones above went back or skipped a day.
_TURNS = tuple(
    int(dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC).timestamp()) * 1_000_000
    for text in (
        "2006-10-29T02:31:00 2011-12-30T10:00:00 2020-10-25T01:00:00 2021-04-03T15:00:00 "
        "2021-11-07T05:00:00 1883-11-18T17:00:00 1927-10-31T02:00:00"
    ).split()
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A column type: the SQL name, the Arrow type, and a generator of values."""

    sql: str
    arrow: pa.DataType
    draw: Callable[[random.Random], Any]

    @property
    def family(self) -> str:
        """The name of the type, without its parameters."""
        return self.sql.partition("(")[0].lower()


@dataclass(frozen=True, slots=True)
class GeneratedColumn:
    """The SQL name and some of the values of a column or of a leaf of a struct."""

    sql: str
    kind: Kind
    pool: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class GeneratedTable:
    """A generated table: all of its columns, and the columns with an index."""

    columns: tuple[GeneratedColumn, ...]
    indexed: tuple[str, ...]
    format: str
    zone: str
    ansi: bool
    files: int


def _integers(bits: int) -> Callable[[random.Random], int]:
    top = (1 << (bits - 1)) - 1

    def draw(rng: random.Random) -> int:
        how = rng.random()
        if how < 0.1:
            return rng.choice([-top - 1, -top, top - 1, top, 0, -1, 1])
        if how < 0.75:
            return rng.randint(-40, 60)
        return rng.randint(-top - 1, top)

    return draw


def _float(bits: int) -> Callable[[random.Random], float]:
    def draw(rng: random.Random) -> float:
        how = rng.random()
        if how < 0.25:
            special = [math.nan, -math.nan, 0.0, -0.0, math.inf, -math.inf, 5e-324, 2.0**24 + 1]
            value = rng.choice(special)
        elif how < 0.75:
            value = rng.randint(-40, 60) / 4
        else:
            value = rng.uniform(-1e30, 1e30)
        return struct.unpack("<f", struct.pack("<f", value))[0] if bits == 32 else value

    return draw


def _decimal(precision: int, scale: int) -> Callable[[random.Random], Decimal]:
    top = 10**precision - 1

    def draw(rng: random.Random) -> Decimal:
        how = rng.random()
        if how < 0.1:
            unscaled = rng.choice([-top, top, 0, 1, -1])
        elif how < 0.75:
            unscaled = rng.randint(-40, 60) * 10 ** max(0, scale - 1)
        else:
            unscaled = rng.randint(-top, top)
        return Decimal((unscaled < 0, tuple(int(d) for d in str(abs(unscaled))), -scale))

    return draw


def _days(rng: random.Random) -> int:
    how = rng.random()
    if how < 0.1:
        # The days are 0001-01-01, days around the Gregorian reform, and 9999-12-31.
        return rng.choice([-719162, -141428, -141427, -141418, -141417, 2932896])
    if how < 0.3:
        return rng.choice(_TURNS) // _MICROS_PER_DAY + rng.randint(-2, 2)
    return rng.randint(18250, 18350) if how < 0.8 else rng.randint(-50000, 60000)


def _micros(rng: random.Random) -> int:
    how = rng.random()
    if how < 0.1:
        return rng.choice([-62135596800000000 + 2 * _MICROS_PER_DAY, -12219292800000001, 0, -1, 1])
    if how < 0.45:
        quarter = 900_000_000
        return rng.choice(_TURNS) + rng.randint(-12, 12) * quarter + rng.choice([-1, 0, 1])
    if how < 0.6:
        return _days(rng) * _MICROS_PER_DAY
    return 1577836800000000 + rng.randint(0, 200 * _MICROS_PER_DAY)


_SHARED = "https://example.org/a/long/prefix/that/all/share/"


def _text(rng: random.Random) -> str:
    how = rng.random()
    if how < 0.15:
        return rng.choice(["", *"aAb%_é\uffff\U0001f600", "ab", "a b", "zz"])
    if how < 0.55:
        return _SHARED + "".join(rng.choices("ab01", k=rng.randint(0, 12)))
    if how < 0.8:
        return rng.choice("abc") + "".join(rng.choices(string.ascii_letters, k=rng.randint(0, 9)))
    return str(rng.randint(-40, 60))


def _binary(rng: random.Random) -> bytes:
    how = rng.random()
    if how < 0.3:
        return rng.choice([b"", b"\0", b"\0\0", b"\xff", b"\xff" * 9, b"\x7f", b"\x80"])
    return (b"PFX" if how < 0.7 else b"") + rng.randbytes(rng.randint(0, 10))


KINDS = (
    Kind("BOOLEAN", pa.bool_(), lambda rng: rng.random() < 0.5),
    Kind("TINYINT", pa.int8(), _integers(8)),
    Kind("SMALLINT", pa.int16(), _integers(16)),
    Kind("INT", pa.int32(), _integers(32)),
    Kind("BIGINT", pa.int64(), _integers(64)),
    Kind("FLOAT", pa.float32(), _float(32)),
    Kind("DOUBLE", pa.float64(), _float(64)),
    Kind("DECIMAL(9,2)", pa.decimal128(9, 2), _decimal(9, 2)),
    Kind("DECIMAL(18,6)", pa.decimal128(18, 6), _decimal(18, 6)),
    Kind("DECIMAL(38,10)", pa.decimal128(38, 10), _decimal(38, 10)),
    Kind("DATE", pa.date32(), _days),
    Kind("TIMESTAMP", pa.timestamp("us", "UTC"), _micros),
    Kind("TIMESTAMP_NTZ", pa.timestamp("us"), _micros),
    Kind("STRING", pa.string(), _text),
    Kind("VARCHAR(80)", pa.string(), _text),
    Kind("BINARY", pa.binary(), _binary),
)


def draw_table(rng: random.Random, staging: Path) -> GeneratedTable:
    """Generates a table; writes the rows of each table file to a Parquet file below ``staging``."""
    format_name = rng.choice(FORMATS)
    kinds = [k for k in KINDS if k.family != "binary" or format_name != "csv"]
    chosen = rng.sample(kinds, k=rng.randint(3, 4))
    names = ["c0", "C1", "`c 2`", "`c.3`"]
    columns = [
        GeneratedColumn(name, kind, tuple(kind.draw(rng) for _ in range(rng.choice([2, 12, 60]))))
        for name, kind in zip(names, chosen, strict=False)
    ]
    if format_name != "csv" and rng.random() < 0.4:
        kind = rng.choice(kinds)
        columns.append(GeneratedColumn("s.a", kind, tuple(kind.draw(rng) for _ in range(20))))
    files = rng.randint(1, 7)
    rid = 0
    for number in range(files):
        size = rng.choice([0, 1, 5, 30, 60]) if number else 40
        _write(staging / f"{number}.parquet", rng, columns, rid, size, number)
        rid += size
    indexed = tuple(c.sql for c in rng.sample(columns, k=min(len(columns), rng.choice([1, 2, 2]))))
    return GeneratedTable(
        tuple(columns), indexed, format_name, rng.choice(ZONES), rng.random() < 0.6, files
    )


def _write(
    path: Path, rng: random.Random, columns: list[GeneratedColumn], rid: int, size: int, number: int
) -> None:
    names = ["rid", "p"]
    arrays = [
        pa.array(range(rid, rid + size), pa.int64()),
        pa.array([rng.choice([None, "a", "b c"]) for _ in range(size)], pa.string()),
    ]
    for column in columns:
        values = file_values(rng, column, size, number)
        name = column.sql.strip("`")
        if name == "s.a":
            leaf = pa.array(values, column.kind.arrow)
            whole = pa.StructArray.from_arrays([leaf, arrays[0]], ["a", "b"])
            names.append("s")
            arrays.append(whole)
        else:
            names.append(name)
            arrays.append(pa.array(values, column.kind.arrow))
    pq.write_table(pa.table(arrays, names=names), path)


def file_values(rng: random.Random, column: GeneratedColumn, size: int, number: int) -> list[Any]:
    """Returns the values of one file; some of these values are NULL.

    Files differ, because each file draws from a random subset of the column's values.
    """
    pool = column.pool
    how = rng.random()
    if how < 0.6:
        width = max(1, len(pool) // 5)
        start = (number * width) % len(pool)
        pool = pool[start : start + width] or pool
    elif how < 0.7:
        pool = (rng.choice(pool),)
    nulls = rng.choice([0.0, 0.0, 0.1, 1.0]) if rng.random() < 0.7 else 0.5
    return [None if rng.random() < nulls else rng.choice(pool) for _ in range(size)]


def table_statements(table: GeneratedTable, staging: str, parts: str) -> list[str]:
    """The statements that create table ``t``; each staged file becomes one table file."""
    leaves = [c.kind.sql for c in table.columns if c.sql == "s.a"]
    plain = [c for c in table.columns if c.sql != "s.a"]
    columns = [f"{c.sql} {c.kind.sql}" for c in plain]
    columns += [f"s STRUCT<a: {leaf}, b: BIGINT>" for leaf in leaves]
    names = ", ".join([c.sql for c in plain] + ["s"] * len(leaves))
    options = "OPTIONS (header 'true')" if table.format == "csv" else ""
    made = f"CREATE TABLE t (rid BIGINT, {', '.join(columns)}, p STRING) USING {table.format}"
    filled = f"INSERT INTO t SELECT rid, {names}, p FROM parquet.`{staging}`"
    return [f"{made} {options} {parts}", filled]
