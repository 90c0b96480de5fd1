"""Versions that only say something new of an index: on or off, options, its table, its end."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace

from sieve.environment import Environment
from sieve.errors import UnavailableError, UnsupportedError
from sieve.metadata.commit import newest, publish
from sieve.metadata.creation_record import delete_index
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import TableIdentity, VersionId, same_table
from sieve.metadata.transitions import Change, Drop, Follow, next_version
from sieve.operations.damaged import owner_of_wreck
from sieve.operations.registered_index import (
    Disabled,
    Failed,
    HalfDropped,
    Ready,
    RegisteredIndex,
    Usable,
    check_reachable,
    with_version,
)
from sieve.storage.interface import Store
from sieve.tables.table import CatalogTable


def change_index(index: Usable, change: Change, environment: Environment) -> Manifest:
    """Publish a change of the index's state or options on top of whatever is newest.

    Raises:
        ConflictError: the index was dropped.
        UnknownOutcomeError: the change may or may not be in force.
    """

    def on_top_of(now: Manifest | None) -> Manifest:
        if now is None:
            raise UnavailableError("SIEVE_INDEX_GONE", f"{index.directory} vanished meanwhile")
        return next_version(now, change, VersionId(secrets.token_hex(16)), environment.software)

    environment.changing()
    return publish(index.store, index.directory, index.manifest, on_top_of)


def follow_table(
    table: CatalogTable,
    name: str,
    exists: Callable[[TableIdentity], bool],
    environment: Environment,
) -> str | None:
    """Let an index follow its table to another name or place.

    Args:
        table: as it is now.
        name: of the index.
        exists: whether there is a table of an identity.
        environment: the means.

    Returns:
        The folder of the index; None where it is not this table's, or nothing has changed.

    Raises:
        UnavailableError, CorruptError, UnsupportedError: its version cannot be read or made.
    """
    now = table.info.identity
    registration = table.info.registrations[name]
    environment.check_root(registration.root, now.database)
    directory = registration.directory
    store = environment.open_store(registration.root)
    base = newest(store, directory)
    if base is None or base.state == "dropped" or same_table(base.table, now):
        return None
    # Of the same birth: not a property that was copied, or came back with a table made anew.
    was = replace(now, table=base.table.table, location=base.table.location)
    if not same_table(base.table, was) or exists(base.table):
        return None
    index = with_version(name, registration, store, base)
    # A rename takes the files along. Whether each is the same, path, length and time will tell.
    renamed = base.table.table.lower() != now.table.lower()
    change_index(index, Follow(now, moved=renamed), environment)
    return directory


def end_index(index: RegisteredIndex, table: TableIdentity, environment: Environment) -> bool:
    """End an index whose table is gone: tombstone, then the files.

    Returns:
        Whether there was one; where it is of another table, or out of reach, nothing is done.

    Raises:
        UnavailableError: the store stopped answering.
    """
    doomed = _files_to_delete(index, table)
    if isinstance(index, Ready | Disabled):
        change_index(index, Drop(), environment)
    if doomed is None:
        return False
    delete_index(doomed, index.directory)
    return True


def drop_index(table: CatalogTable, index: RegisteredIndex, environment: Environment) -> None:
    """Drop an index: tombstone, then the property, then the files.

    A registration whose index belongs to another table, or is gone, loses its property only: the
    files are not this table's to delete. A drop that was cut short after its tombstone is finished.

    Raises:
        UnavailableError: the store does not tell what there is to drop, and nothing was done; or
            the metastore does not serve, and dropping it again finishes what is left.
    """
    # Without a tombstone an index that is there would be found again by its table's next REFRESH.
    check_reachable(index)
    doomed = _files_to_delete(index, table.info.identity)
    if isinstance(index, Ready | Disabled):
        change_index(index, Drop(), environment)
    environment.changing()
    try:
        table.unregister(index.name, index.registration)
    except UnavailableError as error:
        raise type(error)(
            error.condition,
            f"{error.message}; index {index.name} is out of use, but still registered: run DROP "
            "SIEVE INDEX again",
        ) from error
    if doomed is not None:
        delete_index(doomed, index.directory)


def _files_to_delete(index: RegisteredIndex, table: TableIdentity) -> Store | None:
    """The store of what a table has registered, if the folder there is that table's to delete."""
    match index:
        case Ready() | Disabled() | HalfDropped():
            return index.store
        case Failed(store=store) if store is not None:
            try:
                owner = owner_of_wreck(store, index.directory)
            except UnsupportedError:
                return None
            return store if owner is not None and same_table(owner, table) else None
        case _:
            return None
