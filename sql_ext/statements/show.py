"""Read-only statements: SHOW, DESCRIBE, EXPLAIN, ESTIMATE and CHECK."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from sieve.errors import SieveError
from sieve.index_key import shown
from sieve.metadata.history import history
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.records import TableIdentity, identity_from
from sieve.metadata.registration import malformed_registrations, registrations
from sieve.metadata.timestamps import iso
from sieve.operations.check import OK, CheckedFile, check_index, refuse_losses
from sieve.operations.create import Wanted, check_wanted, default_name
from sieve.operations.dropped_column import dropped_column, indexed_column, leave_out_dropped
from sieve.operations.estimate import FRONTIER, estimate_index
from sieve.operations.estimate_predicate import Asked
from sieve.operations.reader_state import reader_problem
from sieve.operations.registered_index import (
    Disabled,
    Ready,
    RegisteredIndex,
    list_indexes,
    only_usable,
    select,
    store_of,
    usable,
)
from sieve.predicate.tree import parse
from sieve.reader.reason import labelled
from sieve.storage.java_errors import first_line
from sieve.tables.formats import UNCHANGING
from sieve.tables.table import CatalogTable
from sql_ext.statements import commands
from sql_ext.statements.context import Row, StatementContext, database_of, kind_option, options_of
from sql_ext.statements.describe import (
    against_now,
    describe_rows,
    estimate_row,
    frontier_row,
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
    """One `_Glance` for each index of a table whose files Sieve does not list, or cannot list."""
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
            # A listing of these files can need a Spark job. So this code only compares the times of
            # the last commit and of the indexed snapshot.
            return [_glance(table, index, _behind_commits(table, index)) for index in indexes]
        return [_glance(table, index, _freshness(table, index, context)) for index in indexes]
    except (SieveError, Py4JError, PySparkException) as error:
        # SHOW must list the other tables even if this user cannot read this table.
        return _unread(indexes, _unreadable(error))


def _behind_commits(table: CatalogTable, index: RegisteredIndex) -> str:
    newest_ms = table.instant_ms()
    if not isinstance(index, Ready | Disabled) or newest_ms is None:
        return ""
    return "stale" if iso(newest_ms) > index.manifest.instant else ""


def _freshness(table: CatalogTable, index: RegisteredIndex, context: StatementContext) -> str:
    """The state of the table's automatic refresh.

    If this state is empty, returns ``stale: n files``, or "" for a current index.
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


def explain(command: commands.ExplainSieve, context: StatementContext) -> list[Row]:
    """``EXPLAIN SIEVE``: one row per scan of the query."""
    scans = json.loads(
        context.driver.explain().query(context.session, command.margin + command.query)
    )
    return [
        (
            number,
            scan["table"],
            ", ".join(scan.get("used", [])) or None,
            scan["predicate"] or None,
            scan["files_total"],
            scan["files_read"],
            scan["ranges_total"],
            scan["ranges_read"],
            scan["bytes_total"],
            scan["bytes_read"],
            ", ".join(
                f"{labelled(reason, scan.get('functions', ()))}: {count}"
                for reason, count in scan["reasons"].items()
            )
            or None,
        )
        for number, scan in enumerate(scans, 1)
    ]


def estimate(command: commands.EstimateIndex, context: StatementContext) -> list[Row]:
    """``ESTIMATE SIEVE INDEX``: one row per column. With EXTENDED, one per column and budget."""
    kind, given = kind_option(command.options)
    options = options_of(given, IndexOptions())
    table = context.table(command.table)
    columns = [table.column(column.parts, kind) for column in command.columns]
    for column in columns:
        check_wanted(table, Wanted(default_name(column), column), options)
    asked = None
    if command.predicate is not None:
        # Spark parses the user's predicate with the user's permissions.
        predicate = command.margin + command.predicate
        name = list(command.table.parts)
        keys = json.dumps([column.key for column in columns if column.computed])
        raw = json.loads(context.driver.explain().predicate(context.session, name, predicate, keys))
        asked = Asked(parse(raw["predicate"]), frozenset(raw["files"]))
    context.check_executors(table, [column.type for column in columns])
    wanted = [options]
    if options.automatic and command.extended:
        wanted = [replace(options, budget=budget) for budget in FRONTIER] + wanted
    return [
        (frontier_row if command.extended else estimate_row)(table, column, estimate)
        for column in columns
        for estimate in estimate_index(table, column, wanted, asked, context.environment)
    ]


def _check_summary(index: str, checked: Sequence[CheckedFile]) -> Row:
    """The summary row of an index: the number of its files by status, and an overall status."""
    counts = Counter(one.status for one in checked)
    detail = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    whole = OK if OK in counts or not counts else counts.most_common(1)[0][0]
    return (index, None, whole, f"files: {detail}" if detail else "no files")


def check(command: commands.CheckIndex, context: StatementContext) -> list[Row]:
    """``CHECK SIEVE INDEX``: returns a summary row per index, and then rows of files.

    The rows list the files that are not ok, or with EXTENDED all files. The statement fails if
    queries that use an index would lose a row.
    """
    table = context.table(command.table)
    chosen = select(context.indexes(table), table.info.label, command.name, None)
    checkable, problems = leave_out_dropped(table.info, only_usable(chosen))
    context.check_executors(table, [index.manifest.type for index in checkable])
    checked: list[CheckedFile] = []
    for index in checkable:
        if not index.manifest.changed_parts(table.info.fingerprint_parts):
            # The report of a lost row contains a key, so the user must have permission to query the
            # column.
            column = indexed_column(table.info, index.manifest)
            context.plan_column(command.table.parts, column)
        checked += check_index(table, index, command.sample, context.environment)
    refuse_losses(table.info.label, checked)
    if command.name is not None:
        indexed_column(table.info, usable(chosen[0]).manifest)
    for one in chosen:
        # Raises an error for an unusable index only now, after the check of all other indexes.
        usable(one)
    rows: list[Row] = [
        (name, None, "column dropped", problem) for name, problem in problems.items()
    ]
    for index in checkable:
        own = [one for one in checked if one.index == index.name]
        rows.append(_check_summary(index.name, own))
        rows += [
            (one.index, one.file, one.status, one.detail or None)
            for one in own
            if command.extended or one.status != OK
        ]
    return rows
