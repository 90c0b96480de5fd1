"""The later steps of a build on executors, which make segments (rows of a run) from cuts.

The domain is divided into stretches (ranges of key codes). The first step splits cuts into pieces
at the borders between stretches. One task gets all pieces of a stretch, estimates segments for
several costs per byte, and makes the segments for the chosen cost. The steps need no PySpark.
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
"""The function `plan` with all its arguments except the intervals. Spark sends this function with
every task."""

_FITTED = 0.98
"""Payloads get this share of a budget. The remainder is for page headers, and for payloads that
compress less than expected."""


def split_cuts(borders: Codes) -> Callable[[Batches], Batches]:
    """Returns a step that splits packed cuts at the borders between stretches of the domain.

    Each output row contains all pieces of an input batch that are in the same stretch. The number
    of a stretch is its partition key, so that each stretch has its own partition.
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
    """Returns a step that estimates the index's size for each cost per byte.

    The step's input are the pieces of all cuts, sorted by stretch.

    Args:
        prices: float64[p], the costs per byte, descending.
        budget_each: the budget in bytes, divided by the number of all pieces.
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
    """Returns a step that estimates the index's size and the probes' reads at one cost per byte.

    Args:
        price: cost per byte: the number of locations per query that each byte of the index must
            save.
        stop: the stop criterion, which contains the probes.
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
    """Returns a step that makes a run's rows at the cost that the stop criterion chooses.

    Args:
        prices: float64[p], the costs per byte, descending.
        times: factor by which the step multiplies the cost per byte.
    """

    def made(planned: Plan) -> Iterable[Segment]:
        trials = [partial(planned.trial, price, stop.probes) for price in prices.tolist()]
        return planned.emit(float(prices[stop.choose(trials)]) * times)

    return _writer(planner, made)


def write_stretches(planner: Planner, price: float) -> Callable[[Batches], Batches]:
    """Returns a step that makes a run's rows from pieces, sorted by stretch, at a given cost."""
    return _writer(planner, lambda planned: planned.emit(price))


def write_whole(
    planner: Planner, prices: Numbers, budget: float, times: float
) -> Callable[[Batches], Batches]:
    """Returns a step that makes all rows of a run, and finds the cost per byte for the budget.

    Args:
        prices: float64[p], the costs per byte, descending.
        budget: maximum size of the whole run in bytes.
        times: factor by which the step multiplies the cost per byte.
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
    """Yields the pieces of each stretch, whose input rows must be consecutive."""
    rows = (row for batch in batches for row in zip(*batch.to_pydict().values(), strict=True))
    for _, own in groupby(rows, itemgetter(0)):
        yield unpack(pieces for _, pieces in own)


def only_if_seen(witness: str, failure: str) -> Callable[[Batches], Batches]:
    """Returns a step that passes rows on. It fails if the executor does not see the driver's file.

    Args:
        witness: URI of the file that the driver has written.
        failure: the error condition by which the driver recognizes this failure.
    """

    def run(batches: Batches) -> Batches:
        if not LocalStore().exists(witness):
            raise UnavailableError(failure, f"{gethostname()} cannot see {witness}")
        yield from batches

    return run


def run_row(shape: str, numbers: Sequence[int], payload: bytes) -> pa.RecordBatch:
    """Returns a run's row; `numbers`: first key, last key, counts of keys, rows and blocks."""
    columns = [pa.array([shape]), *(pa.array([number], pa.int64()) for number in numbers)]
    return pa.RecordBatch.from_arrays([*columns, pa.array([payload], pa.binary())], schema=SCHEMA)
