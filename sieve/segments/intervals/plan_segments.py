"""Plans segments from intervals by one cost per byte: chooses gaps, grids and codings.

The price of a byte is the number of files that the byte must save reading per expected query. Each
file counts by its weight (its relative size). All bytes have the same price. Therefore the planner
can choose gaps, grid precision and codings independently, and the result is still optimal. From a
sample of segments, `curve` estimates the bytes at many prices, and `trial` estimates the bytes and
the reads at one price. `emit` makes the segments for a given price.

Source: Shoham and Gersho, "Efficient Bit Allocation for an Arbitrary Set of Quantizers".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Codes, Numbers, Places, Weights
from sieve.segments.budget import choose_price, within_budget
from sieve.segments.intervals.cut_gaps import Intervals, united
from sieve.segments.intervals.format import CODINGS, IN_BLOCKS, IN_CELLS
from sieve.segments.intervals.quantize import Coded, Part, blocks_of, cheapest
from sieve.segments.query_model import N_KINDS, QueryModel
from sieve.segments.weights import weights_at

SEGMENT_OVERHEAD: Final = 40
"""The number of bytes that a segment takes in its file in addition to its payload."""
# The minimum number of new entries in each segment except the last. If an entry reaches into a
# later segment, that segment repeats the entry. Each segment has at least as many new entries as
# repeated entries. Hence at most about half of all entries are repeated, so long entries need no
# separate list.
_LEAST_ENTRIES: Final = 16384
# The kinds of query that reports show: the key of a random row, any code of the domain, and a short
# range.
_SHOWN: Final = [1, 2, 3]
_FIRST_GUESS: Final = 2.0
_LEFT: Final = 0.8
# The size of one more entry, as a share of the mean size of entries. The share is below 1: a
# further entry shortens the distances between entries, and shorter distances take fewer bits.
_MARGINAL: Final = 0.8
# The planner encodes a sample of `_SAMPLED` segments, at the multiples `_TRIED` of the expected
# price.
_SAMPLED: Final = 3
_TRIED: Final = np.array([2.0, 1.0, 0.5])


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """A segment: a stretch of keys, in the form in which a run file stores it.

    Attributes:
        first: the least key code.
        last: the greatest key code. Segments do not overlap.
        keys: number of distinct keys of each location, summed over locations; only the total over
            all segments is exact.
        rows: number of table rows; only the total over all segments is exact.
        blocks: number of stretches into which the entries' borders divide the segment. All keys in
            a stretch have the same locations.
        postings: number of entries.
        payload: the encoded entries; `sieve.segments.payload` decodes them.
        expected: float64[3], the expected weighted number of files that a query reads only because
            the index is imprecise. The three kinds of query are the key of a random row, any code
            of the domain, and a short range. The numbers of several segments can be added.
    """

    first: int
    last: int
    keys: int
    rows: int
    blocks: int
    postings: int
    payload: bytes
    expected: Numbers


def plan(
    intervals: Intervals,
    query_model: QueryModel,
    weights: Weights | None = None,
    codings: Sequence[int] = CODINGS,
) -> Plan:
    """Prepares a stretch of the domain for planning at any price.

    Args:
        intervals: all intervals of the stretch, in any order. Intervals of one location may
            overlap.
        weights: the weights of all locations; None means that each location weighs 1.
        codings: the allowed codings; each segment gets the cheapest.
    """
    lists = united(intervals)
    leading = np.append(True, lists.location[1:] != lists.location[:-1])[: len(lists)]
    inner = np.flatnonzero(~leading)
    inner = inner[lists.first[inner].view(np.uint64) - lists.last[inner - 1].view(np.uint64) > 1]
    shares = np.zeros((N_KINDS, len(lists) + 1))
    in_gaps = query_model.shares(lists.last[inner - 1] + 1, lists.first[inner] - 1)
    in_gaps *= weights_at(weights, lists.location[inner])
    shares[:, inner + 1] = in_gaps
    skip_probability = query_model.mean(shares[:, 1:])
    skip_probability[leading] = np.inf
    gaps = np.cumsum(shares, axis=1, out=shares)
    keys, rows = _cumulated(lists.keys), _cumulated(lists.rows)
    return Plan(lists, skip_probability, gaps, keys, rows, query_model, weights, codings)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The intervals of a stretch of the domain, with sums that are used at every price.

    Attributes:
        intervals: sorted by location and first key; intervals of one location are disjoint.
        skip_probability: float64[n], the skip probability of the gap before each interval,
            multiplied by the weight of the location. For the first interval of a location, the
            number is infinite.
        gaps: float64[6, n + 1], cumulated over intervals: for each kind of query, the share of
            queries that fall into the gap before an interval, times the location's weight.
        keys: int64[n + 1], the number of distinct keys, cumulated over intervals.
        rows: int64[n + 1], the number of rows, cumulated over intervals.
        weights: the weights of all locations; None means that each location weighs 1.
        codings: the allowed codings; each segment gets the cheapest.
    """

    intervals: Intervals
    skip_probability: Numbers
    gaps: Numbers
    keys: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    query_model: QueryModel
    weights: Weights | None
    codings: Sequence[int]

    def curve(self, prices: Numbers, aim: float) -> Numbers:
        """Estimates the total bytes of the segments at each price, including `SEGMENT_OVERHEAD`.

        At each price, the method counts the entries that save more than they cost; this count is
        exact. The method measures the bytes per entry on a sample of segments, at some prices near
        the expected price. For the other prices, it interpolates.

        Args:
            prices: float64[p], above 0, falling, in files read per query and index byte.
            aim: the number of bytes that the segments of this stretch should take.

        Returns:
            float64[p].
        """
        skip_probability = np.sort(self.skip_probability)
        counts = len(skip_probability) - np.searchsorted(
            skip_probability, prices * _FIRST_GUESS, side="right"
        )
        fits = np.flatnonzero(counts * _FIRST_GUESS <= aim)
        near = prices[fits[-1] if len(fits) else 0] * _TRIED
        each = [self._tried(price) for price in near.tolist()]
        # `np.interp` needs ascending x values; prices fall, so their logarithms are negated.
        bytes_each = np.interp(-np.log(prices), -np.log(near), each)
        sizes: Numbers = counts * bytes_each
        return sizes

    def trial(
        self, price: float, probes: Sequence[npt.NDArray[np.int64]]
    ) -> tuple[float, list[float]]:
        """Estimates the segments' bytes and the reads of probes (sampled queries) at one price.

        The method first ignores the grid, and computes exactly which locations the probes would
        read. The method measures two numbers on a sample of segments: the bytes of the entries, and
        the additional locations that probes read because of the grid cells.

        Args:
            price: the cost per byte, above 0, in files read per query and index byte.
            probes: for each kind, int64[k, 2], the first and the last key code of each probe; both
                columns ascend.

        Returns:
            The bytes, including `SEGMENT_OVERHEAD` for each segment. Also, for each kind of probe,
            the weighted number of files that all its probes read together.
        """
        kept = self._kept(price, _FIRST_GUESS)
        segments = list(kept.segments())
        step = -(-len(segments) // _SAMPLED) or 1
        some = segments[step // 2 :: step]
        scale = _entries(segments) / max(1, _entries(some))
        size, named = 0, kept.named(probes)
        for part in (kept.part(*one) for one in some):
            coded = self._cheapest(part, price)
            size += len(coded.payload) + SEGMENT_OVERHEAD
            for kind, of_kind in enumerate(probes):
                exact = _named(part.low, part.high, part.location, self.weights, of_kind)
                found = _named(*coded.cells.by_location(), self.weights, of_kind)
                named[kind] += scale * (found - exact)
        return size * scale, named

    def _tried(self, price: float) -> float:
        """Returns the segments' bytes at a price, divided by the entry count that `curve` uses."""
        worthwhile = np.count_nonzero(self.skip_probability > price * _FIRST_GUESS)
        kept = self._kept(price, self._entry_bytes(price))
        segments = list(kept.segments())
        step = -(-len(segments) // _SAMPLED) or 1
        some = segments[step // 2 :: step]
        if not some:
            return _FIRST_GUESS
        coded = (self._cheapest(kept.part(*one), price) for one in some)
        size = sum(len(one.payload) + SEGMENT_OVERHEAD for one in coded)
        return size * _entries(segments) / _entries(some) / max(1, int(worthwhile))

    def emit(self, price: float) -> Iterator[Segment]:
        """Yields the segments at a price, in the order of their keys."""
        kept = self._kept(price, self._entry_bytes(price))
        for one in kept.segments():
            part = kept.part(*one)
            coded = self._cheapest(part, price)
            yield Segment(
                part.first,
                part.last,
                part.keys,
                part.rows,
                blocks_of(coded.cells),
                len(coded.cells.begin),
                coded.payload,
                coded.added[_SHOWN],
            )

    def _cheapest(self, part: Part, price: float) -> Coded:
        return cheapest(part, self.query_model, price, self.codings)

    def _entry_bytes(self, price: float) -> float:
        """Estimates, from the middle segment, how many bytes one more entry takes at a price."""
        kept = self._kept(price, _FIRST_GUESS)
        segments = list(kept.segments())
        if not segments:
            return _FIRST_GUESS
        middle = kept.part(*segments[len(segments) // 2])
        coded = cheapest(middle, self.query_model, price, self.codings, search=False)
        return _MARGINAL * len(coded.payload) / len(coded.cells.begin)

    def _kept(self, price: float, entry_bytes: float) -> _Kept:
        """Returns the entries at a price, cut at each gap that saves more than an entry costs."""
        lists = self.intervals
        start = np.flatnonzero(self.skip_probability > price * entry_bytes)
        stop = np.append(start[1:], len(lists))
        order = np.argsort(lists.first[start], kind="stable")
        start, stop = start[order], stop[order]
        return _Kept(self, start, stop, lists.first[start], lists.last[stop - 1])


def fitted(planned: Plan, prices: Numbers, budget: float) -> tuple[Plan, float, list[Segment]]:
    """Makes segments that use most of a budget; returns the plan, the price and the segments.

    At some price, many segments can change to the coding `IN_BLOCKS`, and their total bytes can
    halve. Then perhaps no price uses much of the budget, and segments without blocks can be better.
    This function also tries segments without blocks if a price gave blocks and much of the budget
    is unused. Example (`bench rivals`): with a budget of 0.3 % for a column of e-mail addresses,
    queries read about 189 of 200 files with blocks, and about 180 without.

    Args:
        planned: the plan of the stretch whose segments share the budget.
        prices: float64[p], the prices to consider, falling.
        budget: maximum total bytes, including `SEGMENT_OVERHEAD` for each segment.
    """
    price, segments, size, has_blocks = _sought(planned, prices, budget)
    if has_blocks and IN_CELLS in planned.codings and size < _LEFT * budget and price > prices[-1]:
        other = replace(planned, codings=(IN_CELLS,))
        other_price, others, *_ = _sought(other, prices, budget)
        if _expected(others) < _expected(segments):
            return other, other_price, others
    return planned, price, segments


def _sought(
    planned: Plan, prices: Numbers, budget: float
) -> tuple[float, list[Segment], float, bool]:
    """Returns price, segments and total bytes; also whether any tried price gave blocks."""
    price, has_blocks = choose_price(prices, planned.curve(prices, budget), budget), False

    def made(times: float) -> tuple[tuple[float, list[Segment], float], float]:
        nonlocal has_blocks
        segments = list(planned.emit(price * times))
        has_blocks |= any(segment.payload[0] == IN_BLOCKS for segment in segments)
        size = sum(len(segment.payload) + SEGMENT_OVERHEAD for segment in segments)
        return (price * times, segments, size), size

    found = within_budget(made, budget, lowest=min(1.0, float(prices[-1]) / price))
    return *found, has_blocks


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """The n entries of a stretch at one price, before they are distributed over segments.

    Attributes:
        plan: the plan of the stretch.
        start: int64[n], the position of each entry's first interval. Entries are sorted by their
            first key.
        stop: int64[n], the position after each entry's last interval.
        first: int64[n], the first key of each entry.
        last: int64[n], the last key of each entry.
    """

    plan: Plan
    start: Places
    stop: Places
    first: Codes
    last: Codes

    def segments(self) -> Iterator[tuple[int, int, Places]]:
        """For each segment, yields two positions and an array of entries.

        The entries between the two positions begin in the segment. The array contains the positions
        of all entries of the segment, including entries that begin earlier.
        """
        at, spanning = 0, np.empty(0, np.intp)
        while at < len(self.start):
            wanted = at + max(_LEAST_ENTRIES, len(spanning))
            end = len(self.start)
            if wanted < end:
                end = int(np.searchsorted(self.first, self.first[wanted], side="left"))
                if end <= at:
                    end = int(np.searchsorted(self.first, self.first[at], side="right"))
            inside = np.concatenate([spanning, np.arange(at, end)])
            yield at, end, inside
            if end < len(self.start):
                spanning = inside[self.last[inside] >= self.first[end]]
            at = end

    def named(self, probes: Sequence[npt.NDArray[np.int64]]) -> list[float]:
        """Returns, for each kind of probe, the total weight of the locations that probes read."""
        location = self.plan.intervals.location[self.start]
        order = np.lexsort((self.first, location))
        entries = self.first[order], self.last[order], location[order]
        return [_named(*entries, self.plan.weights, of_kind) for of_kind in probes]

    def part(self, at: int, end: int, inside: Places) -> Part:
        """Returns the content of a segment; the arguments are an item of `segments`."""
        lists, gaps = self.plan.intervals, self.plan.gaps
        start, stop = self.start[at:end], self.stop[at:end]
        begin, reach = int(self.first[at]), int(self.last[inside].max())
        if end < len(self.start):
            reach = min(reach, int(self.first[end]) - 1)
        by_location = inside[np.lexsort((self.first[inside], lists.location[self.start[inside]]))]
        return Part(
            begin,
            reach,
            np.maximum(self.first[by_location], begin),
            np.minimum(self.last[by_location], reach),
            lists.location[self.start[by_location]],
            self.plan.weights,
            _between(self.plan.keys, start, stop),
            _between(self.plan.rows, start, stop),
            (gaps[:, stop] - gaps[:, start + 1]).sum(axis=1),
        )


def _named(
    first: Codes,
    last: Codes,
    location: npt.NDArray[np.int32],
    weights: Weights | None,
    probes: npt.NDArray[np.int64],
) -> float:
    """Adds up the weights of the locations that each probe reads; returns the sum over all probes.

    Args:
        first: int64[n], the first key of each entry; entries are sorted by location and key.
        last: int64[n], the last key of each entry; entries of one location are disjoint.
        location: int32[n], the location of each entry.
        weights: the weights of all locations; None means that each location weighs 1.
        probes: int64[k, 2], first and last key code of each probe; both ascend.
    """
    begin, end = np.ascontiguousarray(probes.T)
    # The positions of the probes that overlap an entry are consecutive.
    from_, to = np.searchsorted(end, first), np.searchsorted(begin, last, side="right")
    met = to - from_
    # A location counts only once for a probe, even if the probe overlaps two entries of the
    # location.
    again = np.maximum(to[:-1] - from_[1:], 0)
    met[1:] -= np.where(location[1:] == location[:-1], again, 0)
    return float(met @ weights_at(weights, location))


def _expected(segments: Sequence[Segment]) -> float:
    return sum(float(segment.expected.sum()) for segment in segments)


def _entries(segments: list[tuple[int, int, Places]]) -> int:
    return sum(len(inside) for _, _, inside in segments)


def _cumulated(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    sums: npt.NDArray[np.int64] = np.append(0, np.cumsum(counts))
    return sums


def _between(sums: npt.NDArray[np.int64], start: Places, stop: Places) -> int:
    return int((sums[stop] - sums[start]).sum())
