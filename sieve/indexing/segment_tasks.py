"""The later build steps on executors: weigh cuts, merge cuts into segments, write run rows.

The first of these steps splits cuts into pieces at the borders between stretches of the domain. One
task gets all pieces of a stretch. The task tries several costs per byte, and writes the segments at
the chosen cost. The steps do not use PySpark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from socket import gethostname

import numpy as np
import pyarrow as pa

from sieve.arrays.dtypes import Codes, Numbers
from sieve.errors import UnavailableError
from sieve.indexing.batches import Batches
from sieve.indexing.packed_intervals import pack, unpack
from sieve.indexing.partition_keys import partition_keys
from sieve.reader.run_file import SCHEMA
from sieve.segments.intervals.cut_gaps import Intervals, split_at
from sieve.segments.intervals.plan_segments import Plan, Segment, fitted
from sieve.segments.stopping_rule import KINDS, Stop
from sieve.storage.local import LocalStore

PIECES = pa.schema([("stretch", pa.int32()), ("pieces", pa.binary())])
CURVE = pa.schema([("price", pa.int32()), ("bytes", pa.float64())])
TRIAL = pa.schema([(name, pa.float64()) for name in ("bytes", *KINDS)])

Planner = Callable[[Intervals], Plan]
"""`plan` with all its arguments except the intervals; sent with every task."""

_FITTED = 0.98
"""The share of a budget for payloads; the rest is for page headers and varying compression."""


def split_cuts(borders: Codes) -> Callable[[Batches], Batches]:
    """Returns a step that splits packed cuts at the borders between stretches.

    The step splits all cuts of a batch together. Each output row has the pieces of one stretch. A
    stretch's number is chosen so that Spark's hash partitioning gives the stretch a partition of
    its own.
    """
    keys = partition_keys(len(borders) + 1)

    def run(batches: Batches) -> Batches:
        for batch in batches:
            stretch, pieces = split_at(unpack(batch.column("cuts").to_pylist()), borders)
            order = np.argsort(stretch, kind="stable")
            numbers, starts = np.unique(stretch[order], return_index=True)
            parts = np.split(order, starts[1:])[: len(numbers)]
            packed = [pack(pieces.take(part)) for part in parts]
            yield pa.RecordBatch.from_arrays(
                [pa.array(keys[numbers]), pa.array(packed, pa.binary())], schema=PIECES
            )

    return run


def weigh_stretches(
    planner: Planner, prices: Numbers, budget_each: float
) -> Callable[[Batches], Batches]:
    """Returns a step that estimates, from pieces sorted by stretch, the index's bytes at each cost.

    Args:
        prices: float64[p], costs per byte, descending.
        budget_each: bytes of the budget for each piece.
    """

    def run(batches: Batches) -> Batches:
        for pieces in _stretches(batches):
            sizes = planner(pieces).curve(prices, budget_each * len(pieces))
            yield pa.RecordBatch.from_arrays(
                [pa.array(np.arange(len(prices)), pa.int32()), pa.array(sizes, pa.float64())],
                schema=CURVE,
            )

    return run


def try_stretches(planner: Planner, price: float, stop: Stop) -> Callable[[Batches], Batches]:
    """Returns a step that estimates, from sorted pieces, the bytes and the files read at one cost.

    Args:
        price: cost per byte: how many files per query each byte must save.
        stop: the stop criterion, which has the probes.
    """

    def run(batches: Batches) -> Batches:
        for pieces in _stretches(batches):
            size, reads = planner(pieces).trial(price, stop.probes)
            columns = [pa.array([float(each)], pa.float64()) for each in (size, *reads)]
            yield pa.RecordBatch.from_arrays(columns, schema=TRIAL)

    return run


def write_until(
    planner: Planner, prices: Numbers, stop: Stop, times: float
) -> Callable[[Batches], Batches]:
    """Returns a step that makes run rows of one stretch; the stop criterion sets the cost.

    Args:
        prices: float64[p], costs per byte, descending.
        times: factor of the cost per byte.
    """

    def made(planned: Plan) -> Iterable[Segment]:
        trials = [partial(planned.trial, price, stop.probes) for price in prices.tolist()]
        return planned.emit(float(prices[stop.choose(trials)]) * times)

    return _writer(planner, made)


def write_stretches(planner: Planner, price: float) -> Callable[[Batches], Batches]:
    """Returns a step that turns pieces, sorted by stretch, into rows of a run file."""
    return _writer(planner, lambda planned: planned.emit(price))


def write_whole(
    planner: Planner, prices: Numbers, budget: float, times: float
) -> Callable[[Batches], Batches]:
    """Returns a step that makes run rows of one stretch, at a cost that fits the budget.

    Args:
        prices: float64[p], costs per byte, descending.
        budget: maximum bytes of the whole run.
        times: factor of the cost per byte.
    """

    def made(planned: Plan) -> Iterable[Segment]:
        chosen, price, segments = fitted(planned, prices, _FITTED * budget)
        return segments if times == 1 else chosen.emit(price * times)

    return _writer(planner, made)


def _writer(
    planner: Planner, segments_of: Callable[[Plan], Iterable[Segment]]
) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        for pieces in _stretches(batches):
            for made in segments_of(planner(pieces)):
                numbers = [made.first, made.last, made.keys, made.rows, made.blocks]
                yield run_row("intervals", numbers, made.payload)

    return run


def _stretches(batches: Batches) -> Iterator[Intervals]:
    """The pieces of each stretch in turn; the batches of a stretch are contiguous."""
    rows = (row for batch in batches for row in zip(*batch.to_pydict().values(), strict=True))
    for _, own in groupby(rows, itemgetter(0)):
        yield unpack(pieces for _, pieces in own)


def only_if_seen(witness: str, failure: str) -> Callable[[Batches], Batches]:
    """Returns a step that passes rows on if it sees a file of the driver, and else fails the task.

    Args:
        witness: URI of the driver's file.
        failure: text that identifies the job's error.
    """

    def run(batches: Batches) -> Batches:
        if not LocalStore().exists(witness):
            raise UnavailableError(failure, f"{gethostname()} cannot see {witness}")
        yield from batches

    return run


def run_row(shape: str, numbers: Sequence[int], payload: bytes) -> pa.RecordBatch:
    """A row of a run file; the numbers are first key, last key, keys, rows and blocks."""
    columns = [pa.array([shape]), *(pa.array([number], pa.int64()) for number in numbers)]
    return pa.RecordBatch.from_arrays([*columns, pa.array([payload], pa.binary())], schema=SCHEMA)
