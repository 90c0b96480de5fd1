"""Kinds of Delta tables and columns: files are picked as on any other, rows are those of Delta."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from delta_tables import AUDITED, ROWS, create, insert
from spark_session import Lab

pytestmark = pytest.mark.delta


@pytest.fixture(autouse=True)
def database(lab: Lab) -> Iterator[None]:
    """A database of its own for each test; each skip is audited."""
    with lab.database("kinds"), lab.settings(AUDITED):
        yield


def test_identity_and_generated_columns(lab: Lab) -> None:
    """Each INSERT changes the metadata of an identity column, and not how files are read."""
    tables = lab.spark._jvm.io.delta.tables.DeltaTable
    session = lab.spark._jsparkSession

    def column(name: str) -> object:
        return tables.columnBuilder(session, name).dataType("BIGINT")

    builder = tables.create(session).tableName("t").addColumn("v", "BIGINT")
    builder.addColumn(column("id").generatedAlwaysAsIdentity().build())
    builder.addColumn(column("twice").generatedAlwaysAs("v * 2").build())
    builder.property("delta.dataSkippingNumIndexedCols", "0").execute()
    rows = "SELECT /*+ REPARTITION_BY_RANGE({}, v) */ id AS v FROM range({}, {})"
    lab.sql(f"INSERT INTO t (v) {rows.format(10, 0, 100)}")
    lab.sql("CREATE SIEVE INDEX ON t (id, twice)")
    lab.check("SELECT * FROM t WHERE twice = 84", exactly=1)
    lab.sql(f"INSERT INTO t (v) {rows.format(1, 1000, 1010)}")
    lab.check("SELECT * FROM t WHERE twice = 84", exactly=2)
    (row,) = lab.sql("REFRESH SIEVE INDEX twice_sieve ON t")
    assert row[5] == "refreshed"
    lab.check("SELECT * FROM t WHERE twice = 2010", exactly=1)
    lab.sql("REFRESH SIEVE INDEX id_sieve ON t")
    found = lab.sql("SELECT max(id) FROM t")[0][0]
    assert lab.check(f"SELECT * FROM t WHERE id = {found}", at_most=2).rows.total() == 1
    assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}


def test_converted_files_keep_their_names(lab: Lab) -> None:
    """The index of a Parquet table stays that of the Delta table it becomes."""
    lab.sql(
        "CREATE TABLE t USING parquet AS "
        f"SELECT /*+ REPARTITION_BY_RANGE(10, id) */ {ROWS} FROM range(100)"
    )
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    uuid = lab.facts()["uuid"]
    lab.sql("CONVERT TO DELTA t")
    assert lab.check("SELECT * FROM t WHERE id = 42").rows.total() == 1
    lab.sql("REFRESH SIEVE INDEX ON t")
    assert lab.facts()["uuid"] == uuid
    assert lab.check("SELECT * FROM t WHERE id = 42", exactly=1).rows.total() == 1
    lab.sql("DELETE FROM t WHERE id = 42")
    lab.sql("REFRESH SIEVE INDEX ON t")
    assert lab.check("SELECT * FROM t WHERE id IN (42, 43)", exactly=1).rows.total() == 1
    assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_conditions_of_commands_pick_files(lab: Lab, vectors: str) -> None:
    """DELETE and UPDATE look for rows to change in files that can hold them."""
    skipped = "SELECT value FROM sieve_status() WHERE counter = 'files_skipped'"
    create(lab, vectors={"delta.enableDeletionVectors": vectors})
    insert(lab, ROWS)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    with lab.setting("spark.sieve.audit.sample", "0"):
        for statement in ("DELETE FROM t WHERE id = 42", "UPDATE t SET v = 'u' WHERE id = 77"):
            (before,) = lab.sql(skipped)
            lab.sql(statement)
            (after,) = lab.sql(skipped)
            assert after[0] - before[0] == 9, statement
            lab.sql("REFRESH SIEVE INDEX ON t")
    assert lab.sql("SELECT count(*), count_if(v = 'u') FROM t") == [(99, 1)]
