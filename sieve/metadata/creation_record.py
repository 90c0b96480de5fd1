"""What a CREATE is about to make, written down first: if it dies, its rubbish can be told."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass

from sieve.errors import ConflictError, SieveError
from sieve.metadata.paths import CREATION_RECORD, REGISTERED, UUID, version_file
from sieve.metadata.pending_writes import FLOOR_MS
from sieve.metadata.records import TableIdentity, identity_from, same_table
from sieve.storage.interface import GoneError, Store, base_name, join

_LIMIT = 1 << 16


@dataclass(frozen=True, slots=True)
class CreationRecord:
    """What the first file of an index's folder says.

    Attributes:
        folder: URI of the index's folder.
        name: of the index to be.
        table: to be indexed.
        written_ms: when, ms since the epoch.
        registered: whether the CREATE came to its end.
    """

    folder: str
    name: str
    table: TableIdentity
    written_ms: int
    registered: bool


def write_creation_record(store: Store, index_dir: str, name: str, table: TableIdentity) -> None:
    """The first file of an index's folder: which index of which table it is to hold."""
    record = {"uuid": base_name(index_dir), "name": name, "table": asdict(table)}
    store.create(join(index_dir, CREATION_RECORD), json.dumps(record).encode("ascii"))


def creation_records(store: Store, root: str, but: Collection[str]) -> Iterator[CreationRecord]:
    """What the folders of a root say; one without an intent of ours is not ours to speak of.

    Args:
        store: where the root lies.
        root: the folder that holds indexes.
        but: uuids whose folders are of no interest.

    Raises:
        UnavailableError: the root cannot be listed.
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
    """Delete the folders of a table's indexes whose CREATE died before it registered them.

    Args:
        store: where the root lies.
        root: the folder that holds indexes.
        table: whose rubbish to remove; nobody else's is touched.
        known: uuids of the indexes that the table has registered.

    Returns:
        The folders that were deleted.

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
    """Delete an index's folder so that what is left of it, if this is cut short, can be told.

    Its registered mark goes first, so that no table finds it again, and its intent last. Before any
    file that a writer may be at work on its first version goes: see `report_if_dropped`.

    Raises:
        UnavailableError: the store refuses or does not answer.
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
    """Whatever befalls a statement whose index is dropped meanwhile is told as that.

    What was made of the index's folder since is removed, also where nothing befell the statement.

    Args:
        name: of the index.
        store: where it lies.
        index_dir: its folder.

    Raises:
        ConflictError: it was dropped, or is being dropped.
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
    """Whether an index was dropped, or is being; what was made of its folder since is removed.

    Who writes to an index makes folders anew, and nobody would ever find them. Manifests and the
    registered mark stay while it lives: if one of the two is missing, it is damaged.
    """
    marks = (version_file(index_dir, 1), join(index_dir, REGISTERED))
    try:
        if any(store.size(mark) is not None for mark in marks):
            return False
    except SieveError:
        return False
    with contextlib.suppress(SieveError):
        # The drop, or another writer, may be deleting it, too.
        delete_index(store, index_dir)
    return True


def creation_record_of(store: Store, folder: str) -> CreationRecord | None:
    """What an index's folder says of it; None where it says nothing that could be of ours."""
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
        # Not to be read, or not as we write it: then it is not ours to delete.
        return None
