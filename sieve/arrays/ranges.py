"""Ranges of positions in a flat array, expanded without a Python loop.

Example: the ranges 3:5 and 8:10 expand to the positions 3, 4, 8, 9.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def spelled_out(begin: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """All positions of the ranges ``begin:end``, one range after another; int64."""
    sizes = end - begin
    skipped = begin - (np.cumsum(sizes) - sizes)
    numbers: npt.NDArray[np.int64] = np.arange(int(sizes.sum())) + np.repeat(skipped, sizes)
    return numbers
