"""Weights of locations: the bytes that a query reads of a location, divided by the mean.

The purpose of an index is to save bytes. If each location counts by its weight instead of 1, a sum
over locations measures bytes. The unit is one location of mean size. The formulas call this unit
"files".

Example: locations of 1 MB and 3 MB weigh 0.5 and 1.5. A gap of the second location saves three
times as much as an equal gap of the first location.
"""

from __future__ import annotations

import numpy as np

from sieve.arrays.dtypes import Counts, Numbers, Ordinals, Weights


def weights_of(sizes: Counts) -> Weights | None:
    """The weights of locations by their bytes; None if all locations have the same size.

    Args:
        sizes: int64[n], bytes of each location.
    """
    if len(sizes) == 0 or sizes.min() == sizes.max():
        return None
    # The gaps of a location without bytes would have the weight 0, so its size counts as 1.
    read = np.maximum(sizes, 1)
    weights: Weights = (read / read.mean()).astype(np.float32)
    return weights


def weights_at(weights: Weights | None, locations: Ordinals) -> Numbers:
    """float64[n], the weight of each given location.

    Args:
        weights: the weights of all locations; None means that each location weighs 1.
        locations: int32[n], ordinals.
    """
    if weights is None:
        return np.ones(len(locations))
    return weights[locations].astype(np.float64)
