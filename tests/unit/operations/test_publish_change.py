"""Tests changes of an index's metadata. Each change publishes the next version."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sieve.errors import UnavailableError
from sieve.metadata.commit import newest
from sieve.metadata.manifest import render_manifest
from sieve.metadata.records import CreatedBy, TableIdentity
from sieve.metadata.registration import Registration
from sieve.metadata.transitions import Disable
from sieve.operations import publish_change
from sieve.operations.follow_table import follow_table
from sieve.operations.publish_change import change_index
from sieve.operations.registered_index import Ready
from sieve.storage.local import LocalStore
from tests.unit.metadata.manifest_sample import SAMPLE

HERE: Any = SimpleNamespace(changing=lambda: None, software=CreatedBy("9", "4.1"))


def test_a_change_is_a_version_after_the_newest(tmp_path: Path) -> None:
    """A change publishes the next version, with the same runs, and records the running software."""
    index = Ready("v", Registration(SAMPLE.index, ("v",), f"file:{tmp_path}"), LocalStore(), SAMPLE)
    versions = tmp_path / SAMPLE.index / "versions"
    versions.mkdir(parents=True)
    (versions / "1.json").write_bytes(render_manifest(SAMPLE))
    changed = change_index(index, Disable(), HERE)
    assert newest(index.store, index.directory) == changed
    assert (changed.version, changed.state, changed.runs) == (2, "disabled", SAMPLE.runs)
    assert changed.created_by == HERE.software


def test_vanished_index_is_not_created_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """If another driver drops the index and its files between two attempts, the change fails."""
    index = Ready("v", Registration(SAMPLE.index, ("v",), "file:/r"), LocalStore(), SAMPLE)
    monkeypatch.setattr(
        publish_change, "publish", lambda _store, _directory, _base, make: make(None)
    )
    with pytest.raises(UnavailableError, match="vanished meanwhile"):
        change_index(index, Disable(), HERE)


WAS = SAMPLE.table
RENAMED = replace(WAS, table="renamed", location="file:/w/renamed")


def follow(
    tmp_path: Path, now: TableIdentity, *there: TableIdentity, state: str = "ready"
) -> tuple[str | None, TableIdentity, tuple[str, ...]]:
    """Makes an index follow its renamed or moved table.

    Returns the result, and the newest version's table and roots.
    """
    versions = tmp_path / SAMPLE.index / "versions"
    versions.mkdir(parents=True)
    version = replace(SAMPLE, state=state, roots=("file:/w/orders", "file:/else"))  # type: ignore[arg-type]
    (versions / "1.json").write_bytes(render_manifest(version))
    registration = Registration(SAMPLE.index, SAMPLE.column, f"file:{tmp_path}")
    table: Any = SimpleNamespace(
        info=SimpleNamespace(identity=now, registrations={"v": registration})
    )
    checked: list[tuple[str, str]] = []
    here: Any = SimpleNamespace(
        check_root=lambda *asked: checked.append(asked), open_store=lambda _: LocalStore()
    )
    here.changing, here.software = HERE.changing, HERE.software
    found = follow_table(table, "v", lambda one: one in there, here)
    assert checked == [(f"file:{tmp_path}", now.database)]
    newest_version = newest(LocalStore(), f"file:{tmp_path}/{SAMPLE.index}")
    assert newest_version is not None
    assert newest_version.version == (1 if found is None else 2)
    return found, newest_version.table, newest_version.roots


@pytest.mark.parametrize(
    ("now", "roots"),
    [
        # RENAME moves a table's files, so the roots of the index move, too.
        (RENAMED, ("file:/w/renamed", "file:/else")),
        (replace(WAS, table="archive", location="file:/w/a"), ("file:/w/a", "file:/else")),
        (replace(WAS, table="renamed"), ("file:/w/orders", "file:/else")),
        # SET LOCATION does not move a table's files, so the roots of the index stay.
        (replace(WAS, location="file:/w/new"), ("file:/w/orders", "file:/else")),
        (replace(WAS, location="file:/w/new", table="ORDERS"), ("file:/w/orders", "file:/else")),
    ],
)
def test_an_index_follows_its_table(
    tmp_path: Path, now: TableIdentity, roots: tuple[str, ...]
) -> None:
    """An index follows its table to another name or location if the creation time is the same."""
    folder = f"file:{tmp_path}/{SAMPLE.index}"
    assert follow(tmp_path, now) == (folder, now, roots)


@pytest.mark.parametrize(
    ("now", "there"),
    [
        # This table has not changed; only its name is in another letter case.
        (WAS, ()),
        (replace(WAS, table="ORDERS"), ()),
        # Either the property was copied to another table, or another table replaced the table.
        (replace(RENAMED, create_time_ms=WAS.create_time_ms + 1), ()),
        (replace(RENAMED, database="other"), ()),
        # The index's own table still exists. The other table is a copy from the same second.
        (RENAMED, (WAS,)),
    ],
)
def test_index_does_not_follow_without_evidence(
    tmp_path: Path, now: TableIdentity, there: tuple[TableIdentity, ...]
) -> None:
    """An index keeps its own table unless the other table is certainly the same table."""
    assert follow(tmp_path, now, *there)[:2] == (None, WAS)


def test_a_dropped_index_follows_no_table(tmp_path: Path) -> None:
    """A dropped index does not follow its table, because DROP soon deletes the index's files."""
    assert follow(tmp_path, RENAMED, state="dropped")[0] is None
