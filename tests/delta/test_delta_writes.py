"""If commands write to an indexed Delta table, queries lose no row, and the index remains."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from delta_tables import (
    AUDITED,
    MAPPED,
    REPLACEABLE,
    ROWS,
    VECTORS,
    create,
    insert,
    replace,
    wait_for,
)
from spark_session import Lab

pytestmark = pytest.mark.delta


@pytest.fixture(autouse=True)
def database(lab: Lab) -> Iterator[None]:
    """Creates a database for each test; an audit checks every skipped file."""
    with lab.database("writes"), lab.settings(AUDITED):
        yield


@pytest.mark.parametrize("vectors", [{}, VECTORS], ids=["rewriting", "vectors"])
def test_dml_changes_the_same_rows_as_without_an_index(lab: Lab, vectors: dict[str, str]) -> None:
    """DELETE, UPDATE and MERGE leave the same rows as in a twin table without an index."""
    for table in ("t", "twin"):
        create(lab, table, mapping=MAPPED, vectors=vectors)
        insert(lab, ROWS, table)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    lab.sql(
        "CREATE TABLE s USING parquet AS SELECT /*+ COALESCE(1) */ "
        "CAST(id AS BIGINT) AS id, 'new' AS v FROM range(95, 105)"
    )
    for statement in (
        "DELETE FROM {t} WHERE id = 42",
        "DELETE FROM {t} WHERE id IN (5, 66) OR id > 97",
        "UPDATE {t} SET v = 'up' WHERE id BETWEEN 18 AND 22",
        "UPDATE {t} SET id = id + 1000 WHERE id = 33",
        (
            "MERGE INTO {t} USING s ON {t}.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v "
            "WHEN NOT MATCHED THEN INSERT *"
        ),
        "MERGE INTO {t} USING s ON {t}.id = s.id AND {t}.id > 100 WHEN MATCHED THEN DELETE",
        "MERGE INTO {t} USING s ON {t}.id = s.id + 20 WHEN NOT MATCHED THEN INSERT *",
        (
            "MERGE INTO {t} USING s ON {t}.id = s.id WHEN MATCHED THEN UPDATE SET v = 'seen' "
            "WHEN NOT MATCHED BY SOURCE AND {t}.id < 12 THEN DELETE"
        ),
    ):
        for table in ("t", "twin"):
            lab.sql(statement.format(t=table))
        same = "SELECT count(*) FROM (SELECT * FROM {} EXCEPT ALL SELECT * FROM {})"
        assert lab.sql(same.format("t", "twin")) == [(0,)], statement
        assert lab.sql(same.format("twin", "t")) == [(0,)], statement
        lab.sql("REFRESH SIEVE INDEX ON t")
        lab.check("SELECT * FROM t WHERE id IN (7, 33, 42, 99, 1033)")
    assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}


def test_a_replaced_table_keeps_its_indexes(lab: Lab) -> None:
    """After CREATE OR REPLACE TABLE drops all properties, Sieve registers the indexes again."""
    create(lab, mapping=REPLACEABLE)
    insert(lab, ROWS)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    uuid = lab.facts()["uuid"]
    lab.check("SELECT * FROM t WHERE id = 42", exactly=1)
    replace(lab)
    wait_for(lab, "id_sieve", "uuid", uuid)
    assert lab.check("SELECT * FROM t WHERE id = 42").rows.total() == 1
    lab.sql("REFRESH SIEVE INDEX ON t")
    assert lab.check("SELECT * FROM t WHERE id = 42", exactly=1).rows.total() == 1
    lab.sql("DROP SIEVE INDEX ON t (id)")
    assert lab.sql("SHOW SIEVE INDEXES ON t") == []


def test_overwriting_by_save_as_table_keeps_the_indexes(lab: Lab) -> None:
    """If saveAsTable overwrites a table, Delta drops the property that registers the index.

    After the overwrite, Sieve registers the index again.
    """
    create(lab)
    insert(lab, ROWS)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    uuid = lab.facts()["uuid"]
    rows = lab.spark.range(0, 50, 1, 5).selectExpr("id", "'x' v")
    rows.write.format("delta").mode("overwrite").saveAsTable("t")
    wait_for(lab, "id_sieve", "uuid", uuid)
    assert lab.check("SELECT * FROM t WHERE id = 42").rows.total() == 1
    lab.sql("REFRESH SIEVE INDEX ON t")
    assert lab.check("SELECT * FROM t WHERE id IN (42, 77)", exactly=1).rows.total() == 1


def test_index_survives_a_rewrite_of_the_catalog_entry(lab: Lab) -> None:
    """After ADD COLUMN, Delta rewrites the table's catalog entry without the index's property.

    Sieve registers the index again, and queries use the index.
    """
    with lab.setting("spark.databricks.delta.catalog.update.enabled", "true"):
        create(lab)
        insert(lab, ROWS)
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        uuid = lab.facts()["uuid"]
        lab.sql("ALTER TABLE t ADD COLUMN more INT")
        catalog = lab.spark._jsparkSession.sharedState().externalCatalog()
        deadline = time.monotonic() + 15
        while "more" not in catalog.getTable("writes", "t").schema().fieldNames():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        while not lab.sql("SHOW SIEVE INDEXES ON t"):
            assert time.monotonic() < deadline
            time.sleep(0.1)
    assert lab.facts()["uuid"] == uuid
    lab.sql("REFRESH SIEVE INDEX ON t")
    lab.check("SELECT * FROM t WHERE id = 42", exactly=1)


def test_drop_table_deletes_the_index(lab: Lab) -> None:
    """DROP TABLE deletes the table's index.

    A later table with the same name and folder has no index.
    """
    create(lab)
    insert(lab, ROWS)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    lab.sql("DROP TABLE t")
    create(lab)
    insert(lab, ROWS)
    lab.check("SELECT * FROM t WHERE id = 42", exactly=10)
    assert lab.sql("SHOW SIEVE INDEXES ON t") == []


def test_refreshes_follow_writes(lab: Lab) -> None:
    """With spark.sieve.refresh.auto, a refresh soon follows each kind of commit."""
    create(lab, vectors=VECTORS)
    insert(lab, ROWS)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    with lab.setting("spark.sieve.refresh.auto", "true"):
        for statement in (
            "INSERT INTO t VALUES (500, 'a')",
            "DELETE FROM t WHERE id = 3",
            "UPDATE t SET v = 'b' WHERE id = 4",
            (
                "MERGE INTO t USING (SELECT 501L AS id, 'c' AS v) s ON t.id = s.id "
                "WHEN NOT MATCHED THEN INSERT *"
            ),
            "OPTIMIZE t",
            "RESTORE TABLE t TO VERSION AS OF 2",
            "INSERT OVERWRITE t SELECT id, 'd' FROM range(20)",
        ):
            lab.sql(statement)
            (newest,) = lab.spark.sql("DESCRIBE HISTORY t LIMIT 1").collect()
            deadline = time.monotonic() + 60
            while f"(version {newest['version']})" not in lab.facts()["instant"]:
                assert time.monotonic() < deadline, statement
                time.sleep(0.5)
            lab.check("SELECT * FROM t WHERE id = 5", exactly=1)
        more = lab.spark.range(7, 8).selectExpr("id", "'e' v")
        more.write.format("delta").mode("append").saveAsTable("t")
        wait_for(lab, "id_sieve", "files new", "0")
