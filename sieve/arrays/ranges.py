"""Ranges of places in a flat array, handled all at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def spelled_out(begin: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Every number of the ranges ``begin:end``, one after another."""
    sizes = end - begin
    skipped = begin - (np.cumsum(sizes) - sizes)
    numbers: npt.NDArray[np.int64] = np.arange(int(sizes.sum())) + np.repeat(skipped, sizes)
    return numbers
