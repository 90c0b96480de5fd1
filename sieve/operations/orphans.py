"""Orphans: index folders that belong to no table, found from the metadata in the folders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sieve.errors import CorruptError, SieveError
from sieve.metadata.commit import newest
from sieve.metadata.creation_record import CreationRecord, creation_records
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import TableIdentity, same_table
from sieve.metadata.registration import Registration
from sieve.metadata.retention import FLOOR_MS
from sieve.operations.damaged import owner_of_damaged
from sieve.storage.interface import Store, join, parent


@dataclass(frozen=True, slots=True)
class Orphan:
    """An index folder to which no table's registration refers.

    Attributes:
        folder: URI of the folder.
        table: the table for which CREATE built the index; if the table moved, its latest name and
            location.
        why: the reason why the folder is an orphan, as text for users.
    """

    folder: str
    name: str
    table: TableIdentity
    why: str


def orphans(
    store: Store,
    root: str,
    database: str,
    tables: Mapping[TableIdentity, Mapping[str, Registration]],
    floor_ms: int,
) -> Iterator[Orphan]:
    """Yields the orphans of one database.

    An unregistered index of an existing table is usually no orphan, because statements on the table
    register the index again. An unregistered index is an orphan if its newest version is damaged.
    It is also an orphan if its table registers a usable index with the same name. An index that a
    later release wrote is not an orphan.

    Args:
        root: the folder that contains index folders, perhaps also of other databases.
        tables: all current tables of the database, each with its registered indexes.
        floor_ms: minimum age of an orphan in ms; at least a day for the folder of an unfinished
            CREATE.

    Raises:
        UnavailableError: the store does not answer.
    """
    registered = {one.uuid for names in tables.values() for one in names.values()}
    candidates = [
        record
        for record in creation_records(store, root, registered)
        if record.table.database.lower() == database.lower()
    ]
    if not candidates:
        return
    now = store.now_ms(root)
    for record in candidates:
        # The folder of a running CREATE looks like the folder of a CREATE that died. A CREATE can
        # run for up to a day.
        floor_of = floor_ms if record.registered else max(floor_ms, FLOOR_MS)
        if record.written_ms > now - floor_of:
            continue
        if (orphan := _orphan(store, record, tables)) is not None:
            yield orphan


def _orphan(
    store: Store, record: CreationRecord, tables: Mapping[TableIdentity, Mapping[str, Registration]]
) -> Orphan | None:
    if not record.registered:
        why = "its CREATE did not come to an end"
        return Orphan(record.folder, record.name, record.table, why)
    try:
        manifest = newest(store, record.folder)
        if manifest is None:
            return Orphan(record.folder, record.name, record.table, "it has no version")
        why = _why(store, parent(record.folder), manifest, tables)
    except CorruptError:
        return _wrecked(store, record, tables)
    except SieveError:
        return None
    return Orphan(record.folder, manifest.name, manifest.table, why) if why else None


def _wrecked(
    store: Store, record: CreationRecord, tables: Mapping[TableIdentity, Mapping[str, Registration]]
) -> Orphan | None:
    """Returns a damaged index as an orphan, because no statement can register the index again."""
    try:
        owner = owner_of_damaged(store, record.folder)
    except SieveError:
        return None
    if owner is None:
        return None
    there = any(same_table(owner, table) for table in tables)
    why = "it is damaged, and its table does not have it" if there else "its table is gone"
    return Orphan(record.folder, record.name, owner, why)


def _why(
    store: Store,
    root: str,
    manifest: Manifest,
    tables: Mapping[TableIdentity, Mapping[str, Registration]],
) -> str:
    """The reason why an index is an orphan; empty if it may belong to a table."""
    if manifest.state == "dropped":
        return "it was dropped"
    own = [names for table, names in tables.items() if same_table(manifest.table, table)]
    if not own:
        return "its table is gone"
    # If two drivers create indexes with the same name at the same time, both can succeed. The table
    # then registers the index that was created later.
    other = own[0].get(manifest.name)
    if other is None or other.root != root:
        return ""
    rival = newest(store, join(root, other.uuid))
    if rival is None or rival.state == "dropped" or not same_table(rival.table, manifest.table):
        return ""
    return "its table has another index of its name"
