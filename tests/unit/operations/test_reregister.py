"""Tests which lost indexes of a table Sieve registers again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sieve.metadata.manifest import render_manifest
from sieve.metadata.paths import REGISTERED
from sieve.metadata.records import IndexUuid, TableIdentity, VersionId
from sieve.metadata.registration import Registration
from sieve.operations.registered_index import Gone, HalfDropped, Ready, RegisteredIndex
from sieve.operations.reregister import reregister
from tests.unit.metadata.manifest_sample import SAMPLE
from tests.unit.operations.index_folder import FIRST, LATER, STORE, index

UUIDS = [IndexUuid(f"{number}{SAMPLE.index[1:]}") for number in range(9)]


class Table:
    """A table that records its registrations and the checks before them."""

    def __init__(self, folder: Path, known: dict[str, Registration]) -> None:
        self.calls: list[str] = []
        self.registered: dict[str, Registration] = {}
        self.info = SimpleNamespace(
            identity=FIRST, database_location=f"file:{folder}", registrations=known
        )
        self.environment: Any = SimpleNamespace(
            root_for_new=lambda location: location,
            open_store=lambda _: STORE,
            check_shared=lambda root, database: self.calls.append(f"shared {root} {database}"),
            changing=lambda: self.calls.append("changing"),
        )

    def register(self, name: str, registration: Registration) -> None:
        self.calls.append("register")
        self.registered[name] = registration

    def reregister(self, indexes: dict[str, RegisteredIndex] | None = None) -> list[str]:
        """Registers the table's lost indexes again, and returns their names."""
        return reregister(self, indexes or {}, self.environment)  # type: ignore[arg-type]


def named(root: Path, number: int, name: str, table: TableIdentity = FIRST) -> None:
    """Writes an index with this name and one version."""
    folder = index(root, table, uuid=UUIDS[number]).removeprefix("file:")
    made = replace(SAMPLE, index=UUIDS[number], version=1, parent=None, table=table, name=name)
    if name == "other":
        made = replace(made, options=replace(made.options, refresh="auto"))
    made = replace(made, id=VersionId(f"{1:032x}"))
    (Path(folder) / "versions" / "1.json").write_bytes(render_manifest(made))


def test_only_lost_indexes_are_registered_again(tmp_path: Path) -> None:
    """Sieve does not register unfinished, damaged, dropped, registered or foreign indexes again."""
    named(tmp_path, 0, "unfinished")
    (tmp_path / UUIDS[0] / REGISTERED).unlink()
    index(tmp_path, None, uuid=UUIDS[1])
    index(tmp_path, uuid=UUIDS[2])
    named(tmp_path, 3, "known")
    named(tmp_path, 4, "foreign", LATER)
    named(tmp_path, 5, "lost")
    named(tmp_path, 6, "lost")
    named(tmp_path, 7, "other")
    path = tmp_path / UUIDS[8] / "versions" / "1.json"
    index(tmp_path, FIRST, uuid=UUIDS[8])
    dropped = replace(
        SAMPLE, index=UUIDS[8], version=1, parent=None, table=FIRST, state="dropped", name="gone"
    )
    path.write_bytes(render_manifest(dropped))
    root = f"file:{tmp_path}"
    table = Table(tmp_path, {"known": Registration(UUIDS[3], ("v",), root)})
    assert table.reregister() == ["lost", "other"]
    assert table.registered == {
        "lost": Registration(UUIDS[5], SAMPLE.column, root),
        "other": Registration(UUIDS[7], SAMPLE.column, root, follows=True),
    }
    assert table.calls == [f"shared {root} {FIRST.database}", "changing", "register"] * 2


@pytest.mark.parametrize(("state", "names"), [("ready", []), ("gone", ["v"]), ("half", ["v"])])
def test_lost_index_with_a_name_in_use_is_not_registered(
    tmp_path: Path, state: str, names: list[str]
) -> None:
    """A registered index can have the name of a lost index.

    Sieve then registers the lost index only if the registered index is gone or half dropped.
    """
    named(tmp_path, 0, "v")
    there = Registration(UUIDS[1], ("v",), f"file:{tmp_path}")
    indexes: dict[str, RegisteredIndex] = {
        "ready": Ready("v", there, STORE, SAMPLE),
        "gone": Gone("v", there, "problem", STORE),
        "half": HalfDropped("v", there, "problem", STORE),
    }
    assert Table(tmp_path, {"v": there}).reregister({"v": indexes[state]}) == names


def test_index_of_another_database_is_not_opened(tmp_path: Path) -> None:
    """Databases can share a root, but Sieve registers a lost index only in its own database."""
    named(tmp_path, 0, "v")
    table = Table(tmp_path, {})
    table.info.identity = replace(FIRST, database="elsewhere")
    assert table.reregister() == []
    table.info.identity = replace(FIRST, database=FIRST.database.upper())
    assert table.reregister() == ["v"]
