"""Running a command record: one function a record, one table that names them all."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark import SparkContext

from sieve.adopt import adopt
from sieve.build.estimate import Asked, estimate_index
from sieve.cache import Cache
from sieve.change import change_index, drop_index
from sieve.claims import FLOOR_MS
from sieve.create import Wanted, check_wanted, create_indexes, default_name, refuse_taken
from sieve.errors import InvalidInputError, UnavailableError, UnsupportedError
from sieve.found import Found, all_of, choose, look_up
from sieve.history import HOUR_MS, Retention, history
from sieve.instants import iso
from sieve.manifest import Manifest
from sieve.options import IndexOptions, parse_options
from sieve.orphans import orphans
from sieve.predicate import parse
from sieve.refresh import Effort, refresh_index
from sieve.registration import registrations
from sieve.tables.catalog import CatalogTable, open_table, resolve_column
from sieve.transitions import Disable, Enable, SetOptions
from sieve.types import identity_from
from sieve.vacuum import vacuum_index
from sieve.world import World
from sql_ext import attach, commands, ship
from sql_ext.describe import advice, describe_rows, estimate_rows, index_bytes
from sql_ext.settings import Settings

Row = Sequence[Any]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement at work.

    Attributes:
        driver: entry point of the gateway.
        context: PySpark's view of the driver's context.
        session: the user's session, a py4j object.
        world: the means of the operation.
        settings: what the session has set.
        forget: tells scans that an index has changed, by its folder.
        cache: what scans hold of indexes.
    """

    driver: Any
    context: SparkContext
    session: Any
    world: World
    settings: Settings
    forget: Callable[[str], None]
    cache: Cache

    def table(self, name: commands.TableName) -> CatalogTable:
        """The table a statement names, resolved in a copy of the user's session."""
        session = self.driver.buildSession(self.session)
        spark = attach.wrap_session(self.context, session)
        return open_table(self.driver, spark, session, name.parts)

    def check_executors(self, table: CatalogTable, types: Sequence[str]) -> None:
        """Raise UnavailableError if executors cannot build indexes of columns of these types."""
        self.world.say("asking the executors")
        ship.check_executors(self.context)
        if any(ship.zone_matters(table.info.format_name, type_name) for type_name in types):
            ship.check_zones(self.context, attach.wrap_session(self.context, self.session))

    def found(self, table: CatalogTable) -> dict[str, Found]:
        """The table's indexes by name."""
        return all_of(table.info.registrations, table.info.identity, self.world)


def execute(command: commands.Command, statement: Statement) -> list[Row]:
    """The rows of a command.

    Raises:
        SieveError, Py4JJavaError: it failed, and left nothing half done.
    """
    return _FUNCTIONS[type(command)](command, statement)


def _create(command: commands.CreateIndex, at: Statement) -> list[Row]:
    options = _options(command.options, IndexOptions())
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
            if (words := advice(manifest.stats)) is not None:
                log.warning("index %s of %s: %s", manifest.name, table.info.label, words)
    elif kept:
        _announce(table)
    return [_built(found.need()) for found in kept] + [_built(manifest) for manifest in made]


def _refresh(command: commands.RefreshIndex, at: Statement) -> list[Row]:
    table = at.table(command.table)
    column = None if command.column is None else command.column.parts
    name = None if command.name is None else command.name.lower()
    known = table.info.registrations
    # Another tool may have undone a registration, such as by writing the whole table object.
    if (not known if name is None else name not in known) and adopt(table, at.world):
        table = at.table(command.table)
    chosen = choose(at.found(table), table.info.label, command.name, column)
    return _bring_up(table, chosen, "all" if command.full else "new", at)


def _optimize(command: commands.OptimizeIndex, at: Statement) -> list[Row]:
    table = at.table(command.table)
    chosen = choose(at.found(table), table.info.label, command.name, None)
    return _bring_up(table, chosen, "one run", at)


def _bring_up(
    table: CatalogTable, chosen: Sequence[Found], effort: Effort, at: Statement
) -> list[Row]:
    usable = [found for found in chosen if found.manifest is not None]
    at.check_executors(table, [found.need().type for found in usable])
    rows: list[Row] = []
    for found in usable:
        manifest = refresh_index(table, found, effort, at.world)
        at.forget(found.directory)
        rows.append(_built(manifest))
    _announce(table)
    for found in chosen:
        # One that cannot be refreshed is told, after it has kept none of the others from it.
        found.need()
    return rows


def _drop(command: commands.DropIndex, at: Statement) -> list[Row]:
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


def _enable(command: commands.EnableIndex, at: Statement) -> list[Row]:
    return _alter(command.table, command.name, lambda _: Enable(), at)


def _disable(command: commands.DisableIndex, at: Statement) -> list[Row]:
    return _alter(command.table, command.name, lambda _: Disable(), at)


def _set_options(command: commands.SetIndexOptions, at: Statement) -> list[Row]:
    return _alter(
        command.table,
        command.name,
        lambda base: SetOptions(_options(command.options, base.next_options or base.options)),
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
    manifest = change_index(found, change(found.need()), at.world)
    at.forget(found.directory)
    _announce(table)
    return [(found.name, manifest.state)]


def _announce(table: CatalogTable) -> None:
    """Another session of this driver may still believe that there is no index."""
    # What the statement was for is done, and scans find out by themselves in a while.
    with contextlib.suppress(UnavailableError):
        table.announce()


def _show(command: commands.ShowIndexes, at: Statement) -> list[Row]:
    if command.table is not None:
        table = at.table(command.table)
        return [_shown(found, table.info.identity) for found in at.found(table).values()]
    database = _database(command.namespace, at.session.catalog())
    rows: list[Row] = []
    for raw in json.loads(at.driver.tables(at.session, database)):
        identity = identity_from(raw)
        for name, registration in registrations(raw["registrations"]).items():
            rows.append(_shown(look_up(name, registration, identity, at.world), identity))
    return rows


def _database(namespace: commands.Namespace | None, catalog: Any) -> str:
    """The database that a namespace means, which is one of the session catalog."""
    parts = (str(catalog.currentDatabase()),) if namespace is None else namespace.parts
    holder = str(catalog.currentCatalog()) if len(parts) == 1 else parts[0]
    if holder.lower() != "spark_catalog":
        raise UnsupportedError(
            "SIEVE_UNSUPPORTED_CATALOG",
            f"{holder} is not the session catalog, whose tables alone have indexes; name one of "
            "its databases: SHOW SIEVE INDEXES IN spark_catalog.<database>",
        )
    return parts[-1]


def _shown(found: Found, identity: Any) -> Row:
    manifest = found.manifest
    head = (identity.database, identity.table, found.name, ".".join(found.registration.column))
    if manifest is None:
        return (*head, None, None, found.state, None, None, None, None)
    return (
        *head,
        manifest.type,
        manifest.options.shape,
        found.state,
        manifest.version,
        manifest.instant,
        manifest.locations.count,
        index_bytes(manifest),
    )


def _versions(command: commands.ShowVersions, at: Statement) -> list[Row]:
    table = at.table(command.table)
    chosen = choose(at.found(table), table.info.label, command.name, None)
    return [
        (
            found.name,
            past.manifest.version,
            past.change,
            past.manifest.state,
            past.manifest.instant,
            iso(past.published_ms),
            past.manifest.locations.count,
            len(past.manifest.runs),
            index_bytes(past.manifest),
            str(past.retained).lower(),
        )
        for found in chosen
        for past in history(found.store, found.directory)
    ]


def _vacuum(command: commands.VacuumIndex, at: Statement) -> list[Row]:
    table = at.table(command.table)
    chosen = choose(at.found(table), table.info.label, command.name, None)
    kept = at.settings.retention if command.hours is None else Retention(1, command.hours)
    rows: list[Row] = []
    for found in chosen:
        went = vacuum_index(found, kept)
        rows.append((found.name, went.versions, went.files, went.bytes))
    return rows


def _vacuum_root(command: commands.VacuumIndexes, at: Statement) -> list[Row]:
    database = _database(command.namespace, at.session.catalog())
    tables = json.loads(at.driver.tables(at.session, database))
    registered = {
        registration.uuid
        for raw in tables
        for registration in registrations(raw["registrations"]).values()
    }
    root = at.world.root_for_new(str(at.driver.databaseLocation(at.session, database)))
    store = at.world.open_store(root)
    floor_ms = FLOOR_MS if command.hours is None else int(command.hours * HOUR_MS)
    identities = [identity_from(raw) for raw in tables]
    rows: list[Row] = []
    for orphan in orphans(store, root, database, identities, registered, floor_ms):
        at.world.check_cancelled()
        # Only what is out of every table's reach goes, so nobody needs to be told first.
        store.delete(orphan.folder)
        at.forget(orphan.folder)
        rows.append((orphan.name, orphan.table.table, orphan.why, orphan.folder))
    return rows


def _describe(command: commands.DescribeIndex, at: Statement) -> list[Row]:
    table = at.table(command.table)
    (found,) = choose(at.found(table), table.info.label, command.name, None)
    return list(describe_rows(table, found, command.extended))


def _explain(command: commands.ExplainSieve, at: Statement) -> list[Row]:
    scans = json.loads(at.driver.explain(at.session, command.query))
    return [
        (
            number,
            scan["table"],
            ", ".join(scan.get("used", [])) or None,
            scan["predicate"] or None,
            scan["files_total"],
            scan["files_read"],
            scan["bytes_total"],
            scan["bytes_read"],
            ", ".join(f"{reason}: {count}" for reason, count in scan["reasons"].items()) or None,
        )
        for number, scan in enumerate(scans, 1)
    ]


def _estimate(command: commands.EstimateIndex, at: Statement) -> list[Row]:
    options = _options(command.options, IndexOptions())
    table = at.table(command.table)
    column = resolve_column(table.info, command.column.parts)
    check_wanted(table, Wanted(default_name(column), column), options)
    asked = None
    if command.predicate is not None:
        # The user's own words, read with the user's rights.
        query = f"SELECT * FROM {command.table} WHERE {command.predicate}"  # noqa: S608
        raw = json.loads(at.driver.asked(at.session, query))
        asked = Asked(parse(raw["predicate"]), frozenset(raw["files"]))
    at.check_executors(table, [column.type])
    estimate = estimate_index(table, column, options, asked, at.world)
    return list(estimate_rows(table, column, options, estimate))


def _options(raw: Mapping[str, commands.OptionValue], base: IndexOptions) -> IndexOptions:
    return parse_options({key: str(value) for key, value in raw.items()}, base)


def _built(manifest: Manifest) -> Row:
    stats = manifest.stats
    return (
        manifest.name,
        manifest.version,
        manifest.locations.count,
        index_bytes(manifest),
        stats.seconds,
    )


_FUNCTIONS: Mapping[type, Callable[[Any, Statement], list[Row]]] = {
    commands.CreateIndex: _create,
    commands.RefreshIndex: _refresh,
    commands.DropIndex: _drop,
    commands.EnableIndex: _enable,
    commands.DisableIndex: _disable,
    commands.SetIndexOptions: _set_options,
    commands.ShowIndexes: _show,
    commands.DescribeIndex: _describe,
    commands.ExplainSieve: _explain,
    commands.EstimateIndex: _estimate,
    commands.ShowVersions: _versions,
    commands.OptimizeIndex: _optimize,
    commands.VacuumIndex: _vacuum,
    commands.VacuumIndexes: _vacuum_root,
}
