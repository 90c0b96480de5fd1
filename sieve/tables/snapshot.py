"""Which files of a listing are settled: old enough that a later change must change their time.

The rule is git's for "racily clean" entries: a file written within the resolution of its time may
change again without its time showing it. The coarsest file systems count in two seconds. One that
shows a part of a second counts in less than one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sieve.errors import SieveError
from sieve.metadata.file_list import Locations
from sieve.storage.interface import Store, parent, split
from sieve.tables.formats import UNCHANGING
from sieve.tables.table import CatalogTable, DataFile

RACY_MS = 2000
FINE_RACY_MS = 1000
"""Where the file's own time is no whole second."""
FOREIGN_CLOCK_MS = 60_000
"""How much a file system's clock that cannot be asked may differ from the driver's."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table's files at an instant.

    Attributes:
        files: all of them.
        stable: for each, whether its identity can be relied on.
        instant_ms: when they were listed, ms since the epoch; for a table that keeps its own
            commits when the last of these was complete.
        taken_over: how many of the files, the last ones, were not listed and cannot be read: they
            are as a version has them.
    """

    files: tuple[DataFile, ...]
    stable: tuple[bool, ...]
    instant_ms: int
    taken_over: int = 0


def snapshot_of(table: CatalogTable, store: Store, index_dir: str) -> Snapshot:
    """The files of a table now, settled as far as a short wait can make them so.

    Args:
        table: the table.
        store: of the index.
        index_dir: a folder in which a probe file may be made.
    """
    if table.info.format_name not in UNCHANGING:
        return stable_snapshot(table.files, store, index_dir)
    return _unchanging(table, table.files, ())


def snapshot_since(table: CatalogTable, instant: str, known: Locations) -> Snapshot | None:
    """The files of a table now, of which only those were listed that may be other than they were.

    Args:
        table: the table.
        instant: of a version, ISO 8601.
        known: what the version knows.

    Returns:
        None where the table's commits do not tell what has changed.
    """
    changes = table.changes(instant)
    if changes is None:
        return None
    if not all(parent(file.path) in changes.folders for file in changes.files):
        # The commits spell the table's folder in another way than the listing.
        return None
    facts = zip(known.paths, known.lengths.tolist(), known.mtimes.tolist(), strict=True)
    rest = tuple(DataFile(*fact) for fact in facts if parent(fact[0]) not in changes.folders)
    return _unchanging(table, lambda: changes.files, rest)


def _unchanging(
    table: CatalogTable, list_files: Callable[[], tuple[DataFile, ...]], rest: tuple[DataFile, ...]
) -> Snapshot:
    now = int(time.time() * 1000)
    files = (*list_files(), *rest)
    instant = table.instant_ms()
    return Snapshot(files, (True,) * len(files), now if instant is None else instant, len(rest))


def stable_snapshot(
    list_files: Callable[[], Sequence[DataFile]],
    store: Store,
    index_dir: str,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.time,
) -> Snapshot:
    """List a table, once more after a short wait if its newest files are too young.

    Args:
        list_files: lists the table anew at each call.
        store: of the index; asked for the time if the files lie on the same file system.
        index_dir: a folder in which a probe file may be made.
        sleep: waits some seconds.
        clock: the driver's, seconds since the epoch.
    """
    snapshot = _snapshot(list_files, store, index_dir, clock)
    # A file whose time lies in the future is not waited for, and holds up no other.
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
    """When a file of this time is settled; both in ms since the epoch."""
    return mtime + (FINE_RACY_MS if mtime % 1000 else RACY_MS)
