"""Snapshots: a table's files at one time; each file is stable or racy.

A file is stable if every later write must change the file's modification time. A file that was
modified too recently is racy: the next write can change the file's content without changing its
modification time. Git uses the same rule for "racily clean" entries. The coarsest file systems
store times with a resolution of two seconds. If a file's time has a fraction of a second, the file
system's resolution is below a second.
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
"""A file is racy for this many ms if its modification time has a fraction of a second."""
FOREIGN_CLOCK_MS = 60_000
"""Assumed maximum clock skew between the driver and a file system whose clock Sieve cannot
query."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table's files at one point in time.

    Attributes:
        files: all files of the table.
        stable: for each file, whether its length and time identify its content.
        instant_ms: time of the listing, ms since the epoch; for a table with its own commits, time
            of the last completed commit.
        taken_over: how many files at the end of `files` come from a version's file list, not from a
            listing. A build cannot read the files that come from a file list.
        commit: the listed commit of a Delta or Iceberg table; None for a table without numbered
            commits.
    """

    files: tuple[DataFile, ...]
    stable: tuple[bool, ...]
    instant_ms: int
    taken_over: int = 0
    commit: Commit | None = None


def snapshot_of(table: CatalogTable, store: Store, index_dir: str) -> Snapshot:
    """Lists a table. If files are racy, waits for up to two seconds and lists the table again.

    Args:
        index_dir: a folder in which the store can create a probe file.
    """
    if table.info.format_name not in UNCHANGING:
        return stable_snapshot(table.files, store, index_dir)
    return _unchanging(table, table.files, ())


def snapshot_since(
    table: CatalogTable, instant: str, known: Locations, commit: Commit | None = None
) -> Snapshot | None:
    """Incremental listing: lists only the files that may have changed since a version.

    Args:
        instant: instant of the version, ISO 8601.
        known: the version's file list.
        commit: the commit of the version; None for a table without numbered commits.

    Returns:
        The snapshot; None if the table's commits do not show which files changed.
    """
    changes = table.changes(instant, commit)
    if changes is None:
        return None
    if not all(changes.cover(file.path) for file in changes.files):
        # The commits and the listing spell the table's folder differently. So no path in the
        # commits equals a path in the listing.
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
    """Lists a table. If the newest files are racy, waits briefly and lists the table again.

    Args:
        list_files: lists the table; each call makes a new listing.
        store: the store of the index. The store's clock decides which files on the same file system
            are stable.
        index_dir: a folder in which the store can create a probe file.
        sleep: waits some seconds.
        clock: the driver's clock, in seconds since the epoch.
    """
    snapshot = _snapshot(list_files, store, index_dir, clock)
    # The build does not wait for a file whose time is in the future.
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
    """The time (ms since the epoch) at which a file with this modification time becomes stable."""
    return mtime + (FINE_RACY_MS if mtime % 1000 else RACY_MS)


def roots_of(table: CatalogTable, files: Sequence[DataFile]) -> tuple[str, ...]:
    """The table's folder, and the folders of files outside the table's folder."""
    own = table.info.identity.location.rstrip("/")
    foreign = {parent(f.path) for f in files if not f.path.startswith(own + "/")}
    return (own, *sorted(foreign)) if own else tuple(sorted(foreign))
