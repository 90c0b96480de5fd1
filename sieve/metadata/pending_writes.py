"""Pending writes: a pending write announces that a writer is about to write a file of an index.

VACUUM uses pending writes to find files that a dead writer left behind.

A pending write is an empty file ``intents/<kind>-<name>``. A writer creates the pending write
before it creates the file ``<name>``. When a published version names the file, the writer deletes
the pending write. If a pending write is a day old, Sieve assumes that its writer is dead.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from sieve.errors import SieveError
from sieve.metadata.manifest import Manifest
from sieve.metadata.paths import HEX_ID, LOCATIONS_FILE, locations_file, pending_writes_dir, run_dir
from sieve.metadata.records import RunId
from sieve.storage.interface import GoneError, Store, join

_CLAIM = re.compile(
    rf"(?:(?P<run>run)-(?P<id>{HEX_ID.pattern})|locations-(?P<list>{LOCATIONS_FILE.pattern}))"
)


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """The announcement that a writer is about to write a run or a part of a file list.

    Attributes:
        uri: URI of the pending write itself.
        target: URI of the run or of the part.
        mtime_ms: the time at which the pending write was created, ms since the epoch.
    """

    uri: str
    target: str
    mtime_ms: int


def note_run(store: Store, index_dir: str, run: RunId) -> str:
    """Announces that the caller is about to write a run; returns the pending write's URI.

    Raises UnavailableError.
    """
    claim = claim_of(index_dir, run)
    store.create(claim, b"")
    return claim


def claim_of(index_dir: str, run: RunId) -> str:
    """The URI of a run's pending write."""
    return join(pending_writes_dir(index_dir), f"run-{run}")


def note_file_list(store: Store, index_dir: str, name: str) -> None:
    """Announces that the caller will write a part of a file list. Raises UnavailableError."""
    store.create(join(pending_writes_dir(index_dir), f"locations-{name}"), b"")


def release(store: Store, index_dir: str, version: Manifest) -> None:
    """Deletes the pending writes of files that a version names; ignores errors of the store."""
    named = {f"run-{run.id}" for run in version.runs}
    named |= {f"locations-{part.name}" for part in version.locations.parts}
    claims = pending_writes_dir(index_dir)
    with contextlib.suppress(SieveError):
        # Most files of a version also belong to earlier versions, so their pending writes are
        # already deleted.
        for claim in store.list(claims):
            if claim.name in named:
                store.delete(join(claims, claim.name))


def discard_run(store: Store, index_dir: str, run: RunId) -> None:
    """Deletes a run that no version names, and its pending write. Raises UnavailableError."""
    store.delete(run_dir(index_dir, run))
    store.delete(join(pending_writes_dir(index_dir), f"run-{run}"))


def discard_locations(store: Store, index_dir: str, name: str) -> None:
    """Deletes a part of a file list that no version names, and its pending write.

    Raises UnavailableError.
    """
    store.delete(locations_file(index_dir, name))
    store.delete(join(pending_writes_dir(index_dir), f"locations-{name}"))


def pending_writes(store: Store, index_dir: str) -> Iterator[PendingWrite]:
    """Yields an index's pending writes; ignores files with other names. Raises UnavailableError."""
    folder = pending_writes_dir(index_dir)
    try:
        entries = store.list(folder)
    except GoneError:
        return
    for entry in entries:
        match = _CLAIM.fullmatch(entry.name)
        if match is None:
            continue
        if match["run"]:
            target = run_dir(index_dir, RunId(match["id"]))
        else:
            target = locations_file(index_dir, match["list"])
        yield PendingWrite(join(folder, entry.name), target, entry.mtime_ms)
