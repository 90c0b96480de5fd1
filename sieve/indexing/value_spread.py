"""Value spread: estimates the number of locations that hold one value of a column.

Several long values can have the same key code, so a count of the locations of a code is too high.
Therefore the estimate uses the hash and the location of each sampled value.
"""

from __future__ import annotations

import numpy as np

from sieve.arrays.dtypes import Counts, Hashes, Numbers, Ordinals

_STEPS = 60
"""How often the bisection for the number of locations halves its interval."""


def value_spread(hashes: Hashes, locations: Ordinals, share: float) -> float:
    """Mean number of locations that hold the value of a row; 0 without rows.

    The estimate treats locations as boxes. A value was drawn s times and found in d locations. The
    estimate is the number of boxes G for which s random throws hit d boxes on average. If all draws
    of a value were in different locations, G is unknown, and the estimate is d.

    Args:
        hashes: uint64[n], hash of the value of each sampled row.
        locations: int[n], location of each sampled row.
        share: share of all rows that was sampled.
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
    """Mean number of boxes that are hit at least once."""
    with np.errstate(divide="ignore"):
        missed = np.exp(throws * np.log1p(-1 / boxes))
    hit: Numbers = boxes * (1 - missed)
    return hit


def _boxes(throws: Counts, hit: Counts) -> Numbers:
    """Returns the number of boxes for which `throws` random throws hit `hit` boxes on average.

    `hit` must be below `throws`.
    """
    low = hit.astype(np.float64)
    high = np.maximum(low, throws.astype(np.float64) ** 2)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        less = _hit(middle, throws) < hit
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return high
