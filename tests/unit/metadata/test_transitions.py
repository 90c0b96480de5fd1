from __future__ import annotations

from dataclasses import fields, replace

import pytest

from sieve.errors import ConflictError
from sieve.metadata.contents import Contents
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.records import Commit, CreatedBy, IndexUuid, VersionId
from sieve.metadata.transitions import (
    Change,
    Disable,
    Drop,
    Enable,
    Follow,
    Refresh,
    SetOptions,
    check_successor,
    next_version,
)
from tests.unit.metadata.manifest_sample import SAMPLE

BY = CreatedBy("0.2.0", "3.5.9")
ID = VersionId("2" * 32)
WAITING = IndexOptions("sieve", budget="1%", error=50)
"""The pending options of the sample manifest."""

MADE = Contents(
    instant="2025-04-01T00:00:00.000Z",
    type="bigint",
    options=WAITING,
    format_name="orc",
    null_proof=False,
    fingerprint="e" * 64,
    fingerprint_parts={},
    runs=(),
    locations=SAMPLE.locations,
    roots=("file:/w/orders",),
    stats=SAMPLE.stats,
    commit=Commit("0b6c", 7),
)
REFRESH = Refresh(MADE)


@pytest.mark.parametrize("change", [Disable(), Drop(), SetOptions(IndexOptions()), REFRESH])
def test_each_change_makes_a_valid_successor(change: Change) -> None:
    """Each change makes the index's next version, with its number, its parent and its writer."""
    after = next_version(SAMPLE, change, ID, BY)
    check_successor(SAMPLE, after)
    assert (after.version, after.parent, after.id) == (2, SAMPLE.id, ID)
    assert after.created_by == BY
    assert (after.index, after.table, after.name) == (SAMPLE.index, SAMPLE.table, SAMPLE.name)


def test_states() -> None:
    """`Disable` and `Enable` undo each other, and change nothing else."""
    off = next_version(SAMPLE, Disable(), ID, BY)
    on = next_version(off, Enable(), VersionId("3" * 32), BY)
    assert (off.state, on.state) == ("disabled", "ready")
    same = replace(on, version=1, id=SAMPLE.id, parent=None, created_by=SAMPLE.created_by)
    assert same == SAMPLE


@pytest.mark.parametrize("change", [Enable(), SetOptions(WAITING)])
def test_change_without_an_effect_makes_no_version(change: Change) -> None:
    """A change without an effect makes no version."""
    assert next_version(SAMPLE, change, ID, BY) is SAMPLE


def test_options_wait_for_the_refresh() -> None:
    """ALTER INDEX makes options pending, until a refresh uses them or ALTER INDEX undoes them."""
    assert next_version(SAMPLE, REFRESH, ID, BY).next_options is None
    assert next_version(SAMPLE, SetOptions(SAMPLE.options), ID, BY).next_options is None
    other = Refresh(replace(MADE, options=IndexOptions("sieve", error=7)))
    after = next_version(SAMPLE, other, ID, BY)
    assert (after.options, after.next_options) == (
        IndexOptions("sieve", error=7),
        WAITING,
    )


def test_option_refresh_takes_effect_at_once() -> None:
    """The option `refresh` takes effect at once, even while other options wait for a refresh."""
    built = replace(SAMPLE.options, refresh="auto")
    alone = next_version(SAMPLE, SetOptions(built), ID, BY)
    assert (alone.options, alone.next_options) == (built, None)
    waiting = replace(WAITING, refresh="auto")
    both = next_version(SAMPLE, SetOptions(waiting), ID, BY)
    assert (both.options, both.next_options) == (built, waiting)
    later = VersionId("3" * 32)
    refreshed = next_version(both, REFRESH, later, BY)
    assert (refreshed.options, refreshed.next_options) == (waiting, None)
    back = next_version(alone, SetOptions(SAMPLE.options), later, BY)
    assert (back.options, back.next_options) == (SAMPLE.options, None)


@pytest.mark.parametrize("name", [field.name for field in fields(Contents)])
def test_a_version_has_all_that_a_refresh_found(name: str) -> None:
    """A refresh replaces every field of the version that describes contents."""
    made = replace(
        MADE,
        locations=replace(SAMPLE.locations, count=1),
        stats=replace(SAMPLE.stats, rows=1),
    )
    assert getattr(made, name) != getattr(SAMPLE, name)
    assert getattr(next_version(SAMPLE, Refresh(made), ID, BY), name) == getattr(made, name)


def test_a_refresh_keeps_the_state() -> None:
    """A disabled index stays disabled after a refresh."""
    off = next_version(SAMPLE, Disable(), ID, BY)
    assert next_version(off, REFRESH, VersionId("3" * 32), BY).state == "disabled"


@pytest.mark.parametrize("change", [Enable(), Disable(), Drop(), REFRESH])
def test_a_tombstone_has_no_successor(change: Change) -> None:
    """After DROP, every change fails, even another DROP."""
    dropped = next_version(SAMPLE, Drop(), ID, BY)
    with pytest.raises(ConflictError, match=r"sales\.orders"):
        next_version(dropped, change, VersionId("3" * 32), BY)
    with pytest.raises(ConflictError):
        check_successor(dropped, replace(dropped, version=3, parent=ID, state="ready"))


def test_a_broken_chain_is_refused() -> None:
    """A version with a wrong number, parent or index raises a ValueError."""
    after = next_version(SAMPLE, Disable(), ID, BY)
    check_successor(None, SAMPLE)
    for base, proposed in (
        (None, after),
        (SAMPLE, SAMPLE),
        (SAMPLE, replace(after, version=3)),
        (SAMPLE, replace(after, parent=ID)),
        (SAMPLE, replace(after, index=IndexUuid("0" * 36))),
    ):
        with pytest.raises(ValueError, match="cannot follow"):
            check_successor(base, proposed)


@pytest.mark.parametrize("moved", [True, False])
def test_an_index_follows_its_table(moved: bool) -> None:
    """If a table is renamed, the next version of its index has the table's new name.

    If the files moved, too, the next version has the new root and keeps a Delta table's commit.
    """
    old, new = SAMPLE.table.location, "file:/w/renamed"
    base = replace(SAMPLE, roots=(old, "file:/elsewhere"), commit=Commit("0b6c", 7))
    table = replace(SAMPLE.table, table="renamed", location=f"{new}/")
    after = next_version(base, Follow(table, moved), ID, BY)
    check_successor(base, after)
    assert after.table == table
    assert after.roots == (new if moved else old, "file:/elsewhere")
    assert after.commit == (base.commit if moved else None)


def test_version_after_an_older_format_is_not_outdated() -> None:
    """The successor of a version in an older format has the current format."""
    old = replace(SAMPLE, is_outdated=True)
    assert not next_version(old, Disable(), VersionId("2" * 32), SAMPLE.created_by).is_outdated
