"""The statements SHOW SIEVE INDEXES, SHOW SIEVE VERSIONS and DESCRIBE SIEVE INDEX."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from sieve.errors import SieveError
from sieve.index_key import shown
from sieve.metadata.history import history
from sieve.metadata.records import TableIdentity, identity_from
from sieve.metadata.registration import malformed_registrations, registrations
from sieve.metadata.timestamps import iso
from sieve.operations.dropped_column import dropped_column
from sieve.operations.reader_state import reader_problem
from sieve.operations.registered_index import (
    Disabled,
    Ready,
    RegisteredIndex,
    list_indexes,
    select,
    store_of,
)
from sieve.storage.java_errors import first_line
from sieve.tables.formats import UNCHANGING
from sieve.tables.table import CatalogTable
from sql_ext.statements import commands
from sql_ext.statements.context import Row, StatementContext, database_of
from sql_ext.statements.describe import (
    against_now,
    describe_rows,
    index_bytes,
    shown_instant,
    shown_type,
    stale,
)


def show(command: commands.ShowIndexes, context: StatementContext) -> list[Row]:
    """``SHOW SIEVE INDEXES``: one row per index."""
    if command.table is not None:
        table = context.registered(command.table)
        indexes = list(context.indexes(table).values())
        identity = table.info.identity
        glances = _looked_at(command.table, identity, indexes, context) if indexes else []
        return [
            _shown(index, identity, glance) for index, glance in zip(indexes, glances, strict=True)
        ]
    database = database_of(command.namespace, context)
    rows: list[Row] = []
    for raw in json.loads(context.driver.tables().list(context.session, database)):
        if "problem" in raw:
            state = f"unreadable table: {raw['problem']}"
            names = registrations(raw.get("registrations", {})) or [None]
            rows += [
                (database, raw["table"], name, *3 * [None], state, *4 * [None]) for name in names
            ]
            continue
        identity = identity_from(raw)
        properties = raw["registrations"]
        indexes = list(
            list_indexes(
                registrations(properties),
                malformed_registrations(properties),
                identity,
                context.environment,
            ).values()
        )
        context.environment.check_cancelled()
        glances = _at_a_glance(identity, indexes, context)
        rows += [
            _shown(index, identity, glance) for index, glance in zip(indexes, glances, strict=True)
        ]
    return rows


@dataclass(frozen=True, slots=True)
class _Glance:
    """The current name of an index's column, and a text that says whether the index is stale."""

    column: tuple[str, ...]
    fresh: str


def _glance(table: CatalogTable, index: RegisteredIndex, fresh: str) -> _Glance:
    if isinstance(index, Ready | Disabled) and dropped_column(table.info, index.manifest):
        fresh = "column dropped"
    elif isinstance(index, Ready):
        fresh = reader_problem(table.info, index.manifest) or fresh
    return _Glance(table.info.name_of(index.registration.column), fresh)


def _looked_at(
    name: commands.TableName,
    identity: TableIdentity,
    indexes: Sequence[RegisteredIndex],
    context: StatementContext,
) -> list[_Glance]:
    """Looks at each index of a table. Lists the table's files if Spark can read the table."""
    try:
        table = context.table(name)
        return [_glance(table, index, _freshness(table, index, context)) for index in indexes]
    except (SieveError, Py4JError, PySparkException) as error:
        doing = context.background.state(identity.namespace, identity.table)
        return _unread(indexes, doing or _unreadable(error))


def _unread(indexes: Sequence[RegisteredIndex], fresh: str) -> list[_Glance]:
    """A `_Glance` for each index, without a comparison with the table's files."""
    return [_Glance(index.registration.column, fresh) for index in indexes]


def _unreadable(error: Exception) -> str:
    return f"unreadable table: {first_line(error)}"


def _at_a_glance(
    identity: TableIdentity, indexes: Sequence[RegisteredIndex], context: StatementContext
) -> list[_Glance]:
    """Returns the parts of SHOW's report on each index that need no Spark job."""
    doing = context.background.state(identity.namespace, identity.table)
    if doing or not any(isinstance(index, Ready) for index in indexes):
        return _unread(indexes, doing)
    name = commands.TableName(identity.name)
    try:
        table = context.table(name, jobs=False)
        if table.info.format_name in UNCHANGING:
            # A listing of the table's files can need a Spark job. So this code only compares the
            # time of the last commit with the time of the indexed snapshot.
            return [_glance(table, index, _behind_commits(table, index)) for index in indexes]
        return [_glance(table, index, _freshness(table, index, context)) for index in indexes]
    except (SieveError, Py4JError, PySparkException) as error:
        # SHOW lists the other tables even if the user cannot read this table.
        return _unread(indexes, _unreadable(error))


def _behind_commits(table: CatalogTable, index: RegisteredIndex) -> str:
    newest_ms = table.instant_ms()
    if not isinstance(index, Ready | Disabled) or newest_ms is None:
        return ""
    return "stale" if iso(newest_ms) > index.manifest.instant else ""


def _freshness(table: CatalogTable, index: RegisteredIndex, context: StatementContext) -> str:
    """The state of the table's automatic refresh.

    If no refresh runs or has failed, returns ``stale: n files``, or "" for a current index.
    """
    doing = context.background.state(table.info.identity.namespace, table.info.identity.table)
    if doing or not isinstance(index, Ready | Disabled):
        return doing
    try:
        return stale(against_now(table, index))
    except SieveError:
        # SHOW lists an index even if Sieve cannot read the index's file list.
        return ""


def _shown(index: RegisteredIndex, identity: TableIdentity, glance: _Glance) -> Row:
    head = (identity.namespace, identity.table, index.name, shown(glance.column) or None)
    if not isinstance(index, Ready | Disabled):
        return (*head, None, None, index.state, None, None, None, None)
    manifest = index.manifest
    state = (isinstance(index, Ready) and glance.fresh) or index.state
    return (
        *head,
        shown_type(manifest),
        manifest.options.shape,
        state,
        manifest.version,
        manifest.instant,
        manifest.locations.count,
        index_bytes(manifest),
    )


def versions(command: commands.ShowVersions, context: StatementContext) -> list[Row]:
    """``SHOW SIEVE VERSIONS``: one row per version, the newest version first."""
    table = context.registered(command.table)
    chosen = select(context.indexes(table), table.info.label, command.name, None)
    return [
        (
            index.name,
            past.manifest.version,
            past.change,
            past.manifest.state,
            shown_instant(past.manifest),
            iso(past.published_ms),
            past.manifest.locations.count,
            len(past.manifest.runs),
            index_bytes(past.manifest),
            str(past.retained).lower(),
        )
        for index in chosen
        for past in history(store_of(index), index.directory)
    ]


def describe(command: commands.DescribeIndex, context: StatementContext) -> list[Row]:
    """``DESCRIBE SIEVE INDEX``: one row per property of an index."""
    registered = context.registered(command.table)
    (index,) = select(context.indexes(registered), registered.info.label, command.name, None)
    identity = registered.info.identity
    doing = context.background.state(identity.namespace, identity.table)
    try:
        table = context.table(command.table)
    except (SieveError, Py4JError, PySparkException) as error:
        return list(describe_rows(registered, index, command.extended, doing, _unreadable(error)))
    return list(describe_rows(table, index, command.extended, doing))
