"""Column use: how a scan filters one column, as a kind of predicate without constants.

A filter has one use for each of its columns. `all_of` combines the uses of an AND's operands, and
`any_of` combines the uses of an OR's operands:

    id > 3 AND id < 9            id: between
    id = 5 OR id IN (7, 8)       id: in, 3 values
    id = 5 OR day = '...'        id: or, day: or     no index on one column can skip a file

`ColumnUse.share_left` is the least share of a scan's bytes that a query must read with an index on
the column. The constants are unknown, so the module assumes a selectivity for ranges: one third
with one bound, one quarter with two bounds. These selectivities come from Selinger et al., "Access
Path Selection in a Relational Database Management System", 1979. The module assumes that each value
is in one file, and that the rows of ORDER BY with LIMIT are in ten files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

Column: TypeAlias = tuple[str, ...]
"""The path of a column: the column's name, then the name of each nested field."""


class Kind(StrEnum):
    """The kinds of predicates, in ascending order of the bytes that a query reads with an index."""

    EQUALS = "="
    IN = "in"
    NULL = "is null"
    CONTAINS = "contains"
    PREFIX = "prefix"
    BETWEEN = "between"
    RANGE = "range"
    JOIN = "join"
    TOP = "order by limit"
    UNEQUAL = "!="
    OR = "or"
    OTHER = "other"
    SHUFFLED_JOIN = "shuffled join"


TOP_FILES: Final = 10
"""Assumed number of files that contain the result of an ORDER BY with LIMIT. The number in LIMIT is
unknown, because a workload contains no constants."""

_ORDER = {kind: place for place, kind in enumerate(Kind)}
_SHARES = {
    Kind.NULL: 1 / 10,
    Kind.PREFIX: 1 / 4,
    Kind.BETWEEN: 1 / 4,
    Kind.RANGE: 1 / 3,
    # This share is a guess, because a plan does not show the number of keys in a join.
    Kind.JOIN: 1 / 2,
}


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """How a filter uses a column: the kind of predicate and, for ``=`` and IN, how many values."""

    kind: Kind
    values: int = 1

    def share_left(self, files: float) -> float:
        """The minimum share of a scan's bytes that a query reads with an index, 0 to 1.

        Args:
            files: number of files that the scan reads without an index. The method assumes that all
                files have the same size.
        """
        if self.kind in (Kind.EQUALS, Kind.IN, Kind.CONTAINS):
            return min(1.0, self.values / max(1.0, files))
        if self.kind is Kind.TOP:
            return min(1.0, TOP_FILES / max(1.0, files))
        return _SHARES.get(self.kind, 1.0)


Uses: TypeAlias = Mapping[Column, ColumnUse]


def all_of(parts: Iterable[Uses]) -> Uses:
    """The uses of an AND: each column's narrowest use; two ranges become ``between``."""
    found: dict[Column, ColumnUse] = {}
    for part in parts:
        for column, use in part.items():
            before = found.get(column)
            if before is None or _narrower(use, before):
                found[column] = use
            elif before.kind is use.kind is Kind.RANGE:
                found[column] = ColumnUse(Kind.BETWEEN)
    return found


def any_of(parts: Iterable[Uses]) -> Uses:
    """The uses of an OR: a column's widest use if all operands use the column, else ``or``."""
    branches = list(parts)
    names = dict.fromkeys(column for branch in branches for column in branch)
    return {
        column: _union([branch[column] for branch in branches])
        if all(column in branch for branch in branches)
        else ColumnUse(Kind.OR)
        for column in names
    }


def negated(uses: Uses) -> Uses:
    """The uses of a negated filter: each column has the kind ``!=``, which skips few files."""
    return {column: ColumnUse(Kind.UNEQUAL) for column in uses}


def _narrower(one: ColumnUse, other: ColumnUse) -> bool:
    if one.kind in (Kind.EQUALS, Kind.IN) and other.kind in (Kind.EQUALS, Kind.IN):
        return one.values < other.values
    return _ORDER[one.kind] < _ORDER[other.kind]


def _union(uses: list[ColumnUse]) -> ColumnUse:
    if all(use.kind in (Kind.EQUALS, Kind.IN) for use in uses):
        return ColumnUse(Kind.IN, sum(use.values for use in uses))
    return max(uses, key=lambda use: _ORDER[use.kind])
