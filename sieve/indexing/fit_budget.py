"""Budget fitting: finds the cost per byte for a budget, and makes the rows of a run."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sieve.arrays.dtypes import Numbers
from sieve.indexing import segment_tasks
from sieve.indexing.arrow_jobs import map_batches
from sieve.indexing.block_rows import block_rows
from sieve.indexing.build_hash_map import CollectedPairs, SharedPairs
from sieve.indexing.build_tasks import in_stretches, run_files, stretches_of
from sieve.indexing.column_profile import ColumnProfile
from sieve.indexing.local_rows import Rows, both
from sieve.indexing.seen import Seen
from sieve.metadata.index_options import IndexOptions
from sieve.reader.run_file import SCHEMA
from sieve.segments.budget import choose_price, prices_for
from sieve.segments.intervals.plan_segments import plan
from sieve.segments.query_model import QueryModel
from sieve.segments.stopping_rule import Stop, Trial

FILE_OVERHEAD = 2_100
"""The bytes of a run file that are not in its segments: Parquet's footer and page headers."""

Make = Callable[[float], Rows]


@dataclass(frozen=True, eq=False)
class Shared:
    """The data from reading the column once; a build can make several runs from this data.

    Attributes:
        pairs: pairs of key hash and location, for hash maps.
    """

    cuts: Rows
    seen: Seen
    column_profile: ColumnProfile
    pairs: SharedPairs

    @cached_property
    def pieces(self) -> Rows:
        """The cuts, split at the borders of stretches; computed and persisted at the first use."""
        query_model = _query_model(self.seen, self.column_profile)
        pieces = in_stretches(self.cuts, query_model, stretches_of(self.seen.cuts[0], query_model))
        return pieces.persist(StorageLevel.MEMORY_AND_DISK)

    def unpersist(self) -> None:
        """Frees the pieces if they are persisted."""
        if "pieces" in vars(self):
            self.pieces.unpersist()


@contextlib.contextmanager
def shared_by_runs(
    cuts: Rows,
    seen: Seen,
    column_profile: ColumnProfile,
    collected: CollectedPairs | None = None,
) -> Iterator[Shared]:
    """Yields the data from which a build makes several runs; frees the data when the block ends.

    Args:
        collected: the pairs of key hash and location that the reading step has collected, or None.
    """
    with SharedPairs(column_profile.values, column_profile.sample, seen, collected) as pairs:
        shared = Shared(cuts, seen, column_profile, pairs)
        try:
            yield shared
        finally:
            shared.unpersist()


def run_maker(
    column_profile: ColumnProfile,
    options: IndexOptions,
    shared: Shared,
    describe_job: Callable[[str], None],
    stop: Stop | None = None,
    worth: float = math.inf,
) -> Make | None:
    """Returns a function that makes a run's rows; its argument is a factor for the cost per byte.

    Returns None if the column has no key. The caller must use the rows before the block of
    `shared_by_runs` ends.

    Args:
        shared: the data from `shared_by_runs`.
        stop: the stop criterion for intervals; None to use the whole budget. If the run has a hash
            map, only the criterion's price applies.
        worth: the number of bytes that a hash map's fingerprints may take if they save each query
            for an absent key one location.

    Raises:
        InvalidInputError: the budget is too small for a hash map.
    """
    n, least, greatest = shared.seen.cuts
    if not n:
        return None
    if options.every_key:
        return lambda _: block_rows(shared.cuts, n, greatest - least, options.error)
    make = _priced(shared.pieces, shared.seen, column_profile, options, describe_job, stop)
    if options.shape != "map":
        return make
    describe_job("mapping")
    ranges = column_profile.intervals_budget(options, "map")
    maps = shared.pairs.map_rows(column_profile.budget(options) - ranges, worth)
    return lambda times: both(make(times), maps)


def _priced(
    pieces: Rows,
    seen: Seen,
    column_profile: ColumnProfile,
    options: IndexOptions,
    describe_job: Callable[[str], None],
    stop: Stop | None,
) -> Make:
    n, query_model = seen.cuts[0], _query_model(seen, column_profile)
    if options.shape == "map":
        # The hash map answers queries for single keys, so the intervals only need to serve range
        # queries.
        query_model = query_model.of_ranges
    planner = _planner(query_model, column_profile)

    def priced(price: float) -> Make:
        return lambda times: map_batches(
            pieces, segment_tasks.write_stretches(planner, price * times), SCHEMA
        )

    if options.shape == "map" and stop is not None:
        return priced(stop.price)
    budget = column_profile.intervals_budget(options, options.shape)
    left = max(
        1,
        budget
        - int(FILE_OVERHEAD * run_files(n, column_profile.sample) * column_profile.sample.share),
    )
    if stop is None:
        prices = prices_for(column_profile.n_files, left)
    else:
        stop = replace(stop, budget=left)
        prices = stop.prices(column_profile.n_files)
    if stretches_of(n, query_model) == 1:
        # Since one task processes all cuts, this task finds the cost per byte itself.
        def whole(times: float) -> Rows:
            if stop is None:
                step = segment_tasks.write_whole(planner, prices, left, times)
            else:
                step = segment_tasks.write_until(planner, prices, stop, times)
            return map_batches(pieces, step, SCHEMA)

        return whole
    describe_job("weighing")
    if stop is None:
        price = _price_of(pieces, planner, prices, left, n)
    else:
        trials = [partial(_trial, pieces, planner, price, stop) for price in prices]
        price = float(prices[stop.choose(trials)])
    return priced(price)


def trial_of_least_cost(
    pieces: Rows, seen: Seen, column_profile: ColumnProfile, stop: Stop
) -> Trial | None:
    """Estimates the size and the reads of intervals at the stop criterion's cost per byte.

    Returns None if there are no cuts. Also returns None if one task processes all cuts and a hash
    map is unlikely. Making the intervals then takes little more time than a trial.
    """
    query_model = _query_model(seen, column_profile)
    stretches = stretches_of(seen.cuts[0], query_model)
    if stretches == 0 or (stretches == 1 and not column_profile.few):
        return None
    return _trial(pieces, _planner(query_model, column_profile), stop.price, stop)


def _planner(query_model: QueryModel, column_profile: ColumnProfile) -> segment_tasks.Planner:
    return partial(plan, query_model=query_model, weights=column_profile.weights)


def _query_model(seen: Seen, column_profile: ColumnProfile) -> QueryModel:
    """The query model of the sample.

    If the column has keys and the sample contains none, the model consists of the least and the
    greatest key.
    """
    ends = np.array(seen.cuts[1:], np.int64)
    return column_profile.sample.query_model or QueryModel.of_sample(ends)


def _price_of(
    pieces: DataFrame, planner: segment_tasks.Planner, prices: Numbers, budget: float, n: int
) -> float:
    """The cost per byte at which the segments of all `n` pieces fill the budget."""
    curve = np.zeros(len(prices))
    weigh = segment_tasks.weigh_stretches(planner, prices, budget / n)
    weighed = map_batches(pieces, weigh, segment_tasks.CURVE).groupBy("price").agg(sf.sum("bytes"))
    for number, size in weighed.collect():
        curve[number] = size
    return choose_price(prices, curve, budget)


def _trial(pieces: Rows, planner: segment_tasks.Planner, price: float, stop: Stop) -> Trial:
    """Returns the index's bytes, and the locations that probes read, at one cost per byte."""
    tried = map_batches(
        pieces,
        segment_tasks.try_stretches(planner, float(price), stop),
        segment_tasks.TRIAL,
    )
    size, *reads = np.sum(tried.collect(), axis=0).tolist()
    return size, reads
