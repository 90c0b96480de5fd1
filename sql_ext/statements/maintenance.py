"""VACUUM statements, which delete files of old index versions, and indexes without a table."""

from __future__ import annotations

import json

from sieve.errors import UnavailableError, UnsupportedError
from sieve.metadata.creation_record import delete_index
from sieve.metadata.records import identity_from
from sieve.metadata.registration import registrations
from sieve.metadata.retention import FLOOR_MS, HOUR_MS, Retention
from sieve.operations.dropped_index import leave_out_if_dropped
from sieve.operations.orphans import Orphan, orphans
from sieve.operations.registered_index import select, usable
from sieve.operations.vacuum import vacuum_index
from sql_ext.statements import commands
from sql_ext.statements.context import Row, StatementContext, database_of


def vacuum(command: commands.VacuumIndex, context: StatementContext) -> list[Row]:
    """``VACUUM SIEVE INDEX``: deletes files of old versions, and returns one row per index."""
    table = context.registered(command.table)
    chosen = select(context.indexes(table), table.info.label, command.name, None)
    retention = context.settings.retention if command.hours is None else Retention(1, command.hours)
    rows: list[Row] = []
    for index in chosen:
        context.environment.changing()
        with leave_out_if_dropped(index, table, every=command.name is None):
            went = vacuum_index(usable(index), retention)
            rows.append((index.name, went.versions, went.files, went.bytes))
    return rows


def vacuum_root(command: commands.VacuumIndexes, context: StatementContext) -> list[Row]:
    """``VACUUM SIEVE INDEXES``: deletes orphans, and returns one row per deleted index."""
    if (
        context.spark_context.getConf().get("spark.sql.catalogImplementation", "in-memory")
        != "hive"
    ):
        raise UnsupportedError(
            "SIEVE_CATALOG_IN_MEMORY",
            "a catalog in memory contains only the tables of its own session, so it is unknown "
            "which indexes belong to no table; run VACUUM SIEVE INDEXES in a session on a "
            "metastore",
        )
    database = database_of(command.namespace, context)
    floor_ms = FLOOR_MS if command.hours is None else int(command.hours * HOUR_MS)
    # A list of tables can lack a table during its rename. So this code lists the tables twice.
    suspects = {orphan.folder for orphan in _orphans(database, floor_ms, context)}
    rows: list[Row] = []
    for orphan in _orphans(database, floor_ms, context) if suspects else []:
        if orphan.folder not in suspects:
            continue
        context.environment.check_cancelled()
        context.environment.changing()
        # Scans read only registered indexes, so no scan reads this index during the deletion.
        delete_index(context.environment.open_store(orphan.folder), orphan.folder)
        context.invalidate(orphan.folder)
        rows.append((orphan.name, orphan.table.table, orphan.why, orphan.folder))
    return rows


def _orphans(database: str, floor_ms: int, context: StatementContext) -> list[Orphan]:
    listed = json.loads(context.driver.tables().list(context.session, database))
    for raw in listed:
        if "registrations" not in raw:
            raise UnavailableError(
                "SIEVE_TABLE_UNREADABLE",
                f"table {database}.{raw['table']} cannot be read, so it is unknown which indexes "
                "belong to it; nothing was deleted; repair or drop the table, and run VACUUM "
                f"again: {raw['problem']}",
            )
    tables = {identity_from(raw): registrations(raw["registrations"]) for raw in listed}
    location = str(context.driver.tables().databaseLocation(context.session, database))
    root = context.environment.root_for_new(location)
    return list(orphans(context.environment.open_store(root), root, database, tables, floor_ms))
