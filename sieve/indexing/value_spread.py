"""Value spread: how many locations hold one value of a column, estimated by a sample of its rows.

Key codes of long values stand for several values each, so counts by code are too high. A sample
has the hash of each value and its location.
"""

from __future__ import annotations

import numpy as np

from sieve.arrays.dtypes import Counts, Hashes, Numbers, Ordinals

_STEPS = 60
"""Halvings of the interval in which the number of locations is searched."""


def value_spread(hashes: Hashes, locations: Ordinals, share: float) -> float:
    """Locations that hold the value of a row, in the mean over rows; 0 without rows.

    A value that was drawn s times in d locations is in about G of them if s throws into G boxes
    hit d boxes. Where no two throws hit the same box, G is unknown, and d counts.

    Args:
        hashes: uint64[n], of the value of each sampled row.
        locations: int[n], of each sampled row.
        share: of all rows, the part that was sampled.
    """
    if not len(hashes):
        return 0.0
    pairs = np.unique(np.stack([hashes, locations.astype(np.uint64)]), axis=1)
    _, hit = np.unique(pairs[0], return_counts=True)
    _, drawn = np.unique(hashes, return_counts=True)
    within = hit.astype(np.float64)
    again = drawn > hit
    boxes = _boxes(drawn[again], hit[again])
    within[again] = _hit(boxes, drawn[again] / share)
    return float(np.average(within, weights=drawn))


def _hit(boxes: Numbers, throws: Numbers | Counts) -> Numbers:
    """Boxes that are hit at least once, in the mean."""
    with np.errstate(divide="ignore"):
        missed = np.exp(throws * np.log1p(-1 / boxes))
    hit: Numbers = boxes * (1 - missed)
    return hit


def _boxes(throws: Counts, hit: Counts) -> Numbers:
    """The number of boxes of which so many throws hit so many, fewer than throws."""
    low = hit.astype(np.float64)
    high = np.maximum(low, throws.astype(np.float64) ** 2)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        less = _hit(middle, throws) < hit
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return high
