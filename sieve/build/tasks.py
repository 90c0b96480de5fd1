"""What executors do in a build: rows to key codes, and sorted codes to segments; no PySpark here.

Both functions take and give Arrow record batches, a task's worth, in bounded memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sieve.blocks import encode_segment
from sieve.keys import Encoder
from sieve.pairs import Chunk
from sieve.segments import Segment, cut_segments

Batches = Iterator[pa.RecordBatch]

KEY, ROWS, NULLS, NANS = range(4)
"""What a line of the first step counts of its location: rows with one key, or of a whole kind."""

PAIRS_SCHEMA = "kind INT, location INT, code BIGINT, rows BIGINT"
_PAIRS = pa.schema(
    [("kind", pa.int32()), ("location", pa.int32()), ("code", pa.int64()), ("rows", pa.int64())]
)
_RUN = pa.schema(
    [(name, pa.int64()) for name in ("first", "last", "keys", "rows", "blocks", "weight")]
    + [("payload", pa.binary())]
)
_HELD = 1 << 22
"""Codes held before they are sorted and counted: 32 MB."""


def count_keys(encoder: Encoder) -> Callable[[Batches], Batches]:
    """The first step: (value, location) rows to distinct (location, key code) pairs and counts."""

    def run(batches: Batches) -> Batches:
        file: _File | None = None
        for batch in batches:
            for location, values in _by_location(batch):
                if file is None or file.location != location:
                    if file is not None:
                        yield from file.finish()
                    file = _File(location)
                yield from file.add(encoder, values)
        if file is not None:
            yield from file.finish()

    return run


def _by_location(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.Array]]:
    """A batch's values in stretches of one file: rows of a file come together."""
    if batch.num_rows == 0:
        return
    stretches = pc.run_end_encode(batch.column(1))
    ends, locations = stretches.run_ends.to_pylist(), stretches.values.to_pylist()
    start = 0
    for end, location in zip(ends, locations, strict=True):
        yield location, batch.column(0).slice(start, end - start)
        start = end


class _File:
    """One file's codes and counts while its rows go by."""

    def __init__(self, location: int) -> None:
        self.location = location
        self._codes: list[npt.NDArray[np.int64]] = []
        self._held = 0
        self._counts = {ROWS: 0, NULLS: 0, NANS: 0}

    def add(self, encoder: Encoder, values: pa.Array) -> Batches:
        encoded = encoder.encode(values)
        keys = encoded.codes[encoded.valid & ~encoded.nan]
        self._counts[ROWS] += len(values)
        self._counts[NULLS] += int(np.count_nonzero(~encoded.valid))
        self._counts[NANS] += int(np.count_nonzero(encoded.nan))
        self._codes.append(keys)
        self._held += len(keys)
        if self._held >= _HELD:
            yield self._flush()

    def finish(self) -> Batches:
        if self._held:
            yield self._flush()
        kinds = list(self._counts)
        yield self._batch(kinds, [0] * len(kinds), [self._counts[kind] for kind in kinds])

    def _flush(self) -> pa.RecordBatch:
        codes, rows = np.unique(np.concatenate(self._codes), return_counts=True)
        self._codes, self._held = [], 0
        return self._batch(np.full(len(codes), KEY, np.int32), codes, rows)

    def _batch(self, kinds: object, codes: object, rows: object) -> pa.RecordBatch:
        kind = pa.array(kinds, pa.int32())
        location = pa.array(np.full(len(kind), self.location, np.int32))
        return pa.RecordBatch.from_arrays(
            [kind, location, pa.array(codes, pa.int64()), pa.array(rows, pa.int64())],
            schema=_PAIRS,
        )


def segment_pairs(error: int, hole: int) -> Callable[[Batches], Batches]:
    """The second step: sorted (code, location, rows) pairs to rows of a run file.

    Args:
        error: bound of the shrinking cone.
        hole: gap between keys beyond which a segment closes.
    """

    def run(batches: Batches) -> Batches:
        counter = _Counter(batches)
        for segment in cut_segments(counter.chunks(), error=error, hole=hole):
            yield _row(segment, counter.take())

    return run


class _Counter:
    """Passes pairs on and counts their distinct codes."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self._seen = 0

    def chunks(self) -> Iterator[Chunk]:
        last: int | None = None
        for batch in self._batches:
            codes, locations, rows = (batch.column(k).to_numpy() for k in range(3))
            if len(codes) == 0:
                continue
            self._seen += int(np.count_nonzero(codes[1:] != codes[:-1])) + (last != int(codes[0]))
            last = int(codes[-1])
            yield codes, locations, rows

    def take(self) -> int:
        """Distinct codes since the last call: right in sum over a task's segments."""
        seen, self._seen = self._seen, 0
        return seen


def _row(segment: Segment, keys: int) -> pa.RecordBatch:
    blocks = segment.blocks
    sizes = np.diff(blocks.offsets)
    weight = int(np.sum(blocks.rows * np.repeat(sizes, sizes)))
    numbers = [segment.first, segment.last, keys, int(blocks.rows.sum()), len(sizes), weight]
    return pa.RecordBatch.from_arrays(
        [pa.array([number], pa.int64()) for number in numbers]
        + [pa.array([encode_segment(segment)], pa.binary())],
        schema=_RUN,
    )
