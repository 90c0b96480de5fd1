"""A change of an index's metadata: a version on top of the newest, or an error if that is gone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sieve.errors import UnavailableError
from sieve.metadata.commit import newest
from sieve.metadata.manifest import render_manifest
from sieve.metadata.records import CreatedBy
from sieve.metadata.registration import Registration
from sieve.metadata.transitions import Disable
from sieve.operations import alter
from sieve.operations.alter import change_index
from sieve.operations.registered_index import Ready
from sieve.storage.local import LocalStore
from tests.unit.metadata.manifest_sample import SAMPLE

HERE: Any = SimpleNamespace(changing=lambda: None, software=CreatedBy("9", "4.1"))


def test_a_change_is_a_version_after_the_newest(tmp_path: Path) -> None:
    """All else is as it was; queries find the changed state in the folder."""
    index = Ready("v", Registration(SAMPLE.index, ("v",), f"file:{tmp_path}"), LocalStore(), SAMPLE)
    versions = tmp_path / SAMPLE.index / "versions"
    versions.mkdir(parents=True)
    (versions / "1.json").write_bytes(render_manifest(SAMPLE))
    changed = change_index(index, Disable(), HERE)
    assert newest(index.store, index.directory) == changed
    assert (changed.version, changed.state, changed.runs) == (2, "disabled", SAMPLE.runs)
    assert changed.created_by == HERE.software


def test_an_index_that_vanished_is_not_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another driver has dropped it and its files between two attempts to publish."""
    index = Ready("v", Registration(SAMPLE.index, ("v",), "file:/r"), LocalStore(), SAMPLE)
    monkeypatch.setattr(alter, "publish", lambda _store, _directory, _base, make: make(None))
    with pytest.raises(UnavailableError, match="vanished meanwhile"):
        change_index(index, Disable(), HERE)
