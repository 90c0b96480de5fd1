"""What executors do in a build, on Arrow record batches in bounded memory; no PySpark here.

Reading makes *cuts*: intervals of keys of one location, one for each key where the shape asks for
that. The later steps work on cuts, which are few, and never on rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from socket import gethostname

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sieve.encoding.encoder import Encoder
from sieve.errors import UnavailableError
from sieve.indexing.domain_sample import DomainSample
from sieve.segments.blocks.cone import cut_segments
from sieve.segments.blocks.format import encode_segment
from sieve.segments.blocks.key_groups import Chunk
from sieve.segments.intervals import Intervals, cut_location, generous_most, split_at
from sieve.segments.query_model import Codes, Numbers, QueryModel
from sieve.segments.shapes.planner import Plan, Segment, fitted, plan
from sieve.segments.stopping_rule import KINDS, Stop
from sieve.storage.local import LocalStore

Batches = Iterator[pa.RecordBatch]

KEY, ROWS, NULLS, NANS, PROBE, DAMAGED = range(6)
"""What a line of the first step is: a cut; a count of its location's rows of a kind; how many of a
task's locations hold a key of a probe; or a damaged record of its location."""

CUTS_SCHEMA = "kind INT, location INT, first BIGINT, last BIGINT, keys BIGINT, rows BIGINT"
_CUTS = pa.schema(
    [("kind", pa.int32()), ("location", pa.int32())]
    + [(name, pa.int64()) for name in ("first", "last", "keys", "rows")]
)
PIECES_SCHEMA = f"stretch INT, {CUTS_SCHEMA.partition(', ')[2]}"
CURVE_SCHEMA = "price INT, bytes DOUBLE"
TRIAL_SCHEMA = ", ".join(f"{name} DOUBLE" for name in ("bytes", *KINDS))
RUN = pa.schema(
    [("shape", pa.string())]
    + [(name, pa.int64()) for name in ("first", "last", "keys", "rows", "blocks")]
    + [("payload", pa.binary())]
)
Queries = npt.NDArray[np.int64]

_HELD = 1 << 22
"""Codes held before they are sorted and cut: 32 MB."""
_FITTED = 0.98
"""Of a budget, what payloads may take: pages have heads, and not all are compressed alike."""
_ORDERED = 16
"""Codes for each that is below the one before, in what counts as mostly in order."""


@dataclass(frozen=True, slots=True, eq=False)
class Cutting:
    """How finely a location's keys are cut while they are read.

    Attributes:
        query_model: what queries ask; None: every key is a cut.
        threshold: least worth of a gap.
        budget: bytes of the run at most.
        rows: of the table.
        locations: of the table.
    """

    query_model: QueryModel | None = None
    threshold: float = 0.0
    budget: int = 0
    rows: int = 0
    locations: int = 0

    def of(self, codes: Codes, rows: npt.NDArray[np.int64], location: int) -> Intervals:
        """The cuts of some distinct keys of a location, ascending."""
        if self.query_model is None:
            place = np.full(len(codes), location, np.int32)
            return Intervals(codes, codes, place, np.ones_like(rows), rows)
        most = generous_most(int(rows.sum()), self.rows, self.locations, self.budget)
        return cut_location(codes, rows, location, self.query_model, self.threshold, most)


def read_column(
    encoder: Encoder, domain_sample: DomainSample | None, cutting: Cutting, probes: Queries
) -> Callable[[Batches], Batches]:
    """The first step: (value, location) rows to cuts and counts of each location.

    The row that stands for a damaged record has -1 less the location's number; see `LOCATION`.

    Args:
        encoder: the column's.
        domain_sample: the part of the domain to look at; None: all.
        cutting: how fine.
        probes: int64[k, 2], intervals of key codes whose true locations are counted.
    """

    def run(batches: Batches) -> Batches:
        file: _File | None = None
        hits = np.zeros(len(probes), np.int64)
        for batch in batches:
            for location, part in together(batch, 1):
                if location < 0:
                    yield _damaged(-1 - location, part.num_rows)
                    continue
                if file is None or file.location != location:
                    if file is not None:
                        yield from file.finish()
                    file = _File(location, domain_sample, cutting, probes, hits)
                yield from file.add(encoder, part.column(0))
        if file is not None:
            yield from file.finish()
        if len(hits):
            yield _hits(hits)

    return run


def _damaged(location: int, records: int) -> pa.RecordBatch:
    line = (DAMAGED, location, 0, 0, 0, records)
    return pa.RecordBatch.from_arrays(
        [pa.array([value], field.type) for value, field in zip(line, _CUTS, strict=True)],
        schema=_CUTS,
    )


def _hits(hits: npt.NDArray[np.int64]) -> pa.RecordBatch:
    met = np.flatnonzero(hits)
    none = pa.array(np.zeros(len(met), np.int64))
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.full(len(met), PROBE, np.int32)),
            pa.array(met, pa.int32()),
            *(none, none, none, pa.array(hits[met])),
        ],
        schema=_CUTS,
    )


def together(batch: pa.RecordBatch, column: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each value of a column by which they come in order."""
    if batch.num_rows == 0:
        return
    runs = pc.run_end_encode(batch.column(column))
    start = 0
    for end, value in zip(runs.run_ends.to_pylist(), runs.values.to_pylist(), strict=True):
        yield value, batch.slice(start, end - start)
        start = end


class _File:
    """One file's codes and counts while its rows go by."""

    def __init__(
        self,
        location: int,
        domain_sample: DomainSample | None,
        cutting: Cutting,
        probes: Queries,
        hits: npt.NDArray[np.int64],
    ) -> None:
        self.location = location
        self._zoom = domain_sample
        self._cutting = cutting
        self._probes, self._hits = probes, hits
        self._codes: list[Codes] = []
        self._held = 0
        self._counts = {ROWS: 0, NULLS: 0, NANS: 0}

    def add(self, encoder: Encoder, values: pa.Array) -> Batches:
        encoded = encoder.encode(values)
        keys = encoded.codes[encoded.valid & ~encoded.nan]
        self._counts[ROWS] += len(values)
        self._counts[NULLS] += int(np.count_nonzero(~encoded.valid))
        self._counts[NANS] += int(np.count_nonzero(encoded.nan))
        if self._zoom is not None:
            keys = self._zoom.codes(keys)
        self._codes.append(keys)
        self._held += len(keys)
        if self._held >= _HELD:
            yield self._flush()

    def finish(self) -> Batches:
        if self._held:
            yield self._flush()
        kinds = list(self._counts)
        none, counts = np.zeros(len(kinds), np.int64), np.array(list(self._counts.values()))
        yield self._batch(kinds, none, none, none, counts)

    def _flush(self) -> pa.RecordBatch:
        codes, rows = _distinct(np.concatenate(self._codes))
        self._codes, self._held = [], 0
        start = np.searchsorted(codes, self._probes[:, 0])
        stop = np.searchsorted(codes, self._probes[:, 1], side="right")
        self._hits += start < stop
        cuts = self._cutting.of(codes, rows, self.location)
        kinds = np.full(len(cuts), KEY, np.int32)
        return self._batch(kinds, cuts.first, cuts.last, cuts.keys, cuts.rows)

    def _batch(self, kinds: object, *columns: npt.NDArray[np.int64]) -> pa.RecordBatch:
        kind = pa.array(kinds, pa.int32())
        location = pa.array(np.full(len(kind), self.location, np.int32))
        return pa.RecordBatch.from_arrays(
            [kind, location, *(pa.array(column, pa.int64()) for column in columns)], schema=_CUTS
        )


def _distinct(codes: Codes) -> tuple[Codes, npt.NDArray[np.int64]]:
    """Distinct codes, ascending, and how often each occurs; sorts what it is given, at least 1."""
    # Merging what is in order already pays where that is most of it, as in a file of late rows.
    falls = np.count_nonzero(codes[1:] < codes[:-1])
    if falls:
        codes.sort(kind="stable" if falls * _ORDERED < len(codes) else None)
    start = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    return codes[start], np.diff(start, append=len(codes))


def split_cuts(borders: Codes) -> Callable[[Batches], Batches]:
    """Cuts (without their kind) to pieces that lie in one stretch of the domain each."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            stretch, pieces = split_at(_intervals(batch, 0), borders)
            yield pa.RecordBatch.from_arrays(
                [pa.array(stretch, pa.int32()), *_arrays(pieces)],
                names=["stretch", "location", "first", "last", "keys", "rows"],
            )

    return run


def weigh_stretches(
    query_model: QueryModel, shape: str, prices: Numbers, budget_each: float
) -> Callable[[Batches], Batches]:
    """Pieces in order of their stretch to the bytes that each price would cost there.

    Args:
        query_model: what queries ask.
        shape: of the segments.
        prices: float64[p], falling.
        budget_each: bytes for each of the pieces.
    """

    def run(batches: Batches) -> Batches:
        for pieces in _stretches(batches):
            sizes = plan(pieces, query_model, shape).curve(prices, budget_each * len(pieces))
            yield pa.RecordBatch.from_arrays(
                [pa.array(np.arange(len(prices)), pa.int32()), pa.array(sizes, pa.float64())],
                names=["price", "bytes"],
            )

    return run


def try_stretches(
    query_model: QueryModel, shape: str, price: float, stop: Stop
) -> Callable[[Batches], Batches]:
    """Pieces in order of their stretch to what a price leads to there: bytes, and files read.

    Args:
        query_model: what queries ask.
        shape: of the segments.
        price: files read a query, per byte.
        stop: knows the probes.
    """

    def run(batches: Batches) -> Batches:
        for pieces in _stretches(batches):
            size, reads = plan(pieces, query_model, shape).trial(price, stop.probes)
            columns = [pa.array([float(each)], pa.float64()) for each in (size, *reads)]
            yield pa.RecordBatch.from_arrays(columns, names=["bytes", *KINDS])

    return run


def write_until(
    query_model: QueryModel, shape: str, prices: Numbers, stop: Stop, times: float
) -> Callable[[Batches], Batches]:
    """The pieces of the only stretch to rows of a run file, at the price where spending stops.

    Args:
        query_model: what queries ask.
        shape: of the segments.
        prices: float64[p], falling.
        stop: when it does.
        times: what to multiply the price by.
    """

    def made(planned: Plan) -> Iterable[Segment]:
        trials = [partial(planned.trial, price, stop.probes) for price in prices.tolist()]
        return planned.emit(float(prices[stop.choose(trials)]) * times)

    return _writer(query_model, shape, made)


def write_stretches(
    query_model: QueryModel, shape: str, price: float
) -> Callable[[Batches], Batches]:
    """Pieces in order of their stretch to rows of a run file."""
    return _writer(query_model, shape, lambda planned: planned.emit(price))


def write_whole(
    query_model: QueryModel, shape: str, prices: Numbers, budget: float, times: float
) -> Callable[[Batches], Batches]:
    """The pieces of the only stretch to rows of a run file, at a price found on the way.

    Args:
        query_model: what queries ask.
        shape: of the segments.
        prices: float64[p], falling.
        budget: bytes for all of it.
        times: what to multiply the price by.
    """

    def made(planned: Plan) -> Iterable[Segment]:
        chosen, price, segments = fitted(planned, prices, _FITTED * budget)
        return segments if times == 1 else chosen.emit(price * times)

    return _writer(query_model, shape, made)


def _writer(
    query_model: QueryModel, shape: str, segments_of: Callable[[Plan], Iterable[Segment]]
) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        for pieces in _stretches(batches):
            for made in segments_of(plan(pieces, query_model, shape)):
                numbers = [made.first, made.last, made.keys, made.rows, made.blocks]
                yield run_row(made.shape, numbers, made.payload)

    return run


def _stretches(batches: Batches) -> Iterator[Intervals]:
    """The pieces of one stretch after another; a stretch's batches come together."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        for stretch, part in together(batch, 0):
            if held and held[-1].column(0)[0].as_py() != stretch:
                yield _joined(held)
                held = []
            held.append(part)
    if held:
        yield _joined(held)


def _joined(batches: Sequence[pa.RecordBatch]) -> Intervals:
    table = pa.Table.from_batches(batches).combine_chunks()
    return _intervals(table.to_batches()[0], 1)


def _intervals(batch: pa.RecordBatch, at: int) -> Intervals:
    """Columns location, first, last, keys, rows from number `at` on."""
    location, first, last, keys, rows = (batch.column(at + k).to_numpy() for k in range(5))
    return Intervals(first, last, location, keys, rows)


def _arrays(intervals: Intervals) -> list[pa.Array]:
    return [
        pa.array(intervals.location, pa.int32()),
        *(
            pa.array(column, pa.int64())
            for column in (intervals.first, intervals.last, intervals.keys, intervals.rows)
        ),
    ]


def segment_pairs(error: int, hole: int) -> Callable[[Batches], Batches]:
    """Sorted (code, location, rows) pairs to rows of a run file of the seed's shape.

    Args:
        error: bound of the shrinking cone.
        hole: gap between keys beyond which a segment closes.
    """

    def run(batches: Batches) -> Batches:
        counter = _Counter(batches)
        for segment in cut_segments(counter.chunks(), error=error, hole=hole):
            blocks = segment.blocks
            numbers = [segment.first, segment.last, counter.take(), int(blocks.rows.sum())]
            yield run_row("sieve", [*numbers, len(blocks.offsets) - 1], encode_segment(segment))

    return run


def only_if_seen(witness: str, failure: str) -> Callable[[Batches], Batches]:
    """Rows of a run file as they are, if a file of the driver's is there; else the task fails.

    Args:
        witness: URI of the file.
        failure: how the job's error is told from others.
    """

    def run(batches: Batches) -> Batches:
        if not LocalStore().exists(witness):
            raise UnavailableError(failure, f"{witness} is not to be seen from {gethostname()}")
        yield from batches

    return run


def run_row(shape: str, numbers: Sequence[int], payload: bytes) -> pa.RecordBatch:
    """A row of a run file; the numbers are its first and last key, keys, rows and blocks."""
    columns = [pa.array([shape]), *(pa.array([number], pa.int64()) for number in numbers)]
    return pa.RecordBatch.from_arrays([*columns, pa.array([payload], pa.binary())], schema=RUN)


class _Counter:
    """Passes pairs on and counts them."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self._seen = 0

    def chunks(self) -> Iterator[Chunk]:
        for batch in self._batches:
            codes, locations, rows = (batch.column(k).to_numpy() for k in range(3))
            self._seen += len(codes)
            yield codes, locations, rows

    def take(self) -> int:
        """Pairs since the last call: right in sum over a task's segments."""
        seen, self._seen = self._seen, 0
        return seen
