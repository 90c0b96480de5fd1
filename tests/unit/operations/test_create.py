"""A failed CREATE leaves no trace in the metastore or in the store."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from sieve.errors import InvalidInputError, SieveError, UnavailableError
from sieve.operations.create import _undo
from sieve.storage.local import LocalStore
from tests.fake_spark import MetastoreFault, Session, Warehouse, registrations, without_spark

STORE = LocalStore()
CREATE = "CREATE SIEVE INDEX ON t (id)"


def test_a_create_that_cannot_register_deletes_its_files(tmp_path: Path) -> None:
    """If the registration fails, CREATE deletes its files, and a second CREATE succeeds."""
    warehouse = Warehouse(tmp_path)
    warehouse.create_table("t", [[1, 2], [3]])
    built: list[Path] = []

    def refuse(what: str) -> None:
        if what.startswith("before metastore"):
            built.extend(warehouse.root.glob("*/versions/1.json"))
            raise MetastoreFault("the metastore hung up")

    with without_spark():
        with pytest.raises((SieveError, PySparkException)):
            Session(warehouse, refuse).sql(CREATE)
        assert built
        assert list(warehouse.root.iterdir()) == []
        assert registrations(warehouse.properties("t")) == {}
        Session(warehouse).sql(CREATE)
    assert len(registrations(warehouse.properties("t"))) == 1


def test_error_for_an_unwritable_folder_names_the_setting(
    tmp_path: Path,
) -> None:
    """The error for an unwritable folder names the setting that selects another folder."""
    warehouse = Warehouse(tmp_path)
    warehouse.create_table("t", [[1]])

    def refuse(what: str) -> None:
        if what.startswith("before mkdirs"):
            raise UnavailableError("SIEVE_STORE_UNAVAILABLE", "no right to write")

    with without_spark(), pytest.raises(UnavailableError) as caught:
        Session(warehouse, refuse).sql(CREATE)
    assert caught.value.condition == "SIEVE_STORE_UNAVAILABLE"
    assert caught.value.message.startswith("no right to write; an index needs a folder")
    assert "spark.sieve.path" in caught.value.message
    assert not warehouse.root.exists()


def test_failed_create_deletes_its_folder(tmp_path: Path) -> None:
    """If any call of the store before the build fails, CREATE deletes its folder."""
    warehouse = Warehouse(tmp_path)
    warehouse.create_table("t", [[1]])
    for failing in range(1, 7):
        calls: list[str] = []

        def refuse(what: str, calls: list[str] = calls, failing: int = failing) -> None:
            if what.startswith(("before mkdirs", "before create")):
                calls.append(what)
                if len(calls) == failing:
                    raise UnavailableError("SIEVE_STORE_UNAVAILABLE", "no space left")

        with without_spark(), pytest.raises(UnavailableError, match="no space left"):
            Session(warehouse, refuse).sql(CREATE)
        assert len(calls) == failing
        assert not warehouse.root.exists() or list(warehouse.root.iterdir()) == []


def test_invalid_create_writes_nothing(tmp_path: Path) -> None:
    """An invalid CREATE writes nothing to the store."""
    warehouse = Warehouse(tmp_path)
    warehouse.create_table("t", [[1]])
    calls: list[str] = []
    with without_spark(), pytest.raises(InvalidInputError, match="1 to 128 characters"):
        Session(warehouse, calls.append).sql(f"CREATE SIEVE INDEX {'x' * 129} ON t (id)")
    assert [call for call in calls if "mkdirs" in call or "create" in call] == []


class Undone:
    """A table that records calls, and cannot remove one of the registrations."""

    def __init__(self, stays: str) -> None:
        self.asked: list[tuple[object, ...]] = []
        self._stays = stays

    def unregister(self, name: str, own: object) -> None:
        """Removes a registration, or raises an error."""
        self.asked.append((name, own))
        if name == self._stays:
            raise UnavailableError("SIEVE_X", "no answer")

    def register(self, name: str, registration: object, *, in_place_of: object) -> None:
        """Replaces one registration with another."""
        self.asked.append((name, registration, in_place_of))


def test_an_index_that_stays_registered_keeps_its_files(tmp_path: Path) -> None:
    """If a failed CREATE cannot unregister one of its indexes, this index's files stay.

    The failed CREATE deletes the files of its other indexes. Indexes that the failed CREATE had
    replaced get their names back.
    """

    def begun(name: str) -> Any:
        folder = tmp_path / name
        folder.mkdir()
        wanted = SimpleNamespace(name=name)
        return SimpleNamespace(
            wanted=wanted, registration=f"new {name}", store=STORE, directory=f"file:{folder}"
        )

    every = [begun(name) for name in "abcd"]
    table: Any = Undone("b")
    replaced: Any = {"c": SimpleNamespace(registration="old c")}
    _undo(table, every, every[:3], replaced)
    assert table.asked == [("a", "new a"), ("b", "new b"), ("c", "old c", "new c")]
    assert [folder.name for folder in tmp_path.iterdir()] == ["b"]


def test_leftover_files_of_a_replaced_index_are_reported(tmp_path: Path) -> None:
    """If the store cannot delete a replaced index, CREATE succeeds and reports its files."""
    warehouse = Warehouse(tmp_path)
    warehouse.create_table("t", [[1]])

    def refuse(what: str) -> None:
        if what.startswith("before delete"):
            raise UnavailableError("SIEVE_STORE_UNAVAILABLE", "no right to delete")

    with without_spark():
        Session(warehouse).sql(CREATE)
        (old,) = registrations(warehouse.properties("t"))
        rows = Session(warehouse, refuse).sql(CREATE.replace("CREATE", "CREATE OR REPLACE"))
    (new,) = registrations(warehouse.properties("t"))
    assert "files of the one before are left: no right to delete" in str(rows)
    assert len(list(warehouse.root.iterdir())) == 2
    assert old != new or registrations(warehouse.properties("t")) != {}
