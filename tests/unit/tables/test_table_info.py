"""Tests how a table's metadata finds a column by name, or by the key of an index."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sieve.errors import InvalidInputError, UnavailableError, UnsupportedError
from sieve.metadata.records import IndexUuid
from sieve.metadata.registration import Registration
from sieve.tables.column import Column
from sieve.tables.table_info import TableInfo, resolve_column
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
    """The metadata of a table with the single column ``id``."""
    warehouse = Warehouse(folder / "shop")
    warehouse.create_table("t", [[1]])
    return PlainTable(warehouse, "t", no_fault).info


def test_columns_are_found_by_name_in_any_case(tmp_path: Path) -> None:
    """A column is found by its name in any letter case, and by its key.

    For a dropped column, the user names the index by the index's key.
    """
    table = info(tmp_path)
    assert table.key_of(("ID",)) == table.key_of(["id"]) == ("id",)
    assert table.key_of(["Gone"]) == ("Gone",)
    assert table.name_of(("id",)) == ("id",)
    assert table.name_of(("gone",)) == ("gone",)
    stored, shown = ("", "lower(`field 6`)"), ("", "lower(c)")
    renamed = replace(table, columns=(Column((shown[1],), "string", stored),))
    assert renamed.name_of(stored) == shown
    assert table.label == "shop.t"


def of_columns(folder: Path, *names: str, **other: object) -> TableInfo:
    """A table with columns of these names."""
    columns = tuple(Column((name,), "int") for name in names)
    return replace(info(folder), columns=columns, **other)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("columns", "typed", "hint"),
    [
        (["price1", "price2", "price3", "price4"], "price", "did you mean price4, price3, price2?"),
        (["amount", "paid"], "amout", "did you mean amount?"),
        (["amount", "paid"], "zz", "it has amount, paid"),
        ([f"c{k}" for k in range(30)], "zz", f"it has {', '.join(f'c{k}' for k in range(20))}"),
        (["abcd"], "abxy", "did you mean abcd?"),
        (["abcd"], "axyz", "it has abcd"),
    ],
)
def test_error_for_an_unknown_column_suggests_similar_ones(
    tmp_path: Path, columns: list[str], typed: str, hint: str
) -> None:
    """The error for an unknown column suggests three similar columns, or lists the first twenty."""
    with pytest.raises(InvalidInputError) as caught:
        resolve_column(of_columns(tmp_path, *columns), [typed])
    assert caught.value.condition == "SIEVE_UNKNOWN_COLUMN"
    assert caught.value.message == f"table shop.t has no column {typed}; {hint}"


def test_column_case_counts_only_in_case_sensitive_sessions(
    tmp_path: Path,
) -> None:
    """Column names match in any letter case, except in a case-sensitive session.

    An index cannot have a partition column, or the column of corrupt records.
    """
    table = of_columns(
        tmp_path, "Id", "_corrupt", partition_columns=("Day",), corrupt_column="_Corrupt"
    )
    assert resolve_column(table, ["iD"]) == table.columns[0]
    with pytest.raises(UnsupportedError, match="day is a partition column"):
        resolve_column(table, ["day"])
    with pytest.raises(UnsupportedError, match="contains unparsable records"):
        resolve_column(table, ["_CORRUPT"])
    exact = replace(table, case_sensitive=True)
    for name in ("iD", "day", "_Corrupt"):
        with pytest.raises(InvalidInputError, match="has no column"):
            resolve_column(exact, [name])
    assert resolve_column(exact, ["_corrupt"]) == table.columns[1]


def test_error_for_a_struct_suggests_a_field(tmp_path: Path) -> None:
    """The error for a struct suggests one of its fields."""
    fields = (("address",), "struct<town:string,street:string>"), (("address", "town"), "string")
    columns = tuple(Column(path, kind) for path, kind in fields)
    table = replace(info(tmp_path), columns=columns)
    with pytest.raises(UnsupportedError, match=r"one of its fields, such as address\.town$"):
        resolve_column(table, ["address"])
    assert resolve_column(table, ["ADDRESS", "Town"]) == columns[1]


class Refusing(Access):
    """A table whose metastore fails to remove a property."""

    def unsetProperty(self, _: str) -> None:  # noqa: N802 - the shim's name
        raise MetastoreFault("down")


def test_unregister_removes_only_its_own_registration(tmp_path: Path) -> None:
    """`unregister` removes only the given registration, and ignores a missing registration."""
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
