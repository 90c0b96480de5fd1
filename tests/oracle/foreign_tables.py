"""Random tables, with random schemas and reader options, over files that Spark did not write."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import column_files
import csv_files
import json_files
from foreign_rows import Rows
from generated_tables import KINDS, ZONES, GeneratedColumn, GeneratedTable, Kind, file_values

FORMATS = ("json", "csv", "parquet", "orc")
_CORRUPT = "columnNameOfCorruptRecord"
_BIGINT = next(kind for kind in KINDS if kind.sql == "BIGINT")
_HOUR_S = 3600
_TEXTS = ("caf\u00e9", "\u4e16\U0001f600", 'quo"ted', "back\\slash", "tab\tand, comma", " ", "")
_SWITCHES = (
    "parquet.filterPushdown parquet.enableVectorizedReader "
    "parquet.enableNestedColumnVectorizedReader orc.filterPushdown orc.enableVectorizedReader "
    "csv.filterPushdown.enabled csv.parser.columnPruning.enabled json.filterPushdown.enabled "
    "json.enablePartialResults"
).split()


@dataclass(frozen=True, slots=True)
class Probe:
    """An indexed column, and a value that queries look for in this column."""

    column: GeneratedColumn
    value: Any


@dataclass(frozen=True, slots=True)
class ForeignTable:
    """A generated table.

    Attributes:
        drawn: the columns and values for the random predicates.
        options: the options of the reader.
        settings: the settings of the reading session.
        partitioned: whether ``p`` is a partition column.
    """

    drawn: GeneratedTable
    options: Mapping[str, str]
    settings: Mapping[str, str]
    partitioned: bool

    @property
    def columns(self) -> list[str]:
        """The top-level columns of the table's files: all columns except ``p``."""
        plain = [c.sql for c in self.drawn.columns if c.sql != "s.a"]
        return [*plain, *(["s", "l", "m"] if self.drawn.format != "csv" else []), "t"]

    def statement(self, folder: Path) -> str:
        """The CREATE TABLE statement that reads a folder of files."""
        types = {c.sql: c.kind.sql for c in self.drawn.columns}
        types |= {"t": "STRING", "p": "STRING", "l": "ARRAY<INT>"}
        types |= {"s": f"STRUCT<a: {types.get('s.a')}, b: BIGINT>", "m": "MAP<STRING, INT>"}
        columns = [f"{name} {types[name]}" for name in [*self.columns, "p"]]
        if _CORRUPT in self.options:
            columns.insert(-1, f"{self.options[_CORRUPT]} STRING")
        options = ", ".join(f"'{k}' {_quoted(v)}" for k, v in self.options.items())
        return (
            f"CREATE TABLE t ({', '.join(columns)}) USING {self.drawn.format} "
            + (f"OPTIONS ({options}) " if options else "")
            + ("PARTITIONED BY (p) " if self.partitioned else "")
            + f"LOCATION '{folder}'"
        )


def draw_table(rng: random.Random, form: str) -> ForeignTable:
    """Draws a schema for a format, options of the reader, and settings of the reading session."""
    kinds = [k for k in KINDS if k.family != "binary" or form != "csv"]
    names = ["c0", "C1", "c2"] if form == "orc" else ["c0", "C1", "`c 2`"]
    if form != "csv":
        names.append("s.a")
    drawn_columns = [_column(rng, name, rng.choice(kinds)) for name in names]
    # Each row has a unique id, so the test notices a single lost row of a file.
    rid = GeneratedColumn("rid", _BIGINT, tuple(range(0, 800, 3)))
    columns = (rid, *drawn_columns)
    indexed = ("rid", rng.choice(drawn_columns).sql)
    zone, ansi = rng.choice(ZONES), rng.random() < 0.4
    rebase = rng.choice(["CORRECTED", "CORRECTED", "LEGACY"])
    settings = {
        "spark.sql.session.timeZone": zone,
        "spark.sql.ansi.enabled": str(ansi).lower(),
        "spark.sql.parquet.datetimeRebaseModeInRead": rebase,
        "spark.sql.parquet.int96RebaseModeInRead": rebase,
    }
    settings |= {f"spark.sql.{name}": str(rng.random() < 0.7).lower() for name in _SWITCHES}
    settings["spark.sql.files.ignoreCorruptFiles"] = str(rng.random() < 0.3).lower()
    drawn = GeneratedTable(columns, indexed, form, zone, ansi, rng.randint(4, 7))
    draw_options = _OPTIONS.get(form)
    options = draw_options(rng) if draw_options else {}
    return ForeignTable(drawn, options, settings, rng.random() < 0.2)


def write_file(
    rng: random.Random, table: ForeignTable, folder: Path, number: int, rids: range
) -> tuple[Path, list[Probe]]:
    """Writes one file of a table, and sets its modification time to an hour ago.

    Returns:
        The file, and indexed values of the file's damaged rows. If no row is damaged, values of
        some rows.
    """
    values = {c.sql: file_values(rng, c, len(rids), number) for c in table.drawn.columns}
    values["rid"] = list(rids)
    leaves = values.get("s.a", [None] * len(rids))
    values["s"] = [
        None if rng.random() < 0.1 else {"a": a, "b": rid}
        for a, rid in zip(leaves, rids, strict=True)
    ]
    values["l"] = [rng.choice([None, [], [1, None, 2]]) for _ in rids]
    values["m"] = [rng.choice([None, {}, {"k": 1}]) for _ in rids]
    values["t"] = [rng.choice(_TEXTS) for _ in rids]
    values["p"] = [rng.choice([None, "a", "b"]) for _ in rids]
    names = table.columns if table.partitioned else [*table.columns, "p"]
    home = folder / f"p={rng.choice('ab')}" if table.partitioned else folder
    home.mkdir(parents=True, exist_ok=True)
    path = home / f"{number}.{table.drawn.format}"
    rows = Rows(tuple(names), values, {c.sql: c.kind for c in table.drawn.columns})
    _WRITERS[table.drawn.format](rng, rows, path, table.options)
    put_back(path, number)
    struck = sorted(rows.damaged) or rng.sample(range(len(rids)), k=min(2, len(rids)))
    indexed = [c for c in table.drawn.columns if c.sql in table.drawn.indexed]
    return path, [Probe(c, values[c.sql][k]) for c in indexed for k in struck]


def put_back(path: Path, number: int) -> None:
    """Sets a file's modification time to an hour ago, so that the file is stable.

    In some cases, the modification time is a whole second.
    """
    at = (time.time_ns() // 1_000_000_000 - _HOUR_S + number) * 1_000_000_000
    at += (number % 2) * 5_000_000
    os.utime(path, ns=(at, at))


def _column(rng: random.Random, name: str, kind: Kind) -> GeneratedColumn:
    # The values of a file come from a fifth of the column's values. In a column with many values,
    # all rows of a file have different values.
    size = rng.choice([12, 300, 300])
    return GeneratedColumn(name, kind, tuple(kind.draw(rng) for _ in range(size)))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + escaped.replace("\n", "\\n").replace("\t", "\\t") + "'"


_Writer = Callable[[random.Random, Rows, Path, Mapping[str, str]], None]
_WRITERS: Mapping[str, _Writer] = {
    "json": json_files.write,
    "csv": csv_files.write,
    "parquet": column_files.write_parquet,
    "orc": column_files.write_orc,
}
_OPTIONS: Mapping[str, Callable[[random.Random], dict[str, str]]] = {
    "json": json_files.draw_options,
    "csv": csv_files.draw_options,
}
