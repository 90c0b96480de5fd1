"""Query model: estimates, from a sample of a column's keys, which queries to expect on the column.

An imprecise index can ignore the gap between two keys of a location. Then every query that falls
wholly into the gap reads the location without a match. Therefore the model estimates the *skip
probability* of a gap: the expected share of queries that fall wholly into the gap. Six kinds of
query have equal weight. The queries look up these keys or ranges:

0. a key that occurs; each distinct key is equally likely
1. a key that occurs; the key of each row is equally likely
2. a key code in the domain, which reaches from the least to the greatest key
3. a range of 0.05 % of the domain
4. a range of 1 % of the domain
5. a range that contains 0.1 % of the distinct keys

Example: the keys are 0 and 1000, and `unseen` is 0. A query of kind 2 falls into the gap between
the keys with a probability of 999/1001. Queries of kinds 0 and 1 look up keys that occur, so they
never fall into a gap.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Codes, Numbers
from sieve.errors import InvalidInputError

N_KINDS: Final = 6
_EQUAL: Final = (1 / N_KINDS,) * N_KINDS
_RANGES: Final = (0.0, 0.0, 0.0, *_EQUAL[3:])
SHORT_RANGE: Final = 0.0005
LONG_RANGE: Final = 0.01
RANK_RANGE: Final = 0.001
# Maximum number of keys in a model. A key takes eight bytes for its code and eight for its row
# count. So Spark sends each task a model of at most 1 MB.
MOST_KEYS: Final = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class _Weights:
    """Cumulative weights of a model's keys, and of the spaces between neighbouring keys.

    The weight of a key is 1 or its number of rows. Each share below is a share of the total weight.

    Attributes:
        to: float64[m + 1], for each key, the share of all keys before it; the last number is 1.
        begin: float64[m - 1], for each space, the share of all spaces before it.
        rise: float64[m - 1], the share of each space itself.
    """

    to: Numbers
    begin: Numbers
    rise: Numbers

    @staticmethod
    def of(to: Numbers) -> _Weights:
        # The weight of each key is divided equally between the space below the key and the space
        # above it. The first and the last key each have only one neighbouring space, which gets the
        # key's whole weight.
        borders = (to[:-1] + to[1:]) / 2
        borders[[0, -1]] = 0.0, 1.0
        return _Weights(to, borders[:-1], np.diff(borders))

    def spread(self, low: npt.NDArray[np.intp], part: Numbers) -> Numbers:
        """Returns the cumulative weight up to a point in the space above each key `low`.

        `part`, 0 to 1, is the share of the space that lies below the point.
        """
        spread: Numbers = self.begin[low] + part * self.rise[low]
        return spread


@dataclass(frozen=True, slots=True, eq=False)
class _Tables:
    """Precomputed lengths and weights of the spaces between a model's neighbouring keys.

    Attributes:
        start: float64[m - 1], the distance from the least key to the begin of each space.
        step: float64[m - 1], the length of each space.
        keys: the weights if each key has the weight 1.
        rows: the weights if a key weighs as much as it has rows; None if all keys have equally many
            rows.
    """

    start: Numbers
    step: Numbers
    keys: _Weights
    rows: _Weights | None

    @staticmethod
    def of(codes: Codes, rows: npt.NDArray[np.int64]) -> _Tables:
        start = _distance(codes, codes[:1])
        # Far from the least key, the distances of two neighbouring codes can round to the same
        # float. So a step is at least 1.
        step = np.maximum(np.diff(start), 1.0)
        keys, by_row = np.arange(len(codes) + 1) / len(codes), None
        if np.any(rows != rows[0]):
            rows_to = np.concatenate([[0.0], np.cumsum(rows, dtype=np.float64)])
            by_row = _Weights.of(rows_to / rows_to[-1])
        return _Tables(start[:-1], step, _Weights.of(keys), by_row)


@dataclass(frozen=True, slots=True, eq=False)
class QueryModel:
    """The distribution of a column's keys, estimated from a sample; small enough for pickling.

    Attributes:
        codes: int64[m], the sampled distinct key codes, ascending; 1 <= m <= `MOST_KEYS`.
        rows: int64[m], the number of sampled rows that each code represents, at least 1.
        unseen: the estimated share of the column's keys that are not in the sample, 0 to 1.
        length: the share of the column's domain that this model covers. The lengths of range
            queries, given as shares of the column's domain, are divided by ``length``.
        keys: the share of the column's distinct keys that this model covers.
        kinds: the weight of each of the six kinds of query.
    """

    codes: Codes
    rows: npt.NDArray[np.int64]
    unseen: float = 0.0
    length: float = 1.0
    keys: float = 1.0
    kinds: tuple[float, ...] = _EQUAL
    _tables: _Tables = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_tables", _Tables.of(self.codes, self.rows))

    def __reduce__(self) -> tuple[type[QueryModel], tuple[object, ...]]:
        # `_tables` is not pickled: a task computes the tables faster than Spark would transfer
        # them.
        given = self.codes, self.rows, self.unseen, self.length, self.keys, self.kinds
        return QueryModel, given

    @staticmethod
    def of_sample(codes: Codes, rows: npt.NDArray[np.int64] | None = None) -> QueryModel:
        """Returns the query model of sampled rows.

        Args:
            codes: int64[n], n >= 1, key codes in any order. A code can occur several times.
            rows: int64[n], the number of rows of each code, or None if each code stands for one
                row.

        Raises:
            InvalidInputError: there are no codes.
        """
        if len(codes) == 0:
            raise InvalidInputError(
                "SIEVE_EMPTY_SAMPLE", "no key was sampled; a column without keys has no segments"
            )
        distinct, inverse = np.unique(codes, return_inverse=True)
        counted = np.bincount(inverse, rows, len(distinct)).astype(np.int64)
        # `unseen` estimates the share of rows whose key is not in the sample. The estimate is the
        # share of sampled rows whose key occurs only once (Good, "The Population Frequencies of
        # Species").
        unseen = np.count_nonzero(counted == 1) / float(counted.sum())
        step = -(-len(distinct) // MOST_KEYS)
        if step == 1:
            return QueryModel(distinct, counted, unseen)
        # The model keeps only every `step`-th key, which also represents the keys up to the next
        # kept key. The first and the last key are always kept.
        kept = np.append(np.arange(0, len(distinct) - 1, step), len(distinct) - 1)
        unseen = 1 - (1 - unseen) / step
        return QueryModel(distinct[kept], np.add.reduceat(counted, kept), unseen)

    @property
    def of_ranges(self) -> QueryModel:
        """The model of range queries only, for use if a map answers all single-key queries."""
        return replace(self, kinds=_RANGES)

    def mean(self, shares: Numbers) -> Numbers:
        """Averages `shares`, float64[6, ...], over the kinds of query, by weight: float64[...]."""
        # For only six kinds, a matrix product would take longer than this loop, and would start
        # threads that wait for busy cores.
        mean: Numbers = self.kinds[0] * shares[0]
        for weight, of_kind in zip(self.kinds[1:], shares[1:], strict=True):
            mean += weight * of_kind
        return mean

    def skip_probability(self, low: Codes, high: Codes) -> Numbers:
        """Returns the expected share of queries that fall wholly between two keys.

        Args:
            low: int64[n], the last key before each gap.
            high: int64[n], the first key after each gap, above `low`.

        Returns:
            float64[n], the weighted mean over the kinds of query, 0 to 1.
        """
        inside = np.flatnonzero(high.view(np.uint64) - low.view(np.uint64) > 1)
        skip_probability = np.zeros(len(low))
        skip_probability[inside] = self.mean(self.shares(low[inside] + 1, high[inside] - 1))
        return skip_probability

    def shares(self, first: Codes, last: Codes) -> Numbers:
        """Returns, for each kind, the expected share of queries wholly inside ``[first, last]``.

        Args:
            first: int64[n], the first code of each interval.
            last: int64[n], the last code of each interval, not below its first code.

        Returns:
            float64[6, n], for each kind and interval a share from 0 to 1.
        """
        keys_before, rows_before, length_before = self._cumulated(first, 0)
        keys, rows, length = self._cumulated(last, 1)
        keys -= keys_before
        rows -= rows_before
        length -= length_before
        shares = np.empty((N_KINDS, len(first)))
        shares[0], shares[1], shares[2] = keys, rows, length
        ranges = (
            (3, SHORT_RANGE / self.length, length),
            (4, LONG_RANGE / self.length, length),
            (5, RANK_RANGE / self.keys, keys),
        )
        for kind, size, of in ranges:
            shares[kind] = (of - size) / (1 - size) if size < 1 else 0.0
        return np.clip(shares, 0, 1, out=shares)

    def up_to(self, codes: Codes) -> Numbers:
        """Estimates, for each code, the share of queries that look up keys up to the code.

        The estimate is the mean of three shares up to the code: the shares of the distinct keys,
        the rows and the domain. The estimates ascend with the codes.
        """
        shares: Numbers = np.mean(self._cumulated(codes, 1), axis=0)
        return shares

    def density(self, codes: Codes) -> Numbers:
        """Returns, for each code, the share of queries that an entry attracts by covering the code.

        Of the single-key queries, kind 0 is spread over keys, kind 1 over rows, and kind 2 over
        codes. Each kind of range query is spread like the most similar kind of single-key query.
        """
        at = np.clip(np.searchsorted(self.codes, codes, side="right"), 1, len(self.codes) - 1)
        by_key, by_row, by_code, short, long, rank = self.kinds
        if len(self.codes) == 1:
            return np.full(len(codes), sum(self.kinds))
        step = np.maximum(_distance(self.codes[at], self.codes[at - 1]), 1.0)
        rows = self.rows[at - 1] / float(self.rows.sum())
        domain = int(self.codes[-1]) - int(self.codes[0]) + 1
        by_keys = ((by_key + rank) / len(self.codes) + by_row * rows) / step
        density: Numbers = by_keys + (by_code + short + long) / domain
        return density

    def _cumulated(self, at: Codes, inclusive: int) -> tuple[Numbers, Numbers, Numbers]:
        """Returns the shares of keys, rows and domain below each code (`inclusive`: up to it)."""
        codes, tables = self.codes, self._tables
        below = np.searchsorted(codes, at, side="right" if inclusive else "left")
        offset = _distance(np.clip(at, codes[0], codes[-1]), codes[:1])
        keys = tables.keys.to[below]
        rows = None if tables.rows is None else tables.rows.to[below]
        if self.unseen and len(codes) > 1:
            low = np.clip(below - 1, 0, len(codes) - 2)
            part = np.clip((offset - tables.start[low]) / tables.step[low], 0, 1)
            keys += self.unseen * (tables.keys.spread(low, part) - keys)
            if rows is not None and tables.rows is not None:
                rows += self.unseen * (tables.rows.spread(low, part) - rows)
        rows = keys.copy() if rows is None else rows
        length = (offset + inclusive) / (int(codes[-1]) - int(codes[0]) + 1)
        length[at < codes[0]] = 0.0
        length[at > codes[-1]] = 1.0
        return keys, rows, length


def _distance(codes: Codes, origin: Codes) -> Numbers:
    """Returns each code's distance from `origin`: computed exactly, then rounded to a float."""
    return (codes.view(np.uint64) - origin.view(np.uint64)).astype(np.float64)
