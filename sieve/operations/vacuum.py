"""VACUUM: deletes the files of expired versions and of dead writers."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from sieve.errors import UnavailableError
from sieve.metadata.commit import read_version
from sieve.metadata.creation_record import report_if_dropped
from sieve.metadata.history import published, vacuumed
from sieve.metadata.paths import (
    TEMPORARY,
    locations_file,
    pending_writes_dir,
    run_dir,
    vacuumed_file,
    versions_dir,
)
from sieve.metadata.pending_writes import pending_writes
from sieve.metadata.retention import FLOOR_MS, Retention
from sieve.operations.registered_index import Usable
from sieve.storage.interface import GoneError, Store, join, parent


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """The result of a vacuum.

    Attributes:
        versions: number of versions that can no longer be queried.
        files: number of deleted files.
        bytes: total length of the deleted files.
    """

    versions: int
    files: int
    bytes: int


def vacuum_index(index: Usable, retention: Retention) -> Vacuumed:
    """Deletes runs and list parts that no retained version names, and old temporary files.

    VACUUM deletes only temporary files and files that manifests or old pending writes name. VACUUM
    keeps all manifests, so that version numbers have no gaps. If VACUUM is interrupted, the next
    VACUUM finishes the work.

    Raises:
        UnavailableError: the store does not answer, or lists fewer versions than there are.
        CorruptError: a version cannot be read, so the names of its files are unknown.
        ConflictError: the index was dropped during the vacuum.
    """
    with report_if_dropped(index.name, index.store, index.directory):
        return _vacuum(index, retention)


def _vacuum(index: Usable, retention: Retention) -> Vacuumed:
    store, directory = index.store, index.directory
    now = store.now_ms(directory)
    times = published(store, directory)
    if len(times) < index.manifest.version:
        # If the listing lacks a version, the files that only this version names would seem unused.
        raise UnavailableError(
            "SIEVE_VERSIONS_NOT_LISTED",
            f"the store lists {len(times)} versions of index {index.name}, which has "
            f"{index.manifest.version}; nothing was deleted, run VACUUM again",
        )
    done, last = vacuumed(store, directory), retention.expired(times, now)
    stay = _named(store, directory, last, len(times))
    dead = [claim for claim in pending_writes(store, directory) if claim.mtime_ms < now - FLOOR_MS]
    gone = (_named(store, directory, done, last) | {claim.target for claim in dead}) - stay
    files = size = 0
    for target in sorted(gone):
        held = _held(store, target)
        store.delete(target)
        files, size = files + len(held), size + sum(held)
    for claim in dead:
        store.delete(claim.uri)
    for uri, length in _litter(store, directory, now - FLOOR_MS):
        store.delete(uri)
        files, size = files + 1, size + length
    if last > done:
        mark = vacuumed_file(directory, last)
        store.mkdirs(parent(mark))
        store.create(mark, b"")
    return Vacuumed(max(0, last - done), files, size)


def _named(store: Store, directory: str, after: int, last: int) -> set[str]:
    """URIs of the runs and list parts of the versions after `after`, up to version `last`."""
    named: set[str] = set()
    for number in range(after + 1, last + 1):
        manifest = read_version(store, directory, number)
        named.update(run_dir(directory, run.id) for run in manifest.runs)
        named.update(locations_file(directory, part.name) for part in manifest.locations.parts)
    return named


def _litter(store: Store, directory: str, floor_ms: int) -> list[tuple[str, int]]:
    """URIs and lengths of the temporary files (drafts and probes) of dead writers."""
    found: list[tuple[str, int]] = []
    above = parent(locations_file(directory, "x"))
    for folder in (directory, versions_dir(directory), pending_writes_dir(directory), above):
        with contextlib.suppress(GoneError):
            found += [
                (join(folder, entry.name), entry.size)
                for entry in store.list(folder)
                if TEMPORARY.fullmatch(entry.name) and entry.mtime_ms < floor_ms
            ]
    return found


def _held(store: Store, target: str) -> list[int]:
    """Lengths of the files of a pending write's target; empty if the target no longer exists."""
    size = store.size(target)
    if size is not None:
        return [size]
    try:
        return [entry.size for entry in store.list(target) if not entry.is_dir]
    except GoneError:
        return []
