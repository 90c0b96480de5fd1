"""Chooses split points that divide sampled values into groups with long common prefixes."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from sieve.encoding.split_points import (
    LONGEST_POINT,
    MOST_DIGITS,
    WIDEST_ALPHABET,
    Point,
    Splits,
    packed_size,
)

_WIDTH: Final = LONGEST_POINT + MOST_DIGITS
STRAYS: Final = 1 / 200
"""Up to this share of the values may get ambiguous codes. More of the other values then get
distinct codes."""


class Fronts:
    """The first bytes of each distinct value after the prefix that all values share.

    Attributes:
        bytes: uint8[n, w], w bytes of each value, padded with zeros, ascending.
        shared: int64[n - 1], length of the common prefix of each value and the next value.
        radix: the number of distinct bytes, including zero; 256 if there are too many for an
            alphabet.
    """

    __slots__ = ("bytes", "radix", "shared")

    def __init__(self, values: Sequence[bytes], start: int) -> None:
        cut = [value[start : start + _WIDTH] for value in values]
        self.bytes = np.array(cut, f"S{_WIDTH}").view(np.uint8).reshape(len(values), _WIDTH)
        apart = self.bytes[1:] != self.bytes[:-1]
        self.shared = np.where(apart.any(axis=1), apart.argmax(axis=1), _WIDTH)
        alphabet = _alphabet(np.bincount(self.bytes.ravel(), minlength=256), 0)
        self.radix = len(alphabet) + 1 if alphabet else 256


class _Group(NamedTuple):
    """A group of consecutive values with a common prefix: from `first` to `stop` - 1.

    Attributes:
        unresolved: the negated number of values whose code equals the next value's code. The number
            is negative so that a heap yields the group with the most equal codes first.
    """

    unresolved: int
    first: int
    stop: int
    shared: int


def split(fronts: Fronts, count: int, spare: float, most: int) -> Splits | None:
    """Returns at most `count` split points, or None if they have more than `most` bytes.

    Each step divides the group with the most equal codes. The step divides the group between the
    neighbours with the shortest common prefix. With any other division, one of the new groups would
    keep the old common prefix.

    Args:
        fronts: the first bytes of the sampled values.
        count: maximum number of split points.
        spare: number of extra bits of a code, beyond the bits that distinguish sampled neighbours.
        most: maximum size of the split points in bytes.
    """
    room = 64 - math.log2(count)
    reach = max(1, int((room - spare) / math.log2(fronts.radix)))
    groups = [_group(fronts, 0, len(fronts.bytes), reach)]
    while len(groups) < count and groups[0].unresolved:
        group = heapq.heappop(groups)
        middle = _middle(fronts, group, reach)
        heapq.heappush(groups, _group(fronts, group.first, middle, reach))
        heapq.heappush(groups, _group(fronts, middle, group.stop, reach))
    groups.sort(key=lambda group: group.first)
    points = _points(fronts, groups)
    if packed_size(points) > most:
        return None
    skipped = np.repeat([g.shared for g in groups], [g.stop - g.first for g in groups])
    # The number of digits and the alphabet's size depend on each other. So the second call uses the
    # number of digits from the first call.
    guess = Splits(tuple(points), _digits_of(fronts, skipped, int(room / math.log2(fronts.radix))))
    return Splits(tuple(points), _digits_of(fronts, skipped, guess.digits))


def _group(fronts: Fronts, first: int, stop: int, reach: int) -> _Group:
    steps = fronts.shared[first : stop - 1]
    if not len(steps):
        return _Group(0, first, stop, 0)
    shared = int(steps.min())
    return _Group(-int(np.count_nonzero(steps >= shared + reach)), first, stop, shared)


def _middle(fronts: Fronts, group: _Group, reach: int) -> int:
    """Returns where to divide a group: between neighbours with the shortest common prefix."""
    steps = fronts.shared[group.first : group.stop - 1]
    done = np.cumsum(steps >= group.shared + reach)
    places = np.flatnonzero(steps == group.shared)
    return group.first + 1 + int(places[np.abs(done[places] - done[-1] / 2).argmin()])


def _points(fronts: Fronts, groups: Sequence[_Group]) -> list[Point]:
    """Returns split points: the shortest bytes that separate each group from the previous group."""
    points: list[Point] = []
    for group in groups:
        apart = int(fronts.shared[group.first - 1]) + 1 if group.first else 0
        size = min(max(apart, group.shared), LONGEST_POINT)
        start = fronts.bytes[group.first, :size].tobytes()
        if not group.first:
            start = start.rstrip(b"\0")
        # A group gets a split point of its own only if the point is above all values of the
        # previous group.
        if apart <= size and (not group.first or not start.endswith(b"\0")):
            points.append(Point(start, min(group.shared, len(start))))
    return points


def _digits_of(fronts: Fronts, skipped: npt.NDArray[np.int64], digits: int) -> bytes:
    """Returns the alphabet of the bytes after the prefix that a value shares with its group."""
    columns = np.minimum(skipped[:, None] + np.arange(digits), _WIDTH - 1)
    counts = np.bincount(np.take_along_axis(fronts.bytes, columns, 1).ravel(), minlength=256)
    return _alphabet(counts, len(skipped) * STRAYS)


def _alphabet(counts: npt.NDArray[np.int64], strays: float) -> bytes:
    """Returns the bytes that occur, without the rarest bytes; empty if too many bytes occur."""
    counts = counts.copy()
    counts[0] = 0
    rarest = np.argsort(counts, kind="stable")
    rare = rarest[np.cumsum(counts[rarest]) <= strays]
    counts[rare] = 0
    found = np.flatnonzero(counts)
    return bytes(found.tolist()) if len(found) <= WIDEST_ALPHABET else b""
