"""Tests statements on tables that are unreadable or have malformed registrations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sieve.errors import SieveError, UnsupportedError
from sieve.metadata.registration import PREFIX
from sieve.tables.table import CatalogTable
from tests.fake_spark import PlainStatement, Session, Warehouse, registrations, without_spark

KEY = f"{PREFIX}id_sieve"


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    """A table of two files with an index."""
    made = Warehouse(tmp_path)
    made.create_table("t", [[1, 2], [7, 8]])
    with without_spark():
        Session(made).sql("CREATE SIEVE INDEX ON t (id)")
        yield made


def replace_registration(warehouse: Warehouse, value: str = "{", name: str = KEY) -> None:
    """Replaces a registration's value with this text."""
    warehouse.alter("t", lambda before: before | {name: value})


@pytest.mark.parametrize("value", ["{", "", "null", '{"format": 99}'])
def test_a_malformed_registration_is_shown_and_repaired(warehouse: Warehouse, value: str) -> None:
    """SHOW and DESCRIBE report a malformed registration, and REFRESH registers the index again."""
    replace_registration(warehouse, value)
    session = Session(warehouse)
    for statement in ("SHOW SIEVE INDEXES ON t", "SHOW SIEVE INDEXES"):
        ((_, table, index, column, *_, state, _, _, _, _),) = session.sql(statement)
        assert (table, index, column, state) == ("t", "id_sieve", None, "malformed")
    facts = dict(session.sql("DESCRIBE SIEVE INDEX id_sieve ON t"))
    assert KEY in facts["problem"]
    with pytest.raises(UnsupportedError, match=r"is malformed: .*REFRESH SIEVE INDEX registers"):
        session.sql("ALTER SIEVE INDEX id_sieve ON t DISABLE")
    ((name, *_, change, advice),) = session.sql("REFRESH SIEVE INDEX ON t")
    assert (name, change, "registered again" in advice) == ("id_sieve", "unchanged", True)
    assert session.sql("SHOW SIEVE INDEXES ON t")[0][6] == "ready"


def test_malformed_registration_next_to_others_is_repaired(warehouse: Warehouse) -> None:
    """If only one of a table's registrations is malformed, REFRESH repairs this registration."""
    session = Session(warehouse)
    session.sql("CREATE SIEVE INDEX second ON t (id)")
    replace_registration(warehouse)
    assert {row[0] for row in session.sql("REFRESH SIEVE INDEX ON t")} == {"id_sieve", "second"}


def test_dropping_a_malformed_registration_ends_its_index(warehouse: Warehouse) -> None:
    """DROP deletes the index of a malformed registration. No REFRESH registers this index again."""
    replace_registration(warehouse)
    replace_registration(warehouse, "x", f"{PREFIX}never")
    session = Session(warehouse)
    assert session.sql("DROP SIEVE INDEX id_sieve ON t") == [("id_sieve",)]
    assert session.sql("DROP SIEVE INDEX IF EXISTS never ON t") == [("never",)]
    assert registrations(warehouse.properties("t")) == {}
    assert session.sql("REFRESH SIEVE INDEX ON t") == []
    assert list(warehouse.root.iterdir()) == []


def test_name_of_a_malformed_registration_is_free(warehouse: Warehouse) -> None:
    """CREATE can use the name of a malformed registration, with or without OR REPLACE."""
    session = Session(warehouse)
    for replace in ("", "OR REPLACE "):
        replace_registration(warehouse)
        ((name, *_, change, _),) = session.sql(f"CREATE {replace}SIEVE INDEX ON t (id)")
        assert (name, change) == ("id_sieve", "created")


class _Unreadable(PlainStatement):
    """The context of a statement on a table that Spark cannot read."""

    def table(self, *_: object, **__: bool) -> CatalogTable:
        raise UnsupportedError("SIEVE_UNSUPPORTED_TABLE", "its folder is gone\nat some.Java")

    def registered(self, name: object) -> CatalogTable:
        return PlainStatement.table(self, name)  # type: ignore[arg-type]


def test_statements_work_if_the_table_is_unreadable(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If Spark cannot read a table, statements that need only its registrations work.

    If Spark cannot read a table, REFRESH and CHECK of the table fail.
    """
    monkeypatch.setattr("tests.fake_spark.PlainStatement", _Unreadable)
    session = Session(warehouse)
    for statement in ("SHOW SIEVE INDEXES ON t", "SHOW SIEVE INDEXES"):
        ((*_, state, _, _, _, _),) = session.sql(statement)
        assert state == "unreadable table: [SIEVE_UNSUPPORTED_TABLE] its folder is gone"
    for extended in ("", "EXTENDED "):
        facts = dict(session.sql(f"DESCRIBE SIEVE INDEX {extended}id_sieve ON t"))
        assert facts["problem"].startswith("unreadable table: ")
        assert facts["version"] == "1"
    assert len(session.sql("SHOW SIEVE VERSIONS ON t")) == 1
    assert session.sql("VACUUM SIEVE INDEX ON t") == [("id_sieve", 0, 0, 0)]
    for statement in ("REFRESH SIEVE INDEX ON t", "CHECK SIEVE INDEX ON t"):
        with pytest.raises(SieveError, match="folder is gone"):
            session.sql(statement)
    alter = "ALTER SIEVE INDEX id_sieve ON t"
    assert session.sql(f"{alter} DISABLE") == [("id_sieve", "disabled")]
    assert session.sql(f"{alter} ENABLE") == [("id_sieve", "ready")]
    assert session.sql(f"{alter} SET OPTIONS (budget = '2%')") == [("id_sieve", "ready")]
    assert session.sql("DROP SIEVE INDEX ON t (ID)") == [("id_sieve",)]
    assert session.sql("DROP SIEVE INDEX IF EXISTS id_sieve ON t") == []
    assert session.sql("SHOW SIEVE INDEXES ON t") == []
