"""Statements that make, change and end indexes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from sieve.errors import ConflictError, InvalidInputError, SieveError, UnavailableError
from sieve.metadata.creation_record import report_if_dropped
from sieve.metadata.manifest import Manifest
from sieve.metadata.options import IndexOptions
from sieve.metadata.records import TableIdentity, same_table
from sieve.metadata.transitions import Disable, Enable, SetOptions
from sieve.operations.alter import change_index, drop_index, follow_table
from sieve.operations.create import Wanted, create_indexes, default_name, refuse_taken
from sieve.operations.refresh import RefreshMode, refresh_index
from sieve.operations.registered_index import Found, choose
from sieve.operations.reregister import reregister
from sieve.tables.table import CatalogTable, resolve_column
from sql_ext.statements import commands
from sql_ext.statements.answers import Outcome, answer_rows, change_between, refused_row
from sql_ext.statements.context import Row, StatementContext, options_of
from sql_ext.statements.declared import build_lacking, find_lacking, undeclare


def create(command: commands.CreateIndex, at: StatementContext) -> list[Row]:
    """``CREATE SIEVE INDEX``: those there were with IF NOT EXISTS first, then the new ones."""
    options = options_of(command.options, IndexOptions())
    table = at.table(command.table)
    columns = [resolve_column(table.info, column.parts) for column in command.columns]
    wanted = [
        Wanted((command.name or default_name(column.path)).lower(), column) for column in columns
    ]
    there = at.found(table)
    usable = {name: f for name, f in there.items() if f.state != "gone"}
    replaced = {w.name: there[w.name] for w in wanted if command.replace and w.name in there}
    for old in replaced.values():
        # Of one that is out of reach nobody could say that it has ended.
        old.check_answered()
    if command.if_not_exists:
        kept = [(one, usable[one.name].need()) for one in wanted if one.name in usable]
        wanted = [one for one in wanted if one.name not in usable]
        for one, manifest in kept:
            _advise_of_other(one, command.options, manifest, at)
    else:
        kept = []
        taken = [name for name in usable if name not in replaced]
        refuse_taken([w.name for w in wanted], taken, table.info.label)
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
        # They become visible together, after the last is built.
        laps[-1] += at.watch.lap()
        outcomes += [
            Outcome(
                manifest,
                "rebuilt" if manifest.name in replaced and manifest.name in usable else "created",
                seconds,
            )
            for manifest, seconds in zip(made, laps, strict=True)
        ]
    elif kept:
        _announce(table)
    return answer_rows(outcomes, at)


def _advise_of_other(
    wanted: Wanted,
    options: Mapping[str, commands.OptionValue],
    manifest: Manifest,
    at: StatementContext,
) -> None:
    """Say what IF NOT EXISTS left unlike it was asked for."""
    if manifest.column != wanted.column.path:
        column = ".".join(manifest.column)
        at.environment.advice.add(
            f"an index of this name is on column {column} and was left as it is; give the one on "
            f"{wanted.column} another name",
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
    """``REFRESH SIEVE INDEX``: one row an index."""
    table = at.table(command.table)
    column = None if command.column is None else command.column.parts
    name = None if command.name is None else command.name.lower()
    followed = follow(table, at)
    found = at.found(table)
    usable = {known for known, one in found.items() if one.state != "gone"}
    # Another tool may have undone a registration, such as by writing the whole table object.
    lost = len(usable) < max(1, len(found)) if name is None else name not in usable
    if lost and (adopted := reregister(table, found, at.environment)):
        for index in adopted:
            at.environment.advice.add(
                "the registration of this index was lost, which another tool must have done, and "
                "no query used it; it is registered again",
                index,
            )
        table = at.table(command.table)
        found = at.found(table)
    lacking = find_lacking(table, found).select(name, column)
    names = {one.name for one in lacking.wanted}
    if names and (name is not None or column is not None):
        chosen = []
    else:
        chosen = choose(found, table.info.label, command.name, column)
    there = [one for one in chosen if one.name not in names]
    mode = RefreshMode.FULL if command.full else RefreshMode.INCREMENTAL
    rows = bring_up(table, there, mode, at, followed)
    made, refused = build_lacking(lacking, command.table, found, at)
    return [
        *rows,
        *answer_rows(made, at),
        *(refused_row(one.name, one.advice) for one in refused),
    ]


def optimize(command: commands.OptimizeIndex, at: StatementContext) -> list[Row]:
    """``OPTIMIZE SIEVE INDEX``: one row an index."""
    table = at.table(command.table)
    chosen = choose(at.found(table), table.info.label, command.name, None)
    return bring_up(table, chosen, RefreshMode.COMPACT, at)


def follow(table: CatalogTable, at: StatementContext) -> frozenset[str]:
    """Let the indexes of a table that was renamed or moved follow it; names of those that did."""
    followed: set[str] = set()

    def exists(identity: TableIdentity) -> bool:
        try:
            other = at.table(commands.TableName((identity.database, identity.table)))
        except SieveError:
            # What bears the name now is no table that can have an index.
            return False
        except (Py4JError, PySparkException) as error:
            # Absence alone lets an index go to another table; a failure to look does not.
            if "SIEVE_UNKNOWN_TABLE" not in str(error):
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
    chosen: Sequence[Found],
    mode: RefreshMode,
    at: StatementContext,
    followed: AbstractSet[str] = frozenset(),
) -> list[Row]:
    """Refresh some indexes of a table; a row each, as of REFRESH.

    Args:
        table: the table.
        chosen: the indexes.
        mode: what to read.
        at: the means.
        followed: those of which this statement has made a version already.
    """
    usable = [found for found in chosen if found.manifest is not None]
    at.check_executors(table, [found.need().type for found in usable])
    outcomes: list[Outcome] = []
    conflict: ConflictError | None = None
    for found in usable:
        try:
            manifest = refresh_index(table, found, mode, at.environment)
        except ConflictError as error:
            conflict = error
        else:
            change = change_between(found.need(), manifest)
            if change == "unchanged" and found.name in followed:
                change = "refreshed"
            outcomes.append(Outcome(manifest, change, at.watch.lap()))
        at.invalidate(found.directory)
    _announce(table)
    # One that cannot be refreshed is told, after it has kept none of the others from it.
    if conflict is not None:
        raise conflict
    at.background.clear(table.info.identity.database, table.info.identity.table)
    for found in chosen:
        found.need()
    return answer_rows(outcomes, at)


def drop(command: commands.DropIndex, at: StatementContext) -> list[Row]:
    """``DROP SIEVE INDEX``: the names of those dropped."""
    try:
        table = at.table(command.table)
        column = None if command.column is None else command.column.parts
        chosen = choose(at.found(table), table.info.label, command.name, column)
    except InvalidInputError as error:
        if command.if_exists and error.condition == "SIEVE_UNKNOWN_INDEX":
            return []
        raise
    undeclare(table, chosen)
    for found in chosen:
        drop_index(table, found, at.environment)
        at.invalidate(found.directory)
    return [(found.name,) for found in chosen]


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
    index: str,
    change: Callable[[Manifest], Enable | Disable | SetOptions],
    at: StatementContext,
) -> list[Row]:
    table = at.table(name)
    (found,) = choose(at.found(table), table.info.label, index, None)
    changed = change(found.need())
    with report_if_dropped(found.name, found.store, found.directory):
        manifest = change_index(found, changed, at.environment)
    at.invalidate(found.directory)
    _announce(table)
    return [(found.name, manifest.state)]


def _announce(table: CatalogTable) -> None:
    """Another session of this driver may still believe that there is no index."""
    # What the statement was for is done, and scans find out by themselves in a while.
    with contextlib.suppress(UnavailableError):
        table.refresh_registry()
