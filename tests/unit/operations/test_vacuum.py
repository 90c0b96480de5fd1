"""VACUUM recognises unneeded files by their age and name, and deletes them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sieve.errors import UnavailableError
from sieve.metadata.manifest import render_manifest
from sieve.metadata.records import LocationsRef, PartRef, RunId, VersionId
from sieve.metadata.retention import Retention
from sieve.operations.vacuum import Vacuumed, vacuum_index
from sieve.storage.local import LocalStore
from tests.unit.metadata.manifest_sample import SAMPLE

DAY = 24 * 3600 * 1000
ALL = Retention(1, 0.0)


class Clocked(LocalStore):
    """A store whose clock shows the end of day 100."""

    def now_ms(self, _directory: str) -> int:
        return 100 * DAY


class Index:
    """An index that gets one version per day.

    Version k names the runs k and 0, and part k of the file list.

    Args:
        folder: the folder of the index's root.
        versions: the number of versions; the last version is published on day 99.
    """

    def __init__(self, folder: Path, versions: int) -> None:
        self.folder = folder / SAMPLE.index
        for number in range(1, versions + 1):
            runs = [replace(SAMPLE.runs[0], id=RunId(f"{k:032x}")) for k in (0, number)]
            part = PartRef(f"{number:032x}.parquet", 5, "c" * 64, 34)
            manifest = replace(
                SAMPLE,
                version=number,
                id=VersionId(f"{number:032x}"),
                parent=VersionId(f"{number - 1:032x}") if number > 1 else None,
                runs=tuple(runs),
                locations=LocationsRef((part,), 34),
            )
            at = (99 - versions + number) * DAY
            self.write(f"versions/{number}.json", render_manifest(manifest), at)
            self.write(f"locations/{part.name}", b"parts", at)
            self.write(f"runs/{number:032x}/part-00000.parquet", b"segment", at)
        self.write(f"runs/{0:032x}/part-00000.parquet", b"segment", 0)
        self.usable: Any = SimpleNamespace(
            store=Clocked(), directory=f"file:{self.folder}", name="v", manifest=manifest
        )

    def write(self, name: str, data: bytes, at_ms: int) -> None:
        """Writes a file, and sets its modification time."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (at_ms / 1000, at_ms / 1000))

    def names(self) -> set[str]:
        """The names of the files that remain."""
        return {
            path.relative_to(self.folder).as_posix()
            for path in self.folder.rglob("*")
            if path.is_file()
        }


def of_version(number: int) -> set[str]:
    """The names of the files that only this version names."""
    return {f"locations/{number:032x}.parquet", f"runs/{number:032x}/part-00000.parquet"}


def test_files_of_only_expired_versions_are_deleted(tmp_path: Path) -> None:
    """VACUUM deletes files that only expired versions name; it counts versions, files and bytes.

    VACUUM keeps the manifests of expired versions.
    """
    index = Index(tmp_path, 4)
    before = index.names()
    assert vacuum_index(index.usable, Retention(2, 0.0)) == Vacuumed(2, 4, 2 * (5 + 7))
    assert index.names() == before - of_version(1) - of_version(2) | {"vacuumed/2"}
    assert vacuum_index(index.usable, Retention(2, 0.0)) == Vacuumed(0, 0, 0)
    assert vacuum_index(index.usable, ALL) == Vacuumed(1, 2, 5 + 7)
    assert index.names() >= of_version(4) | {"vacuumed/2", "vacuumed/3"}
    # A longer retention does not restore deleted files.
    assert vacuum_index(index.usable, Retention(4, 0.0)) == Vacuumed(0, 0, 0)
    assert "vacuumed/1" not in index.names()


def test_version_expires_hours_after_the_next_one(tmp_path: Path) -> None:
    """A version expires a number of hours after the next version was published.

    Version 2 was replaced two days ago, and version 3 was replaced one day ago.
    """
    index = Index(tmp_path, 4)
    assert vacuum_index(index.usable, Retention(1, 36.0)).versions == 2


def test_vacuum_finishes_an_interrupted_vacuum(tmp_path: Path) -> None:
    """The next VACUUM finishes an interrupted VACUUM, and counts only its own deletions."""
    index = Index(tmp_path, 3)
    (index.folder / f"locations/{1:032x}.parquet").unlink()
    assert vacuum_index(index.usable, ALL) == Vacuumed(2, 3, 5 + 7 + 7)


def test_drafts_and_probes_are_deleted_after_a_day(tmp_path: Path) -> None:
    """VACUUM deletes drafts and probes that are at least a day old.

    VACUUM keeps younger files and files with other names.
    """
    index = Index(tmp_path, 1)
    folders = ("", "versions/", "intents/", "locations/")
    for number, folder in enumerate(folders):
        index.write(f"{folder}.draft-{number:032x}", b"123", 99 * DAY - 1)
        index.write(f"{folder}.probe-{number:032x}", b"123", 99 * DAY)
        index.write(f"{folder}.draft-{number}", b"123", 0)
    before = index.names()
    assert vacuum_index(index.usable, ALL) == Vacuumed(0, 4, 12)
    assert index.names() == before - {f"{f}.draft-{k:032x}" for k, f in enumerate(folders)}


def test_unused_files_of_dead_writers_are_deleted(tmp_path: Path) -> None:
    """VACUUM deletes the unused files of a dead writer. A writer counts as dead after a day.

    VACUUM never treats a file as unused if a version names the file.
    """
    index = Index(tmp_path, 1)
    for number, at in ((7, 99 * DAY - 1), (8, 99 * DAY), (1, 0)):
        index.write(f"runs/{number:032x}/part-00000.parquet", b"segment", 0)
        index.write(f"locations/{number:032x}.parquet", b"parts", 0)
        index.write(f"intents/run-{number:032x}", b"", at)
        index.write(f"intents/locations-{number:032x}.parquet", b"", at)
    before = index.names()
    assert vacuum_index(index.usable, ALL) == Vacuumed(0, 2, 12)
    gone = {f"intents/run-{k:032x}" for k in (7, 1)}
    gone |= {f"intents/locations-{k:032x}.parquet" for k in (7, 1)}
    assert index.names() == before - of_version(7) - gone


def test_vacuum_fails_if_a_version_is_not_listed(tmp_path: Path) -> None:
    """VACUUM fails if the store misses a version, because the version's files would look unused."""
    index = Index(tmp_path, 3)
    (index.folder / "versions" / "3.json").unlink()
    before = index.names()
    with pytest.raises(UnavailableError, match="SIEVE_VERSIONS_NOT_LISTED"):
        vacuum_index(index.usable, ALL)
    assert index.names() == before
