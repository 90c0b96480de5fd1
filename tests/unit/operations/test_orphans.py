"""Orphans, and whose index a damaged one is: only evidence in the folder counts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sieve.errors import UnavailableError
from sieve.metadata.records import IndexUuid, TableIdentity
from sieve.metadata.registration import Registration
from sieve.operations.damaged import owner_of_damaged
from sieve.operations.orphans import orphans
from tests.unit.metadata.manifest_sample import SAMPLE
from tests.unit.operations.index_folder import FIRST, LATER, STORE, index

OTHER = IndexUuid("1" * 8 + SAMPLE.index[8:])


def reasons(root: Path, tables: Mapping[TableIdentity, Mapping[str, Registration]]) -> list[str]:
    """Why the indexes below a root are orphans."""
    return [one.why for one in orphans(STORE, f"file:{root}", "sales", tables, 0)]


def test_a_damaged_index_belongs_to_the_table_of_its_newest_readable_version(
    tmp_path: Path,
) -> None:
    """Or to that of its creation record, if no version can be read."""
    assert owner_of_damaged(STORE, index(tmp_path / "a", FIRST, LATER, None)) == LATER
    assert owner_of_damaged(STORE, index(tmp_path / "b", None, None)) == FIRST
    assert owner_of_damaged(STORE, index(tmp_path / "c")) is None


def test_an_index_that_can_be_read_after_all_is_not_damaged(tmp_path: Path) -> None:
    """A store may have answered wrongly a moment ago."""
    with pytest.raises(UnavailableError, match="now can be"):
        owner_of_damaged(STORE, index(tmp_path, FIRST, LATER))


def test_a_damaged_index_is_an_orphan(tmp_path: Path) -> None:
    """Neither can its table use it, nor any other."""
    index(tmp_path, FIRST, None)
    assert reasons(tmp_path, {}) == ["its table is gone"]
    assert reasons(tmp_path, {FIRST: {}}) == ["it is damaged, and its table does not have it"]


def test_an_index_that_its_table_has_lost_is_none(tmp_path: Path) -> None:
    """The next statement on the table registers it again."""
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
def test_an_index_gives_way_to_a_usable_one_of_its_name(
    tmp_path: Path, versions: list[TableIdentity], why: list[str]
) -> None:
    """It stays while the one that its table registers in its place cannot be used."""
    index(tmp_path, FIRST)
    index(tmp_path, *versions, uuid=OTHER)
    there = Registration(OTHER, SAMPLE.column, f"file:{tmp_path}")
    assert reasons(tmp_path, {FIRST: {SAMPLE.name: there}}) == why
