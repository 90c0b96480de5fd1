"""Queries of Delta tables return Delta's rows, and read only files that can contain these rows."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from delta_tables import MAPPED, ROWS, SPARK, VECTORS, create, insert
from pyspark.errors import PySparkException
from spark_session import Lab

pytestmark = pytest.mark.delta

GONE = (
    r"\[SIEVE_UNKNOWN_COLUMN\] table queries.t no longer has the column of index id_sieve, "
    r"which its files name .+; run DROP SIEVE INDEX id_sieve ON queries.t"
)


@pytest.fixture(autouse=True)
def database(lab: Lab) -> Iterator[None]:
    """Creates a database for each test; an audit checks every skipped file."""
    with lab.database("queries"), lab.setting("spark.sieve.audit.sample", "1.0"):
        yield


def test_constants_pick_files(lab: Lab) -> None:
    """Queries for a value, a list or a range read only the files that can contain the values."""
    create(lab)
    insert(lab, ROWS)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    lab.check("SELECT * FROM t WHERE id = 42", exactly=1)
    lab.check("SELECT * FROM t WHERE id IN (3, 97)", exactly=2)
    lab.check("SELECT * FROM t WHERE id BETWEEN 18 AND 33", exactly=3)
    lab.check("SELECT * FROM t WHERE id = 1000", exactly=0)
    lab.check("SELECT count(*) FROM t WHERE v = 'v3'", exactly=10)
    (scan,) = lab.explain("SELECT * FROM t WHERE id = 42")
    assert (scan["indexes"], scan["files_total"], scan["files_read"]) == ("id_sieve@1", 10, 1)
    kept = lab.sql("SELECT kept, count(*) FROM sieve_files('t', 'id = 42') GROUP BY kept")
    assert sorted(kept) == [(False, 9), (True, 1)]


def test_new_files_are_read_until_a_refresh(lab: Lab) -> None:
    """Until REFRESH updates the list of files, queries read the new files of INSERT or OPTIMIZE."""
    create(lab)
    insert(lab, ROWS)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    lab.sql("INSERT INTO t VALUES (42, 'new')")
    lab.check("SELECT * FROM t WHERE id = 42", exactly=2)
    assert lab.facts()["files new"] == "1"
    (row,) = lab.sql("REFRESH SIEVE INDEX ON t")
    assert row[1:3] == (2, 11)
    lab.check("SELECT * FROM t WHERE id = 43", exactly=1)
    lab.sql("OPTIMIZE t")
    lab.check("SELECT * FROM t WHERE id = -1", exactly=1)
    (row,) = lab.sql("REFRESH SIEVE INDEX ON t")
    assert row[1:3] == (3, 1)
    lab.check("SELECT * FROM t WHERE id = -1", exactly=0)


@pytest.mark.parametrize("mapping", [{}, MAPPED], ids=["plain", "mapped"])
@pytest.mark.parametrize("by_index", ["true", "false"])
def test_deletion_vectors_hide_rows(lab: Lab, mapping: dict[str, str], by_index: str) -> None:
    """Queries do not return rows that deletion vectors hide, and still skip files.

    Delta can number a file's rows in two ways. Queries are right with each way to number rows.
    """
    create(lab, mapping=mapping, vectors=VECTORS)
    insert(lab, ROWS)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    key = "spark.databricks.delta.deletionVectors.useMetadataRowIndex"
    with lab.setting(key, by_index):
        lab.sql("DELETE FROM t WHERE id % 5 = 2")
        assert lab.check("SELECT * FROM t WHERE id = 42", exactly=1).rows.total() == 0
        assert lab.check("SELECT * FROM t WHERE id IN (3, 7, 96)", exactly=2).rows.total() == 2
        assert lab.check("SELECT count(v), sum(id) FROM t", exactly=10).rows
        lab.check("SELECT _metadata.file_name, id FROM t WHERE id IN (42, 43)", exactly=1)
        (scan,) = lab.explain("SELECT * FROM t WHERE id = 43")
        assert "deleted" not in scan["predicate"]
        (row,) = lab.sql("REFRESH SIEVE INDEX ON t")
        assert row[1:3] == (2, 10)
        lab.check("SELECT * FROM t WHERE id IN (42, 43)", exactly=1)
    assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}


def test_restore_brings_rows_back(lab: Lab) -> None:
    """RESTORE makes a file's earlier deletion vector current again, or removes the file's vector.

    Queries return the rows that RESTORE brought back, even before REFRESH.
    """
    create(lab, vectors=VECTORS)
    insert(lab, ROWS)
    lab.sql("DELETE FROM t WHERE id = 42")
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    assert lab.check("SELECT * FROM t WHERE id = 42", exactly=1).rows.total() == 0
    lab.sql("RESTORE TABLE t TO VERSION AS OF 1")
    assert lab.check("SELECT * FROM t WHERE id = 42", exactly=1).rows.total() == 1
    lab.check("SELECT * FROM t VERSION AS OF 2 WHERE id = 42", exactly=1)


def test_earlier_table_version_uses_earlier_index_version(lab: Lab) -> None:
    """Queries of old table versions use index versions that contain the old files."""
    create(lab, vectors=VECTORS)
    insert(lab, ROWS)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    lab.sql("DELETE FROM t WHERE id = 43")
    lab.sql("OPTIMIZE t")
    lab.sql("REFRESH SIEVE INDEX ON t")
    for version, rows in ((1, 1), (2, 0)):
        found = lab.check(f"SELECT * FROM t VERSION AS OF {version} WHERE id = 43", exactly=1)
        assert found.rows.total() == rows
        lab.check(f"SELECT * FROM t VERSION AS OF {version} WHERE id = 1000", exactly=0)
    shown = lab.sql("SHOW SIEVE VERSIONS ON t")
    assert [row[4].partition(" ")[2] for row in shown] == ["(version 3)", "(version 1)"]
    assert [row[2] for row in shown] == ["rebuilt", "created"]


def test_a_renamed_column_keeps_its_index(lab: Lab) -> None:
    """An index follows a renamed column, even if a new column gets the old name."""
    create(lab, columns="id BIGINT, other BIGINT, s STRUCT<a: BIGINT, b: STRING>", mapping=MAPPED)
    insert(lab, "id, 1000 - id, named_struct('a', id * 3, 'b', 'x')")
    lab.sql("CREATE SIEVE INDEX ON t (id, s.a)")
    lab.sql("ALTER TABLE t RENAME COLUMN id TO past")
    lab.sql("ALTER TABLE t RENAME COLUMN other TO id")
    lab.sql("ALTER TABLE t RENAME COLUMN s.a TO c")
    lab.check("SELECT * FROM t WHERE past = 42", exactly=1)
    assert lab.check("SELECT * FROM t WHERE id = 958", exactly=10).rows.total() == 1
    lab.check("SELECT * FROM t WHERE s.c = 126", exactly=1)
    assert [row[3] for row in lab.sql("SHOW SIEVE INDEXES ON t")] == ["past", "s.c"]
    assert [row[1] for row in lab.sql("REFRESH SIEVE INDEX ON t (s.c)")] == [2]
    assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}
    lab.sql("DROP SIEVE INDEX ON t (past)")
    assert [row[3] for row in lab.sql("SHOW SIEVE INDEXES ON t")] == ["s.c"]


def test_index_of_dropped_and_added_column_is_not_used(lab: Lab) -> None:
    """If a column is dropped and added again, queries do not use the old column's index.

    In older files, all values of the new column are NULL.
    """
    create(lab, columns="v STRING, id BIGINT", mapping=MAPPED)
    insert(lab, "'x', id")
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    lab.sql("ALTER TABLE t DROP COLUMN id")
    lab.sql("ALTER TABLE t ADD COLUMN id BIGINT")
    assert lab.check("SELECT * FROM t WHERE id IS NULL").rows.total() == 100
    assert lab.check("SELECT * FROM t WHERE id = 42").rows.total() == 0
    lab.sql("INSERT INTO t VALUES ('y', 42)")
    assert lab.check("SELECT * FROM t WHERE id = 42").rows.total() == 1
    assert lab.check("SELECT * FROM t VERSION AS OF 1 WHERE id = 42", exactly=1).rows.total() == 1
    lab.sql("CREATE SIEVE INDEX new ON t (id)")
    assert lab.check("SELECT * FROM t WHERE id = 42", exactly=1).rows.total() == 1
    assert lab.check("SELECT * FROM t WHERE id IS NULL").rows.total() == 100


@pytest.mark.parametrize("later", [False, True], ids=["mapped", "mapped-later"])
def test_statements_name_the_index_of_a_dropped_column(lab: Lab, later: bool) -> None:
    """After DROP COLUMN of an indexed column, statements name the index and a remedy.

    A new column with the dropped column's name does not change the errors of the statements. The
    table's other indexes still work.
    """
    create(lab, columns="v STRING, id BIGINT", mapping={} if later else MAPPED)
    insert(lab, "concat('v', id), id")
    lab.sql("CREATE SIEVE INDEX ON t (id, v)")
    uuid = lab.facts()["uuid"]
    if later:
        lab.sql(
            "ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
            "'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')"
        )
        # After a change of the mapping mode, queries use an index only after its next REFRESH.
        lab.sql("REFRESH SIEVE INDEX ON t")
    lab.sql("ALTER TABLE t DROP COLUMN id")
    for added in ("", "ALTER TABLE t ADD COLUMN id BIGINT"):
        if added:
            lab.sql(added)
        for statement in (
            "REFRESH SIEVE INDEX id_sieve ON t FULL",
            "OPTIMIZE SIEVE INDEX id_sieve ON t",
            "CHECK SIEVE INDEX id_sieve ON t",
            "SELECT * FROM sieve_segments('t', 'id_sieve')",
        ):
            with pytest.raises(PySparkException, match=GONE):
                lab.sql(statement)
        states = {row[2]: row[6] for row in lab.sql("SHOW SIEVE INDEXES ON t")}
        assert states == {"id_sieve": "column dropped", "v_sieve": "ready"}
        facts = lab.facts()
        assert re.search(GONE, f"[SIEVE_UNKNOWN_COLUMN] {facts['problem']}")
        assert "REFRESH" not in facts["reader"]
        # The index on `v` is up to date, although the dropped column is no longer in the schema.
        lab.check("SELECT v FROM t WHERE v = 'v42'", exactly=1)
        assert {row[2] for row in lab.sql("CHECK SIEVE INDEX v_sieve ON t")} == {"ok"}
    (row,) = lab.sql("CREATE SIEVE INDEX IF NOT EXISTS ON t (id)")
    assert re.search(GONE, f"[SIEVE_UNKNOWN_COLUMN] {row[6]}")
    assert lab.facts()["uuid"] == uuid
    lab.sql("DROP SIEVE INDEX id_sieve ON t")
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}


def test_partitions_and_a_widened_type(lab: Lab) -> None:
    """The index also skips files within the partitions that Delta selects.

    After ALTER COLUMN TYPE, the index skips no file until REFRESH.
    """
    # Delta 3.3 cannot widen INT.
    narrow, wide, key = (
        ("SMALLINT", "INT", 70_042) if SPARK < (4, 0) else ("INT", "BIGINT", 5_000_000_042)
    )
    widening = {"delta.enableTypeWidening": "true"}
    more = "PARTITIONED BY (p)"
    create(lab, columns=f"id {narrow}, p STRING", more=more, mapping=MAPPED, w=widening)
    insert(lab, f"cast(id AS {narrow}), if(id < 50, 'a', 'b')")
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    lab.check("SELECT * FROM t WHERE id = 42", exactly=1)
    lab.check("SELECT * FROM t WHERE id = 42 AND p = 'b'", exactly=0)
    lab.sql("ALTER TABLE t RENAME COLUMN p TO q")
    lab.check("SELECT * FROM t WHERE id = 42 AND q = 'a'", exactly=1)
    lab.sql(f"ALTER TABLE t ALTER COLUMN id TYPE {wide}")
    lab.sql(f"INSERT INTO t VALUES ({key}, 'a')")
    lab.check("SELECT * FROM t WHERE id = 42", exactly=11)
    lab.sql("REFRESH SIEVE INDEX ON t")
    lab.check("SELECT * FROM t WHERE id = 42", exactly=1)
    lab.check(f"SELECT * FROM t WHERE id = {key}", exactly=1)


def test_delta_lists_only_the_files_of_a_limit(lab: Lab) -> None:
    """For a LIMIT, Delta lists only as many files as the LIMIT needs.

    The keys of a join above the LIMIT must not make the scan skip a listed file.
    """
    create(lab)
    insert(lab, ROWS)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    limited = "SELECT count(*) FROM (SELECT * FROM t LIMIT 15)"
    assert lab.check(limited).rows == {"(15,)": 1}
    lab.sql("CREATE TABLE d USING parquet AS SELECT 1000L AS id")
    joined = "SELECT count(l.id), count(*) FROM (SELECT * FROM t LIMIT 15) l LEFT JOIN d USING (id)"
    assert lab.check(joined).rows == {"(15, 15)": 1}
    inner = "SELECT count(*) FROM (SELECT * FROM t LIMIT 15) l JOIN d USING (id)"
    assert lab.check(inner).rows == {"(0,)": 1}
    lab.check("SELECT * FROM t WHERE id = 42 LIMIT 5", exactly=1)


@pytest.mark.parametrize("mapping", [{}, MAPPED], ids=["plain", "mapped"])
def test_keys_of_a_join_pick_files(lab: Lab, mapping: dict[str, str]) -> None:
    """Join keys and results of subqueries make scans skip files, even with deletion vectors."""
    create(lab, mapping=mapping, vectors=VECTORS)
    insert(lab, ROWS)
    lab.sql("DELETE FROM t WHERE id = 43")
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    lab.sql(
        "CREATE TABLE d USING parquet AS "
        "SELECT /*+ COALESCE(1) */ id, id % 3 AS k FROM range(42, 45)"
    )
    lab.check("SELECT t.* FROM t JOIN d USING (id)", at_most=2)
    lab.check("SELECT * FROM t WHERE id = (SELECT max(id) FROM d)", at_most=2)
    lab.check("SELECT * FROM t WHERE id IN (SELECT id FROM d WHERE k = 1)", at_most=2)
    both = "SELECT * FROM t a JOIN t b ON a.id = b.id WHERE a.id = 42"
    lab.check(both, exactly=2)


def test_keys_of_a_delta_table_are_fetched_at_one_version(lab: Lab) -> None:
    """Sieve fetches join keys only from Delta tables whose version Delta has pinned.

    Delta lists a table without a pinned version twice, perhaps at different versions.
    """
    create(lab)
    insert(lab, ROWS)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    create(lab, "d")
    insert(lab, ROWS, "d", files=2)
    query = "SELECT t.* FROM t JOIN d USING (id) WHERE d.v = 'v3'"
    fetched = {
        "spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sieve.join.pruning": "always",
    }  # fmt: skip
    with lab.settings(fetched):
        lab.check(query, exactly=2 + 2 * 2)
        with lab.setting("spark.databricks.delta.stats.skipping", "false"):
            lab.check(query, exactly=12)
            reasons = [scan["reasons"] for scan in lab.explain(query)]
            assert any("join-not-repeatable" in (one or "") for one in reasons)


def test_shallow_clone_can_have_an_index(lab: Lab) -> None:
    """A shallow clone can have an index, even though the source's folder contains its files."""
    create(lab)
    insert(lab, ROWS)
    lab.sql("CREATE TABLE c SHALLOW CLONE t")
    lab.sql("CREATE SIEVE INDEX ON c (id)")
    lab.check("SELECT * FROM c WHERE id = 42", exactly=1)
    lab.sql("INSERT INTO c VALUES (42, 'own')")
    lab.sql("REFRESH SIEVE INDEX ON c")
    lab.check("SELECT * FROM c WHERE id = 42", exactly=2)
    assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON c")} == {"ok"}


def test_other_reads_work_as_without_an_index(lab: Lab) -> None:
    """Reads by path, reads of the change feed, and streams work as without an index."""
    create(lab, feed={"delta.enableChangeDataFeed": "true"})
    insert(lab, ROWS)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    folder = dict(row[:2] for row in lab.sql("DESCRIBE EXTENDED t"))["Location"]
    lab.check(f"SELECT * FROM delta.`{folder}` WHERE id = 42", exactly=10)
    lab.check("SELECT * FROM table_changes('t', 0) WHERE id = 42")
