"""What a table says of itself: columns by name and by the key that an index knows them by."""

from __future__ import annotations

from pathlib import Path

from sieve.tables.table import TableInfo
from tests.fake_spark import PlainTable, Warehouse, no_fault


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
