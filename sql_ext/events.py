"""What becomes of tables, as Spark tells it: their indexes follow, end with them, or catch up."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sieve.adopt import adopt
from sieve.change import follow_table
from sieve.create import Wanted, create_indexes
from sieve.errors import SieveError
from sieve.manifest import Manifest
from sieve.options import IndexOptions
from sieve.orphans import Orphan
from sieve.tables.catalog import resolve_column
from sql_ext import commands
from sql_ext.cleaning import orphans_of
from sql_ext.making import bring_up
from sql_ext.means import Statement

log = logging.getLogger(__name__)

Table = tuple[str, str]
"""Database and name, lower case."""

_REMEMBERED: Final = 256


@dataclass(frozen=True, slots=True)
class _Definition:
    """What makes an index again on a table that took the place of its own."""

    name: str
    column: tuple[str, ...]
    options: IndexOptions
    comment: str | None


class Followers:
    """Acts on events, and knows of each table how far its indexes are.

    A table is refreshed by one thread at a time; what is written meanwhile is caught up with in one
    more round, however many statements wrote it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._again: dict[Table, bool] = {}
        self._failed: OrderedDict[Table, str] = OrderedDict()
        self._dropped: OrderedDict[Table, list[_Definition]] = OrderedDict()

    def state(self, database: str, table: str) -> str:
        """``refreshing``, ``failed: why``, or nothing."""
        key = (database.lower(), table.lower())
        with self._lock:
            if key in self._again:
                return "refreshing"
            why = self._failed.get(key)
        return "" if why is None else f"failed: {why}"

    def act(self, body: Mapping[str, Any], at: Statement) -> None:
        """See to one event: ``event``, ``database``, ``table`` and what belongs to the event."""
        _ACTIONS[body["event"]](self, body, at)

    def _drop(self, body: Mapping[str, Any], at: Statement) -> None:
        database, name = body["database"], body["table"]
        for orphan in orphans_of(at, database, body["location"], 0, name):
            self._remember(orphan)
            at.world.open_store(orphan.folder).delete(orphan.folder)
            at.forget(orphan.folder)
            log.info("index %s went with table %s.%s", orphan.name, database, orphan.table.table)

    def _remember(self, orphan: Orphan) -> None:
        if (manifest := orphan.manifest) is None:
            return
        key = (orphan.table.database.lower(), orphan.table.table.lower())
        with self._lock:
            self._dropped.setdefault(key, []).append(_definition(manifest))
            self._dropped.move_to_end(key)
            while len(self._dropped) > _REMEMBERED:
                self._dropped.popitem(last=False)

    def _rename(self, body: Mapping[str, Any], at: Statement) -> None:
        _follow(body, body["from"], at)

    def _alter(self, body: Mapping[str, Any], at: Statement) -> None:
        _follow(body, body["table"], at)

    def _write(self, body: Mapping[str, Any], at: Statement) -> None:
        key = (body["database"].lower(), body["table"].lower())
        with self._lock:
            if key in self._again:
                self._again[key] = True
                return
            self._again[key] = False
            anew = self._dropped.pop(key, []) if body["anew"] == "true" else []
        again = True
        while again:
            why = ""
            try:
                _catch_up(key, anew, at)
            except Exception as error:
                # Nobody waits for it, so the state must tell; queries are right without it.
                log.exception("the indexes of %s.%s were not refreshed", *key)
                why = str(error).partition("\n")[0][:500]
            anew = []
            with self._lock:
                again = self._again[key]
                self._again[key] = False
                if not again:
                    del self._again[key]
                    self._note(key, why)

    def _note(self, key: Table, why: str) -> None:
        self._failed.pop(key, None)
        if why:
            self._failed[key] = why
            while len(self._failed) > _REMEMBERED:
                self._failed.popitem(last=False)


def _follow(body: Mapping[str, Any], old_name: str, at: Statement) -> None:
    table = at.table(commands.TableName((body["database"], body["table"])))
    for name in table.info.registrations:
        try:
            folder = follow_table(table, name, old_name, at.world)
        except SieveError as error:
            log.warning("index %s of %s could not follow it: %s", name, table.info.label, error)
            continue
        if folder is not None:
            at.forget(folder)


def _catch_up(key: Table, anew: Sequence[_Definition], at: Statement) -> None:
    name = commands.TableName(key)
    table = at.table(name)
    if not table.info.registrations and adopt(table, at.world):
        table = at.table(name)
    for one in anew:
        if one.name not in table.info.registrations:
            wanted = Wanted(one.name, resolve_column(table.info, one.column))
            at.check_executors(table, [wanted.column.type])
            create_indexes(table, [wanted], one.options, one.comment, at.world)
            table = at.table(name)
    bring_up(table, list(at.found(table).values()), "new", at)


def _definition(manifest: Manifest) -> _Definition:
    options = manifest.next_options or manifest.options
    return _Definition(manifest.name, manifest.column, options, manifest.comment)


_ACTIONS: Mapping[str, Callable[[Followers, Mapping[str, Any], Statement], None]] = {
    "dropped": Followers._drop,  # noqa: SLF001 - its own module's table
    "renamed": Followers._rename,  # noqa: SLF001
    "altered": Followers._alter,  # noqa: SLF001
    "written": Followers._write,  # noqa: SLF001
}
