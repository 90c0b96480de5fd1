"""Sieve's own shapes under a budget, built in the steps of a distributed build."""

from __future__ import annotations

import numpy as np

from bench.rivals.columns import Column
from bench.rivals.structures import Lists, joined
from sieve.intervals import (
    Intervals,
    concatenated,
    cut_location,
    generous_most,
    generous_threshold,
)
from sieve.mass import Mass
from sieve.shapes import SEGMENT_OVERHEAD, choose_price, plan, prices_for

SHAPES = ("intervals", "runs", "auto")
_SAMPLED = 1 << 16


def sample(column: Column) -> Mass:
    """What a build learns of a column before it reads it: some rows of every file."""
    rng = np.random.default_rng(1)
    rows = rng.choice(len(column.codes), min(_SAMPLED, len(column.codes)), replace=False)
    return Mass.of_sample(column.codes[rows])


def cut(column: Column, mass: Mass, budget: float) -> Intervals:
    """What travels: each file cut by itself, more finely than the budget will allow."""
    threshold = generous_threshold(column.files, budget)
    parts = []
    for file, (codes, rows) in enumerate(column.keys_of_files()):
        most = generous_most(int(rows.sum()), len(column.codes), column.files, budget)
        parts.append(cut_location(codes, rows, file, mass, threshold, most))
    return concatenated(parts)


def shaped(column: Column, mass: Mass, intervals: Intervals, shape: str, budget: float) -> Lists:
    """A version of one shape that fits a budget.

    Args:
        column: what is indexed.
        mass: of its sample.
        intervals: of `cut` at that budget.
        shape: one of `SHAPES`.
        budget: bytes.
    """
    prepared = plan(intervals, mass, shape)
    prices = prices_for(column.files, budget)
    price = choose_price(prices, prepared.curve(prices, budget), budget)
    segments = list(prepared.emit(price))
    size = sum(len(segment.payload) + SEGMENT_OVERHEAD for segment in segments)
    return Lists(shape, size, joined([s.payload for s in segments]), column.files)
