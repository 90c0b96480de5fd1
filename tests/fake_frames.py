"""Data frames that replace PySpark's data frames and need no Spark.

A frame has rows in partitions, and computes them eagerly. As on executors, the steps of a build get
Arrow batches. Here, batches have few rows, and partitions run one after another. The frames have
only the methods that `sieve` uses. `use` installs the functions that make columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from sieve.encoding.hashing import hash_bytes
from sieve.indexing import (
    build_hash_map,
    column_sample,
    fit_budget,
    read_column,
    value_columns,
)
from sieve.indexing.partition_keys import partition_keys
from sieve.operations import check

_BATCH_ROWS = 1000
_MODULES = (
    build_hash_map, check, column_sample, fit_budget,
    read_column, value_columns,
)  # fmt: skip

Values = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Col:
    """A column: a name, and the function that computes the column's value from a row.

    Attributes:
        source: another column, whose type applies if this column has no type.
        fold: the function that combines the values of all rows, if this column is an aggregate.
    """

    of: Callable[[Values], Any]
    name: str = "?"
    source: str = ""
    type: pa.DataType | None = None
    fold: Callable[[list[Any]], Any] | None = None

    def alias(self, name: str) -> Col:
        """Returns the same column under another name."""
        return replace(self, name=name)

    def cast(self, name: str) -> Col:
        """Converts the column to another type: to an integer, or from text to bytes."""
        of = self.of
        made, type_ = {"int": (int, pa.int32()), "binary": (_bytes, pa.binary())}[name]
        return replace(self, of=lambda row: None if of(row) is None else made(of(row)), type=type_)

    def __eq__(self, other: object) -> Col:  # type: ignore[override]
        return Col(lambda row: self.of(row) == other)

    def __ne__(self, other: object) -> Col:  # type: ignore[override]
        return Col(lambda row: self.of(row) != other)

    __hash__ = None  # type: ignore[assignment]

    def __mul__(self, by: int) -> Col:
        return Col(lambda row: self.of(row) * by)

    def __truediv__(self, by: int) -> Col:
        return Col(lambda row: self.of(row) / by)

    def isin(self, values: Sequence[Any]) -> Col:
        """Returns whether the value is one of the given values."""
        return Col(lambda row: self.of(row) in values)

    def isNotNull(self) -> Col:  # noqa: N802 - PySpark's name
        """Returns whether the value is not NULL."""
        return Col(lambda row: self.of(row) is not None)

    def otherwise(self, value: Col) -> Col:
        """Sets the value that `when` returns for rows that do not satisfy the condition."""

        def of(row: Values) -> Any:
            found = self.of(row)
            return value.of(row) if found is None else found

        return replace(self, of=of)


def _col(what: str | Col) -> Col:
    if isinstance(what, Col):
        return what
    name = what.strip("`")

    def of(row: Values) -> Any:
        value: Any = row
        for part in name.split("."):
            value = None if value is None else value[part]
        return value

    return Col(of, name.split(".")[-1], name)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _hashed(value: Any) -> int:
    """Returns the hash that Spark computes for text and bytes.

    The hash of a number is arbitrary, because no test depends on it.
    """
    if value is None:
        return 42
    return int(hash_bytes([_bytes(value)]).view(np.int64)[0])


def _aggregate(fold: Callable[[list[Any]], Any]) -> Callable[[str | Col], Col]:
    def of_values(values: list[Any]) -> Any:
        some = [value for value in values if value is not None]
        return fold(some) if some else None

    return lambda what: replace(_col(what), fold=of_values)


def _when(condition: Col, value: Any) -> Col:
    of = value.of if isinstance(value, Col) else lambda _: value
    type_ = value.type if isinstance(value, Col) else None
    return Col(lambda row: of(row) if condition.of(row) else None, type=type_)


functions = SimpleNamespace(
    col=_col,
    lit=lambda value: Col(lambda _: value),
    when=_when,
    sum=_aggregate(sum),
    min=_aggregate(min),
    max=_aggregate(max),
    count=lambda _: Col(lambda _: 1, fold=len),
    get=lambda array, place: Col(lambda row: array.of(row)[place.of(row)], type=pa.int32()),
    floor=lambda what: Col(lambda row: int(what.of(row) // 1)),
    octet_length=lambda what: Col(
        lambda row: None if row[what] is None else len(row[what].encode()), type=pa.int32()
    ),
    substring=lambda what, at, n: Col(
        lambda row: None if what.of(row) is None else what.of(row)[at - 1 : at - 1 + n],
        source=what.source,
        type=what.type,
    ),
    xxhash64=lambda what: Col(lambda row: _hashed(_col(what).of(row)), "xxhash64", type=pa.int64()),
)


@dataclass(frozen=True)
class Cluster:
    """The state that all frames of one session share.

    Attributes:
        calls: the names of the calls that have a side effect, in call order.
        sent: the broadcast values that no caller has destroyed yet.
    """

    master: str = "local[2]"
    defaultParallelism: int = 2  # noqa: N815 - PySpark's name
    calls: list[str] = field(default_factory=list)
    sent: list[Any] = field(default_factory=list)

    def broadcast(self, value: Any) -> Any:
        """Stores a value until a caller destroys it."""
        self.sent.append(value)
        return SimpleNamespace(value=value, destroy=lambda: self.sent.remove(value))


@dataclass(frozen=True, eq=False)
class Frame:
    """Rows in partitions; each column has a type."""

    types: Mapping[str, pa.DataType]
    parts: Sequence[Sequence[Values]]
    cluster: Cluster = field(default_factory=Cluster)

    @property
    def sparkSession(self) -> Any:  # noqa: N802 - PySpark's name
        """The session of this frame."""

        def frame_of(rows: Sequence[Row], types: Mapping[str, pa.DataType]) -> Frame:
            return Frame(types, [[row.asDict() for row in rows]], self.cluster)

        return SimpleNamespace(sparkContext=self.cluster, createDataFrame=frame_of)

    @property
    def schema(self) -> Mapping[str, pa.DataType]:
        """The type of each column."""
        return self.types

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.types)

    @property
    def rows(self) -> list[Values]:
        """All rows."""
        return [row for part in self.parts for row in part]

    def _of(self, parts: Iterable[Iterable[Values]]) -> Frame:
        return replace(self, parts=[list(part) for part in parts])

    def collect(self) -> list[Row]:
        """All rows, as the driver receives them."""
        self.cluster.calls.append("collect")
        return [Row(**row) for row in self.rows]

    def _collect_as_arrow(self) -> list[pa.RecordBatch]:
        self.cluster.calls.append("collect")
        return [batch for part in self.parts for batch in self._batches(part)]

    def first(self) -> Row:
        """The first row."""
        return self.collect()[0]

    def select(self, *wanted: str | Col) -> Frame:
        """Computes the given columns for each row."""
        names = self.columns if any(isinstance(w, str) and w == "*" for w in wanted) else []
        added = [w for w in wanted if not isinstance(w, str) or w != "*"]
        columns = [_col(c) for c in (*names, *added)]

        types = {c.name: c.type or self._type(c.source) for c in columns}
        parts = [[{c.name: c.of(row) for c in columns} for row in part] for part in self.parts]
        return replace(self, types=types, parts=parts)

    def _type(self, source: str) -> pa.DataType:
        outer, _, inner = source.partition(".")
        found = self.types.get(outer, pa.int64())
        return found.field(inner).type if inner else found

    def withColumn(self, name: str, column: Col) -> Frame:  # noqa: N802 - PySpark's name
        """Adds a column, or replaces the column that already has this name."""
        return self.select(*(column.alias(n) if n == name else n for n in self.columns))

    def drop(self, name: str) -> Frame:
        """Returns the frame without one column."""
        return self.select(*(n for n in self.columns if n != name))

    def where(self, condition: Col | str) -> Frame:
        """Returns the rows that satisfy a condition."""
        of = condition.of if isinstance(condition, Col) else lambda row: eval(condition, {}, row)
        return self._of((row for row in part if of(row)) for part in self.parts)

    def limit(self, n: int) -> Frame:
        """Returns the first n rows."""
        return self._of([self.rows[:n]])

    def sample(self, fraction: float, seed: int) -> Frame:
        """Returns a random sample of the rows."""
        draw = np.random.default_rng(seed)
        return self._of((row for row in part if draw.random() < fraction) for part in self.parts)

    def distinct(self) -> Frame:
        """Returns the distinct rows."""
        return self._of([{tuple(row.items()): row for row in self.rows}.values()])

    def orderBy(self, name: str) -> Frame:  # noqa: N802 - PySpark's name
        """Sorts all rows."""
        return self._of([sorted(self.rows, key=lambda row: row[name])])

    def sortWithinPartitions(self, *names: str) -> Frame:  # noqa: N802 - PySpark's name
        """Sorts the rows within each partition."""
        return self._of(sorted(p, key=lambda row: [row[n] for n in names]) for p in self.parts)

    def coalesce(self, n: int) -> Frame:
        """Moves all rows into one partition."""
        assert n == 1
        return self._of([self.rows])

    def repartition(self, n: int, name: str = "") -> Frame:
        """Moves each row to a partition according to the hash of a column.

        Without a column, moves all rows to one partition.
        """
        self.cluster.calls.append(f"repartition {n}")
        if not name:
            assert n == 1
            return self._of([self.rows])
        place = partition_keys(n).tolist().index
        return self._of([row for row in self.rows if place(row[name]) == k] for k in range(n))

    def repartitionByRange(self, n: int, name: str) -> Frame:  # noqa: N802 - PySpark's name
        """Moves rows with equal values to one partition; values ascend across partitions."""
        self.cluster.calls.append(f"repartitionByRange {n}")
        values = np.unique([row[name] for row in self.rows])
        borders = values[np.arange(1, n) * len(values) // n]
        place = [int(np.searchsorted(borders, row[name], side="right")) for row in self.rows]
        rows = list(zip(place, self.rows, strict=True))
        return self._of([row for at, row in rows if at == k] for k in range(n))

    def unionByName(self, other: Frame) -> Frame:  # noqa: N802 - PySpark's name
        """Returns the partitions of both frames, one after another."""
        assert other.types == self.types
        return self._of([*self.parts, *other.parts])

    def persist(self, _level: object) -> Frame:
        """Records the call."""
        self.cluster.calls.append("persist")
        return self

    def unpersist(self) -> None:
        """Records the call."""
        self.cluster.calls.append("unpersist")

    def groupBy(self, *names: str) -> Groups:  # noqa: N802 - PySpark's name
        """Groups the rows by the values of some columns."""
        groups: dict[tuple[Any, ...], list[Values]] = {}
        keys = [_col(name).of for name in names]
        for row in self.rows:
            groups.setdefault(tuple(of(row) for of in keys), []).append(row)
        return Groups(self, names, groups)

    def agg(self, *columns: Col) -> Frame:
        """Combines all rows into one row, even if there is no row."""
        return Groups(self, (), {(): self.rows}).agg(*columns)

    def mapInArrow(  # noqa: N802 - PySpark's name
        self,
        step: Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]],
        schema: StructType,
    ) -> Frame:
        """Applies a build step to the Arrow batches of each partition.

        Asserts that the step's output has the declared schema.
        """
        self.cluster.calls.append("mapInArrow")
        wanted = to_arrow_schema(schema)
        types = dict(zip(wanted.names, wanted.types, strict=True))
        parts = []
        for part in self.parts:
            made = list(step(self._batches(part)))
            assert all(batch.schema == wanted for batch in made), (made[0].schema, wanted)
            parts.append([row for batch in made for row in batch.to_pylist()])
        return replace(self, types=types, parts=parts)

    def _batches(self, part: Sequence[Values]) -> Iterator[pa.RecordBatch]:
        schema = pa.schema(list(self.types.items()))
        for at in range(0, len(part), _BATCH_ROWS):
            rows = part[at : at + _BATCH_ROWS]
            columns = [pa.array([row[n] for row in rows], t) for n, t in self.types.items()]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    @property
    def write(self) -> Any:
        """Writes one file for each partition that contains rows."""
        return _Writer(self, {})


@dataclass(frozen=True)
class Groups:
    """Rows grouped by key."""

    frame: Frame
    names: Sequence[str]
    groups: Mapping[tuple[Any, ...], Sequence[Values]]

    def agg(self, *columns: Col) -> Frame:
        """Returns one row per group."""
        rows = []
        for key, of in self.groups.items():
            row = dict(zip(self.names, key, strict=True))
            for number, column in enumerate(columns):
                assert column.fold is not None
                name = f"{number} {column.name}" if column.name in row else column.name
                row[name] = column.fold([column.of(one) for one in of])
            rows.append(row)
        return replace(self.frame, types={}, parts=[rows])

    def count(self) -> Frame:
        """Returns the number of rows in each group."""
        return self.agg(functions.count("*"))


@dataclass(frozen=True)
class _Writer:
    frame: Frame
    given: dict[str, str]

    def options(self, **options: str) -> _Writer:
        return _Writer(self.frame, self.given | options)

    def parquet(self, target: str, mode: str | None = None) -> None:
        folder = Path(target.removeprefix("file:"))
        folder.mkdir(parents=True, exist_ok=mode == "append")
        schema = pa.schema(list(self.frame.types.items()))
        for number, rows in enumerate(self.frame.parts):
            if rows:
                values = [[*row.values()] for row in rows]
                write_file(f"{folder}/part-{number:05}", schema, values, **self.given)


def write_file(path: str, schema: pa.Schema, rows: Sequence[Sequence[Any]], **options: str) -> None:
    """Replaces `CatalogTable.write_file`, but uses no Spark."""
    file = Path(path.removeprefix("file:") + ".parquet")
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema),
        file,
        compression=options["compression"],
        # Spark would truncate these column statistics to one byte.
        write_statistics=options["parquet.statistics.truncate.length"] != "1",
    )


def use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces PySpark's functions with the functions of these frames."""
    for module in _MODULES:
        monkeypatch.setattr(module, "sf", functions)
