"""Cuts at gaps: build tasks divide a location's keys into intervals, at gaps between the keys.

A gap lies between two neighbouring keys of a location. If the intervals are cut at a gap, queries
that fall wholly into the gap do not read the location. Each cut costs one more interval, and all
intervals take about the same number of bytes. Each cut saves reads in proportion to the gap's skip
probability: the expected share of queries that fall wholly into the gap. Therefore it is best,
under a budget, to cut at every gap whose skip probability exceeds a threshold. A location gets more
intervals if more of its gaps exceed the threshold.

Example: the keys are 1, 2, 3, 900 and 901, and only the gap ``(3, 900)`` has a skip probability
above the threshold. These five keys become the two intervals ``[1, 3]`` and ``[900, 901]``.

Source: a generalisation of the interval lists of He, Chen and Du, "HIndex". HIndex has the same
number of intervals for every split of a file, and cuts at the longest gaps.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Codes
from sieve.arrays.interval_set import starts
from sieve.segments.budget import least_price
from sieve.segments.query_model import QueryModel

# A build task does not know the final cost per byte, so it makes more intervals than needed. All
# tasks together may make three intervals for each entry of minimum size that fits into the budget.
# In addition, every location may have 64 intervals.
_OVERPROVISION: Final = 3
_LEAST_ENTRY_BYTES: Final = 2
_LEAST_INTERVALS: Final = 64


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Intervals in flat arrays: ``location[i]`` may contain keys in ``[first[i], last[i]]``.

    Attributes:
        first: int64[n], the code of the first key in each interval.
        last: int64[n], the code of the last key in each interval, at least `first`.
        location: int32[n], the number of each interval's location.
        keys: int64[n], the number of the location's distinct keys in the interval; 0 if another
            interval counts these keys.
        rows: int64[n], the number of the location's rows in the interval; 0 if another interval
            counts these rows.
    """

    first: Codes
    last: Codes
    location: npt.NDArray[np.int32]
    keys: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.first)

    def take(self, places: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> Intervals:
        """Returns the intervals that `places` selects by positions or by a mask."""
        return Intervals(*(getattr(self, field.name)[places] for field in fields(self)))


def concatenated(parts: list[Intervals]) -> Intervals:
    """Concatenates the intervals in ``parts``, in order."""
    if not parts:
        none = np.empty(0, np.int64)
        return Intervals(none, none, np.empty(0, np.int32), none, none)
    return Intervals(
        *(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Intervals))
    )


def cut_location(
    codes: Codes,
    rows: npt.NDArray[np.int64],
    location: int,
    query_model: QueryModel,
    threshold: float,
    most: int | None = None,
) -> Intervals:
    """Returns one location's intervals, cut at each gap with a skip probability above a threshold.

    Args:
        codes: int64[k], k >= 1, the location's distinct key codes, ascending.
        rows: int64[k], the number of rows with each code.
        location: the location's number.
        threshold: a share of all queries. The function cuts at each gap with a greater skip
            probability.
        most: maximum number of intervals, at least 1. If too many gaps exceed the threshold, the
            function cuts at the gaps with the highest skip probability.
    """
    skip_probability = query_model.skip_probability(codes[:-1], codes[1:])
    kept = np.flatnonzero(skip_probability > threshold)
    if most is not None and len(kept) >= most:
        kept = (
            np.sort(kept[np.argpartition(skip_probability[kept], len(kept) - most + 1)[1 - most :]])
            if most > 1
            else kept[:0]
        )
    start = np.append(0, kept + 1)
    stop = np.append(kept, len(codes) - 1)
    return Intervals(
        codes[start],
        codes[stop],
        np.full(len(start), location, np.int32),
        (stop - start + 1).astype(np.int64),
        np.add.reduceat(rows, start),
    )


def overprovisioned_threshold(locations: int, budget_bytes: float) -> float:
    """Returns a threshold for `cut_location` that is so low that later steps need no further cuts.

    The threshold equals the cost of one byte at the least price. An interval takes at least two
    bytes, so a cut at a gap below the threshold would never be worth its bytes.
    `overprovisioned_most` limits the number of intervals that result from this threshold.
    """
    return least_price(locations, budget_bytes)


def overprovisioned_most(rows: int, rows_in_table: int, locations: int, budget_bytes: float) -> int:
    """Returns a location's maximum number of intervals.

    Every location may have 64 intervals. In addition, all locations together may have 3 intervals
    per two bytes of the budget. Half of these additional intervals are distributed in proportion to
    the locations' rows. The other half is distributed equally, because a location with few, distant
    keys needs intervals, too.
    """
    share = (rows / max(1, rows_in_table) + 1 / max(1, locations)) / 2
    return _LEAST_INTERVALS + int(_OVERPROVISION * budget_bytes / _LEAST_ENTRY_BYTES * share)


def overprovisioned_total(rows: int, locations: int, budget_bytes: float) -> int:
    """Returns the maximum number of intervals of all locations together."""
    share = int(_OVERPROVISION * budget_bytes / _LEAST_ENTRY_BYTES)
    return min(rows, _LEAST_INTERVALS * locations + share)


def split_at(intervals: Intervals, borders: Codes) -> tuple[npt.NDArray[np.int32], Intervals]:
    """Cuts intervals at the borders between stretches of the domain; no piece spans a border.

    Args:
        intervals: the intervals, in any order.
        borders: int64[p - 1], strictly ascending; ``borders[i]`` is the first code of stretch i +
            1.

    Returns:
        The number of each piece's stretch, int32[m], from 0 to p - 1; and the pieces. The pieces of
        one interval are adjacent. The first piece of an interval has the interval's counts of keys
        and rows. The counts of all other pieces are 0.
    """
    from_ = np.searchsorted(borders, intervals.first, side="right")
    to = np.searchsorted(borders, intervals.last, side="right")
    pieces = to - from_ + 1
    if len(pieces) == 0 or pieces.max() == 1:
        return from_.astype(np.int32), intervals
    source = np.repeat(np.arange(len(intervals)), pieces)
    stretch = np.arange(len(source)) - np.repeat(np.cumsum(pieces) - pieces - from_, pieces)
    split = intervals.take(source)
    later = np.append(False, source[1:] == source[:-1])
    ends = np.append(later[1:], False)
    split.first[later] = borders[stretch[later] - 1]
    split.last[ends] = borders[stretch[ends]] - 1
    split.keys[later] = 0
    split.rows[later] = 0
    return stretch.astype(np.int32), split


def united(intervals: Intervals) -> Intervals:
    """Sorts intervals by location and first key; merges a location's overlapping intervals.

    Intervals of one location can overlap if several tasks read different parts of one file. If a
    key occurs in several parts of the file, the merged interval counts the key several times.
    """
    order = np.lexsort((intervals.first, intervals.location))
    lists = intervals.take(order)
    start = starts(lists.first, lists.last, lists.location)
    if len(start) == len(lists):
        return lists
    return Intervals(
        lists.first[start],
        np.maximum.reduceat(lists.last, start),
        lists.location[start],
        np.add.reduceat(lists.keys, start),
        np.add.reduceat(lists.rows, start),
    )
