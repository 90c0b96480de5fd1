"""Version history: the versions of an index, and what each version changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sieve.errors import CorruptError
from sieve.metadata.commit import read_version
from sieve.metadata.manifest import Manifest
from sieve.metadata.paths import vacuumed_file, version_file, versions_dir
from sieve.storage.interface import GoneError, Store, parent


@dataclass(frozen=True, slots=True)
class Past:
    """One version in an index's history.

    Attributes:
        change: the kind of change that the version made, in one or two words.
        published_ms: the version's publication time, ms since the epoch.
        retained: whether VACUUM has kept all files of the version.
    """

    manifest: Manifest
    change: str
    published_ms: int
    retained: bool


def history(store: Store, index_dir: str) -> list[Past]:
    """Returns all versions of an index, newest first. Raises UnavailableError or CorruptError."""
    times = published(store, index_dir)
    mark = vacuumed(store, index_dir)
    versions: list[Past] = []
    before: Manifest | None = None
    for number, time_ms in enumerate(times, 1):
        manifest = read_version(store, index_dir, number)
        versions.append(Past(manifest, _change(before, manifest), time_ms, number > mark))
        before = manifest
    return versions[::-1]


def published(store: Store, index_dir: str) -> list[int]:
    """Returns the publication times of versions 1, 2 and so on, in ms since the epoch.

    Raises:
        GoneError: version 1 does not exist, for example because a DROP is running.
        CorruptError: a version between version 1 and the newest version does not exist.
    """
    times = {
        int(entry.name.removesuffix(".json")): entry.mtime_ms
        for entry in store.list(versions_dir(index_dir))
        if entry.name.removesuffix(".json").isdecimal()
    }
    first = version_file(index_dir, 1)
    if times and 1 not in times:
        raise GoneError(
            "SIEVE_FILE_GONE",
            f"{first} does not exist; unless the index was dropped, drop it and create it again",
        )
    if times.keys() != set(range(1, len(times) + 1)):
        raise CorruptError(
            "SIEVE_VERSIONS_CORRUPT",
            f"the versions in {versions_dir(index_dir)} have gaps; drop the index and create it "
            "again",
        )
    return [times[number] for number in range(1, len(times) + 1)]


def vacuumed(store: Store, index_dir: str) -> int:
    """Returns the newest version whose files VACUUM may have deleted; 0 if it deleted no files."""
    try:
        marks = store.list(parent(vacuumed_file(index_dir, 1)))
    except GoneError:
        return 0
    return max((int(mark.name) for mark in marks if mark.name.isdecimal()), default=0)


def _change(before: Manifest | None, now: Manifest) -> str:
    if before is None:
        return "created"
    if now.is_outdated:
        return "earlier format"
    if before.state != now.state:
        return {"ready": "enabled", "disabled": "disabled", "dropped": "dropped"}[now.state]
    if before.table != now.table:
        return "followed its table"
    if before.locations == now.locations and before.commit == now.commit:
        return "options set"
    return refreshed_or_rebuilt(before, now)


def refreshed_or_rebuilt(before: Manifest, now: Manifest) -> Literal["refreshed", "rebuilt"]:
    """Returns ``refreshed`` if a version reuses a run of the previous version, else ``rebuilt``."""
    kept = {run.id for run in before.runs} & {run.id for run in now.runs}
    return "refreshed" if kept else "rebuilt"
