"""The column of an index in the current table, which may have dropped it since."""

from __future__ import annotations

from sieve.errors import InvalidInputError
from sieve.metadata.manifest import Manifest
from sieve.tables.column import Column
from sieve.tables.table_info import TableInfo


def indexed_column(info: TableInfo, manifest: Manifest) -> Column:
    """The column that an index is on.

    Raises:
        InvalidInputError: the table no longer has the column.
    """
    column = info.column_of(manifest.column)
    if column is None:
        raise InvalidInputError("SIEVE_UNKNOWN_COLUMN", _dropped(info, manifest))
    return column


def dropped_column(info: TableInfo, manifest: Manifest) -> str | None:
    """The problem of an index whose column the table no longer has, and the remedy; else None.

    A column that was added later is another one, whatever its name.
    """
    return _dropped(info, manifest) if info.column_of(manifest.column) is None else None


def _dropped(info: TableInfo, manifest: Manifest) -> str:
    return (
        f"table {info.label} no longer has the column of index {manifest.name}, which its files "
        f"name {'.'.join(manifest.column)}; run DROP SIEVE INDEX {manifest.name} ON {info.label}"
    )
