"""Tests which indexes below a root are orphans (unregistered), and whose a damaged index is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sieve.errors import UnavailableError
from sieve.metadata.manifest import render_manifest
from sieve.metadata.paths import CREATION_RECORD, REGISTERED
from sieve.metadata.records import IndexUuid, TableIdentity
from sieve.metadata.registration import Registration
from sieve.operations.damaged import owner_of_damaged
from sieve.operations.orphans import orphans
from sieve.storage.interface import READ_LIMIT
from sieve.storage.local import LocalStore
from tests.unit.metadata.manifest_sample import SAMPLE
from tests.unit.operations.index_folder import FIRST, LATER, STORE, index

DAY_MS = 24 * 3600 * 1000
OTHER = IndexUuid("1" * 8 + SAMPLE.index[8:])


def reasons(root: Path, tables: Mapping[TableIdentity, Mapping[str, Registration]]) -> list[str]:
    """Returns, for each orphan below a root, why it is an orphan."""
    return [one.why for one in orphans(STORE, f"file:{root}", "sales", tables, 0)]


def test_newest_readable_version_names_the_table(
    tmp_path: Path,
) -> None:
    """A damaged index belongs to the table that its newest readable version names.

    If no version of the index is readable, the creation record names the table.
    """
    assert owner_of_damaged(STORE, index(tmp_path / "a", FIRST, LATER, None)) == LATER
    assert owner_of_damaged(STORE, index(tmp_path / "b", None, None)) == FIRST
    assert owner_of_damaged(STORE, index(tmp_path / "c")) is None
    assert owner_of_damaged(STORE, index(tmp_path / "d", LATER, None)) == LATER


def test_index_that_can_be_read_again_is_not_damaged(tmp_path: Path) -> None:
    """The error blames the store if an index seems damaged, but a second attempt can read it."""
    with pytest.raises(UnavailableError, match="is readable now"):
        owner_of_damaged(STORE, index(tmp_path, FIRST, LATER))


def test_a_damaged_index_is_an_orphan(tmp_path: Path) -> None:
    """A damaged index is an orphan, because no table can use it."""
    index(tmp_path, FIRST, None)
    assert reasons(tmp_path, {}) == ["its table is gone"]
    assert reasons(tmp_path, {FIRST: {}}) == ["it is damaged, and its table does not have it"]


def test_index_that_only_lost_its_registration_is_no_orphan(tmp_path: Path) -> None:
    """An index that has lost only its registration is no orphan.

    The next statement on the index's table registers the index again.
    """
    index(tmp_path, FIRST)
    assert reasons(tmp_path, {}) == ["its table is gone"]
    assert reasons(tmp_path, {FIRST: {}}) == []


@pytest.mark.parametrize(
    ("versions", "why"),
    [
        ([FIRST], ["its table has another index of its name"]),
        ([], []),
        ([LATER], []),
    ],
    ids=["usable", "without a version", "of another table"],
)
def test_index_is_an_orphan_if_its_name_has_a_usable_index(
    tmp_path: Path, versions: list[TableIdentity], why: list[str]
) -> None:
    """An unregistered index is an orphan if its name belongs to a registered, usable index."""
    index(tmp_path, FIRST)
    index(tmp_path, *versions, uuid=OTHER)
    there = Registration(OTHER, SAMPLE.column, f"file:{tmp_path}")
    assert reasons(tmp_path, {FIRST: {SAMPLE.name: there}}) == why


class Clocked(LocalStore):
    """A store whose clock shows the end of the second day."""

    def now_ms(self, _directory: str) -> int:
        return 2 * DAY_MS


@pytest.mark.parametrize(
    ("registered", "floor_ms", "age_ms", "why"),
    [
        # CREATE can run for at least one day before its files count as orphans.
        (False, 0, DAY_MS, ["its CREATE did not come to an end"]),
        (False, 0, DAY_MS - 1000, []),
        (False, DAY_MS + 5000, DAY_MS + 4000, []),
        (False, DAY_MS + 5000, DAY_MS + 5000, ["its CREATE did not come to an end"]),
        (True, 0, 0, ["its table is gone"]),
        (True, 5000, 5000, ["its table is gone"]),
        (True, 5000, 4000, []),
    ],
)
def test_orphan_must_be_old_enough(
    tmp_path: Path, registered: bool, floor_ms: int, age_ms: int, why: list[str]
) -> None:
    """An index is an orphan only if it is old enough according to the store's clock."""
    index(tmp_path, FIRST)
    folder = tmp_path / SAMPLE.index
    if not registered:
        (folder / REGISTERED).unlink()
    at = (2 * DAY_MS - age_ms) / 1000
    os.utime(folder / CREATION_RECORD, (at, at))
    found = list(orphans(Clocked(), f"file:{tmp_path}", "sales", {}, floor_ms))
    assert [one.why for one in found] == why
    for one in found:
        assert (one.folder, one.name, one.table) == (f"file:{folder}", SAMPLE.name, FIRST)


def test_only_unregistered_indexes_of_a_database_are_orphans(tmp_path: Path) -> None:
    """In a database, only unregistered indexes of this database are orphans.

    The database's name is compared in any letter case.
    """
    index(tmp_path, FIRST)
    root = f"file:{tmp_path}"
    assert [one.why for one in orphans(STORE, root, "SALES", {}, 0)] == ["its table is gone"]
    assert list(orphans(STORE, root, "other", {}, 0)) == []
    there = Registration(SAMPLE.index, SAMPLE.column, root)
    assert reasons(tmp_path, {LATER: {"any": there}}) == []


def test_a_dropped_index_and_one_without_a_version_are_orphans(tmp_path: Path) -> None:
    """Indexes that were dropped or have no version are orphans, even if their table exists."""
    index(tmp_path, FIRST)
    path = tmp_path / SAMPLE.index / "versions" / "1.json"
    path.write_bytes(render_manifest(replace(SAMPLE, state="dropped")))
    assert reasons(tmp_path, {FIRST: {}}) == ["it was dropped"]
    path.unlink()
    assert reasons(tmp_path, {FIRST: {}}) == ["it has no version"]


def test_dropped_index_makes_no_other_index_an_orphan(tmp_path: Path) -> None:
    """An unregistered index is no orphan if the registered index of its name was dropped."""
    index(tmp_path, FIRST)
    index(tmp_path, FIRST, uuid=OTHER)
    version = replace(SAMPLE, index=OTHER, state="dropped")
    (tmp_path / OTHER / "versions" / "1.json").write_bytes(render_manifest(version))
    there = Registration(OTHER, SAMPLE.column, f"file:{tmp_path}")
    assert reasons(tmp_path, {FIRST: {SAMPLE.name: there}}) == []
    elsewhere = Registration(OTHER, SAMPLE.column, "file:/elsewhere")
    assert reasons(tmp_path, {FIRST: {SAMPLE.name: elsewhere}}) == []


def test_index_with_unreadable_versions_is_no_orphan(tmp_path: Path) -> None:
    """An index is no orphan if the store cannot read its versions, at first or at all."""
    folder = index(tmp_path, FIRST)
    read: list[str] = []

    class Mute(LocalStore):
        """A store that cannot read versions."""

        def read(self, uri: str, limit: int = READ_LIMIT) -> bytes:
            if "/versions/" in uri:
                raise UnavailableError("SIEVE_STORE_UNAVAILABLE", "no answer")
            return LocalStore.read(self, uri, limit)

    class Wrong(LocalStore):
        """A store that truncates the first version that is read."""

        def read(self, uri: str, limit: int = READ_LIMIT) -> bytes:
            read.append(uri)
            data = LocalStore.read(self, uri, limit)
            versions = [one for one in read if "/versions/" in one]
            return data[:-9] if len(versions) == 1 and "/versions/" in uri else data

    assert list(orphans(STORE, f"file:{tmp_path}", "sales", {}, 0)) != []
    assert list(orphans(Mute(), f"file:{tmp_path}", "sales", {}, 0)) == []
    assert list(orphans(Wrong(), f"file:{tmp_path}", "sales", {}, 0)) == []
    assert f"{folder}/versions/1.json" in read
