"""``ADVISE SIEVE INDEXES``: suggests indexes to create, keep or drop, from records of scans.

ADVISE reads this driver's record of scans, and the records that other drivers have saved next to
the indexes (``spark.sieve.history``). ADVISE chooses the columns whose indexes would let scans skip
the most bytes. Like ESTIMATE, ADVISE tests each of these columns on a sample of the table's files.
The answer omits columns whose values are in most files. The answer would reveal what other users
query. So the answer also omits tables and columns that the user may not query.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from sieve.errors import SieveError, UnsupportedError
from sieve.index_key import kind_of, shown
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.scan_history import saved_records
from sieve.operations.column_test import column_test, tested_by_build
from sieve.operations.create import check_wanted
from sieve.operations.index_name import Wanted, default_name
from sieve.operations.judgement import benefit_of_version
from sieve.operations.registered_index import RegisteredIndex, Usable
from sieve.tables.table import CatalogTable
from sieve.workload.benefit import WORTHWHILE_SHARE, Benefit
from sieve.workload.column_use import Column
from sieve.workload.driver_record import IndexWork, RecordedWork, ScanRecord, add_up, parse_record
from sieve.workload.scan_groups import ScanGroup, Table, parts
from sieve.workload.spelling import create_statement, drop_statement, estimate_statement
from sieve.workload.suggest import (
    ColumnTest,
    Suggestion,
    TableColumn,
    described,
    suggest,
)
from sieve.workload.tuples import with_tuples
from sql_ext.statements import commands
from sql_ext.statements.context import Row, StatementContext, database_of

log = logging.getLogger(__name__)

WASTED_SCANS: Final = 20
"""ADVISE proposes to drop an index if this number of scans used the index and never skipped a
byte."""
MOST_TESTED: Final = 10
"""Maximum number of columns and tuples that one ADVISE tests. Each test takes seconds."""


def advise(command: commands.AdviseIndexes, context: StatementContext) -> list[Row]:
    """Returns a row per index to create, best first, then a row per index that scans used."""
    own = parse_record(context.driver.scans())
    now_ms = round(time.time() * 1000)
    record = add_up([own, *_saved(command, own.driver, now_ms, context)], now_ms)
    tables: set[Table] = set()
    indexed: dict[TableColumn, str] = {}
    existing: list[Row] = []
    for name, table in _tables(command, record, context):
        indexes = context.indexes(table)
        tables.add(name)
        columns = {
            index.name: table.info.name_of(index.registration.column) for index in indexes.values()
        }
        for index in indexes.values():
            # For an index on an expression, the records of scans contain the expression's key.
            for column in (columns[index.name], index.registration.column):
                indexed[name, column] = index.name
                if isinstance(index, Usable):
                    context.tests[name, column] = tested_by_build(index.manifest)
        existing += _existing(name, columns, indexes, record)
        context.environment.check_cancelled()
    groups = [group for group in record.workload if group.table in tables]
    wanted = _wanted(groups, indexed, context)
    existing.sort(key=lambda row: (row[0], -row[10]))
    return [*(_create_row(one, record.days) for one in wanted), *existing]


def _wanted(
    groups: Sequence[ScanGroup], indexed: Mapping[TableColumn, str], context: StatementContext
) -> list[Suggestion]:
    """The suggested indexes; ADVISE has tested every one of them.

    Each step tests the suggestion that could save the most bytes. The result of the test can change
    the suggestions of the next step. For example, if a column's values are in all files, ADVISE
    next tests another column of the same scans.
    """
    groups = with_tuples(groups, indexed)
    columns = {(group.table, column) for group in groups for column in group.left}
    untested = columns - indexed.keys()
    tests = {key: test for key in indexed if (test := context.tests.get(key))}
    most = len(tests) + MOST_TESTED
    while len(tests) < most:
        for one in suggest(groups, indexed, tests, untested):
            key = (one.table, one.column)
            if key not in untested:
                continue
            untested.remove(key)
            try:
                context.tests[key] = tests[key] = _test(one, context)
                break
            except (SieveError, Py4JError, PySparkException) as error:
                context.environment.check_cancelled()
                log.info("%s of %s is not tested: %s", one.column, one.table, error)
        else:
            break
    return suggest(groups, indexed, tests)


def _test(one: Suggestion, context: StatementContext) -> ColumnTest:
    """Tests a suggested column on a sample of its table's files.

    Raises:
        SieveError, Py4JError, PySparkException: the user may not query the column, Sieve cannot
            index the column, or Spark cannot read the column.
    """
    table = context.table(commands.TableName(parts(one.table)))
    column = table.column(one.column)
    if column.kind != kind_of(one.column):
        raise UnsupportedError("SIEVE_UNSUPPORTED_TYPE", f"{shown(one.column)} is an array")
    check_wanted(table, Wanted(default_name(column), column), IndexOptions())
    context.plan_column(parts(one.table), column)
    context.check_executors(table, [column.type])
    return column_test(table, column, context.environment)


def _saved(
    command: commands.AdviseIndexes, but: str, now_ms: int, context: StatementContext
) -> tuple[ScanRecord, ...]:
    """The records of scans that other drivers have saved for the statement's database."""
    if not context.settings.history:
        return ()
    if command.table is not None:
        database = context.table(command.table, jobs=False).info.identity.namespace
    else:
        database = database_of(command.namespace, context)
    try:
        location = str(context.driver.tables().databaseLocation(context.session, database))
        root = context.environment.root_for_new(location)
        saved = saved_records(context.environment.open_store(root), root, but, now_ms)
    except (SieveError, Py4JError) as error:
        # If the saved records are unreadable, ADVISE uses only the scans of this driver.
        log.warning("the scans that other drivers have saved cannot be read: %s", error)
        return ()
    if saved.ignored:
        log.warning("%d files of %s/history are no records of scans", saved.ignored, root)
    return saved.records


def _tables(
    command: commands.AdviseIndexes, record: RecordedWork, context: StatementContext
) -> Iterator[tuple[Table, CatalogTable]]:
    """Yields the recorded tables in the statement's scope that the user may read."""
    if command.table is not None:
        table = context.table(command.table, jobs=False)
        yield (table.info.identity.namespace, table.info.identity.table), table
        return
    database = database_of(command.namespace, context).lower()
    for name in dict.fromkeys(group.table for group in record.workload):
        if name[0].lower() == database:
            try:
                yield name, context.table(commands.TableName(parts(name)), jobs=False)
            except (SieveError, Py4JError, PySparkException):
                # The table was dropped, Sieve cannot index the table, or the user may not read the
                # table.
                continue


def _create_row(one: Suggestion, days: float) -> Row:
    return (
        "create",
        *one.table,
        shown(one.column),
        None,
        described(one),
        one.scans / days,
        round(one.files_before, 2),
        round(one.files_after, 2),
        round(one.bytes_read / days),
        round(one.bytes_saved / days),
        create_statement(one.table, one.column),
        estimate_statement(one.table, one.column),
    )


def _existing(
    table: Table,
    columns: Mapping[str, Column],
    indexes: Mapping[str, RegisteredIndex],
    record: RecordedWork,
) -> Iterator[Row]:
    for index, column in columns.items():
        work = record.indexes.get((table, index), IndexWork())
        if work.scans == 0:
            continue
        wasted = _is_wasted(indexes[index], work)
        yield (
            "drop" if wasted else "keep",
            *table,
            shown(column),
            index,
            None,
            work.scans / record.days,
            round((work.files_read + work.files_skipped) / work.scans, 2),
            round(work.files_read / work.scans, 2),
            round(work.bytes_read / record.days),
            0 if wasted else round(work.bytes_skipped / record.days),
            drop_statement(table, index) if wasted else None,
            None,
        )


def _is_wasted(index: RegisteredIndex, work: IndexWork) -> bool:
    """Returns whether an index skips too little to be worth keeping.

    A build can find that no index on the column can help. The function then counts only scans that
    used no other index. The index is wasted if these scans skipped at most `WORTHWHILE_SHARE` of
    their bytes. Any other index is wasted if at least `WASTED_SCANS` scans used the index and
    skipped no bytes.
    """
    if isinstance(index, Usable) and benefit_of_version(index.manifest) is Benefit.CANNOT:
        return work.skipped_alone <= WORTHWHILE_SHARE * (work.read_alone + work.skipped_alone)
    return work.scans >= WASTED_SCANS and work.bytes_skipped == 0
