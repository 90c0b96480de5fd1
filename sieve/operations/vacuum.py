"""VACUUM: deletes files that only expired versions name, and files that dead writers left."""

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
    """What a VACUUM of one index deleted.

    Attributes:
        versions: number of expired versions, which queries of earlier table states can no longer
            use.
        files: number of files that VACUUM deleted.
        bytes: total size of the deleted files in bytes.
    """

    versions: int
    files: int
    bytes: int


def vacuum_index(index: Usable, retention: Retention) -> Vacuumed:
    """Deletes old temporary files, and all index data that no retained version names.

    Apart from temporary files, VACUUM deletes only files that a manifest or an old pending write
    names. VACUUM keeps all manifests, so that version numbers have no gaps. If a VACUUM is
    interrupted, the next VACUUM deletes the remaining files.

    Raises:
        UnavailableError: the store does not answer, or it lists fewer versions than exist.
        CorruptError: a version is damaged, so VACUUM does not know which files this version names.
        ConflictError: another session dropped the index during the VACUUM.
    """
    with report_if_dropped(index.name, index.store, index.directory):
        return _vacuum(index, retention)


def _vacuum(index: Usable, retention: Retention) -> Vacuumed:
    store, directory = index.store, index.directory
    now = store.now_ms(directory)
    times = published(store, directory)
    if len(times) < index.manifest.version:
        # If the store's list lacks a version, VACUUM would delete the files that only this version
        # names.
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
    """Returns the URIs of runs and file list parts that versions ``after + 1`` to ``last`` name."""
    named: set[str] = set()
    for number in range(after + 1, last + 1):
        manifest = read_version(store, directory, number)
        named.update(run_dir(directory, run.id) for run in manifest.runs)
        named.update(locations_file(directory, part.name) for part in manifest.locations.parts)
    return named


def _litter(store: Store, directory: str, floor_ms: int) -> list[tuple[str, int]]:
    """Returns URIs and lengths of temporary files (drafts and probes) that dead writers left."""
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
    """Returns the length of a file, or the lengths of a folder's files; empty if neither exists."""
    size = store.size(target)
    if size is not None:
        return [size]
    try:
        return [entry.size for entry in store.list(target) if not entry.is_dir]
    except GoneError:
        return []
