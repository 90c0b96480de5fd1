"""Table events: updates indexes after drops, renames, schema changes and writes of tables.

The shim reports events of Spark's catalog and of writes. After the drop of a table, this module
drops the table's indexes. After a rename or a schema change, this module updates the registrations
of the table's indexes. After a write, this module refreshes the table's indexes in the background.
In overwrite mode, ``saveAsTable`` drops and replaces a table. This module saves the definitions of
the indexes at the drop, and creates the indexes again after the write.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from sieve.errors import InvalidInputError, SieveError, UnsupportedError
from sieve.metadata.index_options import AUTO, IndexOptions
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import TableIdentity, identity_from
from sieve.metadata.registration import registrations
from sieve.operations.create import create_indexes
from sieve.operations.drop import end_index
from sieve.operations.index_name import Wanted
from sieve.operations.refresh import RefreshMode
from sieve.operations.registered_index import Disabled, Ready, only_usable, open_index
from sieve.operations.reregister import reregister
from sieve.storage.java_errors import conditions
from sql_ext.driver.roots import FOLDER
from sql_ext.frontend.translate_error import translate_error
from sql_ext.statements import commands
from sql_ext.statements.context import StatementContext
from sql_ext.statements.ddl import bring_up, follow
from sql_ext.statements.declared import MissingIndexes, build_missing, find_missing

log = logging.getLogger(__name__)

Table = tuple[str, str]
"""Database and table name, lower case."""

_REMEMBERED: Final = 256
# A concurrent drop or rename of the table makes a refresh fail with these errors. The event of the
# drop or rename then updates the indexes.
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
    """The definition of a dropped index; Sieve uses it to create the index on a new table."""

    name: str
    column: tuple[str, ...]
    options: IndexOptions
    comment: str | None


@dataclass(frozen=True, slots=True)
class _Write:
    """A group of writes to one table, which a single refresh indexes.

    Attributes:
        replaced: whether one of the writes replaced the table.
        every: whether the refresh covers all indexes of the table, because a writing session has
            set ``spark.sieve.refresh.auto``. If false, the refresh covers only indexes whose option
            ``refresh`` is ``auto``.
    """

    replaced: bool = False
    every: bool = False

    def __or__(self, other: _Write) -> _Write:
        return _Write(self.replaced or other.replaced, self.every or other.every)

    def refreshes(self, options: IndexOptions) -> bool:
        """Returns whether the writes cause a refresh of an index with ``options``."""
        return self.every or options.refresh == AUTO


class EventHandler:
    """Handles events of tables, and runs each table's refreshes one after the other.

    If several writes to a table end during a refresh, one further refresh indexes them all.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # For each table that a thread is refreshing: the writes since the start of the refresh.
        self._missed: dict[Table, _Write | None] = {}
        self._failed: OrderedDict[Table, str] = OrderedDict()
        self._dropped: OrderedDict[Table, list[_Definition]] = OrderedDict()

    def state(self, database: str, table: str) -> str:
        """The state of a table's automatic refresh. After a successful refresh, the state is "".

        During a refresh, the state is ``refreshing``. After a failed refresh, the state is
        ``failed: why`` if the writing session has set ``spark.sieve.refresh.auto``. Without the
        setting, the state is ``stale: why``.
        """
        key = (database.lower(), table.lower())
        with self._lock:
            if key in self._missed:
                return "refreshing"
            return self._failed.get(key, "")

    def clear(self, database: str, table: str) -> None:
        """Removes the error of a table's last refresh, after a successful refresh or a drop."""
        with self._lock:
            self._failed.pop((database.lower(), table.lower()), None)

    def act(self, body: Mapping[str, Any], context: StatementContext) -> Mapping[str, Any]:
        """Handles one event.

        Args:
            body: contains ``event``, ``table`` (the table's identity at the time of the event),
                ``registrations``, and further members that depend on the kind of event.

        Returns:
            After a write, the members ``again``, ``replaced`` and ``every``. ``again`` says whether
            further writes to the table ended during the refresh. ``replaced`` and ``every``
            describe the further writes, as in `_Write`.
        """
        identity = identity_from(body["table"])
        match body["event"]:
            case "dropped":
                self._drop(identity, body, context)
            case "changed":
                follow(context.table(commands.TableName(identity.name)), context)
            case "unregistered":
                # Delta has replaced the table, so a new file can have the name of an indexed file.
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
            # If the database is also dropped, only the event contains the location of its folder.
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
                # No table registers this index any longer, so VACUUM SIEVE INDEXES will delete its
                # folder.
                log.warning("index %s of %s.%s is left: %s", name, *_key(identity), error)
                continue
            context.invalidate(index.directory)
            log.info("index %s went with table %s.%s", name, *_key(identity))
        key = _key(identity)
        with self._lock:
            # Keeps the definitions of indexes whose recreation failed after the previous drop.
            before = self._dropped.get(key, []) if key in self._failed else []
            self._remember(key, ended, before)
        self.clear(*key)

    def _remember(self, key: Table, newer: list[_Definition], older: list[_Definition]) -> None:
        # The caller holds the lock.
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
                # Another thread is refreshing this table. The other thread reports this write to
                # the shim, and the shim then sends another event.
                self._missed[key] = write | (self._missed[key] or _Write())
                return None
            self._missed[key] = None
            # Only a write that replaced the table uses the definitions of dropped indexes.
            dropped = self._dropped.pop(key, []) if write.replaced else []
            ended = [one for one in dropped if write.refreshes(one.options)]
            if len(ended) < len(dropped):
                self._dropped[key] = [one for one in dropped if one not in ended]
        why = ""
        try:
            _catch_up(identity, ended, write, context)
        except Exception as error:
            # No user waits for an automatic refresh, so the refresh does not raise its error.
            # Instead, `state` shows the error. With a stale index, queries still return the right
            # rows.
            of = translate_error(error)
            what = f"[{of.condition}] {of.message}".partition("\n")[0][:500]
            if _OVERTAKEN & conditions(error):
                log.info("what was written to %s.%s is of no use any more: %s", *key, what)
            elif write.every:
                why = f"failed: {what}"
                log.exception("the indexes of %s.%s were not refreshed: %s", *key, what)
            else:
                # The session has not set ``spark.sieve.refresh.auto``. The session's user may lack
                # the permission to refresh the index.
                why = f"stale: {what}"
                log.info("the indexes of %s.%s were not refreshed: %s", *key, what)
            if write.replaced:
                # Another drop during this refresh may have saved newer definitions. The newer
                # definitions take precedence.
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
    """Refreshes a table's indexes after writes, and builds its missing indexes.

    Args:
        ended: definitions of dropped indexes. The function creates these indexes on the new table,
            and removes each processed definition from the list.
        write: group of writes since the previous refresh.
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
        # Sieve builds the missing indexes even if the refresh of another index fails.
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
