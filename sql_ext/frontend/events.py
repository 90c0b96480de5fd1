"""Table events: updates indexes after drops, renames, schema changes and writes of tables.

The shim reports events of Spark's catalog and of writes. After the drop of a table, this module
drops the table's indexes. After a rename or a schema change, this module updates the registrations
of the table's indexes. After a write, this module refreshes the table's indexes in the background.
In overwrite mode, ``saveAsTable`` drops and replaces a table. After such a replacement, this module
creates the indexes again, from definitions that it saved at the drop.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from sieve.errors import InvalidInputError, SieveError, UnsupportedError
from sieve.metadata.manifest import Manifest
from sieve.metadata.options import AUTO, IndexOptions
from sieve.metadata.records import TableIdentity, identity_from
from sieve.metadata.registration import registrations
from sieve.operations.create import Wanted, create_indexes
from sieve.operations.drop import end_index
from sieve.operations.refresh import RefreshMode
from sieve.operations.registered_index import Disabled, Ready, only_usable, open_index
from sieve.operations.reregister import reregister
from sieve.storage.java_errors import conditions
from sql_ext.driver.roots import FOLDER
from sql_ext.frontend.error_report import error_report
from sql_ext.statements import commands
from sql_ext.statements.context import StatementContext
from sql_ext.statements.ddl import bring_up, follow
from sql_ext.statements.declared import MissingIndexes, build_missing, find_missing

log = logging.getLogger(__name__)

Table = tuple[str, str]
"""Database and table name, lower case."""

_REMEMBERED: Final = 256
# Errors that a concurrent drop or rename causes. The event of the drop or rename then updates the
# indexes.
_OVERTAKEN: Final = frozenset(
    {
        "TABLE_OR_VIEW_NOT_FOUND",
        "SIEVE_UNKNOWN_TABLE",
        "SIEVE_TABLE_MOVED",
        "SIEVE_INDEX_DROPPED",
    }
)


@dataclass(frozen=True, slots=True)
class _Definition:
    """The definition of a dropped index, from which Sieve can create the index on a new table."""

    name: str
    column: tuple[str, ...]
    options: IndexOptions
    comment: str | None


@dataclass(frozen=True, slots=True)
class _Write:
    """A group of writes to one table; a single refresh indexes all of them.

    Attributes:
        replaced: whether one of the writes replaced the table.
        every: whether to refresh all indexes, because one of the writing sessions has
            ``spark.sieve.refresh.auto``. Otherwise, only indexes whose option ``refresh`` is
            ``auto`` are refreshed.
    """

    replaced: bool = False
    every: bool = False

    def __or__(self, other: _Write) -> _Write:
        return _Write(self.replaced or other.replaced, self.every or other.every)

    def refreshes(self, options: IndexOptions) -> bool:
        """Returns whether to refresh an index with these options after the writes."""
        return self.every or options.refresh == AUTO


class AutoRefresh:
    """Event handler: serialises the refreshes of each table and tracks their state.

    Only one thread at a time refreshes a table. One further refresh then indexes all writes that
    ended during the first refresh.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # The tables that a thread is refreshing, each with the writes since the refresh began.
        self._missed: dict[Table, _Write | None] = {}
        self._failed: OrderedDict[Table, str] = OrderedDict()
        self._dropped: OrderedDict[Table, list[_Definition]] = OrderedDict()

    def state(self, database: str, table: str) -> str:
        """State of a table's automatic refresh: ``refreshing``, ``failed: why``, or "".

        The state is ``stale: why`` after a failed refresh that the writing session had not
        requested.
        """
        key = (database.lower(), table.lower())
        with self._lock:
            if key in self._missed:
                return "refreshing"
            return self._failed.get(key, "")

    def clear(self, database: str, table: str) -> None:
        """Clears a table's failure after a successful refresh, or after the drop of the table."""
        with self._lock:
            self._failed.pop((database.lower(), table.lower()), None)

    def act(self, body: Mapping[str, Any], context: StatementContext) -> Mapping[str, Any]:
        """Handles one event.

        Args:
            body: ``event``, ``table`` (the table's identity at that time), ``registrations`` and
                further members that depend on the event.

        Returns:
            ``again``: whether further writes to the table ended during this refresh; ``replaced``
            and ``every``: as in `_Write`, for the further writes.
        """
        identity = identity_from(body["table"])
        match body["event"]:
            case "dropped":
                self._drop(identity, body, context)
            case "changed":
                follow(context.table(commands.TableName(identity.name)), context)
            case "unregistered":
                # Delta has replaced the table, so files with known names can have other content.
                table = context.table(commands.TableName(identity.name))
                reregister(table, context.indexes(table), context.environment)
            case "written":
                write = _Write(body["replaced"] == "true", body["every"] == "true")
                missed = self._write(identity, write, context)
                return {"again": missed is not None} | asdict(missed or _Write())
        return {}

    def _drop(
        self, identity: TableIdentity, body: Mapping[str, Any], context: StatementContext
    ) -> None:
        own = f"{body['location'].rstrip('/')}/{FOLDER}"

        def check_root(root: str, database: str) -> None:
            # If the database is dropped, too, its folder is unknown.
            if root.rstrip("/") != own:
                context.environment.check_root(root, database)

        environment = replace(context.environment, check_root=check_root)
        ended: list[_Definition] = []
        for name, registration in registrations(body["registrations"]).items():
            index = open_index(name, registration, identity, environment)
            if isinstance(index, Ready | Disabled):
                ended.append(_definition(index.manifest))
            try:
                if not end_index(index, identity, environment):
                    continue
            except SieveError as error:
                # The index belongs to no table now, so VACUUM SIEVE INDEXES will delete the index.
                log.warning("index %s of %s.%s is left: %s", name, *_key(identity), error)
                continue
            context.invalidate(index.directory)
            log.info("index %s went with table %s.%s", name, *_key(identity))
        key = _key(identity)
        with self._lock:
            # Keeps the definitions of indexes that Sieve could not create last time.
            before = self._dropped.get(key, []) if key in self._failed else []
            self._remember(key, ended, before)
        self.clear(*key)

    def _remember(self, key: Table, newer: list[_Definition], older: list[_Definition]) -> None:
        # Caller holds the lock.
        by_name = {one.name: one for one in (*older, *newer)}
        self._dropped[key] = list(by_name.values())
        self._dropped.move_to_end(key)
        while len(self._dropped) > _REMEMBERED:
            self._dropped.popitem(last=False)

    def _write(
        self, identity: TableIdentity, write: _Write, context: StatementContext
    ) -> _Write | None:
        key = _key(identity)
        with self._lock:
            if key in self._missed:
                # The thread that is refreshing this table reports this write, and the shim then
                # sends another event.
                self._missed[key] = write | (self._missed[key] or _Write())
                return None
            self._missed[key] = None
            # Only the write that replaced the table needs the definitions of dropped indexes.
            # Writes before the drop do not need these definitions.
            dropped = self._dropped.pop(key, []) if write.replaced else []
            ended = [one for one in dropped if write.refreshes(one.options)]
            if len(ended) < len(dropped):
                self._dropped[key] = [one for one in dropped if one not in ended]
        why = ""
        try:
            _catch_up(identity, ended, write, context)
        except Exception as error:
            # No user waits for this refresh, so the table's state shows the error. Queries still
            # return correct rows.
            of = error_report(error)
            what = f"[{of.condition}] {of.message}".partition("\n")[0][:500]
            if _OVERTAKEN & conditions(error):
                log.info("what was written to %s.%s is of no use any more: %s", *key, what)
            elif write.every:
                why = f"failed: {what}"
                log.exception("the indexes of %s.%s were not refreshed: %s", *key, what)
            else:
                # The session has not requested the refresh, and may lack the permission.
                why = f"stale: {what}"
                log.info("the indexes of %s.%s were not refreshed: %s", *key, what)
            if write.replaced:
                # During this refresh, another drop of the table may have saved newer definitions.
                with self._lock:
                    self._remember(key, self._dropped.get(key, []), ended)
        with self._lock:
            self._failed.pop(key, None)
            if why:
                self._failed[key] = why
                while len(self._failed) > _REMEMBERED:
                    self._failed.popitem(last=False)
            return self._missed.pop(key)


def _catch_up(
    identity: TableIdentity, ended: list[_Definition], write: _Write, context: StatementContext
) -> None:
    """Refreshes a table's indexes after writes to the table, and builds missing indexes.

    Args:
        ended: definitions of indexes to create again. The function removes each definition from the
            list after processing it.
        write: the writes.
    """
    name = commands.TableName(identity.name)
    table = context.table(name)
    if not table.info.registrations and reregister(table, {}, context.environment):
        table = context.table(name)
    while ended:
        before = ended[0]
        if before.name not in table.info.registrations:
            try:
                wanted = Wanted(before.name, table.column(before.column))
                context.check_executors(table, [wanted.column.type])
                create_indexes(table, [wanted], before.options, before.comment, context.environment)
            except (InvalidInputError, UnsupportedError) as error:
                log.warning(
                    "index %s of %s is not made anew: %s", before.name, table.info.label, error
                )
            table = context.table(name)
        ended.pop(0)
    indexes = context.indexes(table)
    missing = find_missing(table, indexes)
    if not write.refreshes(missing.options):
        missing = MissingIndexes()
    remade = {one.name for one in missing.wanted}
    try:
        others = [one for one in indexes.values() if one.name not in remade]
        if not write.every:
            others = [one for one in only_usable(others) if write.refreshes(one.manifest.options)]
        bring_up(table, others, RefreshMode.INCREMENTAL, context)
    finally:
        # Even if a refresh fails, Sieve must still build the missing indexes.
        built, refused = build_missing(missing, name, indexes, context)
        for one in built:
            log.info("index %s of %s is built, as declared", one.manifest.name, table.info.label)
        for wrong in refused:
            context.environment.advice.add(wrong.advice, wrong.name)


def _key(identity: TableIdentity) -> Table:
    return identity.namespace.lower(), identity.table.lower()


def _definition(manifest: Manifest) -> _Definition:
    wanted = manifest.wanted_options
    return _Definition(manifest.name, manifest.column, wanted, manifest.comment)
