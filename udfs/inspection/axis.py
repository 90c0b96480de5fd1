"""Key axis: maps key codes to positions from 0 (left) to 1 (right) in a picture.

The axis is linear by default. If half of the entries' ends are in a small part of the key range,
most of a linear axis would be empty. So the axis then uses quantiles of the ends. Overlapping or
adjacent entries form a stretch. The entries of a column with few values form only a few short
stretches. With few stretches, the width of each stretch is proportional to its number of entries,
and narrow gaps separate the stretches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from sieve.arrays.dtypes import Codes, Counts, Numbers

# If half of the entries' ends are in less than this share of the range, the axis uses quantiles.
_CROWDED: Final = 0.1
_KNOTS: Final = 257
_FEW: Final = 100
"""With more stretches than this number, the widths do not depend on the numbers of entries."""
_GAPS: Final = 0.05
"""Total width of the gaps between stretches, divided by the total width of the stretches."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyAxis:
    """A mapping of key codes to positions from 0 to 1; not linear if keys are concentrated.

    Attributes:
        first: the least key code.
        offsets: float64[k], distances of k codes from `first`, ascending.
        places: float64[k], position of each offset. Between two offsets, the axis interpolates
            positions linearly.
        even: whether the whole axis is linear.
    """

    first: int
    offsets: Numbers
    places: Numbers
    even: bool

    @staticmethod
    def over(low: Codes, high: Codes) -> KeyAxis:
        """The axis for one or more entries; entry k covers the codes ``low[k]`` to ``high[k]``."""
        first, last = int(low.min()), int(high.max())
        ends = np.sort(np.concatenate([_distance(low, first), _after(high, first)]))
        whole = float(last - first) + 1
        half = len(ends) // 2
        narrowest = float((ends[half:] - ends[: len(ends) - half]).min()) / whole
        stretches, counts = _stretches(low, high, first)
        if 1 < len(stretches) <= _FEW and np.diff(stretches).sum() < _CROWDED * whole:
            widths = np.full(2 * len(stretches) - 1, _GAPS * len(low) / (len(stretches) - 1))
            widths[::2] = counts
            places = np.concatenate([[0.0], np.cumsum(widths) / widths.sum()])
            return KeyAxis(first, stretches.ravel(), places, False)
        if len(ends) < 8 or narrowest >= _CROWDED:
            return KeyAxis(first, np.array([0.0, whole]), np.array([0.0, 1.0]), True)
        knots = np.unique(ends[np.linspace(0, len(ends) - 1, _KNOTS).astype(np.int64)])
        return KeyAxis(first, knots, np.linspace(0, 1, len(knots)), False)

    def begin(self, codes: Codes) -> Numbers:
        """The position at which each code's part of the axis begins."""
        placed: Numbers = np.interp(_distance(codes, self.first), self.offsets, self.places)
        return placed

    def end(self, codes: Codes) -> Numbers:
        """The position at which each code's part of the axis ends."""
        placed: Numbers = np.interp(_after(codes, self.first), self.offsets, self.places)
        return placed

    def code(self, place: float) -> int:
        """The code at a position; approximate because of floating-point rounding."""
        offset = int(np.interp(place, self.places, self.offsets))
        return min(self.first + offset, (1 << 63) - 1)


def _stretches(low: Codes, high: Codes, first: int) -> tuple[Numbers, Counts]:
    """Returns each stretch's start and end, float64[n, 2], and its number of entries, int64[n]."""
    begin, end = _distance(low, first), _after(high, first)
    order = np.argsort(begin)
    begin, end = begin[order], np.maximum.accumulate(end[order])
    new = np.flatnonzero(np.append(True, begin[1:] > end[:-1]))
    until = np.append(new[1:], len(begin))
    return np.stack([begin[new], end[until - 1]], axis=1), until - new


def _after(codes: Codes, first: int) -> Numbers:
    """The distance from ``first`` to the end of each code. The end of a code is the next code.

    If a code and the next code round to the same float, the function returns the next greater
    float.
    """
    distance = _distance(codes, first)
    after: Numbers = np.maximum(distance + 1, np.nextafter(distance, np.inf))
    return after


def _distance(codes: Codes, first: int) -> Numbers:
    origin = np.array([first], np.int64).view(np.uint64)
    return (codes.view(np.uint64) - origin).astype(np.float64)
