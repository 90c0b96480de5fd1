"""Finds tuples of columns that scans compare with constants; one index can cover a tuple.

    a = 1 AND b = 2                 (a, b)
    a = 1 AND b IN (2, 3)           (a, b)
    a = 1 AND b = 2 AND c > 3       (a, b)
    a = 1 OR b = 2                  no tuple

An index on a tuple serves all scans that compare each of the tuple's columns with constants, even
if the scans compare further columns.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from sieve.index_key import expression_key, expression_of, kind_of
from sieve.workload.column_use import Column, Kind
from sieve.workload.scan_groups import ScanGroup, Table
from sieve.workload.spelling import spelled, tuple_of

MOST_COLUMNS: Final = 4
"""The maximum number of columns in a tuple. `predicate/Tuple.scala` has the same number."""

Names: TypeAlias = frozenset[str]
"""The columns of a tuple as texts. Tuples that differ only in the order of their columns have the
same names."""


def names_of(key: Column) -> Names | None:
    """The columns of a tuple, given the key of the tuple's index; None for any other key."""
    sql = expression_of(key)
    if sql is None or kind_of(key) is not None:
        return None
    names = tuple_of(sql)
    return None if names is None else frozenset(names)


def with_tuples(
    groups: Iterable[ScanGroup], indexed: Iterable[tuple[Table, Column]] = ()
) -> list[ScanGroup]:
    """Adds tuples of columns to groups, as if the scans had predicates on the tuples.

    The columns that the scans of a group compare with constants form a tuple. The function adds a
    tuple to every group of the table whose scans compare all columns of the tuple with constants.
    The function sets a tuple's `ScanGroup.left` to the greatest `left` of the tuple's columns.

    Args:
        indexed: columns and expressions that have an index. The function does not form tuples that
            have an index.
    """
    given = list(groups)
    have = {(table, names_of(key)) for table, key in indexed}
    found: defaultdict[Table, dict[Names, Column]] = defaultdict(dict)
    for group in given:
        for key in group.kinds:
            if names := names_of(key):
                found[group.table][names] = key
    for group in given:
        names = frozenset(_compared(group))
        if 2 <= len(names) <= MOST_COLUMNS and (group.table, names) not in have:
            key = expression_key(f"({', '.join(sorted(names))})")
            found[group.table].setdefault(names, key)
    return [_with(group, found[group.table]) for group in given]


def by_bytes(groups: Iterable[ScanGroup]) -> list[tuple[Table, Column]]:
    """The tuples of `with_tuples`, sorted by the bytes that their scans read, largest first."""
    read: Counter[tuple[Table, Column]] = Counter()
    for group in with_tuples(groups):
        for key in filter(names_of, group.kinds):
            read[group.table, key] += group.bytes
    return sorted(read, key=lambda one: (-read[one], one))


def _compared(group: ScanGroup) -> Mapping[str, Column]:
    """The columns, without expressions, that the group's scans compare with constants."""
    return {
        spelled(column): column
        for column, kind in group.kinds.items()
        if kind in (Kind.EQUALS, Kind.IN) and expression_of(column) is None
    }


def _with(group: ScanGroup, tuples: Mapping[Names, Column]) -> ScanGroup:
    compared = _compared(group)
    kinds, left = dict(group.kinds), dict(group.left)
    for names, key in tuples.items():
        if key not in kinds and names <= compared.keys():
            columns = [compared[name] for name in names]
            kinds[key] = max((group.kinds[column] for column in columns), key=list(Kind).index)
            left[key] = max(group.left[column] for column in columns)
    return replace(group, kinds=kinds, left=left)
