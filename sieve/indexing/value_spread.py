"""Value spread: estimates in how many locations a value of a column occurs.

The estimate uses the hash and the location of each sampled value, because several long values can
have the same key code.
"""

from __future__ import annotations

import numpy as np

from sieve.arrays.dtypes import Counts, Hashes, Numbers, Ordinals

_STEPS = 60
"""The number of steps of the bisection that finds the number of locations."""


def value_spread(
    hashes: Hashes, locations: Ordinals, share: float, *, by_key: bool = False
) -> float:
    """Returns the mean number of locations that contain the value of a row; 0 if there are no rows.

    Suppose the sample has s rows with a value, in d locations. The function regards locations as
    boxes into which rows are thrown at random. The function finds the number of boxes for which s
    throws hit d boxes on average. From this number, the function estimates how many boxes all rows
    with the value hit. If s equals d, the estimate is d.

    Args:
        hashes: uint64[n], hash of each sampled row's value.
        locations: int[n], location of each sampled row.
        share: the share of all rows that the sample contains.
        by_key: True if each sampled value has the same weight in the mean; False if each row has
            the same weight.
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
    return float(np.average(within, weights=None if by_key else drawn))


def _hit(boxes: Numbers, throws: Numbers | Counts) -> Numbers:
    """Returns the mean number of boxes that random throws hit at least once."""
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
