"""DDL statements: create, refresh, optimize, drop and alter indexes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from sieve.errors import ConflictError, InvalidInputError, SieveError, UnavailableError
from sieve.metadata.creation_record import report_if_dropped
from sieve.metadata.manifest import Manifest
from sieve.metadata.options import AUTO, IndexOptions
from sieve.metadata.records import TableIdentity, same_table
from sieve.metadata.transitions import Disable, Enable, SetOptions
from sieve.operations.alter import change_index, follow_table
from sieve.operations.create import Wanted, create_indexes, default_name, refuse_taken
from sieve.operations.drop import drop_index
from sieve.operations.indexed_column import dropped_column, indexed_column
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
from sieve.tables.registered_table import RegisteredTable
from sieve.tables.table import CatalogTable
from sieve.tables.table_info import resolve_column
from sql_ext.statements import commands
from sql_ext.statements.answers import Outcome, answer_rows, change_between, refused_row
from sql_ext.statements.context import Row, StatementContext, options_of
from sql_ext.statements.declared import build_lacking, find_lacking, undeclare


def create(command: commands.CreateIndex, at: StatementContext) -> list[Row]:
    """``CREATE SIEVE INDEX``: rows of existing indexes (IF NOT EXISTS) first, then the new ones."""
    options = options_of(command.options, IndexOptions())
    table = at.table(command.table)
    columns = [resolve_column(table.info, column.parts) for column in command.columns]
    wanted = [
        Wanted((command.name or default_name(column.path)).lower(), column) for column in columns
    ]
    there = at.indexes(table)
    present = {name: index for name, index in there.items() if not is_gone(index)}
    replaced = {w.name: there[w.name] for w in wanted if command.replace and w.name in there}
    for old in replaced.values():
        # Whether an unreachable index has ended cannot be known, so it cannot be replaced.
        check_reachable(old)
    if command.if_not_exists:
        kept = [(one, usable(present[one.name]).manifest) for one in wanted if one.name in present]
        wanted = [one for one in wanted if one.name not in present]
        for one, manifest in kept:
            _advise_of_other(table, one, command.options, manifest, at)
    else:
        kept = []
        taken = {
            name: index.registration.column
            for name, index in present.items()
            if name not in replaced
        }
        refuse_taken(wanted, taken, table.info)
    outcomes = [Outcome(manifest, "unchanged", at.watch.lap()) for _, manifest in kept]
    if wanted and not table.info.persistent:
        at.environment.advice.add(
            "the catalog is in memory: table and index are forgotten when this application ends; "
            "start Spark with enableHiveSupport() to keep them"
        )
    if wanted:
        at.check_executors(table, [one.column.type for one in wanted])
        laps: list[float] = []
        made = create_indexes(
            table,
            wanted,
            options,
            command.comment,
            at.environment,
            lambda: laps.append(at.watch.lap()),
            replaced,
        )
        for old in replaced.values():
            at.invalidate(old.directory)
        # All indexes become visible together, after the last one is built.
        laps[-1] += at.watch.lap()
        outcomes += [
            Outcome(
                manifest,
                "rebuilt" if manifest.name in replaced and manifest.name in present else "created",
                seconds,
            )
            for manifest, seconds in zip(made, laps, strict=True)
        ]
    elif kept:
        _announce(table)
    return answer_rows(outcomes, at)


def _advise_of_other(
    table: CatalogTable,
    wanted: Wanted,
    options: Mapping[str, commands.OptionValue],
    manifest: Manifest,
    at: StatementContext,
) -> None:
    """Advises how an index that IF NOT EXISTS left unchanged differs from the request."""
    if manifest.column != wanted.column.key:
        column = ".".join(table.info.name_of(manifest.column))
        at.environment.advice.add(
            dropped_column(table.info, manifest)
            or f"an index of this name is on column {column} and was left as it is; give the one "
            f"on {wanted.column} another name",
            manifest.name,
        )
    in_force = manifest.next_options or manifest.options
    if options_of(options, in_force) != in_force:
        at.environment.advice.add(
            "the index has other options and was left as it is; ALTER SIEVE INDEX ... SET OPTIONS "
            "changes them",
            manifest.name,
        )


def refresh(command: commands.RefreshIndex, at: StatementContext) -> list[Row]:
    """``REFRESH SIEVE INDEX``: one row per index."""
    table = at.table(command.table)
    column = None if command.column is None else command.column.parts
    name = None if command.name is None else command.name.lower()
    followed = follow(table, at)
    indexes = at.indexes(table)
    present = {known for known, one in indexes.items() if not is_gone(one)}
    # Another tool may have removed a registration, for example by rewriting the table object.
    lost = len(present) < max(1, len(indexes)) if name is None else name not in present
    if lost and (adopted := reregister(table, indexes, at.environment)):
        for index in adopted:
            at.environment.advice.add(
                "the registration of this index was lost, which another tool must have done, and "
                "no query used it; it is registered again",
                index,
            )
        table = at.table(command.table)
        indexes = at.indexes(table)
    lacking = find_lacking(table, indexes).select(name, column)
    names = {one.name for one in lacking.wanted}
    if names and (name is not None or column is not None):
        chosen = []
    else:
        key = None if column is None else table.info.key_of(column)
        chosen = select(indexes, table.info.label, command.name, key)
    there = [one for one in chosen if one.name not in names]
    mode = RefreshMode.FULL if command.full else RefreshMode.INCREMENTAL
    rows = bring_up(table, there, mode, at, followed)
    made, refused = build_lacking(lacking, command.table, indexes, at)
    return [
        *rows,
        *answer_rows(made, at),
        *(refused_row(one.name, one.advice) for one in refused),
    ]


def optimize(command: commands.OptimizeIndex, at: StatementContext) -> list[Row]:
    """``OPTIMIZE SIEVE INDEX``: one row per index."""
    table = at.table(command.table)
    chosen = select(at.indexes(table), table.info.label, command.name, None)
    return bring_up(table, chosen, RefreshMode.COMPACT, at)


def follow(table: CatalogTable, at: StatementContext) -> frozenset[str]:
    """Reregisters the indexes of a renamed or moved table; returns the names of those changed."""
    followed: set[str] = set()

    def exists(identity: TableIdentity) -> bool:
        try:
            other = at.table(commands.TableName((identity.database, identity.table)))
        except SieveError:
            # The name now belongs to an object that cannot have an index.
            return False
        except (Py4JError, PySparkException) as error:
            # Only a missing table releases its index to another table; a failed look-up does not.
            if "SIEVE_UNKNOWN_TABLE" not in conditions(error):
                raise
            return False
        return same_table(other.info.identity, identity)

    for name in table.info.registrations:
        try:
            folder = follow_table(table, name, exists, at.environment)
        except SieveError as error:
            at.environment.advice.add(f"it could not follow its table: {error}", name)
            continue
        if folder is not None:
            followed.add(name)
            at.invalidate(folder)
    return frozenset(followed)


def bring_up(
    table: CatalogTable,
    chosen: Sequence[RegisteredIndex],
    mode: RefreshMode,
    at: StatementContext,
    followed: AbstractSet[str] = frozenset(),
) -> list[Row]:
    """Refreshes indexes of a table; returns rows as REFRESH does.

    Args:
        followed: indexes that this statement has reregistered already, in a new version.
    """
    refreshable = [
        index for index in only_usable(chosen) if not dropped_column(table.info, index.manifest)
    ]
    at.check_executors(table, [index.manifest.type for index in refreshable])
    outcomes: list[Outcome] = []
    conflict: ConflictError | None = None
    for index in refreshable:
        try:
            manifest = refresh_index(table, index, mode, at.environment)
        except ConflictError as error:
            conflict = error
        else:
            _register_refresh(table, index, manifest)
            change = change_between(index.manifest, manifest)
            if change == "unchanged" and index.name in followed:
                change = "refreshed"
            outcomes.append(Outcome(manifest, change, at.watch.lap()))
        at.invalidate(index.directory)
    _announce(table)
    # An index that fails to refresh is reported after all others are refreshed.
    if conflict is not None:
        raise conflict
    at.background.clear(table.info.identity.database, table.info.identity.table)
    for one in chosen:
        indexed_column(table.info, usable(one).manifest)
    return answer_rows(outcomes, at)


def drop(command: commands.DropIndex, at: StatementContext) -> list[Row]:
    """``DROP SIEVE INDEX``: the names of the dropped indexes."""
    try:
        table, chosen = _to_drop(command, at)
        broken = [index.name for index in chosen if isinstance(index, Malformed)]
        # REFRESH would find the index of a broken registration, and register it again.
        if broken and reregister(table, at.indexes(table), at.environment, broken):
            table, chosen = _to_drop(command, at)
    except InvalidInputError as error:
        if command.if_exists and error.condition == "SIEVE_UNKNOWN_INDEX":
            return []
        raise
    undeclare(table, chosen)
    for index in chosen:
        drop_index(table, index, at.environment)
        at.invalidate(index.directory)
    return [(index.name,) for index in chosen]


def _to_drop(
    command: commands.DropIndex, at: StatementContext
) -> tuple[RegisteredTable, list[RegisteredIndex]]:
    table = at.registered(command.table)
    by_column = command.column is not None or bool(table.info.declared)
    if by_column and table.info.provider == "delta":
        # Its columns may be renamed. One that cannot be read has the names that its files have.
        with contextlib.suppress(SieveError, Py4JError, PySparkException):
            table = at.table(command.table, jobs=False)
    column = None if command.column is None else table.info.key_of(command.column.parts)
    return table, select(at.indexes(table), table.info.label, command.name, column)


def enable(command: commands.EnableIndex, at: StatementContext) -> list[Row]:
    """``ALTER SIEVE INDEX ... ENABLE``."""
    return _alter(command.table, command.name, lambda _: Enable(), at)


def disable(command: commands.DisableIndex, at: StatementContext) -> list[Row]:
    """``ALTER SIEVE INDEX ... DISABLE``."""
    return _alter(command.table, command.name, lambda _: Disable(), at)


def set_options(command: commands.SetIndexOptions, at: StatementContext) -> list[Row]:
    """``ALTER SIEVE INDEX ... SET OPTIONS``."""
    return _alter(
        command.table,
        command.name,
        lambda base: SetOptions(options_of(command.options, base.next_options or base.options)),
        at,
    )


def _alter(
    name: commands.TableName,
    index_name: str,
    change: Callable[[Manifest], Enable | Disable | SetOptions],
    at: StatementContext,
) -> list[Row]:
    table = at.registered(name)
    (registered,) = select(at.indexes(table), table.info.label, index_name, None)
    index = usable(registered)
    changed = change(index.manifest)
    with report_if_dropped(index.name, index.store, index.directory):
        manifest = change_index(index, changed, at.environment)
    _register_refresh(table, index, manifest)
    at.invalidate(index.directory)
    _announce(table)
    return [(index.name, manifest.state)]


def _register_refresh(table: RegisteredTable, index: Usable, manifest: Manifest) -> None:
    """Registers whether a refresh follows each write, if the registration says otherwise."""
    registered = replace(index.registration, follows=manifest.options.refresh == AUTO)
    if registered != index.registration:
        table.register(index.name, registered)


def _announce(table: RegisteredTable) -> None:
    """Refreshes the registrations in all sessions of this driver, which may have stale ones."""
    # The statement has succeeded already, and scans find its change themselves after a while.
    with contextlib.suppress(UnavailableError):
        table.refresh_registry()
