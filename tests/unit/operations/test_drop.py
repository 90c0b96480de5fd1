"""DROP deletes only the files of its own table's index."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sieve.errors import DeniedError, UnavailableError
from sieve.metadata.commit import newest
from sieve.metadata.records import CreatedBy
from sieve.metadata.registration import Registration
from sieve.operations.drop import drop_index, end_index
from sieve.operations.registered_index import (
    Failed,
    Gone,
    HalfDropped,
    Ready,
    RegisteredIndex,
    Unreachable,
)
from tests.unit.metadata.manifest_sample import SAMPLE
from tests.unit.operations.index_folder import FIRST, LATER, STORE, index

HERE: Any = SimpleNamespace(changing=lambda: None, software=CreatedBy("9", "4.1"))


def found(root: Path, kind: type[HalfDropped | Failed | Gone]) -> RegisteredIndex:
    """Opens an index of the table `FIRST`; the index has no usable version."""
    index(root, FIRST, None)
    return kind("v", Registration(SAMPLE.index, ("v",), f"file:{root}"), "problem", STORE)


@pytest.mark.parametrize("kind", [HalfDropped, Failed])
def test_drop_deletes_a_damaged_or_half_dropped_index(
    tmp_path: Path, kind: type[HalfDropped | Failed]
) -> None:
    """If an index of the table is damaged or half dropped, DROP deletes its files."""
    assert end_index(found(tmp_path, kind), FIRST, HERE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("kind", "table"), [(Failed, LATER), (Gone, FIRST)])
def test_drop_keeps_the_files_of_another_index(
    tmp_path: Path, kind: type[Failed | Gone], table: Any
) -> None:
    """If the first version of an index is missing, DROP keeps the index's files.

    DROP also keeps the files of a damaged index that belongs to another table.
    """
    assert not end_index(found(tmp_path, kind), table, HERE)
    assert (tmp_path / SAMPLE.index / "versions").is_dir()


def test_drop_opens_no_store_outside_of_the_allowed_roots(tmp_path: Path) -> None:
    """DROP opens no store for an index outside of the allowed roots."""
    index(tmp_path, FIRST, None)
    lost = Failed("v", Registration(SAMPLE.index, ("v",), f"file:{tmp_path}"), "problem", None)
    assert not end_index(lost, FIRST, HERE)
    assert (tmp_path / SAMPLE.index / "versions").is_dir()


class Table:
    """A table that records its calls in order."""

    def __init__(self, calls: list[str], fails: Exception | None = None) -> None:
        self.info = SimpleNamespace(identity=FIRST)
        self._calls, self._fails = calls, fails

    def unregister(self, name: str, _: Registration) -> None:
        self._calls.append(f"unregister {name}")
        if self._fails is not None:
            raise self._fails


def ready(root: Path) -> Ready:
    """An index that has one usable version."""
    index(root, FIRST)
    registration = Registration(SAMPLE.index, ("v",), f"file:{root}")
    made = newest(STORE, registration.directory)
    assert made is not None
    return Ready("v", registration, STORE, made)


def dropped(table: Table, one: RegisteredIndex, calls: list[str]) -> None:
    """Drops an index, and records the changes that DROP announces."""
    here: Any = SimpleNamespace(
        changing=lambda: calls.append("changing"), software=CreatedBy("9", "4.1")
    )
    drop_index(table, one, here)  # type: ignore[arg-type]


def test_drop_ends_index_then_registration_then_files(tmp_path: Path) -> None:
    """DROP first publishes a tombstone, then unregisters the index, and then deletes its files.

    After the tombstone, no query uses the index, even if DROP is interrupted.
    """
    calls: list[str] = []
    dropped(Table(calls), ready(tmp_path), calls)
    assert calls == ["changing", "changing", "unregister v"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [UnavailableError, DeniedError])
def test_drop_can_be_repeated_after_a_metastore_failure(
    tmp_path: Path, kind: type[UnavailableError]
) -> None:
    """If the metastore fails, the files stay, and the error says that DROP can be repeated."""
    calls: list[str] = []
    one = ready(tmp_path)
    with pytest.raises(
        kind, match="no answer; index v is out of use, but still registered"
    ) as told:
        dropped(Table(calls, kind("SIEVE_X", "no answer")), one, calls)
    assert type(told.value) is kind
    assert told.value.condition == "SIEVE_X"
    left = newest(STORE, one.directory)
    assert left is not None
    assert left.state == "dropped"
    dropped(Table(calls), HalfDropped("v", one.registration, "it was dropped", STORE), calls)
    assert list(tmp_path.iterdir()) == []
    assert calls[-2:] == ["changing", "unregister v"]


def test_drop_of_a_gone_index_only_removes_the_registration(tmp_path: Path) -> None:
    """DROP removes only the registration if the registered index belongs to another table.

    If the store does not answer, DROP fails, and changes nothing.
    """
    calls: list[str] = []
    dropped(Table(calls), found(tmp_path, Gone), calls)
    assert calls == ["changing", "unregister v"]
    assert (tmp_path / SAMPLE.index / "versions").is_dir()
    silent = UnavailableError("SIEVE_X", "no answer")
    one = Unreachable("v", Registration(SAMPLE.index, ("v",), "file:/r"), "silent", STORE, silent)
    with pytest.raises(UnavailableError, match="cannot be read now: silent"):
        dropped(Table(calls), one, calls)
    assert calls == ["changing", "unregister v"]


def test_drop_keeps_a_damaged_index_of_a_later_release(tmp_path: Path) -> None:
    """If a later release wrote a damaged index, DROP keeps the index's files.

    This release cannot tell to which table an index of a later release belongs.
    """
    one = found(tmp_path, Failed)
    path = tmp_path / SAMPLE.index / "versions" / "1.json"
    body = re.sub(rb'"format":\d+', b'"format":99', path.read_bytes().partition(b',"checksum"')[0])
    seal = sha256(body + b"}").hexdigest().encode()
    path.write_bytes(body + b',"checksum":"%s"}' % seal)
    assert not end_index(one, FIRST, HERE)
    assert (tmp_path / SAMPLE.index / "versions").is_dir()
