"""Tests creation records, and statements on an index that another driver drops meanwhile."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from sieve.errors import ConflictError, UnavailableError
from sieve.metadata.creation_record import (
    creation_record_of,
    creation_records,
    delete_index,
    remove_abandoned,
    report_if_dropped,
    write_creation_record,
)
from sieve.metadata.paths import CREATION_RECORD, REGISTERED
from sieve.storage.local import LocalStore
from tests.unit.metadata.manifest_sample import SAMPLE

DAY_MS = 24 * 3600 * 1000
MARKS = ("versions/1.json", REGISTERED)


def written(folder: Path, *names: str) -> str:
    """Writes files into the folder of an index, and returns the folder's URI."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    return f"file:{folder}"


def end(directory: str, error: Exception | None) -> None:
    """Ends a statement on an index, either with the given error or with success."""
    with report_if_dropped("v", LocalStore(), directory):
        if error is not None:
            raise error


@pytest.mark.parametrize("marks", [MARKS, MARKS[:1], MARKS[1:]], ids=["both", "first", "second"])
def test_index_with_a_mark_of_life_was_not_dropped(tmp_path: Path, marks: tuple[str, ...]) -> None:
    """If the first version or the mark `registered` exists, the index was not dropped.

    If the index was not dropped, the statement ends with its own result.
    """
    names = {*marks, "runs/1/part"}
    directory = written(tmp_path / "i", *names)
    end(directory, None)
    with pytest.raises(KeyError):
        end(directory, KeyError())
    assert all((tmp_path / "i" / name).exists() for name in names)


@pytest.mark.parametrize("error", [None, KeyError()])
def test_files_written_after_a_drop_are_deleted(tmp_path: Path, error: Exception | None) -> None:
    """After a drop of the index, the statement fails, and deletes the files that it wrote later."""
    directory = written(tmp_path / "i", "runs/1/part")
    with pytest.raises(ConflictError, match="index v was dropped") as told:
        end(directory, error)
    assert told.value.__cause__ is error
    assert not (tmp_path / "i").exists()


@pytest.mark.parametrize("error", [None, KeyError()])
def test_store_without_an_answer_proves_no_drop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    """If the store does not answer, the statement ends with its own result and deletes nothing."""
    directory = written(tmp_path / "i", "runs/1/part")

    def silent(*_: object) -> None:
        raise UnavailableError("SIEVE_STORE_UNAVAILABLE", "no answer")

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "size", silent)
        if error is None:
            end(directory, error)
        else:
            with pytest.raises(KeyError):
                end(directory, error)
    assert (tmp_path / "i/runs/1/part").exists()
    # The statement reports the drop even if Sieve cannot clean the folder.
    monkeypatch.setattr(LocalStore, "list", silent)
    with pytest.raises(ConflictError):
        end(directory, error)


@dataclass(frozen=True, slots=True)
class Noting(LocalStore):
    """A store that records what it deletes; its clock shows the end of the second day."""

    deleted: list[str] = field(default_factory=list)

    def delete(self, uri: str) -> None:
        self.deleted.append(uri)
        LocalStore.delete(self, uri)

    def now_ms(self, _directory: str) -> int:
        return 2 * DAY_MS


def test_index_is_deleted_in_order(tmp_path: Path) -> None:
    """The files of an index are deleted in order: the registration first, the creation record last.

    After an interrupted deletion, the remaining files show that the index was dropped. If the
    folder is missing, deleting it is no error.
    """
    names = [REGISTERED, "versions/1.json", "runs/1/part", CREATION_RECORD, "locations/x"]
    folder, store = written(tmp_path / "i", *names), Noting()
    delete_index(store, folder)
    ends = [REGISTERED, "versions/1.json", "locations", "runs", "versions"]
    assert store.deleted == [*(f"{folder}/{name}" for name in ends), folder]
    assert not (tmp_path / "i").exists()
    delete_index(store, folder)
    assert len(store.deleted) == 6
    other = Noting()
    delete_index(other, written(tmp_path / "j", "runs/1/part"))
    assert f"file:{tmp_path}/j/{REGISTERED}" not in other.deleted


def unfinished_create(
    root: Path, number: int, age_ms: int = DAY_MS, *names: str, table: object = None
) -> str:
    """The folder of an unfinished CREATE that began this long ago."""
    folder = root / f"{SAMPLE.index[:-1]}{number}"
    written(folder, *names)
    folder.mkdir(parents=True, exist_ok=True)
    of = table or SAMPLE.table
    write_creation_record(LocalStore(), f"file:{folder}", f"v{number}", of)  # type: ignore[arg-type]
    at = (2 * DAY_MS - age_ms) / 1000
    os.utime(folder / CREATION_RECORD, (at, at))
    return f"file:{folder}"


def test_folder_of_an_unfinished_create_is_deleted_after_a_day(tmp_path: Path) -> None:
    """A day after an unfinished CREATE, its folder is deleted if the index is not registered."""
    other = replace(SAMPLE.table, table="other")
    dead = unfinished_create(tmp_path, 0, DAY_MS, "runs/1/part")
    left = [
        unfinished_create(tmp_path, 1, DAY_MS - 1000),
        unfinished_create(tmp_path, 2, DAY_MS, REGISTERED),
        unfinished_create(tmp_path, 3, DAY_MS, table=other),
        unfinished_create(tmp_path, 4),
    ]
    (tmp_path / "notes").mkdir()
    known = {left[-1].rpartition("/")[2]}
    assert remove_abandoned(Noting(), f"file:{tmp_path}", SAMPLE.table, known) == [dead]
    assert {f"file:{path}" for path in tmp_path.iterdir()} == {*left, f"file:{tmp_path}/notes"}
    assert remove_abandoned(Noting(), f"file:{tmp_path}", SAMPLE.table, known) == []
    assert remove_abandoned(Noting(), f"file:{tmp_path}/none", SAMPLE.table, known) == []


def test_creation_record_must_be_in_its_own_folder(tmp_path: Path) -> None:
    """A creation record counts only if it is valid, and is in the folder of its own index.

    If a record is in another index's folder, this folder must stay.
    """
    folder = unfinished_create(tmp_path, 0, 0, REGISTERED)
    (record,) = creation_records(LocalStore(), f"file:{tmp_path}", [])
    assert (record.folder, record.name, record.table) == (folder, "v0", SAMPLE.table)
    assert (record.written_ms, record.registered) == (2 * DAY_MS, True)
    assert list(creation_records(LocalStore(), f"file:{tmp_path}", [SAMPLE.index[:-1] + "0"])) == []
    path = tmp_path / folder.rpartition("/")[2] / CREATION_RECORD
    whole = json.loads(path.read_bytes())
    assert whole["uuid"] == folder.rpartition("/")[2]
    for data in (b"?", b"[]", json.dumps(whole | {"table": 1}).encode(), b'{"name": "v"}'):
        path.write_bytes(data)
        assert creation_record_of(LocalStore(), folder) is None
    text = json.dumps(whole)
    path.write_text(text.ljust(1 << 16))
    assert creation_record_of(LocalStore(), folder) is not None
    path.write_text(text.ljust((1 << 16) + 1))
    assert creation_record_of(LocalStore(), folder) is None
    path.unlink()
    assert creation_record_of(LocalStore(), folder) is None
    assert creation_record_of(LocalStore(), f"file:{tmp_path}/none") is None
