"""Key ranges: the values that a predicate allows in one column (a search argument, SARG).

Key ranges are a superset of the values for which the predicate can be TRUE. Therefore the union and
the intersection of two key ranges are key ranges of OR and AND, and any key ranges may be widened.

Examples for an exact encoder of integers: ``x < 5`` has the interval ``[LEAST, 4]``,
``x IN (1, 2, 7)`` has ``[1, 2]`` and ``[7, 7]`` with three hashes, and ``x IS NULL`` has no
interval and `null`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sieve.encoding.encoder import GREATEST, LEAST, Encoder, Literal
from sieve.encoding.hashing import Hashes, hash_bytes, hash_codes
from sieve.predicate.tree import Comparison, Leaf, Membership, NullTest

Intervals = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class KeyRanges:
    """Values of one column; a row must have one of them.

    Attributes:
        intervals: int64[k, 2], key codes from first to last, both inclusive; ascending, neither
            overlapping nor adjacent.
        null: whether NULL is allowed.
        nan: whether NaN is allowed.
        hashes: uint64[h], the allowed hashes of the values; None: all.
    """

    intervals: Intervals
    null: bool = False
    nan: bool = False
    hashes: Hashes | None = None


def intersect(one: KeyRanges, other: KeyRanges) -> KeyRanges:
    """The values that are in both."""
    mine, theirs = one.intervals, other.intervals
    start = np.searchsorted(theirs[:, 1], mine[:, 0], side="left")
    stop = np.searchsorted(theirs[:, 0], mine[:, 1], side="right")
    counts = np.maximum(stop - start, 0)
    left = np.repeat(np.arange(len(mine)), counts)
    within = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
    right = np.repeat(start, counts) + within
    intervals = np.empty((len(left), 2), np.int64)
    np.maximum(mine[left, 0], theirs[right, 0], out=intervals[:, 0])
    np.minimum(mine[left, 1], theirs[right, 1], out=intervals[:, 1])
    if one.hashes is None or other.hashes is None:
        hashes = other.hashes if one.hashes is None else one.hashes
    else:
        hashes = np.intersect1d(one.hashes, other.hashes)
    return KeyRanges(intervals, one.null and other.null, one.nan and other.nan, hashes)


def unite(parts: Iterable[KeyRanges]) -> KeyRanges:
    """The values that are in at least one."""
    parts = tuple(parts)
    # A part without intervals, such as IS NULL, adds no hashes.
    hashes = [part.hashes for part in parts if len(part.intervals)]
    return KeyRanges(
        _merged(np.concatenate([_NOWHERE, *(part.intervals for part in parts)])),
        any(part.null for part in parts),
        any(part.nan for part in parts),
        None
        if not hashes or any(some is None for some in hashes)
        else np.unique(np.concatenate([some for some in hashes if some is not None])),
    )


def key_ranges(leaf: Leaf, encoder: Encoder) -> KeyRanges:
    """The values that can make a leaf TRUE; with an inexact encoder, values of the same code too.

    Comparisons are Spark's: NaN equals NaN and is greater than every other value, -0.0 equals 0.0.

    Raises:
        InvalidInputError: a constant is not in the wire form of the encoder's type.
    """
    if isinstance(leaf, NullTest):
        if leaf.negated:
            return KeyRanges(_EVERYWHERE, nan=True)
        return KeyRanges(_NOWHERE, null=True)
    if isinstance(leaf, Comparison):
        return _comparison(leaf, encoder)
    if isinstance(leaf, Membership):
        return _membership(leaf, encoder)
    return KeyRanges(_interval(*encoder.starting_with(leaf.value)))


def _comparison(leaf: Comparison, encoder: Encoder) -> KeyRanges:
    literal = encoder.literal(leaf.value)
    if leaf.op == "=":
        return _any_of([literal], leaf.null)
    if leaf.op == "!=":
        return _none_of([literal], encoder.exact, leaf.null)
    return _ordering(leaf.op, literal, encoder.exact, leaf.null)


def _membership(leaf: Membership, encoder: Encoder) -> KeyRanges:
    literals = [encoder.literal(value) for value in leaf.values]
    if not leaf.negated:
        return _any_of(literals, leaf.null)
    # NULL NOT IN () is TRUE by Spark's rules for empty lists, and NULL by its legacy rules.
    return _none_of(literals, encoder.exact, leaf.null or not literals)


def _any_of(literals: Sequence[Literal], null: bool) -> KeyRanges:
    codes = _codes(literals)
    points = np.stack([codes, codes], axis=1)
    nan = any(literal.nan for literal in literals)
    return KeyRanges(_merged(points), null, nan, _hashes(literals, codes))


def _hashes(literals: Sequence[Literal], codes: npt.NDArray[np.int64]) -> Hashes:
    """Hashes of the constants that are not NaN; of their codes where these are exact."""
    images = [literal.image for literal in literals if literal.image is not None]
    return np.unique(hash_bytes(images) if images else hash_codes(codes))


def _none_of(literals: Sequence[Literal], exact: bool, null: bool) -> KeyRanges:
    nan = not any(literal.nan for literal in literals)
    if not exact:
        return KeyRanges(_EVERYWHERE, null, nan)
    codes = _codes(literals)
    # The gap below the least code and the one above the greatest would wrap around: omit them.
    first = np.concatenate([[LEAST], codes[codes < GREATEST] + 1])
    last = np.concatenate([codes[codes > LEAST] - 1, [GREATEST]])
    if len(codes) and codes[0] == LEAST:
        first = first[1:]
    if len(codes) and codes[-1] == GREATEST:
        last = last[:-1]
    holes = np.stack([first, last], axis=1)
    return KeyRanges(holes[first <= last], null, nan)


def _ordering(op: str, literal: Literal, exact: bool, null: bool) -> KeyRanges:
    upwards, inclusive = op.startswith(">"), op.endswith("=")
    if literal.nan:
        # Every value is below NaN, and none is above it.
        below = _NOWHERE if upwards else _EVERYWHERE
        return KeyRanges(below, null, nan=inclusive)
    code, step = literal.code, int(exact and not inclusive)
    first, last = (code + step, GREATEST) if upwards else (LEAST, code - step)
    if first > GREATEST or last < LEAST:
        return KeyRanges(_NOWHERE, null, nan=upwards)
    return KeyRanges(_interval(first, last), null, nan=upwards)


def _interval(first: int, last: int) -> Intervals:
    return np.array([[first, last]], np.int64)


def _codes(literals: Sequence[Literal]) -> npt.NDArray[np.int64]:
    """Codes of the constants that are not NaN, ascending, each once."""
    return np.unique(np.array([lit.code for lit in literals if not lit.nan], np.int64))


def _merged(intervals: Intervals) -> Intervals:
    """The same codes as ascending intervals that neither overlap nor touch."""
    if len(intervals) < 2:
        return intervals
    intervals = intervals[np.argsort(intervals[:, 0], kind="stable")]
    first, reach = intervals[:, 0], np.maximum.accumulate(intervals[:, 1])
    # `first - 1` cannot overflow where it matters: there `first` is above another code.
    apart = (first[1:] > reach[:-1]) & (first[1:] - 1 > reach[:-1])
    starts = np.concatenate([[0], np.flatnonzero(apart) + 1])
    ends = np.concatenate([starts[1:] - 1, [len(first) - 1]])
    return np.stack([first[starts], reach[ends]], axis=1)


_NOWHERE: Intervals = np.empty((0, 2), np.int64)
_EVERYWHERE: Intervals = _interval(LEAST, GREATEST)
