"""For each kind of Delta table and column, the index skips files and loses no row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import delta_jars
import pytest
from delta_tables import AUDITED, ROWS, create, insert
from driver import DriverError, driver
from pyspark.errors import PySparkException
from spark_session import Lab

from sieve.client.spark_conf import EXTENSIONS

pytestmark = pytest.mark.delta


@pytest.fixture(autouse=True)
def database(lab: Lab) -> Iterator[None]:
    """Creates a database for each test; an audit checks every skipped file."""
    with lab.database("kinds"), lab.settings(AUDITED):
        yield


def test_identity_and_generated_columns(lab: Lab) -> None:
    """INSERT changes the metadata of an identity column, but queries still use the index."""
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
    """A Parquet table keeps its index when a user converts the table to Delta."""
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
    """DELETE and UPDATE read only the files that can contain rows to change."""
    create(lab, vectors={"delta.enableDeletionVectors": vectors})
    insert(lab, ROWS)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    with lab.setting("spark.sieve.audit.sample", "0"):
        for statement in ("DELETE FROM t WHERE id = 42", "UPDATE t SET v = 'u' WHERE id = 77"):
            assert _skipped_by(lab, statement) == 9, statement
            lab.sql("REFRESH SIEVE INDEX ON t")
    assert lab.sql("SELECT count(*), count_if(v = 'u') FROM t") == [(99, 1)]


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_keys_of_a_merge_pick_files(lab: Lab, vectors: str) -> None:
    """MERGE reads only the target files that can contain keys of the source."""
    create(lab, vectors={"delta.enableDeletionVectors": vectors})
    insert(lab, ROWS)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    lab.sql("CREATE TABLE s USING parquet AS SELECT id, 'm' v FROM VALUES (42L), (77L) s(id)")
    merge = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v"
    with lab.setting("spark.sieve.audit.sample", "0"):
        assert _skipped_by(lab, merge) == 8
        assert lab.sql("SELECT count(*), count_if(v = 'm') FROM t") == [(100, 2)]
        (done,) = lab.spark.sql("DESCRIBE HISTORY t LIMIT 1").collect()
        counted = done["operationMetrics"]
        assert (counted["numSourceRows"], counted["numTargetRowsUpdated"]) == ("2", "2")
        lab.sql("REFRESH SIEVE INDEX ON t")
        twice = merge.replace("USING s", "USING (SELECT * FROM s UNION ALL SELECT * FROM s) s")
        with pytest.raises(PySparkException, match="MULTIPLE_SOURCE_ROW_MATCHING"):
            lab.sql(twice)
        # WHEN NOT MATCHED BY SOURCE also needs the target rows without a matching source row.
        assert _skipped_by(lab, f"{merge} WHEN NOT MATCHED BY SOURCE THEN DELETE") == 0
    assert sorted(lab.sql("SELECT * FROM t")) == [(42, "m"), (77, "m")]


def test_advice_says_that_ranges_have_no_effect(lab: Lab) -> None:
    """With granularity = 'range', statements warn that Sieve reads files of Delta tables whole."""
    create(lab)
    insert(lab, ROWS)
    words = "granularity = 'range' has no effect: files of Delta tables are read whole"
    with lab.settings({"spark.sieve.range.bytes": "100", "parquet.block.row.count.limit": "2"}):
        ((*_, change, advice),) = lab.sql(
            "CREATE SIEVE INDEX ON t (id) OPTIONS (granularity = 'range')"
        )
        assert change == "created"
        assert advice.startswith(words)
        assert lab.facts()["advice"].startswith(words)
        (scan,) = lab.explain("SELECT * FROM t WHERE id = 42")
        assert (scan["files_read"], scan["ranges_total"]) == (1, scan["files_total"])
        lab.check("SELECT * FROM t WHERE id = 42", exactly=1)
        lab.sql("ALTER SIEVE INDEX id_sieve ON t SET OPTIONS (granularity = 'file')")
        assert [row[-1] for row in lab.sql("REFRESH SIEVE INDEX ON t")] == [None]
        assert "advice" not in lab.facts()
        found = lab.sql("ESTIMATE SIEVE INDEX EXTENDED ON t (id) OPTIONS (granularity = 'range')")
        assert len(found) > 1
        assert all(row[-1].startswith(words) for row in found)


def test_optimize_reads_all_files(lab: Lab) -> None:
    """OPTIMIZE of a partition reads all files of the partition; the index skips no file."""
    create(lab, more="PARTITIONED BY (v)")
    insert(lab, "id, 'all' v")
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    assert _skipped_by(lab, "OPTIMIZE t WHERE v = 'all'") == 0
    assert lab.sql("SELECT count(*), sum(id) FROM t") == [(100, 4950)]
    lab.sql("REFRESH SIEVE INDEX ON t")
    lab.check("SELECT * FROM t WHERE id = 42", exactly=1)


def test_extensions_in_the_other_order(tmp_path: Path) -> None:
    """Scans use deletion vectors and the index even if Delta's extension comes before Sieve's."""
    conf = delta_jars.conf((delta_jars.DELTA_EXTENSION, EXTENSIONS))
    with driver(tmp_path / "one", **conf) as one:
        one.sql(
            "CREATE TABLE t USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', "
            "'delta.dataSkippingNumIndexedCols' = '0') AS "
            "SELECT /*+ REPARTITION_BY_RANGE(10, id) */ id FROM range(100)"
        )
        one.sql("CREATE SIEVE INDEX ON t (id)")
        one.sql("DELETE FROM t WHERE id = 43")
        assert one.sql("SELECT * FROM t WHERE id IN (42, 43)") == [[42]]
        assert one.files("SELECT * FROM t WHERE id = 42") == 1
        with pytest.raises(DriverError, match="SIEVE_SYNTAX_ERROR"):
            one.sql("CREATE SIEVE INDEX t")


def _skipped_by(lab: Lab, statement: str) -> int:
    """The number of files that indexes skip during a statement."""
    skipped = "SELECT value FROM sieve_status() WHERE counter = 'files_skipped'"
    (before,) = lab.sql(skipped)
    lab.sql(statement)
    (after,) = lab.sql(skipped)
    return int(after[0] - before[0])
