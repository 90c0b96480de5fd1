"""Versions that only say something new of an index: on or off, options, its table, its end."""

from __future__ import annotations

import secrets
from dataclasses import replace

from sieve.errors import UnavailableError
from sieve.found import Found, same_table
from sieve.manifest import Manifest
from sieve.publish import newest, publish
from sieve.store import join
from sieve.tables.catalog import CatalogTable
from sieve.transitions import Change, Drop, Follow, next_version
from sieve.types import VersionId
from sieve.world import World


def change_index(found: Found, change: Change, world: World) -> Manifest:
    """Publish a change of the index's state or options on top of whatever is newest.

    Raises:
        ConflictError: the index was dropped.
        UnknownOutcomeError: the change may or may not be in force.
    """

    def on_top_of(now: Manifest | None) -> Manifest:
        if now is None:
            raise UnavailableError("SIEVE_INDEX_GONE", f"{found.directory} vanished meanwhile")
        return next_version(now, change, VersionId(secrets.token_hex(16)), world.software)

    return publish(found.store, found.directory, found.need(), on_top_of)


def follow_table(table: CatalogTable, name: str, old_name: str, world: World) -> str | None:
    """Let an index follow its table to another name or place.

    Args:
        table: as it is now.
        name: of the index.
        old_name: of the table, before; the same where it has moved only.
        world: the means.

    Returns:
        The folder of the index; None where it is not this table's, or nothing has changed.

    Raises:
        UnavailableError, CorruptError, UnsupportedError: its version cannot be read or made.
    """
    now = table.info.identity
    registration = table.info.registrations[name]
    world.check_root(registration.root, now.database)
    directory = join(registration.root, registration.uuid)
    store = world.open_store(registration.root)
    base = newest(store, directory)
    if base is None or base.state == "dropped" or base.table == now:
        return None
    was = replace(now, table=old_name, location=base.table.location)
    if not same_table(base.table, was):
        # A property that was copied, or that came back with a table made anew.
        return None
    found = Found(name, registration, directory, base, base.state, opened=store)
    renamed = old_name.lower() != now.table.lower()
    change_index(found, Follow(now, moved=renamed), world)
    return directory


def drop_index(table: CatalogTable, found: Found, world: World) -> None:
    """Drop an index: tombstone, then the property, then the files.

    A registration whose index belongs to another table, or is gone, loses its property only: the
    files are not this table's to delete. A drop that was cut short after its tombstone is finished.

    Raises:
        UnavailableError: the metastore does not serve; dropping it again finishes what is left.
    """
    if found.manifest is not None:
        change_index(found, Drop(), world)
    try:
        table.unregister(found.name)
    except UnavailableError as error:
        raise UnavailableError(
            error.condition,
            f"{error.message}; index {found.name} is out of use, but still registered: run DROP "
            "SIEVE INDEX again",
        ) from error
    if found.manifest is not None or found.half_dropped:
        found.store.delete(found.directory)
