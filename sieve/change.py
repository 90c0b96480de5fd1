"""ENABLE, DISABLE, SET OPTIONS and DROP: versions that only say something new of an index."""

from __future__ import annotations

import secrets

from sieve.errors import UnavailableError
from sieve.found import Found
from sieve.manifest import Manifest
from sieve.publish import publish
from sieve.tables.catalog import CatalogTable
from sieve.transitions import Change, Drop, next_version
from sieve.types import VersionId
from sieve.world import World


def change_index(found: Found, change: Change, world: World) -> Manifest:
    """Publish a change of the index's state or options on top of whatever is newest.

    Raises:
        ConflictError: the index was dropped.
        UnknownOutcomeError: the change may or may not be in force.
    """

    def on_top_of(newest: Manifest | None) -> Manifest:
        if newest is None:
            raise UnavailableError("SIEVE_INDEX_GONE", f"{found.directory} vanished meanwhile")
        return next_version(newest, change, VersionId(secrets.token_hex(16)), world.software)

    return publish(found.store, found.directory, found.need(), on_top_of)


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
