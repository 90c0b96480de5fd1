"""Tests which versions of an index a scan uses: the newest, earlier versions, or none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sieve.errors import (
    CorruptError,
    InvalidInputError,
    SieveError,
    UnavailableError,
    UnsupportedError,
)
from sieve.metadata.manifest import render_manifest
from sieve.metadata.records import VersionId
from sieve.metadata.registration import Registration
from sieve.reader.lru_cache import FileCache
from sieve.reader.reason import Reason
from sieve.reader.usable_version import reason_of
from sieve.reader.version_cache import VersionCache
from sieve.storage.interface import GoneError, Store
from sieve.storage.local import LocalStore
from tests.built_index import CountingStore, plain_locations, write_version
from tests.unit.metadata.manifest_sample import SAMPLE

LASTING = 3600.0
OTHER = {"spark": "9.9"}
"""The fingerprint of another reader."""


class Index:
    """An index with one version per day, from the first of May on.

    Args:
        root: the root of the index.
        versions: the number of versions.
        vacuumed: the newest version whose files VACUUM has deleted.
    """

    def __init__(self, root: Path, versions: int, vacuumed: int = 0) -> None:
        self.folder = root / SAMPLE.index
        self.store = CountingStore()
        self.registration = Registration(SAMPLE.index, SAMPLE.column, f"file:{root}")
        self.cache = VersionCache(lambda _: self.store, FileCache(1 << 20))
        made = write_version(self.folder, [], replace(plain_locations(1), slots=np.array([-1])))
        (self.folder / "versions").mkdir(exist_ok=True)
        for number in range(1, versions + 1):
            self.manifest = replace(
                made,
                index=SAMPLE.index,
                version=number,
                id=VersionId(f"{number:032x}"),
                parent=VersionId(f"{number - 1:032x}") if number > 1 else None,
                instant=f"2025-05-{number:02d}T00:00:00.000Z",
            )
            self.path(number).write_bytes(render_manifest(self.manifest))
        if vacuumed:
            (self.folder / "vacuumed").mkdir()
            (self.folder / "vacuumed" / str(vacuumed)).touch()

    def path(self, number: int) -> Path:
        """The path of the manifest of a version."""
        return self.folder / "versions" / f"{number}.json"

    def used(self, instant: str | None, *, partial: bool = False, **other: Any) -> list[int]:
        """Returns the numbers of the versions that a scan uses."""
        newest = self.cache.newest(self.registration, LASTING).index
        assert newest is not None
        found = self.cache.versions_for(newest, self.scan(instant, partial=partial, **other))
        return [one.manifest.version for one in found]

    def scan(self, instant: str | None = None, *, partial: bool = False, **other: Any) -> Any:
        """A scan of the table."""
        fields = {"table": self.manifest.table, "fingerprints": [self.manifest.fingerprint_parts]}
        return SimpleNamespace(instant=instant, partially_visible=partial, **(fields | other))


@pytest.mark.parametrize(
    ("instant", "one", "many"),
    [
        (None, [9], [9]),
        # The instant is before all versions, so the scan uses the oldest version.
        ("2025-04-30T00:00:00.000Z", [1], [*range(1, 8), 9]),
        ("2025-05-01T00:00:00.000Z", [1], [*range(1, 8), 9]),
        ("2025-05-02T12:00:00.000Z", [2], [*range(2, 9), 9]),
        ("2025-05-08T00:00:00.000Z", [8], [8, 9]),
        ("2025-05-08T23:59:59.999Z", [8], [8, 9]),
        # The newest version is not later than the instant.
        ("2025-05-09T00:00:00.000Z", [9], [9]),
        ("2025-06-01T00:00:00.000Z", [9], [9]),
    ],
)
def test_instant_uses_the_last_version_up_to_it(
    tmp_path: Path, instant: str | None, one: list[int], many: list[int]
) -> None:
    """A scan of an instant uses the last version that is not later than the instant.

    If slices are only partly visible, a scan uses up to eight versions, including later ones.
    """
    index = Index(tmp_path, 9)
    assert index.used(instant) == one
    assert index.used(instant, partial=True) == many
    assert index.used(instant) == one


def test_oldest_remaining_version_is_used_after_vacuum(tmp_path: Path) -> None:
    """After VACUUM, a scan of an earlier instant uses the oldest remaining version."""
    index = Index(tmp_path, 5, vacuumed=3)
    assert index.used("2025-05-02T00:00:00.000Z") == [4]
    assert index.used("2025-05-02T00:00:00.000Z", partial=True) == [4, 5]
    assert Index(tmp_path / "other", 3, vacuumed=2).used("2025-04-02T00:00:00.000Z") == [3]
    assert Index(tmp_path / "single", 1).used("2025-04-02T00:00:00.000Z") == [1]


def test_earlier_versions_are_read_once(tmp_path: Path) -> None:
    """An earlier version is read only once, because it never changes."""
    index = Index(tmp_path, 5)
    for _ in range(3):
        assert index.used("2025-05-02T12:00:00.000Z", partial=True) == [2, 3, 4, 5]
    names = index.store.read_names
    # Each manifest is read at most twice: once to find its instant, and once to open the version.
    assert {name for name in names if name.endswith(".json")} == {f"{k}.json" for k in range(2, 6)}
    assert all(names.count(f"{k}.json") <= 2 for k in range(2, 5))
    assert names.count("5.json") == 1


def test_other_versions_are_used_if_one_is_damaged(tmp_path: Path) -> None:
    """If a version is damaged, a scan of an earlier instant uses the other versions.

    If the search for an instant's version meets a damaged version, the scan uses the newest
    version.
    """
    other = Index(tmp_path / "other", 5)
    other.path(3).write_bytes(b"?")
    assert other.used("2025-05-02T12:00:00.000Z", partial=True) == [5]
    assert other.used("2025-05-02T12:00:00.000Z") == [5]
    third = Index(tmp_path / "third", 6)
    assert third.used("2025-05-04T12:00:00.000Z") == [4]
    third.path(5).write_bytes(b"?")
    assert third.used("2025-05-04T12:00:00.000Z", partial=True) == [4, 6]


def test_version_of_another_table_or_reader_is_ignored(tmp_path: Path) -> None:
    """A scan ignores versions that were built for another table, or for another reader."""
    index = Index(tmp_path, 3)
    assert index.used(None, fingerprints=[OTHER]) == []
    changed = replace(index.manifest, fingerprint_parts=OTHER, version=4, parent=index.manifest.id)
    data = render_manifest(
        replace(changed, id=VersionId("f" * 32), instant="2025-05-04T00:00:00.000Z")
    )
    index.path(4).write_bytes(data)
    old = index.manifest.fingerprint_parts
    assert index.used("2025-05-02T00:00:00.000Z", fingerprints=[old]) == [2]
    index.cache.invalidate(index.registration.directory)
    assert index.used("2025-05-02T00:00:00.000Z", fingerprints=[old]) == [2]
    assert index.used("2025-05-02T00:00:00.000Z", fingerprints=[old], partial=True) == [2, 3]
    assert index.used("2025-05-02T00:00:00.000Z", fingerprints=[OTHER]) == [4]
    assert index.used(None, fingerprints=[OTHER]) == [4]


def test_a_disabled_index_serves_no_earlier_instant(tmp_path: Path) -> None:
    """No scan uses a disabled index, even for an instant before DISABLE."""
    index = Index(tmp_path, 3)
    off = replace(
        index.manifest,
        version=4,
        parent=index.manifest.id,
        id=VersionId("f" * 32),
        state="disabled",
        instant="2025-05-04T00:00:00.000Z",
    )
    index.path(4).write_bytes(render_manifest(off))
    assert index.used("2025-05-02T00:00:00.000Z") == []


def test_the_newest_version_is_read_again_after_a_change(tmp_path: Path) -> None:
    """After this driver has run a statement, scans read the newest version again.

    A version stays open if it has not changed.
    """
    index = Index(tmp_path, 2)
    first = index.cache.newest(index.registration, LASTING)
    assert first.index is not None
    assert (first.reason, first.detail) == (None, "")
    assert index.cache.newest(index.registration, LASTING) is first
    index.cache.invalidate(index.registration.directory)
    again = index.cache.newest(index.registration, LASTING)
    assert again.index is not None
    assert again.index.manifest == first.index.manifest
    later = replace(index.manifest, version=3, parent=index.manifest.id, id=VersionId("f" * 32))
    index.path(3).write_bytes(render_manifest(later))
    assert index.cache.newest(index.registration, LASTING) is again
    index.cache.invalidate(index.registration.directory)
    newest = index.cache.newest(index.registration, LASTING).index
    assert newest is not None
    assert newest.manifest == later


def test_unchanged_newest_version_stays_open(tmp_path: Path) -> None:
    """An unchanged newest version stays open, and scans do not read it again.

    Scans read a newest version with another id.
    """
    index = Index(tmp_path, 2)
    first = index.cache.newest(index.registration, LASTING)
    same = index.cache._read(index.registration, first)
    assert same.index is first.index
    other = replace(index.manifest, id=VersionId("e" * 32))
    index.path(2).write_bytes(render_manifest(other))
    changed = index.cache._read(index.registration, first).index
    assert changed is not None
    assert changed.manifest == other


def test_in_memory_lists_the_cached_indexes(tmp_path: Path) -> None:
    """`in_memory` lists the cached indexes of each column, and reads no file.

    The list contains only indexes that the scan may use.
    """
    index = Index(tmp_path, 2)
    registrations = [None, index.registration]
    assert index.cache.in_memory(registrations, index.scan()) == {}
    newest = index.cache.newest(index.registration, LASTING).index
    index.store.read_names.clear()
    assert index.cache.in_memory(registrations, index.scan()) == {index.manifest.column: newest}
    other = index.scan(fingerprints=[OTHER])
    assert index.cache.in_memory(registrations, other) == {}
    assert index.store.read_names == []


def gone(index: Index) -> None:
    """Deletes the only version of the index."""
    index.path(1).unlink()


def without_list(index: Index) -> None:
    """Deletes the list of locations of the version."""
    for path in (index.folder / "locations").iterdir():
        path.unlink()


def damaged(index: Index) -> None:
    """Damages the manifest of the version."""
    index.path(1).write_bytes(b"?")


@pytest.mark.parametrize(
    ("break_it", "reason", "detail"),
    [
        (gone, Reason.INDEX_GONE, "holds no version"),
        (without_list, Reason.INDEX_GONE, ".parquet"),
        (damaged, Reason.INDEX_CORRUPT, "manifest is cut short"),
    ],
)
def test_unreadable_index_is_a_reason(
    tmp_path: Path, break_it: Callable[[Index], None], reason: Reason, detail: str
) -> None:
    """If an index cannot be read, the scan gets a reason and details instead of a version."""
    index = Index(tmp_path, 1)
    break_it(index)
    found = index.cache.newest(index.registration, LASTING)
    assert (found.index, found.reason) == (None, reason)
    assert detail in found.detail
    assert index.cache.in_memory([index.registration], index.scan()) == {}


def test_store_without_an_answer_is_a_reason(tmp_path: Path) -> None:
    """If the store does not answer, the scan's reason is `error`."""

    class Down(LocalStore):
        """A store that answers no call."""

        def read(self, *_: object) -> bytes:
            raise UnavailableError("SIEVE_STORE_UNAVAILABLE", "down")

    index = Index(tmp_path, 1)
    store: Store = Down()
    found = VersionCache(lambda _: store, FileCache(1)).newest(index.registration, LASTING)
    assert (found.index, found.reason) == (None, Reason.ERROR)
    assert "down" in found.detail


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (GoneError, Reason.INDEX_GONE),
        (CorruptError, Reason.INDEX_CORRUPT),
        (UnsupportedError, Reason.VERSION_TOO_NEW),
        (UnavailableError, Reason.ERROR),
        (InvalidInputError, Reason.ERROR),
    ],
)
def test_each_kind_of_error_has_its_reason(kind: type[SieveError], reason: Reason) -> None:
    """For each kind of error, the reason tells the user what to do."""
    assert reason_of(kind("SIEVE_X", "x")) is reason
