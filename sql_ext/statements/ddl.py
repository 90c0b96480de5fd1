"""DDL statements, which create, refresh, optimize, drop and alter indexes."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from sieve.errors import ConflictError, InvalidInputError, SieveError, UnavailableError
from sieve.index_key import expression_of, shown
from sieve.metadata.creation_record import report_if_dropped
from sieve.metadata.index_options import AUTO, IndexOptions
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import TableIdentity, same_table
from sieve.metadata.transitions import Change, Disable, Enable, SetOptions
from sieve.operations.create import create_indexes
from sieve.operations.drop import drop_index
from sieve.operations.dropped_column import dropped_column, indexed_column, leave_out_dropped
from sieve.operations.dropped_index import leave_out_if_dropped
from sieve.operations.follow_table import follow_table
from sieve.operations.index_name import Wanted, refuse_taken, with_default_names
from sieve.operations.publish_change import change_index
from sieve.operations.refresh import RefreshMode, refresh_index
from sieve.operations.registered_index import (
    Malformed,
    RegisteredIndex,
    Usable,
    check_reachable,
    is_gone,
    only_usable,
    select,
    usable,
)
from sieve.operations.reregister import reregister
from sieve.storage.java_errors import conditions
from sieve.tables.formats import RENAMING
from sieve.tables.registered_table import RegisteredTable
from sieve.tables.table import CatalogTable
from sql_ext.statements import commands
from sql_ext.statements.answers import Outcome, answer_rows, change_between, refused_row
from sql_ext.statements.context import Row, StatementContext, kind_option, options_of
from sql_ext.statements.declared import build_missing, find_missing, undeclare


def create(command: commands.CreateIndex, context: StatementContext) -> list[Row]:
    """``CREATE SIEVE INDEX``: creates indexes. Returns a row per new or existing index."""
    kind, given = kind_option(command.options)
    options = options_of(given, IndexOptions())
    table = context.table(command.table)
    columns = [table.column(column.parts, kind) for column in command.columns]
    there = context.indexes(table)
    present = {name: index for name, index in there.items() if not is_gone(index)}
    taken = {name: index.registration.column for name, index in present.items()}
    if command.name is None:
        wanted = with_default_names(columns, taken, table.info)
    else:
        wanted = [Wanted(command.name.lower(), column) for column in columns]
    replaced = {w.name: there[w.name] for w in wanted if command.replace and w.name in there}
    for old in replaced.values():
        # If the store of an index does not answer, Sieve cannot tell whether the index exists. So
        # CREATE raises an error instead of replacing the index.
        check_reachable(old)
    if command.if_not_exists:
        unchanged = [
            (one, usable(present[one.name]).manifest) for one in wanted if one.name in present
        ]
        wanted = [one for one in wanted if one.name not in present]
        for one, manifest in unchanged:
            _advise_of_other(table, one, given, manifest, context)
    else:
        unchanged = []
        others = {name: key for name, key in taken.items() if name not in replaced}
        refuse_taken(wanted, others, table.info)
    outcomes = [Outcome(manifest, "unchanged", context.watch.lap()) for _, manifest in unchanged]
    if wanted and not table.info.persistent:
        context.environment.advice.add(
            "the catalog is in memory: table and index are forgotten when this application ends; "
            "start Spark with enableHiveSupport() to keep them"
        )
    if wanted:
        context.check_executors(table, [one.column.type for one in wanted])
        laps: list[float] = []
        built = create_indexes(
            table,
            wanted,
            options,
            command.comment,
            context.environment,
            lambda: laps.append(context.watch.lap()),
            replaced,
        )
        for old in replaced.values():
            context.invalidate(old.directory)
        # All new indexes become visible in one last step. The time of the last step is added to the
        # time of the last index.
        laps[-1] += context.watch.lap()
        outcomes += [
            Outcome(
                manifest,
                "rebuilt" if manifest.name in replaced and manifest.name in present else "created",
                seconds,
            )
            for manifest, seconds in zip(built, laps, strict=True)
        ]
    elif unchanged:
        _announce(table)
    return answer_rows(outcomes, context)


def _advise_of_other(
    table: CatalogTable,
    wanted: Wanted,
    options: Mapping[str, commands.OptionValue],
    manifest: Manifest,
    context: StatementContext,
) -> None:
    """Adds advice if IF NOT EXISTS keeps an index that differs from the requested index."""
    if manifest.column != wanted.column.key:
        column = shown(table.info.name_of(manifest.column))
        context.environment.advice.add(
            dropped_column(table.info, manifest)
            or f"an index of this name is on column {column} and was left as it is; give the one "
            f"on {wanted.column} another name",
            manifest.name,
        )
    if options_of(options, manifest.wanted_options) != manifest.wanted_options:
        context.environment.advice.add(
            "the index has other options and was left as it is; ALTER SIEVE INDEX ... SET OPTIONS "
            "changes them",
            manifest.name,
        )


def refresh(command: commands.RefreshIndex, context: StatementContext) -> list[Row]:
    """``REFRESH SIEVE INDEX``: updates indexes, and returns a row per index."""
    table = context.table(command.table)
    column = None if command.column is None else _named(table, command.column)
    name = None if command.name is None else command.name.lower()
    followed = follow(table, context)
    indexes = context.indexes(table)
    present = {known for known, one in indexes.items() if not is_gone(one)}
    # Another tool may have replaced the table's properties and so removed a registration.
    lost = len(present) < max(1, len(indexes)) if name is None else name not in present
    if lost and (adopted := reregister(table, indexes, context.environment)):
        for index in adopted:
            context.environment.advice.add(
                "the registration of this index was lost, which another tool must have done, and "
                "no query used it; it is registered again",
                index,
            )
        table = context.table(command.table)
        indexes = context.indexes(table)
    missing = find_missing(table, indexes).select(name, column)
    names = {one.name for one in missing.wanted}
    if names and (name is not None or column is not None):
        chosen = []
    else:
        key = None if column is None else table.info.key_of(column)
        chosen = select(indexes, table.info.label, command.name, key)
    if name is not None or column is not None:
        for one in chosen:
            indexed_column(table.info, usable(one).manifest)
    there = [one for one in chosen if one.name not in names]
    mode = RefreshMode.FULL if command.full else RefreshMode.INCREMENTAL
    every = name is None and column is None
    rows = bring_up(table, there, mode, context, followed, every=every)
    built, refused = build_missing(missing, command.table, indexes, context)
    return [
        *rows,
        *answer_rows(built, context),
        *(refused_row(one.name, one.advice) for one in refused),
    ]


def optimize(command: commands.OptimizeIndex, context: StatementContext) -> list[Row]:
    """``OPTIMIZE SIEVE INDEX``: merges runs, and returns a row per index."""
    table = context.table(command.table)
    chosen = select(context.indexes(table), table.info.label, command.name, None)
    if command.name is not None:
        indexed_column(table.info, usable(chosen[0]).manifest)
    return bring_up(table, chosen, RefreshMode.COMPACT, context, every=command.name is None)


def follow(table: CatalogTable, context: StatementContext) -> frozenset[str]:
    """Updates the indexes of a table that was renamed or moved, and returns their names."""
    followed: set[str] = set()

    def exists(identity: TableIdentity) -> bool:
        try:
            other = context.table(commands.TableName(identity.name))
        except SieveError:
            # The old table's name now belongs to an object that cannot have an index, such as a
            # view.
            return False
        except (Py4JError, PySparkException) as error:
            # An index may move to this table if its old table no longer exists. Among Spark's
            # errors, only SIEVE_UNKNOWN_TABLE proves that the old table is gone.
            if "SIEVE_UNKNOWN_TABLE" not in conditions(error):
                raise
            return False
        return same_table(other.info.identity, identity)

    for name in table.info.registrations:
        try:
            folder = follow_table(table, name, exists, context.environment)
        except SieveError as error:
            context.environment.advice.add(f"it could not follow its table: {error}", name)
            continue
        if folder is not None:
            followed.add(name)
            context.invalidate(folder)
    return frozenset(followed)


def bring_up(
    table: CatalogTable,
    chosen: Sequence[RegisteredIndex],
    mode: RefreshMode,
    context: StatementContext,
    followed: AbstractSet[str] = frozenset(),
    *,
    every: bool = True,
) -> list[Row]:
    """Refreshes the chosen indexes of a table, and returns the rows of REFRESH.

    If an index's column no longer exists, the index's row contains only its name and the problem.

    Args:
        followed: names of the indexes that `follow` has updated in this statement. The rows of
            these indexes say ``refreshed`` even if the table's files have not changed.
        every: whether the statement is about all indexes of the table. If true, the result omits
            indexes that another session drops meanwhile.
    """
    refreshable, problems = leave_out_dropped(table.info, only_usable(chosen))
    context.check_executors(table, [index.manifest.type for index in refreshable])
    outcomes: list[Outcome] = []
    conflict: ConflictError | None = None
    for index in refreshable:
        try:
            with leave_out_if_dropped(index, table, every=every):
                manifest = refresh_index(table, index, mode, context.environment)
                _register_refresh(table, index, manifest)
                change = change_between(index.manifest, manifest)
                if change == "unchanged" and index.name in followed:
                    change = "refreshed"
                outcomes.append(Outcome(manifest, change, context.watch.lap()))
        except ConflictError as error:
            conflict = error
        context.invalidate(index.directory)
    _announce(table)
    # Raises the error of a conflicting refresh last, after the refreshes of all other indexes.
    if conflict is not None:
        raise conflict
    context.background.clear(table.info.identity.namespace, table.info.identity.table)
    for one in chosen:
        with leave_out_if_dropped(one, table, every=every):
            usable(one)
    return [*answer_rows(outcomes, context), *(refused_row(*one) for one in problems.items())]


def drop(command: commands.DropIndex, context: StatementContext) -> list[Row]:
    """``DROP SIEVE INDEX``: deletes indexes, and returns their names."""
    try:
        table, chosen = _to_drop(command, context)
        broken = [index.name for index in chosen if isinstance(index, Malformed)]
        # This code repairs a malformed registration before it drops the index. If DROP removed only
        # the registration, a later REFRESH would register the index again.
        if broken and reregister(table, context.indexes(table), context.environment, broken):
            table, chosen = _to_drop(command, context)
    except InvalidInputError as error:
        if command.if_exists and error.condition == "SIEVE_UNKNOWN_INDEX":
            return []
        raise
    undeclare(table, chosen)
    for index in chosen:
        drop_index(table, index, context.environment)
        context.invalidate(index.directory)
    return [(index.name,) for index in chosen]


def _to_drop(
    command: commands.DropIndex, context: StatementContext
) -> tuple[RegisteredTable, list[RegisteredIndex]]:
    table = context.registered(command.table)
    by_column = command.column is not None or bool(table.info.declared)
    computed = command.column is not None and expression_of(command.column.parts) is not None
    if computed or (by_column and table.info.provider in RENAMING):
        # The user may have renamed columns, so this code reads the current column names. If the
        # table is unreadable, the code uses the column names in the registrations.
        with contextlib.suppress(SieveError, Py4JError, PySparkException):
            table = context.table(command.table, jobs=False)
    if command.column is None:
        column = None
    elif isinstance(table, CatalogTable):
        column = table.info.key_of(_named(table, command.column))
    else:
        column = table.info.key_of(command.column.parts)
    return table, select(context.indexes(table), table.info.label, command.name, column)


def _named(table: CatalogTable, column: commands.ColumnPath) -> tuple[str, ...]:
    """Path of a column or of an expression. The column may have been dropped."""
    return column.parts if expression_of(column.parts) is None else table.column(column.parts).path


def alter(command: commands.AlterIndex, context: StatementContext) -> list[Row]:
    """``ALTER SIEVE INDEX``: changes an index, and returns its name and state."""
    table = context.registered(command.table)
    (registered,) = select(context.indexes(table), table.info.label, command.name, None)
    index = usable(registered)
    if command.state is None:
        wanted = options_of(command.options, index.manifest.wanted_options)
        change: Change = SetOptions(wanted)
    else:
        change = Enable() if command.state == "ready" else Disable()
    with report_if_dropped(index.name, index.store, index.directory):
        manifest = change_index(index, change, context.environment)
    _register_refresh(table, index, manifest)
    context.invalidate(index.directory)
    _announce(table)
    return [(index.name, manifest.state)]


def _register_refresh(table: RegisteredTable, index: Usable, manifest: Manifest) -> None:
    """Updates an index's registration if the index's option ``refresh`` has changed."""
    registered = replace(index.registration, follows=manifest.options.refresh == AUTO)
    if registered != index.registration:
        table.register(index.name, registered)


def _announce(table: RegisteredTable) -> None:
    """Refreshes this driver's cache of the table's registrations, if possible."""
    # The statement has already succeeded. If the refresh of the cache fails, scans notice the
    # change later.
    with contextlib.suppress(UnavailableError):
        table.refresh_registry()
