"""Snapshots: a table's files, each stable or racy.

A file is stable if any later change must give it another modification time. A younger file is racy:
its content can change again without another modification time. The definition is git's rule for
"racily clean" entries. The coarsest file systems have a resolution of two seconds. A file system
that shows fractions of a second has a resolution below a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sieve.errors import SieveError
from sieve.metadata.file_list import Locations
from sieve.metadata.records import Commit
from sieve.storage.interface import Store, parent, split
from sieve.tables.data_file import DataFile
from sieve.tables.formats import UNCHANGING
from sieve.tables.table import CatalogTable

RACY_MS = 2000
FINE_RACY_MS = 1000
"""The racy period of a file whose time has a fraction of a second."""
FOREIGN_CLOCK_MS = 60_000
"""Assumed maximum skew between the driver's clock and a file system's that cannot be read."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table's files at one point in time.

    Attributes:
        files: all files of the table.
        stable: for each file, whether its length and time identify its content.
        instant_ms: time of the listing, ms since the epoch; for a table with its own commits, time
            of the last completed commit.
        taken_over: number of files at the end of `files` that are from a version's file list, not
            from a listing; such files cannot be read.
        commit: the listed commit of a Delta table; None for other tables.
    """

    files: tuple[DataFile, ...]
    stable: tuple[bool, ...]
    instant_ms: int
    taken_over: int = 0
    commit: Commit | None = None


def snapshot_of(table: CatalogTable, store: Store, index_dir: str) -> Snapshot:
    """Lists a table. Waits for a short time first if all files are stable afterwards.

    Args:
        index_dir: a folder in which a probe file can be made.
    """
    if table.info.format_name not in UNCHANGING:
        return stable_snapshot(table.files, store, index_dir)
    return _unchanging(table, table.files, ())


def snapshot_since(
    table: CatalogTable, instant: str, known: Locations, commit: Commit | None = None
) -> Snapshot | None:
    """Incremental listing: lists only files that possibly changed in a table since a version.

    Args:
        instant: instant of the version, ISO 8601.
        known: the version's file list.
        commit: the commit of the version; None if the table is not of Delta.

    Returns:
        None if the table's commits do not show which files changed.
    """
    changes = table.changes(instant, commit)
    if changes is None:
        return None
    if not all(changes.cover(file.path) for file in changes.files):
        # The commits and the listing write the table's folder differently, so their paths cannot be
        # compared.
        return None
    facts = zip(known.paths, known.lengths.tolist(), known.mtimes.tolist(), strict=True)
    others = tuple(DataFile(*fact) for fact in facts if not changes.cover(fact[0]))
    return _unchanging(table, lambda: changes.files, others)


def _unchanging(
    table: CatalogTable,
    list_files: Callable[[], tuple[DataFile, ...]],
    others: tuple[DataFile, ...],
) -> Snapshot:
    now = int(time.time() * 1000)
    files = (*list_files(), *others)
    instant = table.instant_ms()
    stable = (True,) * len(files)
    return Snapshot(files, stable, now if instant is None else instant, len(others), table.commit())


def stable_snapshot(
    list_files: Callable[[], Sequence[DataFile]],
    store: Store,
    index_dir: str,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.time,
) -> Snapshot:
    """Lists a table. If its newest files are racy, waits shortly and lists the table again.

    Args:
        list_files: lists the table afresh on each call.
        store: the store of the index, whose clock is used for files on the same file system.
        index_dir: a folder in which a probe file can be made.
        sleep: waits some seconds.
        clock: the driver's, seconds since the epoch.
    """
    snapshot = _snapshot(list_files, store, index_dir, clock)
    # A file with a time in the future does not make the build wait.
    waits = (stable_from(file.mtime) - snapshot.instant_ms for file in snapshot.files)
    wait_ms = max((wait for wait in waits if 0 < wait <= RACY_MS), default=0)
    if wait_ms and not all(snapshot.stable):
        sleep((wait_ms + 10) / 1000)
        snapshot = _snapshot(list_files, store, index_dir, clock)
    return snapshot


def _snapshot(
    list_files: Callable[[], Sequence[DataFile]],
    store: Store,
    index_dir: str,
    clock: Callable[[], float],
) -> Snapshot:
    now = int(clock() * 1000)
    try:
        own = store.now_ms(index_dir)
    except SieveError:
        own = now - FOREIGN_CLOCK_MS
    home = split(index_dir)[:2]
    files = tuple(list_files())
    stable = tuple(
        stable_from(file.mtime) <= (own if split(file.path)[:2] == home else now - FOREIGN_CLOCK_MS)
        for file in files
    )
    return Snapshot(files, stable, own if all(split(f.path)[:2] == home for f in files) else now)


def stable_from(mtime: int) -> int:
    """The time from which a file of this modification time is stable; in ms since the epoch."""
    return mtime + (FINE_RACY_MS if mtime % 1000 else RACY_MS)


def roots_of(table: CatalogTable, files: Sequence[DataFile]) -> tuple[str, ...]:
    """The table's folder, and the folders of files outside it."""
    own = table.info.identity.location.rstrip("/")
    foreign = {parent(f.path) for f in files if not f.path.startswith(own + "/")}
    return (own, *sorted(foreign)) if own else tuple(sorted(foreign))
