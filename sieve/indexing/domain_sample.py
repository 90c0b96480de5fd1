"""Domain sample: windows of a column's domain, from which ESTIMATE builds a smaller index.

The size of an index, and the files that queries read, depend on which files have neighbouring keys.
A sample of rows does not show which keys are neighbours. A window shows neighbouring keys, because
it contains all keys in an interval of key codes. The build moves the windows together, without gaps
between them. Each algorithm for a column therefore also works on the windows. The windows contain a
known share of the column.

Source: stratified sampling (Cochran, "Sampling Techniques", chapter 5), with one window in each
stratum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import CodeIntervals, Codes, Numbers
from sieve.arrays.interval_set import locate, merge
from sieve.encoding.encoder import GREATEST, LEAST
from sieve.segments.query_model import QueryModel

_STRATA: Final = 32
_BISECTIONS: Final = 64


@dataclass(frozen=True, slots=True, eq=False)
class DomainSample:
    """Disjoint sampled ranges of key codes ("windows"), and the position of each code in them.

    Attributes:
        first: int64[w], first code of each window, ascending.
        last: int64[w], last code of each window, not below its first.
        asked: int64[k, 2], ranges of key codes of a query, ascending and disjoint. A key that is in
            a range of the query, but between two windows, gets the last code of the lower window.
        share: the approximate share of single-key queries whose key is in the windows.
    """

    first: Codes
    last: Codes
    asked: CodeIntervals
    share: float

    def of_mass(self, query_model: QueryModel) -> QueryModel | None:
        """Returns the query model restricted to the windows; None if the windows contain no key."""
        inside = np.flatnonzero(self.within(query_model.codes))
        if len(inside) == 0:
            return None
        codes = self.codes(query_model.codes[inside])
        # Heavy keys are always in a window, so the rows of all other keys get more weight.
        rows = np.maximum(
            1, (query_model.rows * self.rates(query_model, query_model.codes))[inside].round()
        )
        seen, whole = (int(c[-1]) - int(c[0]) + 1 for c in (codes, query_model.codes))
        return QueryModel(
            codes,
            rows.astype(np.int64),
            query_model.unseen,
            seen / whole,
            len(codes) / len(query_model.codes),
        )

    def rates(self, query_model: QueryModel, codes: Codes) -> Numbers:
        """Returns each key's weight: 1 for heavy keys, and above 1 for all other keys."""
        heavy = np.isin(codes, query_model.codes[_heavy(query_model)])
        rates: Numbers = np.where(heavy, 1.0, 1 / self.share)
        return rates

    def codes(self, codes: Codes) -> Codes:
        """Returns the key codes in windows, moved so that no gaps remain between windows."""
        window, inside = locate(self.first, self.last, codes)
        moved = self._moved(codes[inside], window[inside])
        if len(self.asked) == 0:
            return moved
        window, between = window[~inside], codes[~inside]
        wanted = locate(self.asked[:, 0], self.asked[:, 1], between)[1] & (window >= 0)
        return np.append(moved, self._moved(self.last[window[wanted]], window[wanted]))

    def within(self, codes: Codes) -> npt.NDArray[np.bool_]:
        """Returns for each key code whether it is in a window."""
        return locate(self.first, self.last, codes)[1]

    def intervals(self, intervals: CodeIntervals) -> CodeIntervals:
        """Returns intervals restricted to the windows, with moved codes.

        If an interval is between two windows, it becomes empty: its first code is above its last.
        """
        low = np.searchsorted(self.last, intervals[:, 0], side="left")
        high = np.searchsorted(self.first, intervals[:, 1], side="right") - 1
        seen = np.empty_like(intervals)
        seen[:, 0], seen[:, 1] = 1, 0
        some = low <= high
        low, high = low[some], high[some]
        seen[some, 0] = self._moved(np.maximum(intervals[some, 0], self.first[low]), low)
        seen[some, 1] = self._moved(np.minimum(intervals[some, 1], self.last[high]), high)
        return seen

    def _moved(self, codes: Codes, window: npt.NDArray[np.intp]) -> Codes:
        # Lengths and distances can need all 64 bits, so the code computes them modulo 2^64.
        lengths = self.last.view(np.uint64) - self.first.view(np.uint64) + np.uint64(1)
        begin = np.cumsum(lengths) - lengths + np.int64(LEAST).view(np.uint64)
        within = codes.view(np.uint64) - self.first[window].view(np.uint64)
        moved: Codes = (begin[window] + within).view(np.int64)
        return moved


def windows(query_model: QueryModel, share: float, asked: CodeIntervals) -> DomainSample:
    """Chooses one window in each stratum, for about `share` of all single-key queries.

    Args:
        query_model: a model in which at least one key is not heavy.
        share: the share of queries whose key is in the windows, above 0 and below 1.
        asked: int64[k, 2], the ranges of a query; each end of a range lies in a window.
    """
    random = np.random.default_rng(2)
    begin = (np.arange(_STRATA) + (1 - share) * random.random(_STRATA)) / _STRATA
    ends = np.clip(asked.ravel(), query_model.codes[0], query_model.codes[-1])
    begin = np.append(begin, query_model.up_to(ends) - share / _STRATA / 2)
    # A window contains a key completely or not at all, so all keys are equally likely to be in a
    # window.
    both = np.concatenate([begin, begin + share / _STRATA])
    first, last = np.split(_code_at(query_model, both), 2)
    first += first < last
    heavy = query_model.codes[_heavy(query_model)]
    first, last = np.concatenate([first, heavy, ends]), np.concatenate([last, heavy, ends])
    first, last = (column.copy() for column in merge(np.stack([first, last], axis=1)).T)
    shares = query_model.shares(first, last)[:3].mean(axis=0).sum()
    weight = query_model.shares(heavy, heavy)[:3].mean(axis=0).sum()
    first[first == query_model.codes[0]] = LEAST
    last[last == query_model.codes[-1]] = GREATEST
    return DomainSample(
        first, last, asked, float(np.clip((shares - weight) / (1 - weight), 1e-9, 1))
    )


def has_only_heavy_keys(query_model: QueryModel) -> bool:
    """Returns whether all keys are heavy, so that windows would contain all keys."""
    return len(_heavy(query_model)) == len(query_model.codes)


def _heavy(query_model: QueryModel) -> npt.NDArray[np.intp]:
    """Returns the positions of heavy keys. A heavy key has so many rows that it gets a window."""
    return np.flatnonzero(query_model.rows * 2 * _STRATA >= query_model.rows.sum())


def _code_at(query_model: QueryModel, share: Numbers) -> Codes:
    """Returns the code up to which the model expects at least this share of all queries."""
    low = np.full(len(share), int(query_model.codes[0]), np.int64)
    high = np.full(len(share), int(query_model.codes[-1]), np.int64)
    for _ in range(_BISECTIONS):
        half = (high.view(np.uint64) - low.view(np.uint64)) >> np.uint64(1)
        middle = (low.view(np.uint64) + half).view(np.int64)
        enough = query_model.up_to(middle) >= share
        high = np.where(enough, middle, high)
        low = np.where(enough | (low >= high), low, middle + 1)
    return high
