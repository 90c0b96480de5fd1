"""Finds an index's column in the current table, or reports that the column was dropped."""

from __future__ import annotations

from collections.abc import Sequence

from sieve.errors import InvalidInputError
from sieve.index_key import shown
from sieve.metadata.manifest import Manifest
from sieve.operations.registered_index import Usable
from sieve.tables.column import Column
from sieve.tables.table_info import TableInfo


def indexed_column(info: TableInfo, manifest: Manifest) -> Column:
    """The column of the current table on which an index was created.

    Raises:
        InvalidInputError: the table no longer has the column.
    """
    column = info.column_of(manifest.column)
    if column is None:
        raise InvalidInputError("SIEVE_UNKNOWN_COLUMN", _dropped(info, manifest))
    return column


def dropped_column(info: TableInfo, manifest: Manifest) -> str | None:
    """Returns the problem and the remedy if the table no longer has the column, else None.

    A column that was dropped and added again counts as another column, even with the same name.
    """
    return _dropped(info, manifest) if info.column_of(manifest.column) is None else None


def leave_out_dropped(
    info: TableInfo, indexes: Sequence[Usable]
) -> tuple[list[Usable], dict[str, str]]:
    """Separates the indexes on dropped columns from all other indexes.

    Returns:
        The indexes whose column exists; and a dict from the name of each other index to its
        problem.
    """
    problems = {index.name: dropped_column(info, index.manifest) for index in indexes}
    return (
        [index for index in indexes if problems[index.name] is None],
        {name: problem for name, problem in problems.items() if problem is not None},
    )


def _dropped(info: TableInfo, manifest: Manifest) -> str:
    # Iceberg's readers take the values of a partition column from the files' partitions.
    since = ", or now has it as a partition column" if info.format_name == "iceberg" else ""
    return (
        f"table {info.label} no longer has the column of index {manifest.name}, which its files "
        f"name {shown(manifest.column)}{since}; run DROP SIEVE INDEX {manifest.name} ON "
        f"{info.label}"
    )
