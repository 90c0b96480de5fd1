"""`Batches`: the type of a build step's input and output. This module does not import PySpark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

Batches: TypeAlias = Iterator[pa.RecordBatch]


def together(batch: pa.RecordBatch, column: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Groups consecutive rows with the same value in a column; yields each value and its rows."""
    if batch.num_rows == 0:
        return
    runs = pc.run_end_encode(batch.column(column))
    start = 0
    for end, value in zip(runs.run_ends.to_pylist(), runs.values.to_pylist(), strict=True):
        yield value, batch.slice(start, end - start)
        start = end
