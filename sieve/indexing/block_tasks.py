"""Tasks on executors that make segments of the shape `sieve`; they need no PySpark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa

from sieve.indexing.batches import Batches
from sieve.indexing.packed_intervals import unpack
from sieve.indexing.segment_tasks import run_row
from sieve.segments.blocks.cut_blocks import cut_segments
from sieve.segments.blocks.format import encode_segment
from sieve.segments.blocks.key_groups import Chunk

PAIRS: Final = pa.schema([("code", pa.int64()), ("location", pa.int32()), ("rows", pa.int64())])


def unpack_pairs(batches: Batches) -> Batches:
    """A step that unpacks cuts to rows of `PAIRS`; each cut has one key."""
    for batch in batches:
        cuts = unpack(batch.column("cuts").to_pylist())
        columns = [pa.array(each) for each in (cuts.first, cuts.location, cuts.rows)]
        yield pa.RecordBatch.from_arrays(columns, schema=PAIRS)


def segment_pairs(error: int, hole: int) -> Callable[[Batches], Batches]:
    """Returns a step that makes rows of a run of the shape `sieve` from sorted rows of `PAIRS`.

    Args:
        error: error bound of the shrinking cone algorithm.
        hole: maximum difference between two neighbouring keys in a segment.
    """

    def run(batches: Batches) -> Batches:
        counter = _Counter(batches)
        for segment in cut_segments(counter.chunks(), error=error, hole=hole):
            blocks = segment.blocks
            numbers = [segment.first, segment.last, counter.take(), int(blocks.rows.sum())]
            yield run_row("sieve", [*numbers, len(blocks.offsets) - 1], encode_segment(segment))

    return run


class _Counter:
    """Yields the pairs in record batches, and counts them."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self._seen = 0

    def chunks(self) -> Iterator[Chunk]:
        for batch in self._batches:
            codes, locations, rows = (batch.column(k).to_numpy() for k in range(3))
            self._seen += len(codes)
            yield codes, locations, rows

    def take(self) -> int:
        """Returns the number of pairs that were yielded since the last call.

        The number is exact only as a sum over all segments of a task, because `cut_segments` reads
        ahead.
        """
        seen, self._seen = self._seen, 0
        return seen
