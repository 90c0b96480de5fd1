"""Metadata of a table that Spark has resolved; finds the columns that Sieve can index."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sieve.errors import InvalidInputError, UnsupportedError
from sieve.index_key import expression_key
from sieve.tables.column import Column
from sieve.tables.formats import refuse_names, refuse_option
from sieve.tables.names import spelled
from sieve.tables.registered_info import RegisteredInfo, registered_members


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInfo(RegisteredInfo):
    """A table's metadata, as Spark resolves it under the settings of the user's session.

    Attributes:
        format_name: short name of the table's format.
        columns: the data columns in order, including struct leaves.
        partition_columns: names of the partition columns.
        fingerprint: hash of all settings and facts that affect how a reader interprets the files.
        fingerprint_parts: the settings and facts from which the fingerprint is computed.
        case_sensitive: whether the session compares names case-sensitively.
        corrupt_column: name of the column for corrupt records.
        persistent: whether the catalog outlives the session, as a Hive metastore does.
        spark: Spark's version.
    """

    format_name: str
    columns: tuple[Column, ...]
    partition_columns: tuple[str, ...]
    fingerprint: str
    fingerprint_parts: Mapping[str, str]
    case_sensitive: bool
    corrupt_column: str
    persistent: bool
    spark: str

    def column_of(self, key: tuple[str, ...]) -> Column | None:
        """The column that an index identifies by ``key``; None if the table has no such column."""
        return next((column for column in self.columns if column.key == key), None)

    def name_of(self, key: tuple[str, ...]) -> tuple[str, ...]:
        """An index's key in which the table's column names replace the names in the files.

        Returns ``key`` if the table has no such column.
        """
        column = self.column_of(key)
        if column is None:
            return key
        return expression_key(column.path[0], column.kind) if column.computed else column.path

    def key_of(self, name: Sequence[str]) -> tuple[str, ...]:
        """The key of the column with this name, ignoring case.

        Returns ``name`` if no column has this name.

        After the column of an index is dropped, statements name the column by the key that SHOW
        displays.
        """
        wanted = [part.lower() for part in name]
        of = (c.key for c in self.columns if [part.lower() for part in c.path] == wanted)
        return next(of, tuple(name))


def table_info_from(raw: Mapping[str, Any]) -> TableInfo:
    """The metadata of a table, from the shim's parsed JSON."""
    return TableInfo(
        **registered_members(raw),
        format_name=raw["format"],
        columns=tuple(map(_column, raw["columns"])),
        partition_columns=tuple(raw.get("partition_columns", ())),
        fingerprint=raw["fingerprint"],
        fingerprint_parts=raw["fingerprint_parts"],
        case_sensitive=raw["case_sensitive"],
        corrupt_column=raw["corrupt_column"],
        persistent=raw["hive"],
        spark=raw["spark"],
    )


def resolve_column(info: TableInfo, parts: Sequence[str]) -> Column:
    """Resolves a column name to a column that Sieve can index.

    Raises:
        InvalidInputError: the column does not exist; the message suggests similar names.
        UnsupportedError: the column is a partition column, a whole struct, or the corrupt-record
            column.
    """

    def fold(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(names) if info.case_sensitive else tuple(n.lower() for n in names)

    wanted, typed = fold(parts), ".".join(parts)
    if wanted in {fold([name]) for name in info.partition_columns}:
        raise UnsupportedError(
            "SIEVE_PARTITION_COLUMN",
            f"{typed} is a partition column of {info.label}; Spark skips its partitions already, "
            "so it needs no index",
        )
    found = next((column for column in info.columns if fold(column.path) == wanted), None)
    if found is None:
        names = [spelled(column.path) for column in info.columns if not column.computed]
        near = difflib.get_close_matches(typed, names, n=3, cutoff=0.5)
        hint = f"did you mean {', '.join(near)}?" if near else f"it has {', '.join(names[:20])}"
        raise InvalidInputError(
            "SIEVE_UNKNOWN_COLUMN", f"table {info.label} has no column {typed}; {hint}"
        )
    if found.type.startswith("struct<"):
        raise UnsupportedError(
            "SIEVE_UNSUPPORTED_TYPE",
            f"{found} of {info.label} is a struct; index one of its fields, such as "
            f"{next((c for c in info.columns if c.path[:-1] == found.path), found)}",
        )
    if fold(found.path) == fold([info.corrupt_column]):
        raise UnsupportedError(
            "SIEVE_UNSUPPORTED_COLUMN",
            f"{found} of {info.label} contains unparsable records: its values depend on the other "
            "columns that a query reads, so it cannot be indexed",
        )
    return found


def has_array(info: TableInfo, parts: Sequence[str]) -> bool:
    """Returns whether a name denotes an array column, or a field of the structs in an array."""
    typed = [part.lower() for part in parts]
    return any(
        typed[: len(column.path)] == [part.lower() for part in column.path]
        and column.type.startswith("array<" if len(typed) == len(column.path) else "array<struct<")
        for column in info.columns
        if not column.computed
    )


def refuse_build(info: TableInfo) -> None:
    """Raises UnsupportedError for a table that a build and a query may read differently."""
    own = [column.path[0] for column in info.columns if not column.computed]
    names = [*own, *info.partition_columns]
    refused = refuse_names(info.label, names) or refuse_option(info.label, info.fingerprint_parts)
    if refused is not None:
        raise refused


def _column(raw: Mapping[str, Any]) -> Column:
    path, stored = tuple(raw["path"]), tuple(raw.get("stored", ()))
    return Column(path, raw["type"], () if stored == path else stored)
