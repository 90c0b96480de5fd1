"""A drop deletes the files of its own table's index, and no other's."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sieve.metadata.records import CreatedBy
from sieve.metadata.registration import Registration
from sieve.operations.drop import end_index
from sieve.operations.registered_index import Failed, Gone, HalfDropped, RegisteredIndex
from tests.unit.metadata.manifest_sample import SAMPLE
from tests.unit.operations.index_folder import FIRST, LATER, STORE, index

HERE: Any = SimpleNamespace(changing=lambda: None, software=CreatedBy("9", "4.1"))


def found(root: Path, kind: type[HalfDropped | Failed | Gone]) -> RegisteredIndex:
    """An index of the first table in a folder, in one of the states without a usable version."""
    index(root, FIRST, None)
    return kind("v", Registration(SAMPLE.index, ("v",), f"file:{root}"), "problem", STORE)


@pytest.mark.parametrize("kind", [HalfDropped, Failed])
def test_the_files_of_an_index_that_is_damaged_or_half_dropped_go(
    tmp_path: Path, kind: type[HalfDropped | Failed]
) -> None:
    """If they are its table's."""
    assert end_index(found(tmp_path, kind), FIRST, HERE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("kind", "table"), [(Failed, LATER), (Gone, FIRST)])
def test_the_files_of_another_index_stay(
    tmp_path: Path, kind: type[Failed | Gone], table: Any
) -> None:
    """A damaged index of another table, and a folder that is not this index's."""
    assert not end_index(found(tmp_path, kind), table, HERE)
    assert (tmp_path / SAMPLE.index / "versions").is_dir()


def test_a_damaged_index_out_of_reach_stays(tmp_path: Path) -> None:
    """No store was opened for it."""
    index(tmp_path, FIRST, None)
    lost = Failed("v", Registration(SAMPLE.index, ("v",), f"file:{tmp_path}"), "problem", None)
    assert not end_index(lost, FIRST, HERE)
    assert (tmp_path / SAMPLE.index / "versions").is_dir()
