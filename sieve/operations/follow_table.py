"""Updates the table identity of an index after the table was renamed or moved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sieve.environment import Environment
from sieve.metadata.commit import newest
from sieve.metadata.records import TableIdentity, same_table
from sieve.metadata.transitions import Follow
from sieve.operations.alter import change_index
from sieve.operations.registered_index import with_version
from sieve.tables.table import CatalogTable


def follow_table(
    table: CatalogTable,
    name: str,
    exists: Callable[[TableIdentity], bool],
    environment: Environment,
) -> str | None:
    """Updates an index after its table was renamed or moved.

    Args:
        exists: tells whether a table with the given identity exists.

    Returns:
        The folder of the index; None if the index belongs to another table, or nothing has changed.

    Raises:
        UnavailableError, CorruptError, UnsupportedError: the index's version cannot be read, or the
            next version cannot be written.
    """
    now = table.info.identity
    registration = table.info.registrations[name]
    environment.check_root(registration.root, now.namespace)
    directory = registration.directory
    store = environment.open_store(registration.root)
    base = newest(store, directory)
    if base is None or base.state == "dropped" or same_table(base.table, now):
        return None
    # An equal creation time shows that nobody copied the property or replaced the table.
    was = replace(now, table=base.table.table, location=base.table.location)
    if not same_table(base.table, was) or exists(base.table):
        return None
    index = with_version(name, registration, store, base)
    # A rename moves the files. Their paths, lengths and times show whether each file is unchanged.
    renamed = base.table.table.lower() != now.table.lower()
    change_index(index, Follow(now, moved=renamed), environment)
    return directory
