"""REFRESH: bring an index up to its table, as a new version beside the old one."""

from __future__ import annotations

import contextlib
import secrets

from sieve.build.contents import build_contents
from sieve.build.kept import NOTHING, is_current, kept
from sieve.build.settle import settled_snapshot
from sieve.errors import (
    CorruptError,
    InvalidInputError,
    SieveError,
    UnavailableError,
    UnknownOutcomeError,
)
from sieve.found import Found
from sieve.layout import locations_file, run_dir
from sieve.locations import Locations
from sieve.manifest import Manifest
from sieve.opened import read_locations
from sieve.publish import publish
from sieve.tables.catalog import CatalogTable, Column
from sieve.transitions import Refresh, next_version
from sieve.types import VersionId
from sieve.world import World


def refresh_index(table: CatalogTable, found: Found, full: bool, world: World) -> Manifest:
    """Index new and changed files, and no others, and forget vanished ones.

    Args:
        table: the table, as it is now.
        found: the index.
        full: read all of the table even if nothing has changed.
        world: the means.

    Returns:
        The new version, or the one in force where the table is as it was indexed.

    Raises:
        InvalidInputError: the table has lost the indexed column.
        ConflictError: the index was dropped meanwhile.
    """
    base = found.need()
    column = _column(table, base)
    snapshot = settled_snapshot(table.files, found.store, found.directory)
    known = None if full else _still_valid(table, found, base, column)
    if known is not None and is_current(known, snapshot):
        return base
    made = build_contents(
        table,
        column,
        base.next_options or base.options,
        found.store,
        found.directory,
        world,
        snapshot,
        NOTHING if known is None else kept(base, known, snapshot),
    )

    def on_top_of(newest: Manifest | None) -> Manifest:
        if newest is None:
            raise UnavailableError("SIEVE_INDEX_GONE", f"{found.directory} vanished meanwhile")
        if newest is not base and newest.instant >= made.instant:
            # Another refresh saw the table as late as this one, or later.
            return newest
        return next_version(newest, made, VersionId(secrets.token_hex(16)), world.software)

    try:
        version = publish(found.store, found.directory, base, on_top_of)
    except UnknownOutcomeError:
        raise
    except BaseException:
        _remove(found, made, base)
        raise
    if version.locations != made.locations:
        _remove(found, made, base)
    return version


def _remove(found: Found, made: Refresh, base: Manifest) -> None:
    """Take away what no version refers to, nor ever will."""
    with contextlib.suppress(SieveError):
        for run in (run for run in made.runs if run not in base.runs):
            found.store.delete(run_dir(found.directory, run.id))
        found.store.delete(locations_file(found.directory, made.locations.file.name))


def _column(table: CatalogTable, base: Manifest) -> Column:
    """The indexed column as the table has it now; a name that is gone is an error, not a guess."""
    for column in table.info.columns:
        if column.path == base.column:
            return column
    raise InvalidInputError(
        "SIEVE_UNKNOWN_COLUMN",
        f"table {table.info.label} no longer has column {'.'.join(base.column)}; drop index "
        f"{base.name}",
    )


def _still_valid(
    table: CatalogTable, found: Found, base: Manifest, column: Column
) -> Locations | None:
    """The version's locations; None where none of it holds, and all is to be built again."""
    same_reader = base.fingerprint == table.info.fingerprint and base.type == column.type
    if not same_reader or base.next_options is not None:
        return None
    with contextlib.suppress(CorruptError, UnavailableError):
        return read_locations(found.store, found.directory, base)
    return None
