"""What a table says of itself: columns by name and by the key that an index knows them by."""

from __future__ import annotations

from pathlib import Path

import pytest

from sieve.errors import UnavailableError
from sieve.metadata.records import IndexUuid
from sieve.metadata.registration import Registration
from sieve.tables.table import TableInfo
from tests.fake_spark import (
    Access,
    MetastoreFault,
    PlainTable,
    Warehouse,
    no_fault,
    registrations,
)
from tests.unit.metadata.manifest_sample import SAMPLE


def info(folder: Path) -> TableInfo:
    """A table with the column ``id`` alone."""
    warehouse = Warehouse(folder / "shop")
    warehouse.create_table("t", [[1]])
    return PlainTable(warehouse, "t", no_fault).info


def test_columns_are_found_by_name_in_any_case(tmp_path: Path) -> None:
    """An index may outlive its column: then the name that a user types is its key."""
    table = info(tmp_path)
    assert table.key_of(("ID",)) == table.key_of(["id"]) == ("id",)
    assert table.key_of(["Gone"]) == ("Gone",)
    assert table.name_of(("id",)) == ("id",)
    assert table.name_of(("gone",)) == ("gone",)
    assert table.label == "shop.t"


class Refusing(Access):
    """An access whose property cannot be removed."""

    def unsetProperty(self, _: str) -> None:  # noqa: N802 - the shim's name
        raise MetastoreFault("down")


def test_only_its_own_registration_is_removed(tmp_path: Path) -> None:
    """Another index may have been given the name meanwhile; or it is not there at all."""
    warehouse = Warehouse(tmp_path / "shop")
    warehouse.create_table("t", [[1]])
    table = PlainTable(warehouse, "t", no_fault)
    one = Registration(SAMPLE.index, ("id",), "file:/r")
    other = Registration(IndexUuid("9" + SAMPLE.index[1:]), ("id",), "file:/r")
    table.register("v", one)
    there = registrations(warehouse.properties("t"))
    table.unregister("v", other)
    assert registrations(warehouse.properties("t")) == there != {}
    table._access = Refusing(warehouse, "t", no_fault)  # type: ignore[assignment]
    with pytest.raises(UnavailableError, match="down"):
        table.unregister("v", one)
    table = PlainTable(warehouse, "t", no_fault)
    table.unregister("v", one)
    assert registrations(warehouse.properties("t")) == {}
    table.unregister("v", one)
