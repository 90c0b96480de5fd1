"""Tests files and snapshots that other writers make, but that Spark itself rarely makes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from iceberg_tables import AUDITED, create, insert, namespace
from spark_session import Lab

pytestmark = pytest.mark.iceberg


@pytest.fixture(autouse=True)
def database(lab: Lab) -> Iterator[None]:
    """Creates a namespace for each test; an audit checks every skipped file."""
    with namespace(lab, "spark_catalog.kinds"), lab.settings(AUDITED):
        yield


def iceberg(lab: Lab) -> Any:
    """The table `t` as an object of Iceberg's Java library."""
    jvm: Any = lab.spark._jvm
    return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
        lab.spark._jsparkSession, "kinds.t"
    )


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_formats_in_one_table(lab: Lab, mode: str) -> None:
    """If a table has Parquet, ORC and Avro files, queries skip files of each format."""
    create(lab, write_delete_mode=mode)
    for k, kind in enumerate(["parquet", "orc", "avro"]):
        lab.sql(f"ALTER TABLE t SET TBLPROPERTIES ('write.format.default' = '{kind}')")
        insert(lab, files=4, start=40 * k)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    for wanted in (5, 45, 85):
        lab.check(f"SELECT * FROM t WHERE id = {wanted}", exactly=1)
    lab.check("SELECT * FROM t WHERE id IN (5, 45, 85, 500)", exactly=3)
    lab.sql("DELETE FROM t WHERE id IN (5, 45, 85)")
    lab.sql("REFRESH SIEVE INDEX ON t")
    assert lab.check("SELECT * FROM t WHERE id IN (5, 45, 85)").rows.total() == 0
    assert lab.check("SELECT * FROM t WHERE id IN (6, 46, 86)", at_most=3).rows.total() == 3


def test_files_that_were_added(lab: Lab, tmp_path: Path) -> None:
    """Queries skip files of another writer, even if these files contain no field ids.

    In files without field ids, Iceberg finds columns by name.
    """
    create(lab)
    insert(lab, files=2)
    rows = lab.spark.sql("SELECT id, concat('f', id) v FROM range(100, 140)")
    rows.repartitionByRange(4, "id").write.parquet(str(tmp_path / "foreign"))
    lab.sql(
        "CALL spark_catalog.system.add_files(table => 'kinds.t', "
        f"source_table => '`parquet`.`{tmp_path}/foreign`')"
    )
    lab.sql("CREATE SIEVE INDEX ON t (id, v)")
    lab.check("SELECT * FROM t WHERE id = 115", exactly=1)
    lab.check("SELECT * FROM t WHERE v = 'f125' OR id = 3", exactly=2)
    lab.sql("ALTER TABLE t RENAME COLUMN id TO number")
    # The rename also changes the table's name mapping, so queries read all files until REFRESH.
    assert lab.check("SELECT * FROM t WHERE number = 115", exactly=6).rows.total() == 1
    lab.sql("REFRESH SIEVE INDEX ON t")
    assert lab.check("SELECT * FROM t WHERE number = 115", exactly=1).rows.total() == 1
    lab.sql("ALTER TABLE t DROP COLUMN v")
    lab.sql("ALTER TABLE t ADD COLUMN v STRING")
    # Iceberg finds the columns of these files by name, so the files also have the new column.
    assert lab.check("SELECT * FROM t WHERE v IS NULL").rows.total() == 20
    assert lab.check("SELECT * FROM t WHERE v = 'f125'").rows.total() == 1


def test_equality_deletes(lab: Lab) -> None:
    """An equality delete hides rows of older files, but not rows of newer files."""
    create(lab)
    insert(lab)
    lab.sql("CREATE SIEVE INDEX ON t (id, v)")
    table, jvm = iceberg(lab), lab.spark._jvm
    deleted = table.schema().select(["v"])
    ids = lab.spark.sparkContext._gateway.new_array(jvm.int, 1)
    ids[0] = 2
    builder = getattr(jvm.org.apache.iceberg.data, "GenericFileWriterFactory$Builder")
    parquet = jvm.org.apache.iceberg.FileFormat.PARQUET
    factory = builder(table).deleteFileFormat(parquet).equalityFieldIds(ids)
    file = table.io().newOutputFile(f"{table.location()}/data/deleted.parquet")
    writer = factory.equalityDeleteRowSchema(deleted).build().newEqualityDeleteWriter(
        jvm.org.apache.iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(file),
        table.spec(), None)  # fmt: skip
    row = jvm.org.apache.iceberg.data.GenericRecord.create(deleted)
    row.setField("v", "v0")
    writer.write(row)
    writer.close()
    table.newRowDelta().addDeletes(writer.toDeleteFile()).commit()
    lab.sql("REFRESH TABLE t")
    assert lab.check("SELECT * FROM t WHERE id IN (41, 42)", exactly=1).rows.total() == 1
    assert lab.check("SELECT * FROM t WHERE v = 'v0'").rows.total() == 0
    # A file with deleted rows gives no bound. Each file has deleted rows, so the query reads all
    # ten files.
    lab.check("SELECT id FROM t ORDER BY id LIMIT 10", exactly=10)
    lab.sql("INSERT INTO t VALUES (42, 'v0')")
    lab.sql("REFRESH SIEVE INDEX ON t")
    assert lab.check("SELECT * FROM t WHERE id = 42", exactly=2).rows.total() == 1
    lab.sql("MERGE INTO t USING (SELECT 42L id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert lab.check("SELECT * FROM t WHERE id IN (42, 43)").rows.total() == 1


def test_queries_work_after_cherry_pick_and_expiry(lab: Lab) -> None:
    """After a cherry-pick, queries return the staged rows. Expired snapshots change no rows."""
    create(lab, write_wap_enabled="true")
    insert(lab)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    with lab.setting("spark.wap.id", "staged"):
        lab.sql("INSERT INTO t VALUES (42, 'staged')")
    # A session reads the staged snapshot only while `spark.wap.id` is set.
    assert lab.check("SELECT * FROM t WHERE id = 42", exactly=1).rows.total() == 1
    ((staged,),) = lab.sql(
        "SELECT snapshot_id FROM spark_catalog.kinds.t.snapshots ORDER BY committed_at DESC LIMIT 1"
    )
    lab.sql(f"CALL spark_catalog.system.cherrypick_snapshot('kinds.t', {staged})")
    assert lab.check("SELECT * FROM t WHERE id = 42", exactly=2).rows.total() == 2
    lab.sql("CACHE TABLE t")
    assert lab.check("SELECT * FROM t WHERE id = 42").rows.total() == 2
    lab.sql("UNCACHE TABLE t")
    lab.sql("DELETE FROM t WHERE id BETWEEN 40 AND 49")
    lab.sql("CALL spark_catalog.system.expire_snapshots(table => 'kinds.t', "
            "older_than => TIMESTAMP '2100-01-01', retain_last => 1)")  # fmt: skip
    assert lab.check("SELECT * FROM t WHERE id = 42", at_most=1).rows.total() == 0
    assert lab.check("SELECT * FROM t WHERE id = 52", exactly=1).rows.total() == 1
