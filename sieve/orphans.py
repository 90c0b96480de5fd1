"""Indexes that belong to no table, told by what their own folders say."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sieve.errors import SieveError
from sieve.found import same_table
from sieve.intents import Intent, intents
from sieve.publish import newest
from sieve.store import Store
from sieve.types import TableIdentity


@dataclass(frozen=True, slots=True)
class Orphan:
    """A folder of an index that no table has.

    Attributes:
        folder: its URI.
        name: of the index.
        table: which it was made for, or followed last.
        why: how it is known to be nobody's.
    """

    folder: str
    name: str
    table: TableIdentity
    why: str


def orphans(
    store: Store,
    root: str,
    database: str,
    tables: Sequence[TableIdentity],
    registered: Collection[str],
    floor_ms: int,
) -> Iterator[Orphan]:
    """The orphans of one database.

    An index that a table of its very identity no longer registers is none: that table's statements
    register it again. Nor is one whose newest version cannot be read.

    Args:
        store: where the root lies.
        root: the folder that holds indexes, maybe of other databases too.
        database: whose.
        tables: all tables that it has now.
        registered: uuids of the indexes that these have.
        floor_ms: age in ms from which what nobody refers to is taken to be left behind.

    Raises:
        UnavailableError: the store does not answer.
    """
    strangers = [
        intent
        for intent in intents(store, root, registered)
        if intent.table.database.lower() == database.lower()
    ]
    if not strangers:
        return
    floor = store.now_ms(root) - floor_ms
    for intent in (intent for intent in strangers if intent.written_ms <= floor):
        why, table = _why(store, intent, tables)
        if why:
            yield Orphan(intent.folder, intent.name, table, why)


def _why(
    store: Store, intent: Intent, tables: Sequence[TableIdentity]
) -> tuple[str, TableIdentity]:
    if not intent.registered:
        return "its CREATE did not come to an end", intent.table
    try:
        manifest = newest(store, intent.folder)
    except SieveError:
        return "", intent.table
    if manifest is None:
        return "it has no version", intent.table
    if manifest.state == "dropped":
        return "it was dropped", manifest.table
    if any(same_table(manifest.table, table) for table in tables):
        return "", manifest.table
    return "its table is gone", manifest.table
