"""``ADVISE SIEVE INDEXES``: which indexes scans make worth having or dropping.

It reads this driver's record of scans, and those that other drivers have saved beside indexes
(``spark.sieve.history``), and no data. Tables and columns that the user may not query are left out:
other users' queries would show in them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from sieve.errors import SieveError
from sieve.metadata.options import IndexOptions
from sieve.metadata.scan_history import saved_records
from sieve.operations.create import Wanted, check_wanted, default_name
from sieve.tables.table import CatalogTable
from sieve.tables.table_info import resolve_column
from sieve.workload.column_use import Column
from sieve.workload.driver_record import AskedAndRead, IndexWork, ScanRecord, add_up, parse_record
from sieve.workload.rank import Suggestion, described, suggest
from sieve.workload.record import Table
from sieve.workload.spelling import create_statement, drop_statement, estimate_statement
from sql_ext.statements import commands
from sql_ext.statements.context import Row, StatementContext, database_of

log = logging.getLogger(__name__)

WASTED_SCANS: Final = 20
"""So many scans that an index skipped nothing for make it not worth keeping."""


def advise(command: commands.AdviseIndexes, at: StatementContext) -> list[Row]:
    """One row per index worth having, the best first; then one per index that scans have asked."""
    own = parse_record(at.driver.scans())
    now_ms = round(time.time() * 1000)
    record = add_up([own, *_saved(command, own.driver, now_ms, at)], now_ms)
    wanted: list[Suggestion] = []
    existing: list[Row] = []
    for name, table in _tables(command, record, at):
        columns = {
            index.name: table.info.name_of(index.registration.column)
            for index in at.indexes(table).values()
        }
        groups = [group for group in record.workload if group.table == name]
        wanted += [
            one
            for one in suggest(groups, frozenset(columns.values()))
            if _may_index(table, one.column, at)
        ]
        existing += _existing(name, columns, record)
        at.environment.check_cancelled()
    wanted.sort(key=lambda one: -one.bytes_saved)
    existing.sort(key=lambda row: (row[0], -row[8]))
    return [*(_create_row(one, record.days) for one in wanted), *existing]


def _saved(
    command: commands.AdviseIndexes, but: str, now_ms: int, at: StatementContext
) -> tuple[ScanRecord, ...]:
    """The records that other drivers have saved, of scans of the statement's database."""
    if not at.settings.history:
        return ()
    if command.table is not None:
        database = at.table(command.table, jobs=False).info.identity.database
    else:
        database = database_of(command.namespace, at.session.catalog())
    try:
        location = str(at.driver.tables().databaseLocation(at.session, database))
        root = at.environment.root_for_new(location)
        saved = saved_records(at.environment.open_store(root), root, but, now_ms)
    except (SieveError, Py4JError) as error:
        # The driver's own scans are worth an answer.
        log.warning("the scans that other drivers have saved cannot be read: %s", error)
        return ()
    if saved.ignored:
        log.warning("%d files of %s/history are no records of scans", saved.ignored, root)
    return saved.records


def _tables(
    command: commands.AdviseIndexes, record: AskedAndRead, at: StatementContext
) -> Iterator[tuple[Table, CatalogTable]]:
    """The tables of the record that the statement asks for, and the user may read."""
    if command.table is not None:
        table = at.table(command.table, jobs=False)
        yield (table.info.identity.database, table.info.identity.table), table
        return
    database = database_of(command.namespace, at.session.catalog()).lower()
    for name in dict.fromkeys(group.table for group in record.workload):
        if name[0].lower() == database:
            try:
                yield name, at.table(commands.TableName(name), jobs=False)
            except (SieveError, Py4JError, PySparkException):
                # Dropped since, of a kind without indexes, or not for this user.
                continue


def _may_index(table: CatalogTable, path: Column, at: StatementContext) -> bool:
    """Whether the user may query a column, and it can have an index."""
    identity = table.info.identity
    try:
        column = resolve_column(table.info, path)
        check_wanted(table, Wanted(default_name(column.path), column), IndexOptions())
        at.plan_column((identity.database, identity.table), column.path)
    except (SieveError, Py4JError, PySparkException):
        return False
    return True


def _create_row(one: Suggestion, days: float) -> Row:
    return (
        "create",
        *one.table,
        ".".join(one.column),
        None,
        described(one),
        one.scans / days,
        round(one.bytes_read / days),
        round(one.bytes_saved / days),
        create_statement(one.table, one.column),
        estimate_statement(one.table, one.column),
    )


def _existing(table: Table, columns: Mapping[str, Column], record: AskedAndRead) -> Iterator[Row]:
    for index, column in columns.items():
        work = record.indexes.get((table, index), IndexWork())
        if work.scans == 0:
            continue
        wasted = work.scans >= WASTED_SCANS and work.bytes_skipped == 0
        yield (
            "drop" if wasted else "keep",
            *table,
            ".".join(column),
            index,
            None,
            work.scans / record.days,
            round(work.bytes_read / record.days),
            round(work.bytes_skipped / record.days),
            drop_statement(table, index) if wasted else None,
            None,
        )
