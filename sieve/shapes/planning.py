"""From intervals to segments: which gaps to keep, how finely, and in which shape, at a price.

The price is what a byte must save, in files read by an expected query. At one price for all, every
choice (a gap, a bit of precision, a shape) can be made by itself, and all together are the best for
the bytes they need: Lagrange's method, as in rate-distortion coding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.errors import InvalidInputError
from sieve.intervals import Intervals, united
from sieve.mass import KINDS, Mass, Numbers
from sieve.shapes.choice import Coded, Part, blocks_of, cheapest
from sieve.shapes.layout import SHAPE_INTERVALS, SHAPE_RUNS

SEGMENT_OVERHEAD: Final = 40
"""Bytes that a segment takes in its file besides its payload."""

_SHAPES: Final = {
    "auto": (SHAPE_INTERVALS, SHAPE_RUNS),
    "intervals": (SHAPE_INTERVALS,),
    "runs": (SHAPE_RUNS,),
}
# A segment opens with all entries that reach into it from before. Closing only after as many new
# ones keeps these copies below the entries themselves, so that no list on the side is needed.
_LEAST_ENTRIES: Final = 16384
# Kinds of query that people are told about: an occurring key by rows, any code, a short range.
_SHOWN: Final = [1, 2, 3]
_FIRST_GUESS: Final = 2.0
# One entry more makes the steps between all entries smaller, so it takes less than the mean.
_MARGINAL: Final = 0.8
# Segments that are tried out, and the prices around the right one that they are tried at.
_SAMPLED: Final = 3
_TRIED: Final = np.array([2.0, 1.0, 0.5])


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """A stretch of keys as it goes into a run file.

    Attributes:
        first: least key code.
        last: greatest key code; segments are disjoint.
        shape: `intervals` or `runs`.
        keys: distinct keys of each location, summed over locations and over segments right.
        rows: rows of the table, summed over segments right.
        blocks: borders between which the answer does not change.
        postings: entries.
        payload: bytes for `decode`.
        expected: float64[3], files that a query reads beyond what the intervals given to `plan`
            ask for: an occurring key by rows, any code of the domain, a short range. Sums that
            add up over segments.
    """

    first: int
    last: int
    shape: str
    keys: int
    rows: int
    blocks: int
    postings: int
    payload: bytes
    expected: Numbers


def plan(intervals: Intervals, mass: Mass, shape: str = "auto") -> Plan:
    """Prepares a stretch of the domain.

    Args:
        intervals: all of the stretch, in any order; those of one location may overlap.
        mass: what queries ask.
        shape: `intervals`, `runs`, or `auto` for the cheaper of both in each segment.

    Raises:
        InvalidInputError: another shape.
    """
    if shape not in _SHAPES:
        raise InvalidInputError(
            "SIEVE_INVALID_OPTION",
            f"shape {shape!r} cannot be made of intervals; name one of: auto, intervals, runs",
        )
    lists = united(intervals)
    leading = np.append(True, lists.location[1:] != lists.location[:-1])[: len(lists)]
    inner = np.flatnonzero(~leading)
    inner = inner[lists.first[inner].view(np.uint64) - lists.last[inner - 1].view(np.uint64) > 1]
    shares = np.zeros((KINDS, len(lists) + 1))
    shares[:, inner + 1] = mass.shares(lists.last[inner - 1] + 1, lists.first[inner] - 1)
    worth = shares[:, 1:].mean(axis=0)
    worth[leading] = np.inf
    return Plan(lists, worth, np.cumsum(shares, axis=1, out=shares), mass, shape)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A stretch ready to be priced.

    Attributes:
        intervals: in order of location and first key, those of one location disjoint.
        worth: float64[n], worth of the gap before each; infinite for a location's first.
        gaps: float64[6, n + 1], share of queries, by kind, in the gaps before the first intervals.
        mass: what queries ask.
        shape: `intervals`, `runs` or `auto`.
    """

    intervals: Intervals
    worth: Numbers
    gaps: Numbers
    mass: Mass
    shape: str

    def curve(self, prices: Numbers, aim: float) -> Numbers:
        """About the bytes that each price leads to, `SEGMENT_OVERHEAD` a segment included.

        How many entries are worth a price is counted; what one takes is tried out on some segments
        at prices near the right one, and taken to change slowly from there on.

        Args:
            prices: float64[p], falling, files read a query, per byte, above 0.
            aim: bytes that this stretch should come to.

        Returns:
            float64[p].
        """
        worth = np.sort(self.worth)
        counts = len(worth) - np.searchsorted(worth, prices * _FIRST_GUESS, side="right")
        fits = np.flatnonzero(counts * _FIRST_GUESS <= aim)
        near = prices[fits[-1] if len(fits) else 0] * _TRIED
        each = [self._tried(price) for price in near.tolist()]
        # np.interp wants ascending places.
        bytes_each = np.interp(-np.log(prices), -np.log(near), each)
        sizes: Numbers = counts * bytes_each
        return sizes

    def _tried(self, price: float) -> float:
        """Bytes at a price for each entry that is worth it at first guess."""
        kept = np.count_nonzero(self.worth > price * _FIRST_GUESS)
        parts = list(self._parts(price, self._entry_bytes(price)))
        step = -(-len(parts) // _SAMPLED) or 1
        some = parts[step // 2 :: step]
        if not some:
            return _FIRST_GUESS
        size = sum(len(self._cheapest(part, price).payload) + SEGMENT_OVERHEAD for part in some)
        return size * _entries(parts) / _entries(some) / max(1, int(kept))

    def emit(self, price: float) -> Iterator[Segment]:
        """The segments at a price, in order and disjoint."""
        for part in self._parts(price, self._entry_bytes(price)):
            coded = self._cheapest(part, price)
            yield Segment(
                part.first,
                part.last,
                coded.shape,
                part.keys,
                part.rows,
                blocks_of(coded.cells),
                len(coded.cells.begin),
                coded.payload,
                coded.added[_SHOWN],
            )

    def _cheapest(self, part: Part, price: float) -> Coded:
        return cheapest(part, self.mass, price, _SHAPES[self.shape])

    def _entry_bytes(self, price: float) -> float:
        """What an entry more takes, tried out on the segment in the middle."""
        parts = list(self._parts(price, _FIRST_GUESS))
        if not parts:
            return _FIRST_GUESS
        middle = parts[len(parts) // 2]
        coded = cheapest(middle, self.mass, price, _SHAPES[self.shape], search=False)
        return _MARGINAL * len(coded.payload) / len(coded.cells.begin)

    def _parts(self, price: float, entry_bytes: float) -> Iterator[Part]:
        """The stretch cut into segments, with the entries that are worth their bytes."""
        lists = self.intervals
        if len(lists) == 0:
            return
        start = np.flatnonzero(self.worth > price * entry_bytes)
        stop = np.append(start[1:], len(lists))
        order = np.argsort(lists.first[start], kind="stable")
        start, stop = start[order], stop[order]
        first, last = lists.first[start], lists.last[stop - 1]
        keys, rows = _between(lists.keys, start, stop), _between(lists.rows, start, stop)
        at, spanning = 0, np.empty(0, np.intp)
        while at < len(start):
            wanted = at + max(_LEAST_ENTRIES, len(spanning))
            end = len(start)
            if wanted < end:
                end = int(np.searchsorted(first, first[wanted], side="left"))
                if end <= at:
                    end = int(np.searchsorted(first, first[at], side="right"))
            inside = np.concatenate([spanning, np.arange(at, end)])
            reach = int(last[inside].max())
            begin = int(first[at])
            if end < len(start):
                reach = min(reach, int(first[end]) - 1)
            by_location = inside[np.lexsort((first[inside], lists.location[start[inside]]))]
            yield Part(
                begin,
                reach,
                np.maximum(first[by_location], begin),
                np.minimum(last[by_location], reach),
                lists.location[start[by_location]],
                int(keys[at:end].sum()),
                int(rows[at:end].sum()),
                (self.gaps[:, stop[at:end]] - self.gaps[:, start[at:end] + 1]).sum(axis=1),
            )
            if end < len(start):
                spanning = inside[last[inside] >= first[end]]
            at = end


def _entries(parts: list[Part]) -> int:
    return sum(len(part.low) for part in parts)


def _between(
    counts: npt.NDArray[np.int64], start: npt.NDArray[np.intp], stop: npt.NDArray[np.intp]
) -> npt.NDArray[np.int64]:
    sums = np.append(0, np.cumsum(counts))
    between: npt.NDArray[np.int64] = sums[stop] - sums[start]
    return between
