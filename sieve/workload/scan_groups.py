"""Workload: sums over scans of drivers or event logs, grouped by table and kinds of predicates.

A workload contains names of tables and columns, kinds of predicates, and sums. It contains no
constants of queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from sieve.workload.column_use import Column, Kind, Uses

Table: TypeAlias = tuple[str, str]
"""The name of the database, then the name of the table. For a table outside the session catalog,
the first name is ``catalog.database``."""


def parts(table: Table) -> tuple[str, ...]:
    """The parts of a table's qualified name: the catalog if known, the database, the table."""
    namespace, name = table
    return (*namespace.split(".", 1), name)


@dataclass(slots=True)
class ScanGroup:
    """Sums over a table's scans with the same kinds of predicates on the same columns.

    All scans of a group consulted the same indexes.

    Attributes:
        kinds: the kind of predicate on each column.
        used: the names of the indexes that the scans consulted.
        scans: number of scans.
        bytes: sum of the bytes that the scans read.
        files: number of files that the scans read, summed over the scans.
        left: for each column, the least number of bytes that the scans would read with an index on
            the column.
    """

    table: Table
    kinds: Mapping[Column, Kind]
    used: frozenset[str] = frozenset()
    scans: int = 0
    bytes: int = 0
    files: int = 0
    left: dict[Column, float] = field(default_factory=dict)


class Workload:
    """Sums over scans: a `ScanGroup` for each combination of table, predicate kinds and indexes."""

    def __init__(self) -> None:
        self._groups: dict[
            tuple[Table, frozenset[tuple[Column, Kind]], frozenset[str]], ScanGroup
        ] = {}

    def add(
        self,
        table: Table,
        uses: Uses,
        read: int,
        files: int,
        scans: int = 1,
        used: Iterable[str] = (),
    ) -> None:
        """Adds scans.

        Args:
            uses: the kind of predicate on each column.
            read: sum of the bytes that the scans read.
            files: number of files that the scans read, summed over the scans.
            scans: number of scans.
            used: the names of the indexes that the scans consulted.
        """
        names = frozenset(used)
        kinds = {column: use.kind for column, use in uses.items()}
        group = self._groups.setdefault(
            (table, frozenset(kinds.items()), names),
            ScanGroup(table, dict(sorted(kinds.items())), names),
        )
        group.scans += scans
        group.bytes += read
        group.files += files
        for column, use in uses.items():
            left = read * use.share_left(files / scans)
            group.left[column] = group.left.get(column, 0.0) + left

    def __iter__(self) -> Iterator[ScanGroup]:
        """The groups, in the order of their first scans."""
        return iter(self._groups.values())
