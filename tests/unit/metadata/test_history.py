"""The versions of an index in their order, and what is said where one is missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sieve.errors import CorruptError
from sieve.metadata.history import HOUR_MS, Retention, published, vacuumed
from sieve.storage.interface import GoneError
from sieve.storage.local import LocalStore


def versions(folder: Path, *numbers: int) -> str:
    """The folder of an index with files of some versions, each of second ten times its number."""
    (folder / "versions").mkdir()
    for number in numbers:
        file = folder / "versions" / f"{number}.json"
        file.touch()
        os.utime(file, (10 * number, 10 * number))
    (folder / "versions" / "1.json.part").touch()
    return f"file:{folder}"


def test_versions_have_the_times_of_their_files(tmp_path: Path) -> None:
    """In the order of their numbers, not of their names; other files are none."""
    found = published(LocalStore(), versions(tmp_path, *range(12, 0, -1)))
    assert found == [10_000 * number for number in range(1, 13)]


def test_without_its_first_version_an_index_is_gone(tmp_path: Path) -> None:
    """The message names the file that is missing."""
    folder = versions(tmp_path, 2, 3)
    with pytest.raises(GoneError, match=rf"{folder}/versions/1\.json is not there"):
        published(LocalStore(), folder)


def test_a_gap_is_damage(tmp_path: Path) -> None:
    """The message names the folder."""
    folder = versions(tmp_path, 1, 3)
    with pytest.raises(CorruptError, match=rf"the versions in {folder}/versions have gaps"):
        published(LocalStore(), folder)


def test_the_newest_vacuumed_version_is_the_greatest_mark(tmp_path: Path) -> None:
    """By number; 0 without a mark or a folder of marks, and other names are none."""
    index = f"file:{tmp_path}"
    assert vacuumed(LocalStore(), index) == 0
    (tmp_path / "vacuumed").mkdir()
    (tmp_path / "vacuumed" / "x10").touch()
    assert vacuumed(LocalStore(), index) == 0
    for mark in ("9", "10", "2"):
        (tmp_path / "vacuumed" / mark).touch()
    assert vacuumed(LocalStore(), index) == 10


@pytest.mark.parametrize(
    ("versions", "hours", "expired"),
    [(1, 0, 2), (2, 0, 1), (3, 0, 0), (9, 0, 0), (1, 1, 2), (1, 2, 1), (1, 1.5, 1), (1, 9, 0)],
)
def test_a_version_ages_from_the_next_one_on(versions: int, hours: float, expired: int) -> None:
    """Of three, the first was replaced two hours ago and a bit, the second one hour and a bit."""
    times = [0, HOUR_MS, 2 * HOUR_MS]
    assert Retention(versions, hours).expired(times, 3 * HOUR_MS + 1) == expired
