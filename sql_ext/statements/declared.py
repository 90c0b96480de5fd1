"""Declared indexes: table properties list a table's indexes, and Sieve builds missing ones.

If a table is dropped, its properties and its indexes are lost. Some jobs, for example of dbt, drop
and recreate a table in each run. A job can declare the indexes in the statement that creates the
table::

    CREATE TABLE orders USING parquet
    TBLPROPERTIES ('sieve.columns' = 'id, customer.id', 'sieve.options' = 'budget = "2%"') AS ...

Sieve builds declared indexes that do not exist yet. A declaration never changes or drops an
existing index.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sieve.errors import InvalidInputError, UnsupportedError
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.registration import DECLARED_COLUMNS, DECLARED_OPTIONS
from sieve.operations.create import check_wanted, create_indexes
from sieve.operations.index_name import (
    Wanted,
    default_name,
    refuse_taken,
    with_default_names,
)
from sieve.operations.refresh import RefreshMode, refresh_index
from sieve.operations.registered_index import RegisteredIndex, is_gone, only_usable
from sieve.tables.column import Column
from sieve.tables.names import same_value
from sieve.tables.registered_table import RegisteredTable
from sieve.tables.table import CatalogTable
from sql_ext.statements.answers import Outcome, change_between
from sql_ext.statements.commands import ColumnPath, TableName
from sql_ext.statements.context import StatementContext, kind_option, options_of
from sql_ext.statements.parser import parse_columns, parse_options

_KEYS = (DECLARED_COLUMNS, DECLARED_OPTIONS)


@dataclass(frozen=True, slots=True)
class Refused:
    """A declared index that Sieve cannot build.

    Attributes:
        name: name that the index would have. None if the declaration is unreadable.
        advice: reason why Sieve cannot build the index, as text.
    """

    name: str | None
    advice: str


@dataclass(frozen=True, slots=True)
class MissingIndexes:
    """The indexes that a table declares but does not have.

    Attributes:
        wanted: the missing indexes that Sieve can build.
        options: options of the missing indexes.
        refused: the missing indexes that Sieve cannot build.
    """

    wanted: tuple[Wanted, ...] = ()
    options: IndexOptions = field(default_factory=IndexOptions)
    refused: tuple[Refused, ...] = ()

    def select(self, name: str | None, column: Sequence[str] | None) -> MissingIndexes:
        """Selects indexes by name or column, ignoring case; selects all if no argument is given."""
        if name is None and column is None:
            return self
        wanted = tuple(
            one
            for one in self.wanted
            if one.name == (name or "").lower()
            or (column is not None and same_value(one.column.path, column))
        )
        return replace(self, wanted=wanted, refused=())


def find_missing(table: CatalogTable, indexes: Mapping[str, RegisteredIndex]) -> MissingIndexes:
    """Finds the declared indexes that a table lacks, and reports errors in the declaration."""
    declared = table.info.declared
    refused = [_unknown(key) for key in sorted(declared) if key not in _KEYS]
    try:
        paths = _columns(declared.get(DECLARED_COLUMNS, ""))
    except InvalidInputError as error:
        return MissingIndexes(refused=(*refused, _unreadable(DECLARED_COLUMNS, error)))
    usable = {name: one for name, one in indexes.items() if not is_gone(one)}
    taken = {name: one.registration.column for name, one in usable.items()}
    indexed = set(taken.values())
    wanted: list[Wanted] = []
    options, kind = IndexOptions(), None
    try:
        text = declared.get(DECLARED_OPTIONS, "").strip()
        kind, given = kind_option(parse_options(text) if text else {})
        options = options_of(given, options)
    except InvalidInputError as error:
        # If an option is wrong, Sieve builds no index, because the index would have unintended
        # options.
        refused.append(_unreadable(DECLARED_OPTIONS, error))
        paths = ()
    for path in paths:
        name = default_name(Column(path.parts, ""))
        try:
            column = table.column(path.parts, kind)
            if column.key in indexed:
                continue
            (one,) = with_default_names([column], taken, table.info)
            refuse_taken([one], taken, table.info)
            check_wanted(table, one, options)
        except (InvalidInputError, UnsupportedError) as error:
            refused.append(Refused(name, f"{error.message} (declared by {DECLARED_COLUMNS})"))
        else:
            wanted.append(one)
            taken[one.name] = column.key
            indexed.add(column.key)
    return MissingIndexes(tuple(wanted), options, tuple(refused))


def build_missing(
    missing: MissingIndexes,
    name: TableName,
    indexes: Mapping[str, RegisteredIndex],
    context: StatementContext,
) -> tuple[list[Outcome], list[Refused]]:
    """Builds the missing declared indexes, one after the other.

    Args:
        missing: indexes to build, from `find_missing`.
        name: the table's name.
        indexes: the table's indexes that `find_missing` compared with the declaration.

    Returns:
        The outcome of each built index, and the indexes that Sieve could not build.
    """
    built: list[Outcome] = []
    refused = list(missing.refused)
    if not missing.wanted:
        return built, refused
    # A concurrent DROP first removes the column from the declaration. This code reads the
    # declaration again, so it does not rebuild the dropped index.
    table = context.table(name)
    names = {one.name for one in missing.wanted}
    wanted = [one for one in find_missing(table, indexes).wanted if one.name in names]
    context.check_executors(table, [one.column.type for one in wanted])
    for one in wanted:
        try:
            (manifest,) = create_indexes(table, [one], missing.options, None, context.environment)
        except (InvalidInputError, UnsupportedError) as error:
            other = _refresh_other(one, name, context)
            if other is not None:
                built.append(other)
            else:
                refused.append(Refused(one.name, error.message))
        else:
            built.append(Outcome(manifest, "created", context.watch.lap()))
    return built, refused


def _refresh_other(wanted: Wanted, name: TableName, context: StatementContext) -> Outcome | None:
    """Refreshes an index that a concurrent statement has built on the same column, if any.

    A user's REFRESH directly after a write can overlap with the automatic refresh. The two
    refreshes then try to build the same index.
    """
    table = context.table(name)
    for index in only_usable(context.indexes(table).values()):
        if index.registration.column == wanted.column.key:
            version = refresh_index(table, index, RefreshMode.INCREMENTAL, context.environment)
            context.invalidate(index.directory)
            change = change_between(index.manifest, version)
            return Outcome(version, change, context.watch.lap())
    return None


def undeclare(table: RegisteredTable, dropped: Sequence[RegisteredIndex]) -> None:
    """Removes columns from the declaration, so that no refresh rebuilds the dropped indexes.

    Raises:
        UnavailableError: the metastore rejected the change or did not answer. The declaration is
            unchanged.
    """
    columns = [one.registration.column for one in dropped]
    try:
        paths = _columns(table.info.declared.get(DECLARED_COLUMNS, ""))
    except InvalidInputError:
        # A refresh ignores a malformed declaration, so DROP need not change the declaration.
        return
    left = [
        path
        for path in paths
        if not any(same_value(table.info.key_of(path.parts), column) for column in columns)
    ]
    if len(left) < len(paths):
        table.declare(", ".join(map(str, left)))


def _columns(text: str) -> tuple[ColumnPath, ...]:
    return parse_columns(text) if text.strip() else ()


def _unknown(key: str) -> Refused:
    near = difflib.get_close_matches(key.lower(), _KEYS, n=1)
    hint = f"; did you mean {near[0]}?" if near else f"; it knows {' and '.join(_KEYS)}"
    return Refused(None, f"table property {key} means nothing to Sieve{hint}")


def _unreadable(key: str, error: InvalidInputError) -> Refused:
    return Refused(None, f"table property {key}: {error.message.partition(chr(10))[0]}")
