"""Tests the history of an index: versions in order, and errors if a version is missing."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from sieve.errors import CorruptError
from sieve.metadata.history import history, published, refreshed_or_rebuilt, vacuumed
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.manifest import Manifest, render_manifest
from sieve.metadata.records import Commit, CreatedBy, RunId, VersionId
from sieve.metadata.transitions import (
    Change,
    Disable,
    Drop,
    Enable,
    Follow,
    SetOptions,
    next_version,
)
from sieve.storage.interface import GoneError
from sieve.storage.local import LocalStore
from tests.unit.metadata.manifest_sample import SAMPLE


def versions(folder: Path, *numbers: int) -> str:
    """Makes an index folder with these versions; version n has the time of 10 * n seconds."""
    (folder / "versions").mkdir()
    for number in numbers:
        file = folder / "versions" / f"{number}.json"
        file.touch()
        os.utime(file, (10 * number, 10 * number))
    (folder / "versions" / "1.json.part").touch()
    return f"file:{folder}"


def test_versions_have_the_times_of_their_files(tmp_path: Path) -> None:
    """The versions' times are listed in the order of version numbers; other files are ignored."""
    found = published(LocalStore(), versions(tmp_path, *range(12, 0, -1)))
    assert found == [10_000 * number for number in range(1, 13)]


def test_index_without_its_first_version_is_gone(tmp_path: Path) -> None:
    """If the first version is missing, the index counts as gone, and the error names the file."""
    folder = versions(tmp_path, 2, 3)
    with pytest.raises(GoneError, match=rf"{folder}/versions/1\.json does not exist"):
        published(LocalStore(), folder)


def test_a_gap_is_damage(tmp_path: Path) -> None:
    """If a later version is missing, the index is damaged, and the error names the folder."""
    folder = versions(tmp_path, 1, 3)
    with pytest.raises(CorruptError, match=rf"the versions in {folder}/versions have gaps"):
        published(LocalStore(), folder)


def test_the_newest_vacuumed_version_is_the_greatest_mark(tmp_path: Path) -> None:
    """Mark files name vacuumed versions; the greatest file names the newest version.

    Without a mark file, the result is 0. Other files in the folder are ignored.
    """
    index = f"file:{tmp_path}"
    assert vacuumed(LocalStore(), index) == 0
    (tmp_path / "vacuumed").mkdir()
    (tmp_path / "vacuumed" / "x10").touch()
    assert vacuumed(LocalStore(), index) == 0
    for mark in ("9", "10", "2"):
        (tmp_path / "vacuumed" / mark).touch()
    assert vacuumed(LocalStore(), index) == 10


def runs(*names: str) -> Manifest:
    """A version that has these runs, and one part of the file list for each run."""
    parts = SAMPLE.locations.parts * len(names)
    return replace(
        SAMPLE,
        runs=tuple(replace(SAMPLE.runs[0], id=RunId(name * 32)) for name in names),
        locations=replace(SAMPLE.locations, parts=parts, count=17 * len(names)),
    )


def test_a_version_that_keeps_a_run_is_a_refresh() -> None:
    """A version that keeps a run of its predecessor is a refresh; other versions are rebuilds."""
    assert refreshed_or_rebuilt(runs("a"), runs("a", "b")) == "refreshed"
    assert refreshed_or_rebuilt(runs("a", "b"), runs("c", "b")) == "refreshed"
    assert refreshed_or_rebuilt(runs("a", "b"), runs("c")) == "rebuilt"


def test_history_has_the_change_of_each_version(tmp_path: Path) -> None:
    """The history lists the change and the time of each version, newest first.

    The history also shows whether the files of a version still exist.
    """
    by = CreatedBy("0.1.0", "4.1.4")
    moved = replace(SAMPLE.table, table="renamed", location="file:/w/renamed")
    made: list[tuple[Manifest, str]] = [(SAMPLE, "created")]

    def add(version: Manifest, told: str) -> None:
        number = len(made) + 1
        own = {"version": number, "id": VersionId(f"{number:032x}"), "parent": made[-1][0].id}
        made.append((replace(version, **own), told))

    changes: list[tuple[Change, str]] = [
        (Disable(), "disabled"),
        (Enable(), "enabled"),
        (SetOptions(IndexOptions(budget="3%")), "options set"),
        (Follow(moved, moved=True), "followed its table"),
    ]
    for change, told in changes:
        add(next_version(made[-1][0], change, VersionId("f" * 32), by), told)
    base = made[-1][0]
    add(replace(base, runs=runs("a", "b").runs, locations=runs("a", "b").locations), "refreshed")
    add(replace(made[-1][0], runs=runs("c").runs, locations=runs("c").locations), "rebuilt")
    # This version has a later Delta commit. The commit changed no file.
    add(replace(made[-1][0], commit=Commit("0b6c", 7)), "refreshed")
    add(next_version(made[-1][0], Drop(), VersionId("f" * 32), by), "dropped")
    folder = tmp_path / SAMPLE.index
    folder.mkdir()
    versions(folder, *range(1, len(made) + 1))
    for manifest, _ in made:
        path = folder / "versions" / f"{manifest.version}.json"
        path.write_bytes(render_manifest(manifest))
        os.utime(path, (10 * manifest.version, 10 * manifest.version))
    (folder / "vacuumed").mkdir()
    (folder / "vacuumed" / "3").touch()
    found = history(LocalStore(), f"file:{folder}")
    assert [(past.manifest, past.change) for past in found] == made[::-1]
    assert [past.published_ms for past in found] == [10_000 * k for k in range(len(made), 0, -1)]
    assert [past.retained for past in found] == [True] * (len(made) - 3) + [False] * 3
