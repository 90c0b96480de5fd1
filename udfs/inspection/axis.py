"""Key axis: maps key codes to positions from 0 to 1 along a picture.

The scale is linear by default. If the borders of the entries are concentrated in a small part of
the range, most of a linear scale would be empty, so the scale uses quantiles of the borders. If all
entries are in a few short stretches, as in a column of few values, each stretch has a width in
proportion to its number of entries, and gaps are narrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from sieve.arrays.dtypes import Codes, Counts, Numbers

# If half of the borders are in less than this share of the range, the scale uses quantiles.
_CROWDED: Final = 0.1
_KNOTS: Final = 257
_FEW: Final = 100
"""The maximum number of stretches for which each stretch gets its own width."""
_GAPS: Final = 0.05
"""Total width of the gaps between stretches, divided by the total width of the stretches."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyAxis:
    """A mapping of key codes to positions from 0 to 1, linear unless keys are concentrated.

    Attributes:
        first: least code.
        offsets: float64[k], distances from `first`, ascending.
        places: float64[k], the position of each offset; positions between offsets are interpolated
            linearly.
        even: whether the axis is linear, so that equal distances between codes look equal.
    """

    first: int
    offsets: Numbers
    places: Numbers
    even: bool

    @staticmethod
    def over(low: Codes, high: Codes) -> KeyAxis:
        """The axis for one or more entries."""
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
        """The position at which each code begins."""
        placed: Numbers = np.interp(_distance(codes, self.first), self.offsets, self.places)
        return placed

    def end(self, codes: Codes) -> Numbers:
        """The position at which each code ends and the next one begins."""
        placed: Numbers = np.interp(_after(codes, self.first), self.offsets, self.places)
        return placed

    def code(self, place: float) -> int:
        """The code at a position, within floating-point precision."""
        offset = int(np.interp(place, self.places, self.offsets))
        return min(self.first + offset, (1 << 63) - 1)


def _stretches(low: Codes, high: Codes, first: int) -> tuple[Numbers, Counts]:
    """The start and end of each stretch, float64[n, 2]; the entries in each stretch, int64[n]."""
    begin, end = _distance(low, first), _after(high, first)
    order = np.argsort(begin)
    begin, end = begin[order], np.maximum.accumulate(end[order])
    new = np.flatnonzero(np.append(True, begin[1:] > end[:-1]))
    until = np.append(new[1:], len(begin))
    return np.stack([begin[new], end[until - 1]], axis=1), until - new


def _after(codes: Codes, first: int) -> Numbers:
    """The distance of the next code, or the next greater float if both codes round to one float."""
    distance = _distance(codes, first)
    after: Numbers = np.maximum(distance + 1, np.nextafter(distance, np.inf))
    return after


def _distance(codes: Codes, first: int) -> Numbers:
    origin = np.array([first], np.int64).view(np.uint64)
    return (codes.view(np.uint64) - origin).astype(np.float64)
