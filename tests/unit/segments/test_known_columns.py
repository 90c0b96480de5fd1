"""Regression test of the planner: for fixed columns, a plan's bytes and reads are fixed.

A worse plan costs only bytes or reads, and loses no rows. So no other test would fail for a worse
plan. A change that improves the planner's numbers must update this test.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sieve.segments.budget import prices_for
from sieve.segments.intervals.cut_gaps import (
    concatenated,
    cut_location,
    overprovisioned_most,
    overprovisioned_threshold,
)
from sieve.segments.intervals.plan_segments import SEGMENT_OVERHEAD, Plan, fitted, plan
from sieve.segments.payload import decode
from sieve.segments.query_model import QueryModel
from sieve.segments.weights import weights_of

FILES = 40
Column = list[np.ndarray]


def late(random: np.random.Generator) -> Column:
    """Ordered keys. 3 % of the keys are up to sixteen files after their proper file."""
    keys = np.arange(FILES * 250)
    delays = np.where(random.random(len(keys)) < 0.03, random.integers(0, 4000, len(keys)), 0)
    return np.array_split(keys[np.argsort(keys + delays, kind="stable")] * 7, FILES)


def scattered(random: np.random.Generator) -> Column:
    """Keys of a wide domain; each is in one random file."""
    return [random.integers(0, 1 << 40, 150) for _ in range(FILES)]


def tenants(random: np.random.Generator) -> Column:
    """A few distant keys, each with many rows in some files."""
    drawn = [random.choice(400, 12, replace=False) for _ in range(FILES)]
    return [np.repeat(keys, 9).astype(np.int64) << 32 for keys in drawn]


def skewed(random: np.random.Generator) -> Column:
    """Most keys are close to each other, and a few keys are far away."""
    return [(random.exponential(1.0, 200) ** 3 * 1e6).astype(np.int64) for _ in range(FILES)]


def planned(column: Column, budget: float, *, even: bool) -> tuple[Plan, QueryModel]:
    """Returns a build's plan for the column, and the query model of the column.

    If `even` is false, files grow from the first to the last.
    """
    model = QueryModel.of_sample(np.concatenate(column))
    threshold = overprovisioned_threshold(FILES, budget)
    n_rows = sum(map(len, column))
    parts = []
    for location, keys in enumerate(column):
        codes, rows = np.unique(keys, return_counts=True)
        most = overprovisioned_most(len(keys), n_rows, FILES, budget)
        parts.append(cut_location(codes, rows, location, model, threshold, most))
    weights = None if even else weights_of(np.arange(1, FILES + 1) * 1000)
    return plan(concatenated(parts), model, weights), model


@pytest.mark.parametrize(
    ("make", "even", "budget", "known"),
    [
        (late, True, 400, [362, 208, 205, 1.7976, 1.8398, 1.5002]),
        (late, True, 2500, [2188, 6280, 12559, 0.0000, 0.0000, 0.0000]),
        (late, False, 400, [365, 206, 208, 2.1601, 2.2017, 1.8477]),
        (late, False, 2500, [2457, 2627, 5253, 0.1638, 0.1962, 0.0000]),
        (scattered, True, 400, [378, 144, 147, 30.9857, 31.0857, 29.5753]),
        (scattered, True, 2500, [2265, 2325, 512, 14.8022, 14.3648, 12.6424]),
        (scattered, False, 400, [390, 153, 157, 29.8146, 29.8876, 28.4152]),
        (scattered, False, 2500, [2430, 1986, 1011, 12.2680, 11.7243, 10.1512]),
        (tenants, True, 400, [383, 277, 99, 6.0833, 7.4812, 7.3814]),
        (tenants, True, 2500, [1072, 480, 563, 0.0000, 0.0000, 0.0000]),
        (tenants, False, 400, [373, 260, 98, 5.3070, 6.8367, 6.7522]),
        (tenants, False, 2500, [1072, 480, 563, 0.0000, 0.0000, 0.0000]),
        (skewed, True, 400, [313, 165, 116, 28.2465, 2.3757, 1.9167]),
        (skewed, True, 2500, [2441, 1743, 886, 19.5200, 1.3620, 0.9443]),
        (skewed, False, 400, [287, 135, 109, 28.3224, 2.5785, 2.1158]),
        (skewed, False, 2500, [2445, 1739, 1078, 16.4717, 1.1685, 0.8195]),
    ],
)  # fmt: skip
def test_budget_leads_to_known_sizes(
    make: Callable[[np.random.Generator], Column], even: bool, budget: int, known: list[float]
) -> None:
    """For each column and budget, the plan has a known number of bytes, entries and blocks.

    The expected number of files that queries read without a match is also known.
    """
    one, _ = planned(make(np.random.default_rng(3)), budget, even=even)
    _, _, segments = fitted(one, prices_for(FILES, budget), budget)
    size = sum(len(segment.payload) + SEGMENT_OVERHEAD for segment in segments)
    entries = sum(segment.postings for segment in segments)
    blocks = sum(segment.blocks for segment in segments)
    in_vain = sum(segment.expected for segment in segments)
    assert [size, entries, blocks, *in_vain] == pytest.approx(known, rel=1e-3, abs=1e-3)
    assert sum(len(decode(segment.payload).low) for segment in segments) == entries


@pytest.mark.parametrize(
    ("make", "even", "price", "known"),
    [
        (late, True, 0.01, [359, 346, 595, 950]),
        (late, False, 0.001, [616, 617, 222.439, 893.366]),
        (scattered, True, 0.01, [760, 533, 4149, 4413]),
        (scattered, False, 0.001, [4850, 4393, 538.488, 3769.46]),
        (tenants, True, 0.01, [537, 527, 13, 33]),
        (tenants, False, 0.001, [651, 659, 9.21951, 34.1463]),
        (skewed, True, 0.01, [238, 216, 5942, 5950]),
        (skewed, False, 0.001, [4853, 4129, 1434.68, 5902.54]),
    ],
)  # fmt: skip
def test_trial_estimates_known_bytes_and_reads(
    make: Callable[[np.random.Generator], Column], even: bool, price: float, known: list[float]
) -> None:
    """For a given price, the curve and a trial estimate known bytes.

    The trial also estimates reads.
    """
    one, model = planned(make(np.random.default_rng(3)), 1e6, even=even)
    (by_curve,) = one.curve(np.array([price]), 1e6)
    keys = model.codes[::50]
    reach = int(model.codes[-1] - model.codes[0]) // 100
    points, ranges = np.stack([keys, keys], axis=1), np.stack([keys, keys + reach], axis=1)
    size, reads = one.trial(price, [points, ranges])
    assert [by_curve, size, *reads] == pytest.approx(known, rel=1e-3)
