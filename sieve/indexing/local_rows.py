"""Local rows: a small number of rows in the front end's memory, in place of a data frame.

For a few thousand rows, a step takes milliseconds in this process, but 100 ms as a Spark job. The
first of these Spark jobs takes another second, because it starts Python on the executors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeAlias

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row

from sieve.indexing.batches import Batches

MOST: Final = 8_192
"""Maximum number of local rows. The steps for this number of rows take up to 0.3 s of CPU time, on
a core that also answers scans."""


class WriteFile(Protocol):
    """Writes a Parquet file in the driver, without a Spark job; see `CatalogTable.write_file`."""

    def __call__(
        self, path: str, schema: pa.Schema, rows: Sequence[Sequence[Any]], **options: str
    ) -> None:
        """Writes the rows, and appends the file format's extension to the path."""


@dataclass(frozen=True, slots=True, eq=False)
class LocalRows:
    """Record batches with the methods of a data frame that builds use.

    Attributes:
        write_file: writes rows to a file of a run.
    """

    batches: Sequence[pa.RecordBatch]
    write_file: WriteFile

    def mapped(self, step: Callable[[Batches], Batches]) -> LocalRows:
        """Applies a build step to all rows."""
        return self._of(list(step(iter(self.batches))))

    def select(self, *names: str) -> LocalRows:
        """Returns the rows with only the named columns."""
        return self._of([batch.select(names) for batch in self.batches])

    def sortWithinPartitions(self, *names: str) -> LocalRows:  # noqa: N802 - PySpark's name
        """Sorts all rows by the named columns."""
        if not self.batches:
            return self
        table = pa.Table.from_batches(self.batches).sort_by([(name, "ascending") for name in names])
        return self._of(table.to_batches())

    def coalesce(self, partitions: int) -> LocalRows:
        """Returns the same rows, because local rows are already in one partition."""
        assert partitions == 1
        return self

    repartition = coalesce

    def persist(self, _level: StorageLevel) -> LocalRows:
        """Returns the same rows, because local rows are already in memory."""
        return self

    def unpersist(self) -> None:
        """Does nothing, because local rows stay in memory."""

    def collect(self) -> list[Row]:
        """Returns all rows."""
        return [Row(**row) for batch in self.batches for row in batch.to_pylist()]

    def write(self, folder: str, **options: str) -> None:
        """Writes the rows to one Parquet file; requires at least one row."""
        rows = [[*row.values()] for batch in self.batches for row in batch.to_pylist()]
        self.write_file(f"{folder}/part-00000", self.batches[0].schema, rows, **options)

    def _of(self, batches: list[pa.RecordBatch]) -> LocalRows:
        return replace(self, batches=batches)


def fetched(frame: DataFrame) -> list[pa.RecordBatch]:
    """Computes a data frame, and returns its rows in the order of its partitions."""
    batches: list[pa.RecordBatch] = frame._collect_as_arrow()  # noqa: SLF001 - public since Spark 4
    return batches


Rows: TypeAlias = DataFrame | LocalRows


def both(one: Rows, other: Rows) -> Rows:
    """Concatenates rows of the same schema; the result is local if both arguments are local."""
    if isinstance(one, LocalRows):
        if isinstance(other, LocalRows):
            return replace(one, batches=[*one.batches, *other.batches])
        one = other.sparkSession.createDataFrame(one.collect(), other.schema)
    assert not isinstance(other, LocalRows)
    return one.unionByName(other)
