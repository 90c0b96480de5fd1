"""Ranks the indexes that would help a workload, in order of the bytes that scans would skip.

Indexes that serve the same scans can skip the same bytes, which must count only once. So this
module chooses a table's columns one by one (greedy index selection). Each step takes the column
whose index skips the most additional bytes. A `ColumnTest` measures skipped bytes on a sample of
the files; without a test, the module uses an upper bound.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from sieve.workload.benefit import WORTHWHILE_SHARE, Benefit
from sieve.workload.column_use import Column, Kind
from sieve.workload.scan_groups import ScanGroup, Table
from sieve.workload.tuples import names_of


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A suggested index.

    Attributes:
        kinds: number of scans for each kind of predicate on the column; the most frequent kind is
            first.
        scans: number of scans with a predicate on the column.
        bytes_read: bytes that these scans read.
        bytes_saved: bytes that the scans skip with the index, in addition to earlier suggestions.
            If the column was not tested, the number is an upper bound.
        files_before: mean number of files that a scan with a predicate on the column reads.
        files_after: mean number of files that the same scan reads with the index. If the column was
            not tested, the number is a lower bound.
    """

    table: Table
    column: Column
    kinds: Mapping[Kind, int]
    scans: int
    bytes_read: int
    bytes_saved: int
    files_before: float
    files_after: float


@dataclass(frozen=True, slots=True)
class ColumnTest:
    """The measurements of an index on a column, from a test on a sample of the table's files.

    Attributes:
        benefit: how much the index helps.
        value: mean number of files that a query for one value reads with the index.
        span: mean number of files that a query for a short range reads with the index.
        nulls: number of files that contain a NULL.
    """

    benefit: Benefit
    files: int
    value: float
    span: float
    nulls: float


TableColumn: TypeAlias = tuple[Table, Column]
"""A column of a table."""

Tests: TypeAlias = Mapping[TableColumn, ColumnTest]


def described(one: Suggestion) -> str:
    """The number of scans with each kind of predicate, as text: ``= 3, between 1``."""
    return ", ".join(f"{kind} {count}" for kind, count in one.kinds.items())


def suggest(
    groups: Iterable[ScanGroup],
    indexed: Mapping[TableColumn, str] = MappingProxyType({}),
    tests: Tests | None = None,
    untested: AbstractSet[TableColumn] = frozenset(),
) -> list[Suggestion]:
    """The suggested indexes, sorted by the bytes that they save, largest first.

    Args:
        groups: the workload's groups of scans.
        indexed: a dict from each indexed column to the name of its index. The function does not
            suggest indexed columns.
        tests: the tests of columns, or None if no column was tested. With tests, the function
            suggests only columns whose test shows enough benefit (`Benefit.is_suggested`). Some
            scans can be older than a column's index. The column's test estimates how much such
            older scans would read today.
        untested: columns that the function suggests even without a test.
    """
    tables: defaultdict[Table, list[ScanGroup]] = defaultdict(list)
    for group in groups:
        tables[group.table].append(group)
    found = [one for table in tables.values() for one in _of_table(table, indexed, tests, untested)]
    return sorted(found, key=lambda one: (-one.bytes_saved, one.table, one.column))


def _of_table(
    groups: Sequence[ScanGroup],
    indexed: Mapping[TableColumn, str],
    tests: Tests | None,
    untested: AbstractSet[TableColumn],
) -> list[Suggestion]:
    read, table = sum(group.bytes for group in groups), groups[0].table
    columns = {column for group in groups for column in group.left}
    test_of = {column: (tests or {}).get((table, column)) for column in columns}
    order = sorted(
        column
        for column, test in test_of.items()
        if (table, column) not in indexed
        and (
            tests is None
            or (table, column) in untested
            or (test is not None and test.benefit.is_suggested)
        )
    )
    leaves = {
        column: [_left(column, group, test_of[column]) for group in groups] for column in order
    }
    enough = max(1.0, WORTHWHILE_SHARE * read)
    left = [_left_today(group, indexed, test_of) for group in groups]
    found: list[Suggestion] = []
    while order:
        saved = {column: _saved(left, leaves[column]) for column in order}
        best = _best(saved, enough)
        if saved[best] < enough:
            break
        found.append(_suggestion(best, groups, leaves[best], round(saved[best])))
        left = [min(pair) for pair in zip(left, leaves[best], strict=True)]
        order.remove(best)
    return found


def _left_today(
    group: ScanGroup,
    indexed: Mapping[TableColumn, str],
    test_of: Mapping[Column, ColumnTest | None],
) -> float:
    """The bytes that a group's scans would read today, with indexes newer than the scans."""
    left = float(group.bytes)
    for column in group.left:
        name, test = indexed.get((group.table, column)), test_of[column]
        if name is not None and name not in group.used and test is not None:
            left = min(left, _left(column, group, test))
    return left


def _best(saved: Mapping[Column, float], enough: float) -> Column:
    """The column that saves the most bytes.

    A tuple of columns must save ``enough`` bytes more than each single column, because an index on
    a single column serves more queries.
    """
    return max(saved, key=lambda column: saved[column] - (enough if names_of(column) else 0.0))


def _left(column: Column, group: ScanGroup, test: ColumnTest | None) -> float:
    """The bytes that a group's scans would still read if the column had an index."""
    if column not in group.left:
        return group.bytes
    least, kind = group.left[column], group.kinds[column]
    if test is None or kind is Kind.TOP:
        return least
    if kind in (Kind.EQUALS, Kind.IN, Kind.CONTAINS):
        # After partition pruning, a scan may list only a few of the files that contain the value.
        share = min(1.0, group.files / max(1, group.scans * test.files))
        return min(float(group.bytes), least * max(1.0, test.value * share))
    if kind is Kind.NULL:
        return min(1.0, test.nulls / max(1, test.files)) * group.bytes
    files = test.value if kind is Kind.JOIN else test.span
    return min(float(group.bytes), max(least, group.bytes * files / max(1, test.files)))


def _saved(left: Sequence[float], leaves: Sequence[float]) -> float:
    return sum(max(0.0, before - after) for before, after in zip(left, leaves, strict=True))


def _suggestion(
    column: Column, groups: Sequence[ScanGroup], leaves: Sequence[float], saved: int
) -> Suggestion:
    asking = [
        (group, after) for group, after in zip(groups, leaves, strict=True) if column in group.kinds
    ]
    kinds: Counter[Kind] = Counter()
    for group, _ in asking:
        kinds[group.kinds[column]] += group.scans
    scans = sum(group.scans for group, _ in asking)
    after = sum(group.files * left / max(1, group.bytes) for group, left in asking)
    return Suggestion(
        table=asking[0][0].table,
        column=column,
        kinds=dict(kinds.most_common()),
        scans=scans,
        bytes_read=sum(group.bytes for group, _ in asking),
        bytes_saved=saved,
        files_before=sum(group.files for group, _ in asking) / scans,
        files_after=after / scans,
    )
