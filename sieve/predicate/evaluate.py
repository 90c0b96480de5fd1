"""Evaluates a predicate over a table's indexes: which locations might match and which cannot.

The evaluation rules out a location only if an index proves that the location *cannot match*. Each
leaf becomes `KeyRanges` of the leaf's column. The column's index then returns the locations that
can hold such a key. A leaf without an index proves nothing and keeps every location:

===============  =====================  ==========================
A                B                      result
===============  =====================  ==========================
keep a           keep b                 AND: a & b, OR: a | b
keep a           unknown                AND: a, OR: unknown
unknown          unknown                unknown
===============  =====================  ==========================

Before a look-up, the evaluation combines key ranges of one column: below AND by intersection, below
OR by union. Example: for ``x > 1 AND (x < 5 OR y = 2)`` the index of x looks up ``(1, 5)``, so the
branch ``x < 5`` excludes a location with only the keys 0 and 7. NOT does not occur in a tree: see
`sieve.predicate.tree`.

A row can have several elements in an index. Two different elements can make two `Exists` of one
column TRUE, so the evaluation does not intersect the key ranges of several `Exists`.
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
from sieve.predicate.tree import (
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
        """The encoder of the index."""

    @property
    def null_proof(self) -> bool:
        """Returns whether a value that the index saw as not NULL is not NULL in every query."""

    def keep(self, key_ranges: KeyRanges) -> Flags:
        """Returns for each location whether the location can hold a value in the key ranges.

        The result is True for a location about which the index knows nothing.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """The answer for one scan.

    Attributes:
        keep: bool[n_locations]; False only if no row of the location can make the predicate TRUE.
        used: the columns whose indexes were used.
    """

    keep: Flags
    used: frozenset[Column]


def evaluate(
    predicate: Predicate, indexes: Mapping[Column, LocationIndex], n_locations: int
) -> Verdict:
    """Returns the locations that can hold a row for which the predicate is TRUE.

    Raises:
        InvalidInputError: a constant is not in the wire form of its column's type.
    """
    proof = _Evaluation(indexes, n_locations).of(predicate)
    return Verdict(np.ones(n_locations, np.bool_), frozenset()) if proof is None else proof


@dataclass(frozen=True, slots=True, eq=False)
class _Bound:
    """The condition that a row's value in one column is in some key ranges."""

    column: Column
    key_ranges: KeyRanges


@dataclass(frozen=True, slots=True, eq=False)
class _One:
    """TRUE if one of a row's elements satisfies the plan. No other condition narrows the plan."""

    plan: _Bound | _All | _Any | _One


@dataclass(frozen=True, slots=True, eq=False)
class _All:
    """Conjunction: `bounds` contains all parts that are bounds, one for each column."""

    bounds: Mapping[Column, KeyRanges]
    others: tuple[_Any | _One, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Any:
    """Disjunction: each column has a bound in at most one part.

    A disjunction without parts is false.
    """

    parts: tuple[_Bound | _All | _One, ...]


# A predicate, reduced to the leaves on indexed columns. None means that nothing can be proved.
_Plan: TypeAlias = _Bound | _All | _Any | _One | None


class _Evaluation:
    """Evaluates one predicate over one table."""

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
        """Returns the locations that can hold a row that satisfies both `plan` and `given`.

        The key ranges of an AND also narrow the ORs below the AND. In ``x > 1 AND (x < 5 OR y =
        2)``, a location whose only x are 0 and 7 has no row for the branch ``x < 5``.
        """
        if isinstance(plan, _Bound):
            return self._look_up(plan.column, plan.key_ranges, given)
        if isinstance(plan, _One):
            return self._prove(plan.plan, {})
        if isinstance(plan, _Any):
            return self._any(plan, given)
        narrowed = {**given, **{c: _narrow(c, r, given) for c, r in plan.bounds.items()}}
        parts: list[_Bound | _Any | _One] = [_Bound(c, r) for c, r in plan.bounds.items()]
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
            # The set of rows with NULL depends on the other columns that a query reads.
            return None
        return Verdict(index.keep(wanted), frozenset((column,)))


def _narrow(column: Column, wanted: KeyRanges, given: Mapping[Column, KeyRanges]) -> KeyRanges:
    return intersect(wanted, given[column]) if column in given else wanted


def _conjunction(plans: Iterable[_Plan]) -> _Plan:
    """AND: ignores parts without a proof; intersects all bounds of the same column."""
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
    """OR: needs a proof for each part; unites all bounds of the same column."""
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
