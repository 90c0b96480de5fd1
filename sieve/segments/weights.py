"""Weights of locations: a location's weight is its size divided by the mean size of all locations.

The purpose of an index is to save reading bytes. If each location counts by its weight, a sum over
locations measures bytes. The unit of a sum of weights is a location of mean size, which formulas
call a "file".

Example: two locations of 1 MB and 3 MB weigh 0.5 and 1.5. A gap in the keys of the 3 MB location
saves three times as much as an equal gap in the 1 MB location.
"""

from __future__ import annotations

import numpy as np

from sieve.arrays.dtypes import Counts, Numbers, Ordinals, Weights


def weights_of(sizes: Counts) -> Weights | None:
    """Returns the weights of locations; None if all locations have the same size.

    Args:
        sizes: int64[n], the size of each location in bytes.
    """
    if len(sizes) == 0 or sizes.min() == sizes.max():
        return None
    # A location of 0 bytes counts as 1 byte. With the weight 0, the location's gaps would save
    # nothing.
    read = np.maximum(sizes, 1)
    weights: Weights = (read / read.mean()).astype(np.float32)
    return weights


def weights_at(weights: Weights | None, locations: Ordinals) -> Numbers:
    """Returns the weight of each of `locations`, float64[n].

    Args:
        weights: the weights of all locations, or None if each location weighs 1.
        locations: int32[n], the numbers of the locations.
    """
    if weights is None:
        return np.ones(len(locations))
    return weights[locations].astype(np.float64)
