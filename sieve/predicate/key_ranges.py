"""Key ranges: the values that a predicate allows in one column (a search argument, SARG).

Key ranges contain all values for which the predicate can be TRUE. Key ranges may also contain other
values. The key ranges of ``a OR b`` are the union of the key ranges of ``a`` and ``b``. The key
ranges of ``a AND b`` are the intersection of the key ranges of ``a`` and ``b``.

Examples for an exact encoder of integers: the key ranges of ``x < 5`` consist of the interval
``[LEAST, 4]``. The key ranges of ``x IN (1, 2, 7)`` consist of the intervals ``[1, 2]`` and ``[7,
7]``, and of three hashes. The key ranges of ``x IS NULL`` have no interval, and `null` is true.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sieve.arrays import interval_set
from sieve.arrays.dtypes import CodeIntervals, Hashes, Integers
from sieve.encoding.codec import refuse_literal
from sieve.encoding.encoder import GREATEST, LEAST, Encoder, Literal
from sieve.encoding.hashing import hash_bytes, hash_codes
from sieve.predicate.parse_predicate import (
    Comparison,
    Leaf,
    Membership,
    NullTest,
    PackedKeys,
    Signature,
)


@dataclass(frozen=True, slots=True, eq=False)
class KeyRanges:
    """A set of values of one column; each row that satisfies the predicate has one of these values.

    Attributes:
        intervals: int64[k, 2], the first and the last key code of each interval, both inclusive.
            The intervals ascend, and are neither overlapping nor adjacent.
        null: whether the set contains NULL.
        nan: whether the set contains NaN.
        hashes: uint64[h], the hashes that values of the set can have, or None if all hashes are
            possible.
        signature: int64[s], hashes of long grams. Each location with a value of the set has a
            signature with all these hashes. None if the signature can have any hashes.
    """

    intervals: CodeIntervals
    null: bool = False
    nan: bool = False
    hashes: Hashes | None = None
    signature: Integers | None = None


def intersect(one: KeyRanges, other: KeyRanges) -> KeyRanges:
    """Returns the values that are in both key ranges."""
    if one is other:
        return one
    if one.hashes is None or other.hashes is None:
        hashes = other.hashes if one.hashes is None else one.hashes
    else:
        hashes = np.intersect1d(one.hashes, other.hashes)
    return KeyRanges(
        interval_set.intersect(one.intervals, other.intervals),
        one.null and other.null,
        one.nan and other.nan,
        hashes,
        _both(one.signature, other.signature),
    )


def _both(one: Integers | None, other: Integers | None) -> Integers | None:
    if one is None or other is None:
        return other if one is None else one
    return np.union1d(one, other)


def unite(parts: Iterable[KeyRanges]) -> KeyRanges:
    """Returns the values that are in at least one of the key ranges, and possibly others.

    The result has no `signature`, because no hash is certain to be in all locations.
    """
    parts = tuple(parts)
    # The key ranges of IS NULL, and other key ranges without intervals, contain no value with a
    # hash.
    hashes = [part.hashes for part in parts if len(part.intervals)]
    return KeyRanges(
        _merge([part.intervals for part in parts]),
        any(part.null for part in parts),
        any(part.nan for part in parts),
        None
        if not hashes or any(some is None for some in hashes)
        else np.unique(np.concatenate([some for some in hashes if some is not None])),
    )


def key_ranges(leaf: Leaf, encoder: Encoder) -> KeyRanges:
    """Returns the values that make a leaf TRUE, and all other values with the same codes.

    As in Spark, NaN equals NaN, NaN is greater than every other value, and -0.0 equals 0.0.

    Raises:
        InvalidInputError: a constant is not in the wire form of the encoder's type.
    """
    if isinstance(leaf, NullTest):
        return KeyRanges(_EVERYWHERE, nan=True) if leaf.negated else KeyRanges(_NOWHERE, null=True)
    if isinstance(leaf, Comparison):
        return _comparison(leaf, encoder)
    if isinstance(leaf, Membership):
        return _membership(leaf, encoder)
    if isinstance(leaf, PackedKeys):
        return _packed_keys(leaf, encoder)
    if isinstance(leaf, Signature):
        return KeyRanges(_EVERYWHERE, signature=np.array(leaf.hashes, np.int64))
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
    # In Spark, NULL NOT IN () is TRUE. By Spark's legacy rules for empty lists, the condition is
    # NULL.
    return _none_of(literals, encoder.exact, leaf.null or not literals)


def _packed_keys(leaf: PackedKeys, encoder: Encoder) -> KeyRanges:
    # `np.unique` takes a second for a million keys, so the driver sends sorted keys.
    keys = np.frombuffer(leaf.keys, "<i8").astype(np.int64)
    if not np.all(keys[:-1] < keys[1:]):
        raise refuse_literal("an unsorted key", "an ascending key")
    if leaf.hashed:
        if encoder.exact:
            raise refuse_literal("a hash", f"a {encoder.type} value")
        return KeyRanges(_EVERYWHERE, hashes=keys.view(np.uint64))
    if not encoder.has_integer_codes:
        raise refuse_literal("a number", f"the hash of a {encoder.type} value")
    points = np.stack([keys, keys], axis=1)
    return KeyRanges(interval_set.merge(points, touching=True), hashes=hash_codes(keys))


def _any_of(literals: Sequence[Literal], null: bool) -> KeyRanges:
    codes = _codes(literals)
    points = np.stack([codes, codes], axis=1)
    nan = any(literal.nan for literal in literals)
    return KeyRanges(_merge([points]), null, nan, _hashes(literals, codes))


def _hashes(literals: Sequence[Literal], codes: npt.NDArray[np.int64]) -> Hashes:
    """Returns the hashes of all constants except NaN.

    A hash is computed from the constant's code or, if codes are inexact, from the constant's bytes.
    """
    images = [literal.image for literal in literals if literal.image is not None]
    return np.unique(hash_bytes(images) if images else hash_codes(codes))


def _none_of(literals: Sequence[Literal], exact: bool, null: bool) -> KeyRanges:
    nan = not any(literal.nan for literal in literals)
    if not exact:
        return KeyRanges(_EVERYWHERE, null, nan)
    codes = _codes(literals)
    # The function omits the empty intervals below LEAST and above GREATEST, because the computation
    # of their ends would overflow.
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
        # Every value except NaN is less than NaN, and no value is greater than NaN.
        below = _NOWHERE if upwards else _EVERYWHERE
        return KeyRanges(below, null, nan=inclusive)
    code, step = literal.code, int(exact and not inclusive)
    first, last = (code + step, GREATEST) if upwards else (LEAST, code - step)
    if first > GREATEST or last < LEAST:
        return KeyRanges(_NOWHERE, null, nan=upwards)
    return KeyRanges(_interval(first, last), null, nan=upwards)


def _merge(parts: Sequence[CodeIntervals]) -> CodeIntervals:
    return interval_set.merge(np.concatenate([_NOWHERE, *parts]), touching=True)


def _interval(first: int, last: int) -> CodeIntervals:
    return np.array([[first, last]], np.int64)


def _codes(literals: Sequence[Literal]) -> npt.NDArray[np.int64]:
    """Returns the distinct codes of all constants except NaN, ascending."""
    return np.unique(np.array([lit.code for lit in literals if not lit.nan], np.int64))


_NOWHERE: CodeIntervals = np.empty((0, 2), np.int64)
_EVERYWHERE: CodeIntervals = _interval(LEAST, GREATEST)
