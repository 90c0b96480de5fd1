"""Chooses the shape, price and granularity of a run, in CREATE, REFRESH and ESTIMATE.

A choice makes up to five runs and keeps the run of least cost. A choice tries intervals, and each
alternative that can pay back: a hash map, more cuts, and whole files instead of ranges. A `Maker`
reads the column and makes the runs: in storage for a build, in memory for ESTIMATE.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from sieve.errors import InvalidInputError, SieveError
from sieve.indexing.auto_budget import expected_of, more_may_pay, plan_map, stop_for
from sieve.indexing.column_profile import ColumnProfile
from sieve.indexing.fit_budget import Make, Shared, run_maker, trial_of_least_cost
from sieve.indexing.probes import Probes, expectations, files_read, least_read, map_may_pay
from sieve.indexing.seen import Seen
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.records import Expected
from sieve.reader.run_reader import Run
from sieve.segments.stopping_rule import NEAR, Stop, mean_read

R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class MadeRun(Generic[R]):
    """A run that a maker has made: its reference, size in bytes, number of keys, and reader."""

    run: R
    bytes: int
    keys: int
    opened: Run


class Maker(Protocol[R]):
    """Reads a column, and makes the runs among which `Choice` chooses."""

    def reading(self, profile: ColumnProfile) -> contextlib.AbstractContextManager[Shared]:
        """Reads the column and yields the results, which callers can use until the block ends."""

    def make(self, rows: Make, profile: ColumnProfile, options: IndexOptions) -> MadeRun[R]:
        """Makes a run within the budget; `rows` is the function that `run_maker` returns."""

    def discard(self, run: R) -> None:
        """Deletes a run that `Choice` does not choose."""


@dataclass(frozen=True, slots=True, eq=False)
class Attempt(Generic[R]):
    """A run that `Choice` has made, and the cost by which `Choice` compares it with other runs.

    Attributes:
        cost: the number of bytes that queries read. With the budget `auto`, the cost also includes
            the price of the index's size. The run with the lower cost is better.
        more_may_pay: whether a run with more cuts could cost less.
    """

    made: MadeRun[R]
    expected: tuple[Expected, ...]
    seen: Seen
    cost: float
    more_may_pay: bool = False


@dataclass(frozen=True, slots=True)
class Choice(Generic[R]):
    """Chooses a run for a column.

    Attributes:
        maker: reads the column and makes the runs.
        probes: the queries with which the choice measures a run.
        with_maps: whether the choice can choose a run with a hash map.
    """

    maker: Maker[R]
    options: IndexOptions
    probes: Probes
    describe_job: Callable[[str], None]
    with_maps: bool = True

    def best(self, profile: ColumnProfile) -> tuple[Attempt[R] | None, Seen]:
        """Returns the best run (None if the column has no key) and the counts of the reading step.

        If more cuts may pay back, the method reads the column a second time.
        """
        best, seen = self._of_reading(profile)
        wider = profile.wider(self.options)
        if best is not None and best.more_may_pay and wider is not None:
            with self.discarded_on_failure(best.made.run):
                other, _ = self._of_reading(wider)
            if other is not None:
                best = self.better(best, other)
        return best, seen

    def files_may_pay(self, by_file: ColumnProfile, best: Attempt[R]) -> bool:
        """Returns whether a run with whole files as locations could cost clearly less than `best`.

        With whole files as locations, a query reads all ranges of each file that contains a match.
        """
        least = least_read(best.expected, by_file.location_bytes)
        return NEAR * self._cost(by_file, 0, least) < best.cost

    def better(self, one: Attempt[R], other: Attempt[R]) -> Attempt[R]:
        """Returns the attempt of lower cost, or `one` at equal cost; discards the other attempt."""
        better, worse = sorted((one, other), key=lambda each: each.cost)
        with self.discarded_on_failure(better.made.run):
            self.maker.discard(worse.made.run)
        return better

    @contextlib.contextmanager
    def discarded_on_failure(self, run: R) -> Iterator[None]:
        """Discards a run if the block fails, because no version refers to the run yet."""
        try:
            yield
        except BaseException:
            with contextlib.suppress(SieveError):
                self.maker.discard(run)
            raise

    def _cost(self, profile: ColumnProfile, size: int, reads: Mapping[str, float]) -> float:
        if self.options.automatic:
            return profile.payback(self.options).cost(size, reads)
        return mean_read(reads) * profile.location_bytes

    def _of_reading(self, profile: ColumnProfile) -> tuple[Attempt[R] | None, Seen]:
        """Reads the column once; returns the best run from this reading, and the counts of rows."""
        with self.maker.reading(profile) as shared:
            if self.options.automatic:
                best = self._automatic(profile, shared)
            else:
                best = self._within_budget(profile, shared)
            return best, shared.seen

    def _within_budget(self, profile: ColumnProfile, shared: Shared) -> Attempt[R] | None:
        """Makes intervals that fill the budget, or a hash map if queries read less with a map."""
        plain = self._attempt(profile, shared, self.options)
        if plain is None or self.options.shape != "auto" or not self.with_maps:
            return plain
        budget = profile.budget(self.options)
        if not map_may_pay(profile, plain.expected, plain.made.keys, budget):
            return plain
        return self._or_mapped(plain, profile, shared, replace(self.options, shape="map"))

    def _automatic(self, profile: ColumnProfile, shared: Shared) -> Attempt[R] | None:
        """Makes intervals whose size pays back, or a hash map if the map costs less in total."""
        stop = stop_for(profile, self.options, self.probes, shared.seen.hits)
        mapped, pays = self._mapped_first(profile, shared, stop)
        if mapped is None:
            plain = self._attempt(profile, shared, self.options, stop)
        elif pays:
            return mapped
        else:
            with self.discarded_on_failure(mapped.made.run):
                plain = self._attempt(profile, shared, self.options, stop)
        if plain is None:
            return mapped
        size, planned = plain.made.bytes, None
        more = more_may_pay(profile, self.options, plain.expected, shared.seen.cuts[0], size)
        if mapped is not None:
            return self.better(replace(plain, more_may_pay=more), mapped)
        if self.options.shape == "auto" and self.with_maps:
            planned = plan_map(profile, self.options, plain.expected, plain.made.keys, size)
        if planned is None:
            return replace(plain, more_may_pay=more)
        if planned.limit is not None:
            # The map exceeds a limit. Making the map only to compare costs would take too long.
            return plain
        plain = replace(plain, more_may_pay=more)
        worth = profile.payback(self.options).absent
        return self._or_mapped(plain, profile, shared, planned.options, stop, worth)

    def _mapped_first(
        self, profile: ColumnProfile, shared: Shared, stop: Stop
    ) -> tuple[Attempt[R] | None, bool]:
        """Makes a run with a hash map first, if a trial shows that intervals cost more.

        Returns the run (or None), and whether the caller can omit the run with intervals alone. A
        run with intervals alone is unnecessary if the trial's intervals cost clearly more than the
        returned run.
        """
        if self.options.shape != "auto" or not self.with_maps:
            return None, False
        self.describe_job("weighing")
        trial = trial_of_least_cost(shared.pieces, shared.seen, profile, stop)
        if trial is None:
            return None, False
        size, expected = trial[0], expected_of(trial, stop, profile.location_bytes)
        planned = plan_map(profile, self.options, expected, shared.seen.keys, int(size))
        if planned is None or planned.limit is not None:
            return None, False
        worth = profile.payback(self.options).absent
        try:
            mapped = self._attempt(profile, shared, planned.options, stop, worth)
        except InvalidInputError:  # keys in several files make the map too large
            return None, False
        bound = self._cost(profile, int(size), files_read(expected, profile.location_bytes))
        return mapped, mapped is not None and NEAR * mapped.cost < bound

    def _or_mapped(
        self,
        plain: Attempt[R],
        profile: ColumnProfile,
        shared: Shared,
        options: IndexOptions,
        stop: Stop | None = None,
        worth: float = math.inf,
    ) -> Attempt[R]:
        """Returns a run with a map, if the map fits the budget and costs less; else `plain`."""
        with self.discarded_on_failure(plain.made.run):
            try:
                mapped = self._attempt(profile, shared, options, stop, worth)
            except InvalidInputError:  # keys in several files make the map too large
                return plain
        return plain if mapped is None else self.better(plain, mapped)

    def _attempt(
        self,
        profile: ColumnProfile,
        shared: Shared,
        options: IndexOptions,
        stop: Stop | None = None,
        worth: float = math.inf,
    ) -> Attempt[R] | None:
        """Makes a run with the given options and measures its cost.

        Returns None if the column has no key.
        """
        rows = run_maker(profile, options, shared, self.describe_job, stop, worth)
        if rows is None:
            return None
        made, seen = self.maker.make(rows, profile, options), shared.seen
        with self.discarded_on_failure(made.run):
            found = expectations(
                self.probes, made.opened, profile.sizes, seen.hits, seen.least, seen.greatest
            )
            expected = tuple(found)
            reads = files_read(expected, profile.location_bytes)
            return Attempt(made, expected, seen, self._cost(profile, made.bytes, reads))
