"""Builds Sieve's shapes within a budget, with the same steps as a distributed build."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from bench.rivals.columns import Codes, Column
from bench.rivals.structures import Answer, Lists, Structure, joined
from sieve.arrays.dtypes import Counts, Hashes
from sieve.encoding.encoder import Encoder
from sieve.encoding.hashing import hash_codes
from sieve.errors import InvalidInputError
from sieve.indexing.auto_budget import more_may_pay, plan_map, stop_for
from sieve.indexing.build_hash_map import fit_maps
from sieve.indexing.column_profile import Profile, beside_map
from sieve.indexing.column_sample import WANTED, Sample
from sieve.indexing.probes import files_read, make_probes, map_may_pay
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.records import Expected
from sieve.segments.budget import prices_for
from sieve.segments.hash_map.format import build_map, decode_map
from sieve.segments.intervals.cut_gaps import (
    Intervals,
    concatenated,
    cut_location,
    overprovisioned_most,
    overprovisioned_threshold,
)
from sieve.segments.intervals.plan_segments import SEGMENT_OVERHEAD, Segment, fitted, plan
from sieve.segments.query_model import QueryModel
from sieve.segments.stopping_rule import KINDS, mean_read
from sieve.segments.weights import weights_at, weights_of

SHAPES = ("intervals", "map", "auto")
AUTOMATIC = "budget auto"
"""Name of the structure that a build with the budget `auto` makes."""


class Mapped:
    """A structure that uses hash maps for single keys, and intervals for ranges of keys."""

    name = "map"

    def __init__(self, intervals: Lists, payloads: list[bytes], files: int) -> None:
        self.nbytes = intervals.nbytes + sum(len(one) + SEGMENT_OVERHEAD for one in payloads)
        self._intervals, self._files = intervals, files
        self._maps = [decode_map(payload) for payload in payloads]

    def may_hold(self, low: Codes, high: Codes) -> Answer:
        """For a range, uses only the intervals. For a point, uses the intervals and the maps."""
        found = self._intervals.may_hold(low, high)
        points = np.flatnonzero(low == high)
        hashes = hash_codes(low[points])
        mapped = np.zeros((len(points), self._files), np.bool_)
        for one in self._maps:
            mapped[one.matches(hashes)] = True
        found[points] &= mapped
        return found


class Builder:
    """Builds the shapes of one column.

    Args:
        of: column to index.
        exact: a structure that returns exactly the files that contain a key.
    """

    def __init__(self, of: Column, exact: Structure) -> None:
        self._of = of
        self.query_model = sample(of)
        self._hashes: tuple[Hashes, npt.NDArray[np.int32]] | None = None
        # This sample contains hashes of the values' codes. A build's sample contains hashes of the
        # values.
        drawn = _drawn(of)
        encoder, hashes = Encoder("bigint"), hash_codes(drawn)
        n = len(of.codes)
        sample_of = Sample(encoder, self.query_model, drawn, hashes, n, of.width, n)
        self._profile = Profile(sizes=of.sizes, sample=sample_of)
        self._probes = make_probes(sample_of)
        self._hits = self._read(exact)

    def within(self, budget: float, wanted: Sequence[str]) -> Iterator[Structure]:
        """Yields each wanted shape within a budget in bytes; omits a map that is too large."""
        budget = max(1.0, budget - self._of.encoder)
        intervals = cut(self._of, self.query_model, budget)
        for shape in wanted:
            if shape == "map":
                with contextlib.suppress(InvalidInputError):
                    yield self._mapped(intervals, budget)
            elif shape == "auto":
                yield self._auto(intervals, budget)
            else:
                yield shaped(self._of, self.query_model, intervals, shape, budget)

    def automatic(self) -> Structure:
        """The structure that a build makes with the budget `auto`."""
        options = IndexOptions()
        asked: Profile | None = self._profile
        attempts: list[tuple[float, Structure]] = []
        while asked is not None:
            made, more = self._automatic(asked, options)
            attempts.append((asked.payback(options).cost(made.nbytes, self._reads(made)), made))
            asked = asked.wider(options) if more else None
        made = min(attempts, key=lambda pair: pair[0])[1]
        made.name = AUTOMATIC
        return made

    def _automatic(self, asked: Profile, options: IndexOptions) -> tuple[Structure, bool]:
        """The structure of one attempt, and whether to try again with more intervals."""
        of, payback = self._of, asked.payback(options)
        stop = stop_for(asked, options, self._probes, self._hits)
        threshold = max(payback.price, overprovisioned_threshold(of.files, stop.budget))
        intervals = cut(of, self.query_model, stop.budget, threshold)
        planned = plan(intervals, self.query_model, weights=asked.weights)
        prices = stop.prices(of.files)
        trials = [partial(planned.trial, price, stop.probes) for price in prices.tolist()]
        plain = _lists("auto", list(planned.emit(float(prices[stop.choose(trials)]))), of.files)
        told = self._expected(plain)
        more = more_may_pay(asked, options, told, len(intervals), plain.nbytes)
        keys = len(self._pairs()[0])
        wanted = plan_map(asked, options, told, keys, plain.nbytes)
        if wanted is None or wanted.limit is not None:
            return plain, more and wanted is None
        try:
            other = self._mapped(intervals, asked.budget(wanted.options), payback.absent)
        except InvalidInputError:
            return plain, more
        costs = [payback.cost(one.nbytes, self._reads(one)) for one in (plain, other)]
        return (other, False) if costs[1] < costs[0] else (plain, more)

    def _auto(self, intervals: Intervals, budget: float) -> Structure:
        """Chooses a map if probes then read fewer bytes, as a build does."""
        plain = shaped(self._of, self.query_model, intervals, "auto", budget)
        told = self._expected(plain)
        if not map_may_pay(self._profile, told, len(self._pairs()[0]), int(budget)):
            return plain
        try:
            other = self._mapped(intervals, budget)
        except InvalidInputError:
            return plain
        if mean_read(self._reads(other)) >= mean_read(self._reads(plain)):
            return plain
        other.name = "auto"
        return other

    def _mapped(self, intervals: Intervals, budget: float, worth: float = math.inf) -> Mapped:
        ranges = beside_map(int(budget))
        lists = shaped(self._of, self.query_model, intervals, "auto", ranges)
        hashes, file = self._pairs()
        keys = 1 + int(np.count_nonzero(hashes[1:] != hashes[:-1]))
        left = int(budget) - ranges
        parts, bits = fit_maps(len(hashes), keys, self._of.files, left, worth)
        edges = np.searchsorted(hashes, hashes[np.arange(1, parts) * len(hashes) // parts])
        payloads = [
            build_map(some, of, self._of.files, bits)
            for some, of in zip(np.split(hashes, edges), np.split(file, edges), strict=True)
        ]
        return Mapped(lists, payloads, self._of.files)

    def _pairs(self) -> tuple[Hashes, npt.NDArray[np.int32]]:
        """Pairs of a key's hash and a file, for each key of each file, sorted by hash."""
        if self._hashes is None:
            keys = [codes for codes, _ in self._of.keys_of_files()]
            hashes = hash_codes(np.concatenate(keys))
            file = np.repeat(np.arange(len(keys), dtype=np.int32), [len(k) for k in keys])
            order = np.argsort(hashes, kind="stable")
            self._hashes = hashes[order], file[order]
        return self._hashes

    def _reads(self, structure: Structure) -> dict[str, float]:
        return files_read(self._expected(structure), self._profile.location_bytes)

    def _read(self, structure: Structure) -> Counts:
        """int64[2, k]: for each probe, the number and the bytes of the files that it reads."""
        answer = structure.may_hold(*self._probes.intervals.T)
        return np.stack([np.count_nonzero(answer, axis=1), answer @ self._of.sizes])

    def _expected(self, structure: Structure) -> list[Expected]:
        read = self._read(structure)
        told = []
        for number, kind in enumerate(KINDS):
            chosen = self._probes.kinds == number
            if kind == "absent":
                chosen &= self._hits[0] == 0
            if chosen.any():
                files, read_bytes = read[:, chosen].mean(axis=1).tolist()
                exact, least = self._hits[:, chosen].mean(axis=1).tolist()
                told.append(Expected(kind, files, exact, 0.0, read_bytes, least))
        return told


def sample(column: Column) -> QueryModel:
    """A query model from a random sample of rows. A build starts with a sample, too."""
    return QueryModel.of_sample(_drawn(column))


def _drawn(column: Column) -> Codes:
    rng = np.random.default_rng(1)
    return column.codes[rng.choice(len(column.codes), min(WANTED, len(column.codes)), False)]


def cut(
    column: Column, query_model: QueryModel, budget: float, threshold: float | None = None
) -> Intervals:
    """Cuts the keys of each file into intervals, and returns all intervals.

    The number of intervals can exceed the budget.
    """
    least = overprovisioned_threshold(column.files, budget) if threshold is None else threshold
    parts, weights = [], weights_at(weights_of(column.sizes), np.arange(column.files))
    for file, (codes, rows) in enumerate(column.keys_of_files()):
        most = overprovisioned_most(int(rows.sum()), len(column.codes), column.files, budget)
        parts.append(cut_location(codes, rows, file, query_model, least / weights[file], most))
    return concatenated(parts)


def shaped(
    column: Column, query_model: QueryModel, intervals: Intervals, shape: str, budget: float
) -> Lists:
    """A structure without a map.

    If no structure fits the budget, the smallest possible structure exceeds the budget.

    Args:
        column: column to index.
        query_model: query model from the column's sample.
        intervals: intervals that `cut` returned for this budget.
        shape: name of the structure.
        budget: maximum size of the structure, in bytes.
    """
    planned = plan(intervals, query_model, weights_of(column.sizes))
    *_, segments = fitted(planned, prices_for(column.files, budget), budget)
    return _lists(shape, segments, column.files)


def _lists(name: str, segments: Sequence[Segment], files: int) -> Lists:
    size = sum(len(segment.payload) + SEGMENT_OVERHEAD for segment in segments)
    return Lists(name, size, joined([s.payload for s in segments]), files)
