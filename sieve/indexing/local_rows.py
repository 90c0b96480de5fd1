"""Local rows: few rows or cuts in the front end's memory, in place of a data frame.

In this process, a step over a few thousand rows takes milliseconds. As a Spark job, the step takes
100 ms. The first such job takes a second more, because it starts Python on the executors.
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
"""Maximum number of local rows. Steps over so many rows take up to 0.3 s of a core that also serves
scans."""


class WriteFile(Protocol):
    """Writes rows to a Parquet file in the driver, without a job; see `CatalogTable.write_file`."""

    def __call__(
        self, path: str, schema: pa.Schema, rows: Sequence[Sequence[Any]], **options: str
    ) -> None:
        """Writes the rows; the writer appends the extension of its format to the path."""


@dataclass(frozen=True, slots=True, eq=False)
class LocalRows:
    """Record batches with the data frame methods that builds use.

    Attributes:
        write_file: writes a file of a run.
    """

    batches: Sequence[pa.RecordBatch]
    write_file: WriteFile

    def mapped(self, step: Callable[[Batches], Batches]) -> LocalRows:
        """Applies a step to all rows."""
        return self._of(list(step(iter(self.batches))))

    def select(self, *names: str) -> LocalRows:
        """Returns the named columns."""
        return self._of([batch.select(names) for batch in self.batches])

    def sortWithinPartitions(self, *names: str) -> LocalRows:  # noqa: N802 - PySpark's name
        """Sorts all rows."""
        if not self.batches:
            return self
        table = pa.Table.from_batches(self.batches).sort_by([(name, "ascending") for name in names])
        return self._of(table.to_batches())

    def coalesce(self, partitions: int) -> LocalRows:
        """Returns the same rows, which are all in one process."""
        assert partitions == 1
        return self

    repartition = coalesce

    def persist(self, _level: StorageLevel) -> LocalRows:
        """Returns the same rows, which are in memory."""
        return self

    def unpersist(self) -> None:
        """Does nothing."""

    def collect(self) -> list[Row]:
        """All rows."""
        return [Row(**row) for batch in self.batches for row in batch.to_pylist()]

    def write(self, folder: str, **options: str) -> None:
        """Writes one Parquet file; requires a row."""
        rows = [[*row.values()] for batch in self.batches for row in batch.to_pylist()]
        self.write_file(f"{folder}/part-00000", self.batches[0].schema, rows, **options)

    def _of(self, batches: list[pa.RecordBatch]) -> LocalRows:
        return replace(self, batches=batches)


def fetched(frame: DataFrame) -> list[pa.RecordBatch]:
    """Runs a data frame, and returns its rows in the order of its partitions."""
    batches: list[pa.RecordBatch] = frame._collect_as_arrow()  # noqa: SLF001 - public since Spark 4
    return batches


Rows: TypeAlias = DataFrame | LocalRows


def both(one: Rows, other: Rows) -> Rows:
    """Returns the union of two results of the same schema; local rows if both are local."""
    if isinstance(one, LocalRows):
        if isinstance(other, LocalRows):
            return replace(one, batches=[*one.batches, *other.batches])
        one = other.sparkSession.createDataFrame(one.collect(), other.schema)
    assert not isinstance(other, LocalRows)
    return one.unionByName(other)
