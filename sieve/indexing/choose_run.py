"""Chooses the shape, price and granularity of a run, for CREATE, REFRESH and ESTIMATE alike.

A choice makes up to five runs and keeps the run of least cost. Besides intervals, the choice tries
three alternatives if they can pay back: a map, more cuts, and whole files instead of ranges. A
`Maker` reads the column and makes runs. The maker of a build writes runs to storage; the maker of
an estimate keeps runs in memory.
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
from sieve.metadata.options import IndexOptions
from sieve.metadata.records import Expected
from sieve.reader.run_reader import Run
from sieve.segments.stopping_rule import NEAR, Stop, mean_read

R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class MadeRun(Generic[R]):
    """A run that a maker has made: its identity, size in bytes, number of keys, and reader."""

    run: R
    bytes: int
    keys: int
    opened: Run


class Maker(Protocol[R]):
    """Reads a column, and makes the candidate runs."""

    def reading(self, profile: ColumnProfile) -> contextlib.AbstractContextManager[Shared]:
        """Reads the column and yields the results, which are valid until the block ends."""

    def make(self, rows: Make, profile: ColumnProfile, options: IndexOptions) -> MadeRun[R]:
        """Makes a run that fits the budget; `rows` takes a multiple of the cost per byte."""

    def discard(self, run: R) -> None:
        """Deletes a run that is not chosen."""


@dataclass(frozen=True, slots=True, eq=False)
class Attempt(Generic[R]):
    """A candidate for the run, with the figures by which candidates are compared.

    Attributes:
        cost: the bytes that queries read, plus the index's bytes if the budget is `auto`. The run
            of lower cost is better.
        more_may_pay: whether more cuts can pay back.
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
        maker: makes the runs.
        probes: the queries that measure a run.
        with_maps: whether the choice is allowed to choose a run with a map.
    """

    maker: Maker[R]
    options: IndexOptions
    probes: Probes
    describe_job: Callable[[str], None]
    with_maps: bool = True

    def best(self, profile: ColumnProfile) -> tuple[Attempt[R] | None, Seen]:
        """Returns the best run for a profile (None without a key), and the reading step's counts.

        The method reads the column once or twice.
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
        """Returns whether a run over whole files could cost clearly less than the best run.

        If whole files are the locations, a query reads all ranges of each file with a match.
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
        """Discards the run on failure, because no version refers to the run yet."""
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
        """Reads the column once; returns the best run from this reading, and the counts."""
        with self.maker.reading(profile) as shared:
            if self.options.automatic:
                best = self._automatic(profile, shared)
            else:
                best = self._within_budget(profile, shared)
            return best, shared.seen

    def _within_budget(self, profile: ColumnProfile, shared: Shared) -> Attempt[R] | None:
        """Makes intervals that fill the budget, or a map that fits and lets queries read less."""
        plain = self._attempt(profile, shared, self.options)
        if plain is None or self.options.shape != "auto" or not self.with_maps:
            return plain
        budget = profile.budget(self.options)
        if not map_may_pay(profile, plain.expected, plain.made.keys, budget):
            return plain
        return self._or_mapped(plain, profile, shared, replace(self.options, shape="map"))

    def _automatic(self, profile: ColumnProfile, shared: Shared) -> Attempt[R] | None:
        """Makes intervals whose bytes pay back, or a map that saves more than it costs."""
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
            # Beyond the limit, making the map only to compare costs would take too long.
            return plain
        plain = replace(plain, more_may_pay=more)
        worth = profile.payback(self.options).absent
        return self._or_mapped(plain, profile, shared, planned.options, stop, worth)

    def _mapped_first(
        self, profile: ColumnProfile, shared: Shared, stop: Stop
    ) -> tuple[Attempt[R] | None, bool]:
        """Makes a run with a map first, if a trial shows that intervals cost more.

        Returns the run or None, and a flag. The flag is true if the run costs clearly less than the
        cheapest intervals of the trial. The caller then need not make intervals.
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
        except InvalidInputError:  # shared keys make the map larger than the budget
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
            except InvalidInputError:  # shared keys make the map larger than the budget
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

        The result is None if there is no key.
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
