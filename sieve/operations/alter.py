"""ALTER: publishes versions that change only metadata: state, options, table name or location."""

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
    """Publishes a change of the index's state or options on top of the newest version.

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
    """Updates an index after its table was renamed or moved.

    Args:
        exists: whether a table with an identity exists.

    Returns:
        The folder of the index; None if it belongs to another table, or nothing has changed.

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
    # The same creation time: the property was not copied, and the table was not replaced.
    was = replace(now, table=base.table.table, location=base.table.location)
    if not same_table(base.table, was) or exists(base.table):
        return None
    index = with_version(name, registration, store, base)
    # A rename moves the files. Path, length and time show whether each file is unchanged.
    renamed = base.table.table.lower() != now.table.lower()
    change_index(index, Follow(now, moved=renamed), environment)
    return directory
