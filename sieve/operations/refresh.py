"""REFRESH: indexes the changes of a table and publishes a new version.

REFRESH reuses the runs of unchanged files, and reads new and changed files into a new run. If there
are many runs, REFRESH merges the runs (see `sieve.indexing.reuse`).
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable
from dataclasses import fields
from enum import Enum, auto
from itertools import compress
from typing import Final

from sieve.environment import Environment
from sieve.errors import (
    ConflictError,
    CorruptError,
    SieveError,
    UnavailableError,
    UnknownOutcomeError,
)
from sieve.indexing.reuse import NOTHING, ReusedRuns, is_current, is_one_run, plan_reuse
from sieve.indexing.version_contents import ReaderChangedError, build_contents
from sieve.indexing.write_file_list import NOTHING_STORED, Stored, read_list
from sieve.metadata.commit import publish
from sieve.metadata.contents import Contents
from sieve.metadata.creation_record import report_if_dropped
from sieve.metadata.file_list import FileState, Locations
from sieve.metadata.manifest import Manifest
from sieve.metadata.pending_writes import discard_locations, discard_run, release
from sieve.metadata.records import VersionId
from sieve.metadata.timestamps import iso
from sieve.metadata.transitions import Refresh, next_version
from sieve.operations.dropped_column import indexed_column
from sieve.operations.reader_state import refuse_type
from sieve.operations.registered_index import Usable
from sieve.storage.interface import GoneError
from sieve.tables.column import Column
from sieve.tables.file_status import file_statuses
from sieve.tables.snapshot import Snapshot, snapshot_of, snapshot_since
from sieve.tables.table import CatalogTable

_ATTEMPTS: Final = 3

MOST_ASKED: Final = 1000
"""Up to this number of changed locations, a refresh reads only their appended log files. If more
locations have changed, a refresh reads the locations completely."""


class RefreshMode(Enum):
    """The part of the table that a refresh reads."""

    INCREMENTAL = auto()
    """The refresh reads new and changed files."""
    COMPACT = auto()
    """The refresh reads all files, unless an up-to-date index is one run without invalid
    locations."""
    FULL = auto()
    """The refresh reads all files."""


class _OvertakenError(Exception):
    """Another refresh removed a file that this refresh reuses.

    The exception contains the version that the other refresh published.
    """

    def __init__(self, newest: Manifest) -> None:
        super().__init__(newest)
        self.newest = newest


def refresh_index(
    table: CatalogTable, index: Usable, mode: RefreshMode, environment: Environment
) -> Manifest:
    """Indexes new and changed files, and removes deleted files from the index.

    Args:
        mode: the files to read.

    Returns:
        The new version, or the current version if there is nothing to do.

    Raises:
        InvalidInputError: the table no longer has the column.
        ConflictError: the index was dropped during the refresh, or other writers published first at
            every attempt.
    """
    base = index.manifest
    for _ in range(_ATTEMPTS):
        try:
            # This writer can publish a version while a DROP deletes the index's files.
            with report_if_dropped(index.name, index.store, index.directory):
                return _refreshed(table, index, base, mode, environment)
        except _OvertakenError as overtaken:
            base = overtaken.newest
    raise ConflictError(
        "SIEVE_REFRESH_CONFLICT",
        f"other writers rebuilt index {base.name} {_ATTEMPTS} times meanwhile; try again",
    )


def _refreshed(
    table: CatalogTable,
    index: Usable,
    base: Manifest,
    mode: RefreshMode,
    environment: Environment,
    *,
    appended_only: bool = True,
) -> Manifest:
    column = indexed_column(table.info, base)
    refuse_type(table.info, base, column)
    known = None if mode is RefreshMode.FULL else _still_valid(table, index, base, column)
    incremental = mode is RefreshMode.INCREMENTAL
    snapshot, reused = _seen(
        table, index, base, known if incremental else None, appended_only=appended_only
    )
    if known is not None and is_current(known.whole, snapshot):
        if incremental or is_one_run(base, known.whole):
            return _moved_on(base, snapshot, index, environment)
        known = None

    try:
        written = build_contents(
            table,
            column,
            base.wanted_options,
            index.store,
            index.directory,
            environment,
            snapshot,
            name=base.name,
            reused=reused,
            before=known or NOTHING_STORED,
        )
    except ReaderChangedError:
        raise
    except Exception:
        environment.check_cancelled()
        if not reused.appended:
            raise
        # Even if the appended log files alone cannot be read, a read of the whole locations can
        # succeed.
        return _refreshed(table, index, base, mode, environment, appended_only=False)
    try:
        environment.changing()
        version = publish(
            index.store, index.directory, base, _on_top(base, written, index, environment)
        )
    except UnknownOutcomeError:
        raise
    except BaseException:
        _remove(index, written, base)
        raise
    if version.locations == written.locations:
        release(index.store, index.directory, version)
    else:
        _remove(index, written, base)
    return version


def _moved_on(
    base: Manifest, snapshot: Snapshot, index: Usable, environment: Environment
) -> Manifest:
    """Returns the version, or a new version if later commits of the table have the same files."""
    if snapshot.commit == base.commit:
        return base
    environment.changing()
    contents = {field.name: getattr(base, field.name) for field in fields(Contents)}
    contents |= {"instant": iso(snapshot.instant_ms), "commit": snapshot.commit}
    written = Contents(**contents)
    return publish(index.store, index.directory, base, _on_top(base, written, index, environment))


def _seen(
    table: CatalogTable, index: Usable, base: Manifest, known: Stored | None, *, appended_only: bool
) -> tuple[Snapshot, ReusedRuns]:
    """Returns the current snapshot, and the part of the version that a refresh reuses.

    With ``appended_only``, the refresh keeps the indexed rows of locations to which writers only
    appended log files.
    """

    def reused_at(snapshot: Snapshot, known: Locations) -> ReusedRuns:
        appended = _grown(table, base, known, snapshot) if appended_only else frozenset()
        return plan_reuse(base, known, snapshot, appended)

    if known is None:
        return snapshot_of(table, index.store, index.directory), NOTHING
    part = snapshot_since(table, base.instant, known.whole, base.commit)
    if part is not None:
        reused = reused_at(part, known.whole)
        paths = set(reused.locations.paths)
        # The partial listing suffices only if the refresh reuses every file that was not listed.
        if all(file.path in paths for file in part.files[len(part.files) - part.taken_over :]):
            return part, reused
    snapshot = snapshot_of(table, index.store, index.directory)
    return snapshot, reused_at(snapshot, known.whole)


def _grown(
    table: CatalogTable, base: Manifest, known: Locations, snapshot: Snapshot
) -> frozenset[str]:
    """Paths of changed locations for which a refresh needs only the appended log files."""
    if not base.runs or any(file.hashes for run in base.runs for file in run.files):
        # If the index has hash maps, a refresh reads changed locations completely. If a location
        # were in several runs, no check could show whether a hash map has lost one of the
        # location's keys.
        return frozenset()
    columns = (known.lengths, known.mtimes, known.all_rows)
    facts = zip(*(column.tolist() for column in columns), strict=True)
    read = (known.states == FileState.READ).tolist()
    then = dict(compress(zip(known.paths, facts, strict=True), read))
    stand = enumerate(zip(snapshot.files, file_statuses(known, snapshot.files), strict=True))
    asked = {
        n: then[file.path]
        for n, (file, status) in stand
        if status == "changed" and file.path in then
    }
    if len(asked) > MOST_ASKED:
        return frozenset()
    return frozenset(snapshot.files[number].path for number in table.appended(asked))


def _on_top(
    base: Manifest, written: Contents, index: Usable, environment: Environment
) -> Callable[[Manifest | None], Manifest]:
    """Returns a function that plans this refresh on top of another writer's version."""

    def plan(newest: Manifest | None) -> Manifest:
        if newest is None:
            raise UnavailableError("SIEVE_INDEX_GONE", f"{index.directory} vanished meanwhile")
        if newest is not base and _is_as_late(newest, written):
            # The other refresh listed the table at the same time or later.
            return newest
        if newest.table != base.table:
            raise ConflictError(
                "SIEVE_TABLE_MOVED",
                f"the table of index {base.name} was renamed or moved meanwhile; run the "
                "statement again",
            )
        if not _named(written) & _named(base) <= _named(newest):
            # The newest version no longer names a file that this refresh reuses, so VACUUM may
            # delete the file.
            raise _OvertakenError(newest)
        return next_version(
            newest, Refresh(written), VersionId(secrets.token_hex(16)), environment.software
        )

    return plan


def _is_as_late(newest: Contents, written: Contents) -> bool:
    """Returns whether ``newest`` indexes the same table state as ``written``, or a later state."""
    theirs, own = newest.commit, written.commit
    if theirs is not None and own is not None and theirs.table == own.table:
        # Commit numbers ascend. Commit times come from the clocks of different writers, so they are
        # not comparable.
        return theirs.version >= own.version
    return newest.instant >= written.instant


def _named(by: Contents) -> set[str]:
    """The names of the runs and of the file list's parts; the names are random, so none collide."""
    return {*(run.id for run in by.runs), *(part.name for part in by.locations.parts)}


def _remove(index: Usable, written: Contents, base: Manifest) -> None:
    """Deletes the files that this refresh wrote and that no version will ever name."""
    store, directory, shared = index.store, index.directory, _named(base)
    with contextlib.suppress(SieveError):
        for run in (run for run in written.runs if run.id not in shared):
            discard_run(store, directory, run.id)
        for part in (part for part in written.locations.parts if part.name not in shared):
            discard_locations(store, directory, part.name)


def _still_valid(
    table: CatalogTable, index: Usable, base: Manifest, column: Column
) -> Stored | None:
    """The version's file list; None if the list is no longer valid and a rebuild is necessary."""
    changed = base.changed_parts(table.info.fingerprint_parts) or base.type != column.type
    if changed or base.next_options is not None:
        return None
    with contextlib.suppress(CorruptError, GoneError):
        return read_list(index.store, index.directory, base)
    return None
