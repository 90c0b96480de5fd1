"""Sieve's own shapes under a budget, built in the steps of a distributed build."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from bench.rivals.columns import Codes, Column
from bench.rivals.structures import Answer, Lists, Structure, joined
from sieve.build.maps import fit_maps
from sieve.build.probes import KINDS, Probes, make_probes, map_may_pay, mean_read
from sieve.build.sample import WANTED, Sample
from sieve.build.survey import beside_map
from sieve.errors import InvalidInputError
from sieve.intervals import (
    Intervals,
    concatenated,
    cut_location,
    generous_most,
    generous_threshold,
)
from sieve.keys import Encoder
from sieve.map.hashing import Hashes, hash_codes
from sieve.map.payload import build_map, decode_map
from sieve.mass import Mass
from sieve.shapes import SEGMENT_OVERHEAD, fitted, plan, prices_for
from sieve.types import Expected

SHAPES = ("intervals", "runs", "map", "auto")


class Mapped:
    """Maps from the hash of a key to its files, beside the intervals that answer ranges."""

    name = "map"

    def __init__(self, intervals: Lists, payloads: list[bytes], files: int) -> None:
        self.nbytes = intervals.nbytes + sum(len(one) + SEGMENT_OVERHEAD for one in payloads)
        self._intervals, self._files = intervals, files
        self._maps = [decode_map(payload) for payload in payloads]

    def may_hold(self, low: Codes, high: Codes) -> Answer:
        """A single key is in the files that both name."""
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
        of: what is indexed.
        exact: every key of every file.
    """

    def __init__(self, of: Column, exact: Structure) -> None:
        self._of = of
        self.mass = sample(of)
        self._hashes: tuple[Hashes, npt.NDArray[np.int32]] | None = None
        # The encoder's codes stand for the values, so they are hashed in their place.
        drawn = _drawn(of)
        encoder, hashes = Encoder("bigint"), hash_codes(drawn)
        n = len(of.codes)
        self._probes = make_probes(Sample(encoder, self.mass, drawn, hashes, n, of.width, n))
        self._hits = _counts(self._probes, exact)

    def within(self, budget: float, wanted: Sequence[str]) -> Iterator[Structure]:
        """The wanted of `SHAPES` within a budget in bytes, but for a map that it cannot pay."""
        budget = max(1.0, budget - self._of.encoder)
        intervals = cut(self._of, self.mass, budget)
        for shape in wanted:
            if shape == "map":
                with contextlib.suppress(InvalidInputError):
                    yield self._mapped(intervals, budget)
            elif shape == "auto":
                yield self._auto(intervals, budget)
            else:
                yield shaped(self._of, self.mass, intervals, shape, budget)

    def _auto(self, intervals: Intervals, budget: float) -> Structure:
        """As a build does: a map where it may pay and probes read fewer files with it."""
        plain = shaped(self._of, self.mass, intervals, "auto", budget)
        told = self._expected(plain)
        if not map_may_pay(told, len(self._pairs()[0]), self._of.files, int(budget), exact=True):
            return plain
        try:
            other = self._mapped(intervals, budget)
        except InvalidInputError:
            return plain
        if mean_read(self._expected(other)) >= mean_read(told):
            return plain
        other.name = "auto"
        return other

    def _mapped(self, intervals: Intervals, budget: float) -> Mapped:
        ranges = beside_map(int(budget))
        lists = shaped(self._of, self.mass, intervals, "auto", ranges)
        hashes, file = self._pairs()
        keys = 1 + int(np.count_nonzero(hashes[1:] != hashes[:-1]))
        parts, bits = fit_maps(len(hashes), keys, self._of.files, int(budget) - ranges)
        edges = np.searchsorted(hashes, hashes[np.arange(1, parts) * len(hashes) // parts])
        payloads = [
            build_map(some, of, self._of.files, bits)
            for some, of in zip(np.split(hashes, edges), np.split(file, edges), strict=True)
        ]
        return Mapped(lists, payloads, self._of.files)

    def _pairs(self) -> tuple[Hashes, npt.NDArray[np.int32]]:
        """Each key's hash and file, in order of the hashes."""
        if self._hashes is None:
            keys = [codes for codes, _ in self._of.keys_of_files()]
            hashes = hash_codes(np.concatenate(keys))
            file = np.repeat(np.arange(len(keys), dtype=np.int32), [len(k) for k in keys])
            order = np.argsort(hashes, kind="stable")
            self._hashes = hashes[order], file[order]
        return self._hashes

    def _expected(self, structure: Structure) -> list[Expected]:
        read = _counts(self._probes, structure)
        told = []
        for number, kind in enumerate(KINDS):
            chosen = self._probes.kinds == number
            if kind == "absent":
                chosen &= self._hits == 0
            if chosen.any():
                files, exact = float(read[chosen].mean()), float(self._hits[chosen].mean())
                told.append(Expected(kind, files, exact, minmax=0.0))
        return told


def _counts(probes: Probes, structure: Structure) -> Codes:
    first, last = probes.intervals.T
    return np.count_nonzero(structure.may_hold(first, last), axis=1)


def sample(column: Column) -> Mass:
    """What a build learns of a column before it reads it: some rows of every file."""
    return Mass.of_sample(_drawn(column))


def _drawn(column: Column) -> Codes:
    rng = np.random.default_rng(1)
    return column.codes[rng.choice(len(column.codes), min(WANTED, len(column.codes)), False)]


def cut(column: Column, mass: Mass, budget: float) -> Intervals:
    """What travels: each file cut by itself, more finely than the budget will allow."""
    threshold = generous_threshold(column.files, budget)
    parts = []
    for file, (codes, rows) in enumerate(column.keys_of_files()):
        most = generous_most(int(rows.sum()), len(column.codes), column.files, budget)
        parts.append(cut_location(codes, rows, file, mass, threshold, most))
    return concatenated(parts)


def shaped(column: Column, mass: Mass, intervals: Intervals, shape: str, budget: float) -> Lists:
    """A version of one shape, without a map, that fits a budget if any of its size can.

    Args:
        column: what is indexed.
        mass: of its sample.
        intervals: of `cut` at that budget.
        shape: `intervals`, `runs`, or `auto` for either.
        budget: bytes.
    """
    planned = plan(intervals, mass, shape)
    *_, segments = fitted(planned, prices_for(column.files, budget), budget)
    size = sum(len(segment.payload) + SEGMENT_OVERHEAD for segment in segments)
    return Lists(shape, size, joined([s.payload for s in segments]), column.files)
