"""Creation record: the file by which Sieve recognises a folder as the folder of an index.

CREATE writes the record before any other file of the folder. If the process of the CREATE dies, the
record shows that the folder is abandoned, and names the index's table. DROP deletes the record
after all other files, so that a later statement can find the folder and finish an interrupted
deletion.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass

from sieve.errors import ConflictError, SieveError
from sieve.metadata.paths import CREATION_RECORD, REGISTERED, UUID, version_file
from sieve.metadata.records import TableIdentity, identity_from, same_table
from sieve.metadata.retention import FLOOR_MS
from sieve.storage.interface import GoneError, Store, base_name, join

_LIMIT = 1 << 16


@dataclass(frozen=True, slots=True)
class CreationRecord:
    """A creation record, as read from an index's folder.

    Attributes:
        folder: URI of the folder.
        written_ms: the time at which the record was written, ms since the epoch.
        registered: whether the CREATE statement completed.
    """

    folder: str
    name: str
    table: TableIdentity
    written_ms: int
    registered: bool


def write_creation_record(store: Store, index_dir: str, name: str, table: TableIdentity) -> None:
    """Writes the creation record; CREATE calls this before it writes any other file."""
    record = {"uuid": base_name(index_dir), "name": name, "table": asdict(table)}
    store.create(join(index_dir, CREATION_RECORD), json.dumps(record).encode("ascii"))


def creation_records(store: Store, root: str, but: Collection[str]) -> Iterator[CreationRecord]:
    """Yields the creation records of a root's index folders; skips invalid and missing records.

    Args:
        root: the folder that holds indexes.
        but: the UUIDs of the index folders to leave out.

    Raises:
        UnavailableError: the store cannot list the root.
    """
    try:
        names = [e.name for e in store.list(root) if e.is_dir and UUID.fullmatch(e.name)]
    except GoneError:
        return
    for name in names:
        if name not in but and (record := creation_record_of(store, join(root, name))) is not None:
            yield record


def remove_abandoned(
    store: Store, root: str, table: TableIdentity, known: Collection[str]
) -> list[str]:
    """Deletes a table's index folders if their CREATE died before it registered the index.

    Args:
        root: the folder that holds indexes.
        table: the table whose index folders are deleted; folders of other tables remain.
        known: the UUIDs of the indexes that are registered in the table.

    Returns:
        The URIs of the deleted folders.

    Raises:
        UnavailableError: the store does not answer.
    """
    candidates = [
        record
        for record in creation_records(store, root, known)
        if not record.registered and same_table(record.table, table)
    ]
    if not candidates:
        return []
    floor = store.now_ms(root) - FLOOR_MS
    abandoned = [record.folder for record in candidates if record.written_ms <= floor]
    for folder in abandoned:
        delete_index(store, folder)
    return abandoned


def delete_index(store: Store, index_dir: str) -> None:
    """Deletes an index's folder; a later statement can finish an interrupted deletion.

    The function first deletes the file ``registered``, so the index counts as abandoned from then
    on. The function then deletes version 1, before any other file that a running writer may need.
    `report_if_dropped` recognises a drop if ``registered`` and version 1 are missing. The function
    deletes the creation record last, because a later statement finds the folder by this record.

    Raises:
        UnavailableError: the store refuses a request, or does not answer.
    """
    try:
        names = {entry.name for entry in store.list(index_dir)}
    except GoneError:
        return
    if REGISTERED in names:
        store.delete(join(index_dir, REGISTERED))
    store.delete(version_file(index_dir, 1))
    for name in sorted(names - {REGISTERED, CREATION_RECORD}):
        store.delete(join(index_dir, name))
    store.delete(index_dir)


@contextlib.contextmanager
def report_if_dropped(name: str, store: Store, index_dir: str) -> Iterator[None]:
    """Raises ConflictError if the index is dropped while the statement in this context runs.

    ConflictError replaces any other error of the statement. If the index was dropped, the function
    also deletes the files that the statement wrote to the index's folder after the drop.

    Raises:
        ConflictError: the index was dropped, or is being dropped.
    """
    dropped = ConflictError("SIEVE_INDEX_DROPPED", f"index {name} was dropped meanwhile")
    try:
        yield
    except Exception as error:
        if _remove_ghost(store, index_dir):
            raise dropped from error
        raise
    if _remove_ghost(store, index_dir):
        raise dropped


def _remove_ghost(store: Store, index_dir: str) -> bool:
    """Returns whether an index was dropped or is being dropped; if so, also deletes its folder.

    A writer that runs during the drop can recreate folders of the index. No table would ever refer
    to the recreated folders. An existing index has a manifest of version 1 and the file
    ``registered``. If only one of the manifest and ``registered`` is missing, the index is damaged,
    not dropped.
    """
    marks = (version_file(index_dir, 1), join(index_dir, REGISTERED))
    try:
        if any(store.size(mark) is not None for mark in marks):
            return False
    except SieveError:
        return False
    with contextlib.suppress(SieveError):
        # The running DROP, or another writer, may delete the folder at the same time.
        delete_index(store, index_dir)
    return True


def creation_record_of(store: Store, folder: str) -> CreationRecord | None:
    """Returns the creation record of an index's folder, or None if no valid record exists."""
    try:
        members = {entry.name: entry for entry in store.list(folder)}
        if CREATION_RECORD not in members:
            return None
        raw = json.loads(store.read(join(folder, CREATION_RECORD), _LIMIT))
        return CreationRecord(
            folder,
            str(raw["name"]),
            identity_from(raw["table"]),
            members[CREATION_RECORD].mtime_ms,
            REGISTERED in members,
        )
    except (SieveError, ValueError, KeyError, TypeError):
        # The record is unreadable, or Sieve did not write it. The folder may belong to another
        # program, so Sieve must not delete the folder.
        return None
