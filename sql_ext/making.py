"""Statements that make, change and end indexes."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from sieve.adopt import adopt
from sieve.change import change_index, drop_index, follow_table
from sieve.create import Wanted, create_indexes, default_name, refuse_taken
from sieve.errors import ConflictError, InvalidInputError, SieveError, UnavailableError
from sieve.found import Found, choose, same_table
from sieve.intents import told_if_dropped
from sieve.manifest import Manifest
from sieve.options import IndexOptions
from sieve.refresh import Effort, refresh_index
from sieve.tables.catalog import CatalogTable, resolve_column
from sieve.transitions import Disable, Enable, SetOptions
from sieve.types import TableIdentity
from sql_ext import commands
from sql_ext.describe import advice, index_bytes
from sql_ext.means import Row, Statement, options_of

log = logging.getLogger(__name__)


def create(command: commands.CreateIndex, at: Statement) -> list[Row]:
    """``CREATE SIEVE INDEX``: those there were with IF NOT EXISTS first, then the new ones."""
    options = options_of(command.options, IndexOptions())
    table = at.table(command.table)
    columns = [resolve_column(table.info, column.parts) for column in command.columns]
    wanted = [Wanted((command.name or default_name(column)).lower(), column) for column in columns]
    usable = {name: f for name, f in at.found(table).items() if f.state != "gone"}
    if command.if_not_exists:
        kept = [usable[w.name.lower()] for w in wanted if w.name.lower() in usable]
        wanted = [w for w in wanted if w.name.lower() not in usable]
    else:
        kept = []
        refuse_taken([w.name for w in wanted], list(usable), table.info.label)
    made: list[Manifest] = []
    if wanted and not table.info.persistent:
        log.warning(
            "the catalog is in memory: table and index are forgotten when this application ends; "
            "start Spark with enableHiveSupport() to keep them"
        )
    if wanted:
        at.check_executors(table, [one.column.type for one in wanted])
        made = create_indexes(table, wanted, options, command.comment, at.world)
        for manifest in made:
            if (words := advice(manifest.stats, manifest.type)) is not None:
                log.warning("index %s of %s: %s", manifest.name, table.info.label, words)
    elif kept:
        _announce(table)
    return [_built(found.need()) for found in kept] + [_built(manifest) for manifest in made]


def refresh(command: commands.RefreshIndex, at: Statement) -> list[Row]:
    """``REFRESH SIEVE INDEX``: one row an index."""
    table = at.table(command.table)
    column = None if command.column is None else command.column.parts
    name = None if command.name is None else command.name.lower()
    follow(table, at)
    found = at.found(table)
    usable = {known for known, one in found.items() if one.state != "gone"}
    # Another tool may have undone a registration, such as by writing the whole table object.
    lost = len(usable) < max(1, len(found)) if name is None else name not in usable
    if lost and adopt(table, found, at.world):
        table = at.table(command.table)
        found = at.found(table)
    chosen = choose(found, table.info.label, command.name, column)
    return bring_up(table, chosen, "all" if command.full else "new", at)


def optimize(command: commands.OptimizeIndex, at: Statement) -> list[Row]:
    """``OPTIMIZE SIEVE INDEX``: one row an index."""
    table = at.table(command.table)
    chosen = choose(at.found(table), table.info.label, command.name, None)
    return bring_up(table, chosen, "one run", at)


def follow(table: CatalogTable, at: Statement) -> None:
    """Let the indexes of a table that was renamed or moved follow it."""

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
            folder = follow_table(table, name, exists, at.world)
        except SieveError as error:
            log.warning("index %s of %s could not follow it: %s", name, table.info.label, error)
            continue
        if folder is not None:
            at.forget(folder)


def bring_up(
    table: CatalogTable, chosen: Sequence[Found], effort: Effort, at: Statement
) -> list[Row]:
    """Refresh some indexes of a table; a row each, as of REFRESH."""
    usable = [found for found in chosen if found.manifest is not None]
    at.check_executors(table, [found.need().type for found in usable])
    rows: list[Row] = []
    conflict: ConflictError | None = None
    for found in usable:
        try:
            manifest = refresh_index(table, found, effort, at.world)
        except ConflictError as error:
            conflict = error
        else:
            rows.append(_built(manifest))
        at.forget(found.directory)
    _announce(table)
    # One that cannot be refreshed is told, after it has kept none of the others from it.
    if conflict is not None:
        raise conflict
    at.background.clear(table.info.identity.database, table.info.identity.table)
    for found in chosen:
        found.need()
    return rows


def drop(command: commands.DropIndex, at: Statement) -> list[Row]:
    """``DROP SIEVE INDEX``: the names of those dropped."""
    try:
        table = at.table(command.table)
        column = None if command.column is None else command.column.parts
        chosen = choose(at.found(table), table.info.label, command.name, column)
    except InvalidInputError as error:
        if command.if_exists and error.condition == "SIEVE_UNKNOWN_INDEX":
            return []
        raise
    for found in chosen:
        drop_index(table, found, at.world)
        at.forget(found.directory)
    return [(found.name,) for found in chosen]


def enable(command: commands.EnableIndex, at: Statement) -> list[Row]:
    """``ALTER SIEVE INDEX ... ENABLE``."""
    return _alter(command.table, command.name, lambda _: Enable(), at)


def disable(command: commands.DisableIndex, at: Statement) -> list[Row]:
    """``ALTER SIEVE INDEX ... DISABLE``."""
    return _alter(command.table, command.name, lambda _: Disable(), at)


def set_options(command: commands.SetIndexOptions, at: Statement) -> list[Row]:
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
    at: Statement,
) -> list[Row]:
    table = at.table(name)
    (found,) = choose(at.found(table), table.info.label, index, None)
    changed = change(found.need())
    with told_if_dropped(found.name, found.store, found.directory):
        manifest = change_index(found, changed, at.world)
    at.forget(found.directory)
    _announce(table)
    return [(found.name, manifest.state)]


def _announce(table: CatalogTable) -> None:
    """Another session of this driver may still believe that there is no index."""
    # What the statement was for is done, and scans find out by themselves in a while.
    with contextlib.suppress(UnavailableError):
        table.announce()


def _built(manifest: Manifest) -> Row:
    stats = manifest.stats
    return (
        manifest.name,
        manifest.version,
        manifest.locations.count,
        index_bytes(manifest),
        stats.seconds,
    )
