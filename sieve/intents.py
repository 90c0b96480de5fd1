"""What a CREATE is about to make, written down first: if it dies, its rubbish can be told."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict

from sieve.errors import SieveError
from sieve.found import same_table
from sieve.layout import INTENT, REGISTERED, UUID
from sieve.store import GoneError, Store, base_name, join
from sieve.types import TableIdentity, identity_from

FLOOR_MS = 24 * 3600 * 1000
"""A CREATE that began so long ago and is not registered is taken to be dead."""

_LIMIT = 1 << 16


def write_intent(store: Store, index_dir: str, name: str, table: TableIdentity) -> None:
    """The first file of an index's folder: which index of which table it is to hold."""
    intent = {"uuid": base_name(index_dir), "name": name, "table": asdict(table)}
    store.create(join(index_dir, INTENT), json.dumps(intent).encode("ascii"))


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
    try:
        folders = [e.name for e in store.list(root) if e.is_dir and UUID.fullmatch(e.name)]
    except GoneError:
        return []
    strangers = [join(root, name) for name in folders if name not in known]
    if not strangers:
        return []
    now = store.now_ms(root)
    abandoned = [folder for folder in strangers if _is_abandoned(store, folder, table, now)]
    for folder in abandoned:
        store.delete(folder)
    return abandoned


def _is_abandoned(store: Store, folder: str, table: TableIdentity, now_ms: int) -> bool:
    try:
        members = {entry.name: entry for entry in store.list(folder)}
        intent = members.get(INTENT)
        if intent is None or REGISTERED in members or now_ms - intent.mtime_ms < FLOOR_MS:
            return False
        raw = json.loads(store.read(join(folder, INTENT), _LIMIT))
        return same_table(identity_from(raw["table"]), table)
    except (SieveError, ValueError, KeyError, TypeError):
        # Not to be read, or not as we write it: then it is not ours to delete.
        return False
