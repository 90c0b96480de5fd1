"""Weights of locations: the bytes that a query reads of each, over the mean of all.

An index is to save bytes. With the weight of a location in place of 1, sums over locations count
bytes in units of a location of mean size ("files" in prices, which all formulas keep).

Example: locations of 1 MB and 3 MB weigh 0.5 and 1.5; a gap of the second is worth three times
the same gap of the first.
"""

from __future__ import annotations

import numpy as np

from sieve.arrays.dtypes import Counts, Numbers, Ordinals, Weights


def weights_of(sizes: Counts) -> Weights | None:
    """The weights of locations by their bytes; None if all are of one size.

    Args:
        sizes: int64[n], bytes of each.
    """
    if len(sizes) == 0 or sizes.min() == sizes.max():
        return None
    # A location without bytes has no price at which a gap in it could be weighed.
    read = np.maximum(sizes, 1)
    weights: Weights = (read / read.mean()).astype(np.float32)
    return weights


def weights_at(weights: Weights | None, locations: Ordinals) -> Numbers:
    """float64[n], the weight of each of some locations.

    Args:
        weights: of all locations; None: each weighs 1.
        locations: int32[n], ordinals.
    """
    if weights is None:
        return np.ones(len(locations))
    return weights[locations].astype(np.float64)
