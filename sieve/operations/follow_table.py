"""Updates the table identity in an index's newest version after the table was renamed or moved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sieve.environment import Environment
from sieve.metadata.commit import newest
from sieve.metadata.records import TableIdentity, same_table
from sieve.metadata.transitions import Follow
from sieve.operations.publish_change import change_index
from sieve.operations.registered_index import with_version
from sieve.tables.table import CatalogTable


def follow_table(
    table: CatalogTable,
    name: str,
    exists: Callable[[TableIdentity], bool],
    environment: Environment,
) -> str | None:
    """Publishes a version with the table's new identity if the table was renamed or moved.

    Args:
        exists: returns whether a table with the given identity exists.

    Returns:
        The folder of the index if the function published a version. None if the index belongs to
        another table, or if the table's identity has not changed.

    Raises:
        UnavailableError, CorruptError, UnsupportedError: Sieve cannot read the index's newest
            version or cannot write the next one.
    """
    now = table.info.identity
    registration = table.info.registrations[name]
    environment.check_root(registration.root, now.namespace)
    directory = registration.directory
    store = environment.open_store(registration.root)
    base = newest(store, directory)
    if base is None or base.state == "dropped" or same_table(base.table, now):
        return None
    # If the creation times are equal, nobody copied the property or replaced the table.
    was = replace(now, table=base.table.table, location=base.table.location)
    if not same_table(base.table, was) or exists(base.table):
        return None
    index = with_version(name, registration, store, base)
    # After a rename moves the files, a file counts as unchanged if its relative path, length and
    # time are equal.
    renamed = base.table.table.lower() != now.table.lower()
    change_index(index, Follow(now, moved=renamed), environment)
    return directory
