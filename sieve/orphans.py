"""Indexes that belong to no table, told by what their own folders say."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sieve.claims import FLOOR_MS
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
    but: Collection[str],
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
        but: uuids of the indexes that these have registered.
        floor_ms: age in ms from which what nobody refers to is taken to be left behind; a day at
            least for a CREATE that is not registered.

    Raises:
        UnavailableError: the store does not answer.
    """
    strangers = [
        intent
        for intent in intents(store, root, but)
        if intent.table.database.lower() == database.lower()
    ]
    if not strangers:
        return
    now = store.now_ms(root)
    for intent in strangers:
        # A CREATE at work is given its time, whatever the floor.
        floor_of = floor_ms if intent.registered else max(floor_ms, FLOOR_MS)
        if intent.written_ms > now - floor_of:
            continue
        if (orphan := _orphan(store, intent, tables)) is not None:
            yield orphan


def _orphan(store: Store, intent: Intent, tables: Sequence[TableIdentity]) -> Orphan | None:
    if not intent.registered:
        why = "its CREATE did not come to an end"
        return Orphan(intent.folder, intent.name, intent.table, why)
    try:
        manifest = newest(store, intent.folder)
    except SieveError:
        return None
    if manifest is None:
        return Orphan(intent.folder, intent.name, intent.table, "it has no version")
    if manifest.state == "dropped":
        return Orphan(intent.folder, manifest.name, manifest.table, "it was dropped")
    if any(same_table(manifest.table, table) for table in tables):
        return None
    return Orphan(intent.folder, manifest.name, manifest.table, "its table is gone")
