"""Names of files about to be written, noted first: what a dead writer leaves can be told later.

A claim is an empty file ``intents/<kind>-<name>``, made before the thing itself and taken away when
a version names the thing. One that has stood for a day belongs to nobody who is still at work.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sieve.errors import SieveError
from sieve.metadata.manifest import Manifest
from sieve.metadata.paths import HEX_ID, LOCATIONS_FILE, locations_file, pending_writes_dir, run_dir
from sieve.metadata.records import RunId
from sieve.storage.interface import GoneError, Store, join

FLOOR_MS: Final = 24 * 3600 * 1000
"""A writer that began so long ago, and whose work no version names, is taken to be dead."""

_CLAIM = re.compile(
    rf"(?:(?P<run>run)-(?P<id>{HEX_ID.pattern})|locations-(?P<list>{LOCATIONS_FILE.pattern}))"
)


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """A thing that was about to be written.

    Attributes:
        uri: of the claim's own file.
        target: URI of the thing.
        mtime_ms: when it was claimed.
    """

    uri: str
    target: str
    mtime_ms: int


def note_run(store: Store, index_dir: str, run: RunId) -> str:
    """Note that a run is about to be written; the claim's URI. Raises UnavailableError."""
    claim = join(pending_writes_dir(index_dir), f"run-{run}")
    store.create(claim, b"")
    return claim


def note_file_list(store: Store, index_dir: str, name: str) -> None:
    """Note that a part of a list of locations is about to be written. Raises UnavailableError."""
    store.create(join(pending_writes_dir(index_dir), f"locations-{name}"), b"")


def release(store: Store, index_dir: str, version: Manifest) -> None:
    """Take away the claims of what a version names; those that stay do no harm."""
    named = {f"run-{run.id}" for run in version.runs}
    named |= {f"locations-{part.name}" for part in version.locations.parts}
    claims = pending_writes_dir(index_dir)
    with contextlib.suppress(SieveError):
        # Most of them are named since an earlier version, and their claims are gone.
        for claim in store.list(claims):
            if claim.name in named:
                store.delete(join(claims, claim.name))


def discard_run(store: Store, index_dir: str, run: RunId) -> None:
    """Delete a run that no version names, and its claim. Raises UnavailableError."""
    store.delete(run_dir(index_dir, run))
    store.delete(join(pending_writes_dir(index_dir), f"run-{run}"))


def discard_locations(store: Store, index_dir: str, name: str) -> None:
    """The same for a part of a list of locations."""
    store.delete(locations_file(index_dir, name))
    store.delete(join(pending_writes_dir(index_dir), f"locations-{name}"))


def pending_writes(store: Store, index_dir: str) -> Iterator[PendingWrite]:
    """What is claimed now; files of other names are nobody's claim. Raises UnavailableError."""
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
