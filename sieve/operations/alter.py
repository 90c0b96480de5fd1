"""Versions that only say something new of an index: on or off, its options, its table."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace

from sieve.environment import Environment
from sieve.errors import UnavailableError
from sieve.metadata.commit import newest, publish
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import TableIdentity, VersionId, same_table
from sieve.metadata.transitions import Change, Follow, next_version
from sieve.operations.registered_index import (
    Usable,
    with_version,
)
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
