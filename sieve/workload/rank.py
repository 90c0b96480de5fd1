"""Which indexes a workload makes worth having, by the bytes that they could save a day.

Two indexes on columns of the same scans do not save twice. So the columns of a table are chosen
one by one, each time the one that saves most of what the earlier ones would leave (greedy index
selection). The sums are upper bounds: what an index really leaves depends on how its keys lie in
the files, which ESTIMATE SIEVE INDEX tells.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from sieve.workload.column_use import Column, Kind
from sieve.workload.record import ScanGroup, Table

WORTHWHILE_SHARE: Final = 0.01
"""An index that could save less than this share of the bytes read of its table is not named."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An index worth having.

    Attributes:
        table: the table.
        column: the column.
        kinds: scans by what they ask of the column, the most first.
        scans: scans that ask anything of the column.
        bytes_read: bytes that these read.
        bytes_saved: bytes that the index could save of these at most, beside the indexes of the
            table that are named before it.
    """

    table: Table
    column: Column
    kinds: Mapping[Kind, int]
    scans: int
    bytes_read: int
    bytes_saved: int


def described(one: Suggestion) -> str:
    """What scans ask of the column, and how many: ``= 3, between 1``."""
    return ", ".join(f"{kind} {count}" for kind, count in one.kinds.items())


def suggest(
    groups: Iterable[ScanGroup], indexed: AbstractSet[Column] = frozenset()
) -> list[Suggestion]:
    """The indexes worth having, those that save the most bytes first.

    Args:
        groups: the scans.
        indexed: columns that have an index.
    """
    tables: defaultdict[Table, list[ScanGroup]] = defaultdict(list)
    for group in groups:
        tables[group.table].append(group)
    found = [one for table in tables.values() for one in _of_table(table, indexed)]
    return sorted(found, key=lambda one: (-one.bytes_saved, one.table, one.column))


def _of_table(groups: Sequence[ScanGroup], indexed: AbstractSet[Column]) -> list[Suggestion]:
    read = sum(group.bytes for group in groups)
    left = [float(group.bytes) for group in groups]
    columns = sorted({column for group in groups for column in group.left} - indexed)
    found: list[Suggestion] = []
    while columns:
        saved = {column: _saved(column, groups, left) for column in columns}
        best = max(columns, key=lambda column: saved[column])
        if saved[best] < max(1.0, WORTHWHILE_SHARE * read):
            break
        found.append(_suggestion(best, groups, round(saved[best])))
        left = [
            min(rest, group.left.get(best, rest)) for group, rest in zip(groups, left, strict=True)
        ]
        columns.remove(best)
    return found


def _saved(column: Column, groups: Sequence[ScanGroup], left: Sequence[float]) -> float:
    return sum(
        max(0.0, rest - group.left.get(column, rest))
        for group, rest in zip(groups, left, strict=True)
    )


def _suggestion(column: Column, groups: Sequence[ScanGroup], saved: int) -> Suggestion:
    asking = [group for group in groups if column in group.kinds]
    kinds: Counter[Kind] = Counter()
    for group in asking:
        kinds[group.kinds[column]] += group.scans
    return Suggestion(
        table=asking[0].table,
        column=column,
        kinds=dict(kinds.most_common()),
        scans=sum(group.scans for group in asking),
        bytes_read=sum(group.bytes for group in asking),
        bytes_saved=saved,
    )
