"""Statements that give disk back: past versions, and indexes of no table."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from sieve.claims import FLOOR_MS
from sieve.found import choose
from sieve.history import HOUR_MS, Retention
from sieve.orphans import Orphan, orphans
from sieve.registration import registrations
from sieve.types import TableIdentity, identity_from
from sieve.vacuum import vacuum_index
from sql_ext import commands
from sql_ext.means import Row, Statement, database_of


def vacuum(command: commands.VacuumIndex, at: Statement) -> list[Row]:
    """``VACUUM SIEVE INDEX``: one row an index."""
    table = at.table(command.table)
    chosen = choose(at.found(table), table.info.label, command.name, None)
    kept = at.settings.retention if command.hours is None else Retention(1, command.hours)
    rows: list[Row] = []
    for found in chosen:
        went = vacuum_index(found, kept)
        rows.append((found.name, went.versions, went.files, went.bytes))
    return rows


def vacuum_root(command: commands.VacuumIndexes, at: Statement) -> list[Row]:
    """``VACUUM SIEVE INDEXES``: one row an index that is gone."""
    database = database_of(command.namespace, at.session.catalog())
    location = str(at.driver.databaseLocation(at.session, database))
    floor_ms = FLOOR_MS if command.hours is None else int(command.hours * HOUR_MS)
    rows: list[Row] = []
    for orphan in orphans_of(at, database, location, floor_ms):
        at.world.check_cancelled()
        # Only what is out of every table's reach goes, so nobody needs to be told first.
        at.world.open_store(orphan.folder).delete(orphan.folder)
        at.forget(orphan.folder)
        rows.append((orphan.name, orphan.table.table, orphan.why, orphan.folder))
    return rows


def orphans_of(
    at: Statement, database: str, location: str, floor_ms: int, of_table: str = ""
) -> list[Orphan]:
    """What no table of a database has of the indexes that lie where its new ones go.

    Args:
        at: the means of a statement.
        database: its name; it may be gone, and its tables with it.
        location: URI of its folder, empty where it is gone.
        floor_ms: as of `orphans`.
        of_table: only indexes of a table of this name.
    """
    if not location and at.settings.path is None:
        # Its folder went with it.
        return []
    root = at.world.root_for_new(location)
    store = at.world.open_store(root)

    def found(tables: Sequence[TableIdentity], registered: Collection[str]) -> list[Orphan]:
        some = orphans(store, root, database, tables, registered, floor_ms)
        return [o for o in some if not of_table or o.table.table.lower() == of_table.lower()]

    # To ask for all tables takes the metastore long, so first see whether there is a need to.
    if not location or not found([], ()):
        return found([], ())
    raw = json.loads(at.driver.tables(at.session, database))
    return found(
        [identity_from(table) for table in raw],
        {
            registration.uuid
            for table in raw
            for registration in registrations(table["registrations"]).values()
        },
    )
