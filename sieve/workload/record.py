"""Workload: sums over scans (of a driver or in event logs), by table and kind of predicate.

A workload contains names of tables and columns, kinds of use, and sums, but no constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from sieve.workload.column_use import Column, Kind, Uses

Table: TypeAlias = tuple[str, str]
"""Names of the database and the table. Outside the session catalog, the first name is
``catalog.database``."""


def parts(table: Table) -> tuple[str, ...]:
    """The parts of the name by which a statement finds a table."""
    namespace, name = table
    return (*namespace.split(".", 1), name)


@dataclass(slots=True)
class ScanGroup:
    """The sums of a table's scans that have the same kinds of predicate on the same columns.

    Attributes:
        kinds: the use of each column.
        scans: number of scans.
        bytes: sum of the bytes that the scans read.
        files: sum of the numbers of files that the scans read.
        left: for each column, the minimum bytes that the scans would read with an index on the
            column.
    """

    table: Table
    kinds: Mapping[Column, Kind]
    scans: int = 0
    bytes: int = 0
    files: int = 0
    left: dict[Column, float] = field(default_factory=dict)


class Workload:
    """Sums over scans, one sum for each group."""

    def __init__(self) -> None:
        self._groups: dict[tuple[Table, frozenset[tuple[Column, Kind]]], ScanGroup] = {}

    def add(self, table: Table, uses: Uses, read: int, files: int, scans: int = 1) -> None:
        """Adds scans.

        Args:
            uses: the use of each column.
            read: sum of the bytes that the scans read.
            files: sum of the numbers of files that the scans read.
            scans: number of scans.
        """
        kinds = {column: use.kind for column, use in uses.items()}
        group = self._groups.setdefault(
            (table, frozenset(kinds.items())), ScanGroup(table, dict(sorted(kinds.items())))
        )
        group.scans += scans
        group.bytes += read
        group.files += files
        for column, use in uses.items():
            left = read * use.share_left(files / scans)
            group.left[column] = group.left.get(column, 0.0) + left

    def __iter__(self) -> Iterator[ScanGroup]:
        """The groups, in the order in which they were first seen."""
        return iter(self._groups.values())
