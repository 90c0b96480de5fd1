"""ADVISE SIEVE INDEXES suggests indexes from a driver's record of scans."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sieve.errors import DeniedError, UnavailableError
from sieve.metadata.scan_history import save_record
from sieve.storage.local import LocalStore
from sieve.workload.benefit import Benefit
from sieve.workload.driver_record import parse_record
from sieve.workload.suggest import ColumnTest
from sql_ext.driver.settings import parse_settings
from sql_ext.statements import advise
from sql_ext.statements.table_functions import FUNCTIONS
from tests.fake_spark import PlainStatement, Session, Warehouse, without_spark

COLUMNS = [
    "action", "namespace", "table", "column", "index", "asked", "scans", "files_before",
    "files_after", "bytes_read", "bytes_saved", "statement", "estimate",
]  # fmt: skip


@pytest.fixture(autouse=True)
def tests(monkeypatch: pytest.MonkeyPatch) -> dict[str, ColumnTest]:
    """Replaces the test of a column's data by a fixed result per table.

    By default, each value is in one of ten files.
    """
    of_tables: dict[str, ColumnTest] = {}
    usual = ColumnTest(Benefit.HELPS, 10, 1.0, 1.0, 3.0)

    def found(table: Any, *_: Any) -> ColumnTest:
        return of_tables.get(table.info.identity.table, usual)

    monkeypatch.setattr(advise, "column_test", found)
    return of_tables


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """Creates two tables of four files, each with a column id."""
    made = Warehouse(tmp_path)
    for name in ("t", "u"):
        made.create_table(name, [range(10 * k, 10 * k + 10) for k in range(4)])
    with without_spark():
        yield Session(made)


def scanned(
    session: Session,
    table: str,
    *used: str,
    column: str = "id",
    database: str = "shop",
    op: str = "=",
    scans: int = 1,
    size: int = 1000,
    skipped: int = 0,
    files_skipped: int = 0,
) -> None:
    """Adds scans to the driver's record; each scan has ten files."""
    tree = {"op": op, "col": [column]}
    asked = {"table": [database, table], "used": list(used), "filter": tree}
    session.recorded["since"] = round(time.time() * 1000)
    session.recorded["scans"].append(
        {
            "asked": json.dumps(asked),
            "scans": scans,
            "bytes": size,
            "files": 10 * scans,
            "files_skipped": files_skipped,
            "bytes_skipped": skipped,
        }
    )


def advice(session: Session, scope: str = "") -> list[dict[str, Any]]:
    """Runs ADVISE SIEVE INDEXES, and returns its rows as dictionaries."""
    rows = session.sql(f"ADVISE SIEVE INDEXES {scope}")
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def test_an_empty_record_advises_nothing(session: Session) -> None:
    """If the driver has not run a query yet, ADVISE returns no rows."""
    assert advice(session) == advice(session, "ON t") == []


def test_index_that_saves_the_most_comes_first(session: Session) -> None:
    """The index that saves the most bytes is first, and each row has a statement to copy."""
    scanned(session, "t", op=">", size=600)
    scanned(session, "u", size=2000, scans=2)
    session.recorded["since"] -= 4 * 86_400_000
    first, second = advice(session)
    assert first["scans"] == pytest.approx(0.5, rel=1e-3)
    assert first | {"scans": 0.5} == {
        "action": "create",
        "namespace": "shop",
        "table": "u",
        "column": "id",
        "index": None,
        "asked": "= 2",
        "scans": 0.5,
        "files_before": 10.0,
        "files_after": 1.0,
        "bytes_read": 500,
        "bytes_saved": 450,
        "statement": "CREATE SIEVE INDEX ON shop.u (id)",
        "estimate": "ESTIMATE SIEVE INDEX ON shop.u (id)",
    }
    assert (second["table"], second["asked"], second["bytes_saved"]) == ("t", "range 1", 100)


def test_a_table_or_a_database(session: Session) -> None:
    """ON limits the rows to one table, and IN limits them to one database, in any letter case."""
    scanned(session, "t")
    scanned(session, "u")
    scanned(session, "t", database="other")
    assert [row["table"] for row in advice(session, "ON u")] == ["u"]
    assert {row["namespace"] for row in advice(session)} == {"shop"}
    assert len(advice(session, "IN SHOP")) == 2
    assert [row["namespace"] for row in advice(session, "IN other")] == ["other"]


def test_column_that_an_index_cannot_help_is_not_suggested(
    session: Session, tests: dict[str, ColumnTest]
) -> None:
    """ADVISE suggests no column if a test on the column's data shows that no index helps."""
    scanned(session, "t", size=3000)
    scanned(session, "u")
    tests["t"] = ColumnTest(Benefit.CANNOT, 10, 9.0, 9.0, 3.0)
    assert [row["table"] for row in advice(session)] == ["u"]


def test_rank_follows_the_results_of_the_tests(
    session: Session, tests: dict[str, ColumnTest]
) -> None:
    """The results of tests decide the rank of suggested indexes.

    A column with each value in one file is first.
    """
    scanned(session, "t", size=1200)
    scanned(session, "u", size=1000)
    tests["t"] = ColumnTest(Benefit.HELPS, 10, 3.0, 3.0, 3.0)
    rows = [(row["table"], row["files_after"], row["bytes_saved"]) for row in advice(session)]
    assert rows == [("u", 1.0, 900), ("t", 3.0, 840)]


def test_only_the_columns_that_could_save_most_are_tested(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test takes seconds, so ADVISE tests only the columns with the largest possible savings.

    If the test of a column fails, ADVISE tests the next column.
    """
    scanned(session, "t", size=1200)
    scanned(session, "u")
    monkeypatch.setattr(advise, "MOST_TESTED", 1)
    assert [row["table"] for row in advice(session)] == ["t"]

    def refused(table: Any, *_: Any) -> ColumnTest:
        if table.info.identity.table == "t":
            raise UnavailableError("SIEVE_UNAVAILABLE", "a file cannot be read")
        return ColumnTest(Benefit.HELPS, 10, 1.0, 1.0, 3.0)

    monkeypatch.setattr(advise, "column_test", refused)
    assert [row["table"] for row in advice(session)] == ["u"]


@pytest.mark.parametrize("scope", ["", "ON t"])
def test_tables_are_listed_without_a_job(
    session: Session, monkeypatch: pytest.MonkeyPatch, scope: str
) -> None:
    """ADVISE runs Spark jobs for a table only if it tests one of the table's columns."""
    scanned(session, "t")
    opened, table = [], PlainStatement.table

    def noted(at: Any, name: Any, **how: bool) -> Any:
        opened.append(how)
        return table(at, name, **how)

    monkeypatch.setattr(PlainStatement, "table", noted)
    assert len(advice(session, scope)) == 1
    assert opened == [{"jobs": False}, {}]


def test_existing_index_has_a_row_with_its_savings(session: Session) -> None:
    """ADVISE shows the savings of an existing index, and suggests no second index on the column."""
    session.sql("CREATE SIEVE INDEX ON t (id) OPTIONS (error = 1)")
    scanned(session, "t", "id_sieve@1", scans=6, size=600, skipped=5400, files_skipped=540)
    session.recorded["since"] -= 2 * 86_400_000
    (row,) = advice(session)
    assert row["scans"] == pytest.approx(3.0, rel=1e-3)
    assert row | {"scans": 3.0} == {
        "action": "keep",
        "namespace": "shop",
        "table": "t",
        "column": "id",
        "index": "id_sieve",
        "asked": None,
        "scans": 3.0,
        "files_before": 100.0,
        "files_after": 10.0,
        "bytes_read": 300,
        "bytes_saved": 2700,
        "statement": None,
        "estimate": None,
    }


@pytest.mark.parametrize(
    ("scans", "skipped", "action"),
    [
        (advise.WASTED_SCANS, 0, "drop"),
        (advise.WASTED_SCANS - 1, 0, "keep"),
        (advise.WASTED_SCANS, 1, "keep"),
    ],
)
def test_drop_is_suggested_after_twenty_useless_scans(
    session: Session, scans: int, skipped: int, action: str
) -> None:
    """ADVISE suggests DROP for an index that has skipped nothing in twenty scans."""
    assert advise.WASTED_SCANS == 20
    session.sql("CREATE SIEVE INDEX ON t (id) OPTIONS (error = 1)")
    scanned(session, "t", "id_sieve@1", scans=scans, skipped=skipped)
    (row,) = advice(session)
    statement = "DROP SIEVE INDEX id_sieve ON shop.t" if action == "drop" else None
    assert (row["action"], row["statement"]) == (action, statement)


@pytest.mark.parametrize(("skipped", "action"), [(9, "drop"), (20, "keep")])
@pytest.mark.parametrize("beside", [0, 10**6])
def test_drop_is_suggested_if_an_index_cannot_help(
    session: Session, monkeypatch: pytest.MonkeyPatch, skipped: int, action: str, beside: int
) -> None:
    """If statistics show that an index cannot help, ADVISE suggests DROP at once.

    ADVISE keeps an index that has skipped 1 % of the bytes in scans without another index.
    """
    session.sql("CREATE SIEVE INDEX ON t (id) OPTIONS (error = 1)")
    monkeypatch.setattr(advise, "benefit_of_version", lambda _: Benefit.CANNOT)
    scanned(session, "t", "id_sieve@1", skipped=skipped)
    if beside:
        scanned(session, "t", "id_sieve@1", "other@1", skipped=beside)
    (row,) = advice(session)
    assert row["action"] == action
    assert (row["bytes_saved"] == 0) == (action == "drop")


def test_unused_index_has_no_row(session: Session) -> None:
    """ADVISE has no row for an index that no scan of this driver used."""
    session.sql("CREATE SIEVE INDEX ON t (id) OPTIONS (error = 1)")
    scanned(session, "t", op="!=")
    assert advice(session) == []


def test_rows_are_in_order(session: Session) -> None:
    """ADVISE returns indexes to create first, then indexes to drop, then indexes to keep.

    The rows of each action are sorted by savings.
    """
    for table in ("t", "u"):
        session.sql(f"CREATE SIEVE INDEX ON {table} (id) OPTIONS (error = 1)")
        session.sql(f"CREATE SIEVE INDEX two ON {table} (id) OPTIONS (error = 1)")
    scanned(session, "t", "two@1", scans=50)
    scanned(session, "t", "id_sieve@1", skipped=5)
    scanned(session, "u", "id_sieve@1", skipped=50)
    rows = [(row["action"], row["table"], row["index"]) for row in advice(session)]
    assert rows == [
        ("drop", "t", "two"),
        ("keep", "u", "id_sieve"),
        ("keep", "t", "id_sieve"),
    ]


def test_columns_that_cannot_be_indexed_are_left_out(session: Session) -> None:
    """If a column was dropped after the scans, ADVISE does not suggest it."""
    scanned(session, "t", column="gone")
    assert advice(session) == []


def test_hidden_tables_and_columns_have_no_row(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables and columns that the user cannot query have no row.

    A row about a hidden table would show the queries of other users.
    """
    scanned(session, "hidden")
    scanned(session, "t")
    assert [row["table"] for row in advice(session)] == ["t"]

    def denied(_: Any, table: Any, column: Any) -> None:
        assert (tuple(table), column.path) == (("shop", "t"), ("id",))
        raise DeniedError("SIEVE_PERMISSION_DENIED", "no")

    monkeypatch.setattr(PlainStatement, "plan_column", denied)
    assert advice(session) == []


def test_the_function_gives_the_rows_of_the_statement(session: Session) -> None:
    """`sieve_advice` returns the rows of ADVISE for the current database, or for a given one."""
    scanned(session, "t")
    function = FUNCTIONS["sieve_advice"]
    rows = session.sql("ADVISE SIEVE INDEXES")
    at = session.context()
    for given in ({}, {"database": ["shop"]}):
        assert [row[:6] for row in function.rows(given, at)] == [row[:6] for row in rows]
    assert [name for name, _ in function.columns] == COLUMNS


def saved_by_another_driver(session: Session, table: str) -> Path:
    """Saves this driver's record under the name of another driver; returns the folder."""
    scanned(session, table, size=2000, scans=2)
    session.recorded["since"] -= 4 * 86_400_000
    record = parse_record(json.dumps(session.recorded | {"driver": "a" * 32}))
    root = f"{session.databaseLocation(None, '')}/.sieve"
    save_record(LocalStore(), root, record, round(time.time() * 1000))
    session.recorded["scans"].clear()
    return Path(root.removeprefix("file:")) / "history"


def test_records_of_other_drivers_count_with_a_history(
    session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    """Other drivers' records count only if this driver also keeps a history.

    If files in the history are malformed, a warning in the log states their number.
    """
    folder = saved_by_another_driver(session, "u")
    scanned(session, "u", size=400)
    assert [row["scans"] for row in advice(session)] == [1.0]
    session.settings = parse_settings({"spark.sieve.history": "true"})
    for rows in (advice(session), advice(session, "ON u"), advice(session, "IN shop")):
        (row,) = rows
        assert row["scans"] == pytest.approx(3 / 4, rel=1e-3)
        assert row["bytes_read"] == 600
    assert caplog.text == ""
    (file,) = folder.iterdir()
    session.recorded["driver"] = "a" * 32
    assert [row["scans"] for row in advice(session)] == [1.0]
    session.recorded["driver"] = "own"
    file.write_text("?")
    assert [row["scans"] for row in advice(session)] == [1.0]
    assert "1 files" in caplog.text
    assert str(folder) in caplog.text


def test_unreadable_history_is_ignored(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    """If the history cannot be read, ADVISE uses only the scans of its own driver."""
    session.settings = parse_settings({"spark.sieve.history": "true"})
    folder = saved_by_another_driver(session, "u")
    scanned(session, "t")
    (file,) = folder.iterdir()
    file.unlink()
    folder.rmdir()
    folder.symlink_to(folder.name)
    assert [row["table"] for row in advice(session)] == ["t"]
    assert "cannot be read" in caplog.text
