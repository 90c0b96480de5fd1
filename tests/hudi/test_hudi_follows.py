"""With spark.sieve.refresh.auto, a background refresh follows each Hudi commit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import bundle
import pytest
import tables
from spark_session import Lab

pytestmark = pytest.mark.hudi

KINDS = ["cow", "mor"]
WAIT_S = 60


@contextmanager
def followed(lab: Lab, database: str, kind: str) -> Iterator[None]:
    """Makes four slices of a hundred keys each, and two indexes with automatic refresh."""
    with lab.database(database), lab.setting("spark.sieve.refresh.auto", "true"):
        tables.create(lab, kind, parts=True)
        tables.fill(lab, 0, 400)
        lab.sql("CREATE SIEVE INDEX ON t (id, amount)")
        yield


def caught_up(lab: Lab, slices: int = 4) -> None:
    """Waits until both indexes reflect the newest commit and contain ``slices`` slices."""
    newest = list(tables.completions(lab).values())[-1]
    until = time.monotonic() + WAIT_S
    while True:
        rows = lab.sql("SHOW SIEVE INDEXES ON t")
        if [(row[8], row[9]) for row in rows] == [(newest, slices)] * 2:
            break
        assert time.monotonic() < until, f"not refreshed in {WAIT_S} s to {newest}: {rows}"
        time.sleep(0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_statements_are_followed(lab: Lab, kind: str) -> None:
    """A refresh follows each statement that changes rows or partitions, even INSERT OVERWRITE."""
    with followed(lab, "hudi_followed", kind):
        tables.fill(lab, 400, 500)
        caught_up(lab, 5)
        lab.check("SELECT * FROM t WHERE id = 450", exactly=1)
        lab.sql("UPDATE t SET amount = 5000, ts = 2 WHERE id = 345")
        caught_up(lab, 5)
        assert lab.check("SELECT * FROM t WHERE amount = 5000", exactly=1).rows
        lab.check("SELECT * FROM t WHERE id = 45", exactly=1)
        lab.sql(
            "MERGE INTO t USING (SELECT id, 6000L AS amount, 'm' AS word, 3L AS ts, "
            "CAST(id div 100 AS INT) AS part FROM range(498, 502)) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        caught_up(lab, 6)
        assert len(lab.check("SELECT * FROM t WHERE amount = 6000", exactly=2).rows) == 4
        lab.sql("DELETE FROM t WHERE id = 123")
        caught_up(lab, 6)
        lab.check("SELECT * FROM t WHERE id = 123", exactly=0)
        lab.sql("ALTER TABLE t DROP PARTITION (part = 1)")
        caught_up(lab, 5)
        lab.check("SELECT * FROM t WHERE id = 150", exactly=0)
        lab.sql(f"INSERT OVERWRITE t {tables.rows(1000, 1200)}")
        caught_up(lab, 2)
        lab.check("SELECT * FROM t WHERE id = 1150", exactly=1)
        lab.sql("TRUNCATE TABLE t")
        lab.check("SELECT * FROM t WHERE id = 1150", exactly=0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_dataframe_writer_is_followed(lab: Lab, kind: str) -> None:
    """A refresh follows each DataFrame write: save to the folder, saveAsTable and insertInto."""
    with followed(lab, "hudi_saved", kind):
        options = {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.metadata.enable": "false",
        }
        written = lab.spark.sql(tables.rows(400, 450)).write.format("hudi").options(**options)
        written.mode("append").save(str(tables.folder(lab)))
        caught_up(lab, 5)
        # Once a session has read a table, Spark does not tell the session about writes to the
        # table's folder.
        lab.sql("REFRESH TABLE t")
        assert lab.check("SELECT * FROM t WHERE id = 440", exactly=1).rows
        lab.check("SELECT * FROM t WHERE id = 45", exactly=1)
        changed = "SELECT 45 AS id, 5000L AS amount, 'w' AS word, 9L AS ts, 0 AS part"
        written = lab.spark.sql(changed).write.format("hudi").options(**options)
        written.mode("append").save(f"file:{tables.folder(lab)}")
        caught_up(lab, 5)
        lab.sql("REFRESH TABLE t")
        assert lab.check("SELECT * FROM t WHERE amount = 5000", exactly=1).rows
        written = lab.spark.sql(tables.rows(500, 550)).write.format("hudi").partitionBy("part")
        # The saveAsTable below makes two slices. Without the option `path`, Hudi would try to
        # create a managed table, and would fail.
        written.option("path", str(tables.folder(lab))).mode("append").saveAsTable("t")
        caught_up(lab, 7)
        lab.sql("REFRESH TABLE t")
        assert lab.check("SELECT * FROM t WHERE id = 540", at_most=2).rows
        lab.spark.sql(tables.rows(600, 650)).write.insertInto("t")
        caught_up(lab, 8)
        assert lab.check("SELECT * FROM t WHERE id = 640", exactly=1).rows


@pytest.mark.skipif(
    bundle.VERSION.startswith("1.0."), reason="that Hudi asks saveAsTable for a path, and fails"
)
def test_overwritten_table_gets_its_indexes_back(lab: Lab) -> None:
    """If saveAsTable drops and re-creates a table, Sieve registers the table's indexes again."""
    with followed(lab, "hudi_saved_anew", "cow"):
        written = lab.spark.sql(tables.rows(1000, 1200)).write.format("hudi").partitionBy("part")
        written = written.options(primaryKey="id", **{"hoodie.metadata.enable": "false"})
        written.mode("overwrite").saveAsTable("t")
        caught_up(lab, 2)
        assert lab.check("SELECT * FROM t WHERE id = 1150", exactly=1).rows
        lab.check("SELECT * FROM t WHERE id = 150", exactly=0)


def test_write_of_a_folder_leaves_indexes_unchanged(lab: Lab) -> None:
    """A write under the table's name, but to another folder, changes no index of the table."""
    with followed(lab, "hudi_elsewhere", "cow"):
        other = tables.folder(lab).with_name("elsewhere")
        written = lab.spark.sql(tables.rows(0, 100)).write.format("hudi")
        written = written.option("hoodie.table.name", "t").option("hoodie.metadata.enable", "false")
        written.option("hoodie.datasource.write.recordkey.field", "id").save(str(other))
        tables.fill(lab, 400, 500)
        caught_up(lab, 5)
        assert [row[1] for row in lab.sql("SHOW SIEVE VERSIONS id_sieve ON t")] == [2, 1]
        lab.check("SELECT * FROM t WHERE id = 450", exactly=1)


def test_a_compaction_is_followed(lab: Lab) -> None:
    """A refresh follows RUN COMPACTION, which makes new base files for slices with log files."""
    with followed(lab, "hudi_compacted", "mor"):
        with lab.setting("spark.sieve.refresh.auto", "false"):
            lab.sql("UPDATE t SET amount = 5000 WHERE id = 345")
        with lab.setting("hoodie.compact.inline.max.delta.commits", "1"):
            lab.sql("SCHEDULE COMPACTION ON t")
        lab.sql("RUN COMPACTION ON t")
        caught_up(lab)
        assert lab.check("SELECT * FROM t WHERE amount = 5000", exactly=1).rows
