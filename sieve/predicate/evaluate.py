"""Evaluates a predicate over a table's indexes: returns which locations might match.

The evaluation excludes a location only if the indexes show that the location *cannot match*. The
evaluation converts each leaf to `KeyRanges` of the leaf's column. The column's index then returns
the locations that may contain a key in the key ranges. A leaf without an index is *unknown*,
because every location might match. This table shows how AND and OR combine the locations to keep:

===============  =====================  ==========================
A                B                      result
===============  =====================  ==========================
keep a           keep b                 AND: a & b, OR: a | b
keep a           unknown                AND: a, OR: unknown
unknown          unknown                unknown
===============  =====================  ==========================

Before a look-up, the evaluation combines all key ranges of the same column. It intersects key
ranges below an AND, and unites key ranges below an OR. Example: for ``x > 1 AND (x < 5 OR y = 2)``,
the evaluation looks up ``(1, 5)`` in the index of x. So the look-up for the branch ``x < 5``
excludes a location that contains only the keys 0 and 7. A predicate tree has no NOT: see
`sieve.predicate.parse_predicate`.

A row can have several elements in an index of arrays. Two `Exists` of the same column can be TRUE
because of two different elements. So the evaluation does not intersect the key ranges of several
`Exists`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from sieve.arrays.dtypes import Flags
from sieve.encoding.encoder import Encoder
from sieve.index_key import kind_of
from sieve.predicate.key_ranges import KeyRanges, intersect, key_ranges, unite
from sieve.predicate.parse_predicate import (
    And,
    Column,
    Constant,
    Exists,
    Or,
    Predicate,
    Unknown,
)


class LocationIndex(Protocol):
    """The index of one column over the locations of a table."""

    @property
    def encoder(self) -> Encoder:
        """The encoder that computed the key codes of the index."""

    @property
    def null_proof(self) -> bool:
        """Whether every value that a query reads as NULL was also NULL when the build read it."""

    def keep(self, key_ranges: KeyRanges) -> Flags:
        """Returns, for each location, whether the location may contain a value in the key ranges.

        For a location that the index does not contain, the result is True.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """The result of evaluating one scan's predicate.

    Attributes:
        keep: bool[n_locations], False only for locations in which no row satisfies the predicate.
        used: the columns whose indexes the evaluation used.
    """

    keep: Flags
    used: frozenset[Column]


def evaluate(
    predicate: Predicate, indexes: Mapping[Column, LocationIndex], n_locations: int
) -> Verdict:
    """Returns the locations that may contain a row for which the predicate is TRUE.

    Raises:
        InvalidInputError: a constant is not in the wire form of its column's type.
    """
    proof = _Evaluation(indexes, n_locations).of(predicate)
    return Verdict(np.ones(n_locations, np.bool_), frozenset()) if proof is None else proof


@dataclass(frozen=True, slots=True, eq=False)
class _Bound:
    """The condition that a row's value in `column` is in `key_ranges`."""

    column: Column
    key_ranges: KeyRanges


@dataclass(frozen=True, slots=True, eq=False)
class _One:
    """A condition that is TRUE if one of a row's elements satisfies `plan`.

    Other conditions do not narrow the key ranges of `plan`.
    """

    plan: _Bound | _All | _Any | _One


@dataclass(frozen=True, slots=True, eq=False)
class _All:
    """A conjunction: `bounds` has each column's key ranges; `others` has all other conjuncts."""

    bounds: Mapping[Column, KeyRanges]
    others: tuple[_Any | _One, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Any:
    """A disjunction that contains at most one `_Bound` for each column.

    A disjunction without parts is FALSE.
    """

    parts: tuple[_Bound | _All | _One, ...]


# A predicate, reduced to its leaves on indexed columns; None if indexes cannot exclude any
# location.
_Plan: TypeAlias = _Bound | _All | _Any | _One | None


class _Evaluation:
    """Evaluates one predicate over the indexes of one table."""

    def __init__(self, indexes: Mapping[Column, LocationIndex], n_locations: int) -> None:
        self._indexes = indexes
        self._n_locations = n_locations

    def of(self, predicate: Predicate) -> Verdict | None:
        plan = self._plan(predicate, in_exists=False)
        return None if plan is None else self._prove(plan, {})

    def _plan(self, node: Predicate, *, in_exists: bool) -> _Plan:
        if isinstance(node, Constant | Unknown):
            return _Any(()) if node == Constant(False) else None
        if isinstance(node, And):
            return _conjunction([self._plan(arg, in_exists=in_exists) for arg in node.args])
        if isinstance(node, Or):
            return _disjunction([self._plan(arg, in_exists=in_exists) for arg in node.args])
        if isinstance(node, Exists):
            one = self._plan(node.arg, in_exists=True)
            return None if one is None else _One(one)
        index = self._indexes.get(node.column)
        if index is None or (kind_of(node.column) is not None and not in_exists):
            return None
        return _Bound(node.column, key_ranges(node, index.encoder))

    def _prove(
        self, plan: _Bound | _All | _Any | _One, given: Mapping[Column, KeyRanges]
    ) -> Verdict | None:
        """Returns the locations that may contain a row with both `plan` and `given` TRUE.

        The key ranges in an AND also narrow the key ranges in the ORs below the AND. Example: in
        ``x > 1 AND (x < 5 OR y = 2)``, the branch ``x < 5`` becomes ``1 < x < 5``. So the branch
        does not keep a location whose only values of x are 0 and 7.
        """
        if isinstance(plan, _Bound):
            return self._look_up(plan.column, plan.key_ranges, given)
        if isinstance(plan, _One):
            return self._prove(plan.plan, {})
        if isinstance(plan, _Any):
            return self._any(plan, given)
        narrowed = {**given, **{c: _narrow(c, r, given) for c, r in plan.bounds.items()}}
        parts: list[_Bound | _Any | _One] = [_Bound(c, narrowed[c]) for c in plan.bounds]
        parts += plan.others
        found = [self._prove(part, narrowed) for part in parts]
        proofs = [proof for proof in found if proof is not None]
        if not proofs:
            return None
        keep = np.logical_and.reduce([proof.keep for proof in proofs])
        return Verdict(keep, frozenset().union(*(proof.used for proof in proofs)))

    def _any(self, plan: _Any, given: Mapping[Column, KeyRanges]) -> Verdict | None:
        keep = np.zeros(self._n_locations, np.bool_)
        used: frozenset[Column] = frozenset()
        for part in plan.parts:
            proof = self._prove(part, given)
            if proof is None:
                return None
            keep |= proof.keep
            used |= proof.used
        return Verdict(keep, used)

    def _look_up(
        self, column: Column, wanted: KeyRanges, given: Mapping[Column, KeyRanges]
    ) -> Verdict | None:
        index = self._indexes[column]
        wanted = _narrow(column, wanted, given)
        if wanted.null and not index.null_proof:
            # The columns that a query reads determine which of its rows have NULL in this column.
            # So the index cannot exclude any location.
            return None
        return Verdict(index.keep(wanted), frozenset((column,)))


def _narrow(column: Column, wanted: KeyRanges, given: Mapping[Column, KeyRanges]) -> KeyRanges:
    return intersect(wanted, given[column]) if column in given else wanted


def _conjunction(plans: Iterable[_Plan]) -> _Plan:
    """Plans an AND: ignores the parts that are None; intersects key ranges of the same column."""
    bounds: dict[Column, KeyRanges] = {}
    others: list[_Any | _One] = []
    for plan in plans:
        if isinstance(plan, _Any | _One):
            others.append(plan)
            continue
        if isinstance(plan, _All):
            others += plan.others
        for column, wanted in _bounds(plan).items():
            bounds[column] = _narrow(column, wanted, bounds)
    if not bounds and len(others) <= 1:
        return others[0] if others else None
    if len(bounds) == 1 and not others:
        return _Bound(*bounds.popitem())
    return _All(bounds, tuple(others))


def _bounds(plan: _Bound | _All | None) -> Mapping[Column, KeyRanges]:
    if isinstance(plan, _Bound):
        return {plan.column: plan.key_ranges}
    return {} if plan is None else plan.bounds


def _disjunction(plans: Iterable[_Plan]) -> _Plan:
    """Plans an OR: returns None if any part is None; unites key ranges of the same column."""
    bounds: dict[Column, list[KeyRanges]] = {}
    others: list[_Bound | _All | _One] = []
    for plan in plans:
        if plan is None:
            return None
        for part in plan.parts if isinstance(plan, _Any) else (plan,):
            if isinstance(part, _Bound):
                bounds.setdefault(part.column, []).append(part.key_ranges)
            else:
                others.append(part)
    parts = [*(_Bound(column, unite(wanted)) for column, wanted in bounds.items()), *others]
    return parts[0] if len(parts) == 1 else _Any(tuple(parts))
