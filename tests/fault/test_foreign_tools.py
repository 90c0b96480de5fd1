"""Another tool, such as a Hive client, reads table properties and later writes old values back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_scenarios import age, prepared

from tests.fake_scan import Scan, scan
from tests.fake_spark import Session, Warehouse, registrations, without_spark

CREATE = "CREATE SIEVE INDEX ON t (id) OPTIONS (error = 1)"
DROP = "DROP SIEVE INDEX id_sieve ON t"


@pytest.fixture(autouse=True)
def plain() -> Iterator[None]:
    """Runs each test with `tests.fake_spark` instead of Spark."""
    with without_spark():
        yield


def after(warehouse: Warehouse, *statements: str) -> Scan:
    """Runs statements after a tool reads the table's properties and before it writes them back.

    Returns a scan after the tool's write.
    """
    before = warehouse.properties("t")
    for statement in statements:
        Session(warehouse).sql(statement)
    warehouse.alter("t", lambda _: before)
    return scan(warehouse, "t", 13)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """A warehouse with a table without an index."""
    made, _ = prepared(tmp_path, "create")
    return made


def test_create_is_undone(warehouse: Warehouse) -> None:
    """If another tool undoes CREATE's registration, scans read all files until REFRESH.

    VACUUM keeps the unregistered index.
    """
    assert after(warehouse, CREATE).files == 4
    age(warehouse)
    Session(warehouse).sql("VACUUM SIEVE INDEXES RETAIN 0 HOURS")
    assert Session(warehouse).sql("REFRESH SIEVE INDEX ON t")[0][1] == 1
    assert scan(warehouse, "t", 13).files == 1


def test_drop_is_undone(warehouse: Warehouse) -> None:
    """If another tool undoes DROP, the restored property refers to a deleted index.

    REFRESH cannot restore the dropped index, but CREATE makes a new index.
    """
    Session(warehouse).sql(CREATE)
    told = after(warehouse, DROP)
    assert (told.files, told.reasons) == (4, ("index-gone",))
    assert Session(warehouse).sql("SHOW SIEVE INDEXES ON t")[0][6] == "gone"
    with pytest.raises(Exception, match="SIEVE_INDEX_NOT_USABLE"):
        Session(warehouse).sql("REFRESH SIEVE INDEX ON t")
    Session(warehouse).sql(CREATE)
    assert scan(warehouse, "t", 13).files == 1


@pytest.mark.parametrize("name", ["", "id_sieve "])
def test_drop_and_create_are_undone(warehouse: Warehouse, name: str) -> None:
    """After DROP and CREATE, another tool restores the registration of the dropped index.

    REFRESH then registers the new index again.
    """
    Session(warehouse).sql(CREATE)
    assert after(warehouse, DROP, CREATE).files == 4
    age(warehouse)
    Session(warehouse).sql("VACUUM SIEVE INDEXES RETAIN 0 HOURS")
    assert Session(warehouse).sql(f"REFRESH SIEVE INDEX {name}ON t")[0][1] == 1
    told = scan(warehouse, "t", 13)
    assert (told.files, told.used) == (1, ("id_sieve@1",))
    assert len(list(warehouse.root.iterdir())) == 1


def test_a_refresh_and_a_switch_are_not_undone(warehouse: Warehouse) -> None:
    """Another tool cannot undo a REFRESH or ALTER, as table properties contain no index version."""
    Session(warehouse).sql(CREATE)
    warehouse.append("t", range(40, 50))
    told = after(warehouse, "REFRESH SIEVE INDEX ON t")
    assert (told.files, told.used) == (1, ("id_sieve@2",))
    told = after(warehouse, "ALTER SIEVE INDEX id_sieve ON t DISABLE")
    assert (told.files, told.reasons) == (5, ("disabled",))


def test_unfinished_drop_and_create_are_undone(warehouse: Warehouse) -> None:
    """Sieve keeps a newer index even if another tool registers the half-dropped index again."""
    Session(warehouse).sql(CREATE)
    before = warehouse.properties("t")

    def dies(what: str) -> None:
        if what.startswith("before delete"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Session(warehouse, dies).sql(DROP)
    Session(warehouse).sql(CREATE)
    (new,) = registrations(warehouse.properties("t")).values()
    warehouse.alter("t", lambda _: before)
    assert len(list(warehouse.root.iterdir())) == 2
    age(warehouse)
    Session(warehouse).sql("VACUUM SIEVE INDEXES RETAIN 0 HOURS")
    assert (warehouse.root / json.loads(new)["uuid"] / "registered").exists()
    Session(warehouse).sql("REFRESH SIEVE INDEX ON t")
    told = scan(warehouse, "t", 13)
    assert (told.files, told.used) == (1, ("id_sieve@1",))
