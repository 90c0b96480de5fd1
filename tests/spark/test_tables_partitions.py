"""Partitioned tables.

Spark selects partitions of a table, and the index skips files within these partitions.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from spark_session import Lab


@pytest.mark.long
@pytest.mark.parametrize("form", ["USING parquet", "USING json", "STORED AS ORC"])
def test_partition_and_index_pruning_combine(lab: Lab, form: str) -> None:
    """In each partition that Spark selects, the index keeps only the files that contain the key."""
    with lab.database("levels"):
        lab.sql(
            f"CREATE TABLE t (id BIGINT, v INT) {form} PARTITIONED BY (y INT, m STRING)"
            if form.startswith("STORED")
            else f"CREATE TABLE t (id BIGINT, v INT, y INT, m STRING) {form} PARTITIONED BY (y, m)"
        )
        with lab.setting("hive.exec.dynamic.partition.mode", "nonstrict"):
            lab.sql(
                "INSERT INTO t SELECT id, CAST(id % 7 AS INT), CAST(2020 + id % 2 AS INT), "
                "CAST(id % 3 AS STRING) FROM range(0, 60, 1, 4)"
            )
        total = len(lab.spark.table("t").inputFiles())
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.check("SELECT * FROM t WHERE id = 33", exactly=1)
        lab.check("SELECT * FROM t WHERE id = 33 AND y = 2021", exactly=1)
        lab.check("SELECT * FROM t WHERE id = 33 AND y = 2020", exactly=0)
        lab.check("SELECT * FROM t WHERE id < 15 AND y = 2020 AND m = '1'", exactly=1)
        lab.check("SELECT * FROM t WHERE id < 15 OR y = 2020", exactly=total)
        lab.check("SELECT y, m, count(*) FROM t WHERE id < 15 GROUP BY y, m", exactly=6)
        lab.check("SELECT * FROM t WHERE id + y = 2053", exactly=total)
        (scan,) = lab.explain("SELECT * FROM t WHERE id = 33 AND y = 2021")
        assert (scan["files_total"], scan["files_read"]) == (total // 2, 1)


def test_a_filter_of_a_partition_and_a_column_is_named(lab: Lab) -> None:
    """Spark passes no OR with a partition column to a scan, so a query with one reads all files."""
    with lab.database("mixed"):
        lab.sql(
            "CREATE TABLE t USING parquet PARTITIONED BY (y) AS "
            "SELECT id, id % 3 v, id DIV 20 y FROM range(0, 40, 1, 4)"
        )
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        for where, reason in (
            ("id = 4 OR y = 1", "unsupported-predicate: 4"),
            ("(id = 4 OR y = 1) AND v = 1", "unsupported-predicate: 4"),
            ("v = 4 OR y = 1", "no-predicate: 4"),
        ):
            lab.check(f"SELECT * FROM t WHERE {where}", exactly=4)
            assert lab.explain(f"SELECT * FROM t WHERE {where}")[0]["reasons"] == reason
        apart = "SELECT * FROM t WHERE id = 4 UNION SELECT * FROM t WHERE y = 1"
        lab.check(apart, exactly=3)


@pytest.mark.long
def test_show_lists_many_partitions_without_a_job(lab: Lab) -> None:
    """SHOW for a database tells how many new files each index misses, and starts no Spark job."""
    with lab.database("glance"):
        lab.sql("CREATE TABLE t (id BIGINT, p BIGINT) USING parquet PARTITIONED BY (p)")
        lab.sql("INSERT INTO t SELECT id, id % 40 FROM range(0, 400, 1, 1)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.sql("CREATE TABLE bare (id INT) USING parquet")
        lab.sql("CREATE SIEVE INDEX ON bare (id)")
        lab.sql("INSERT INTO t VALUES (1000, 7), (1000, 8)")
        tracker = lab.spark.sparkContext.statusTracker()
        lab.spark.sparkContext.setJobGroup("show", "show")
        rows = lab.spark.sql("SHOW SIEVE INDEXES").collect()
        lab.spark.sparkContext._jsc.clearJobGroup()
        states = {row["table"]: row["state"] for row in rows}
        assert states == {"bare": "ready", "t": "stale: 2 files"}
        assert list(tracker.getJobIdsForGroup("show")) == []
        lab.sql("REFRESH SIEVE INDEX ON t")
        assert [row[6] for row in lab.sql("SHOW SIEVE INDEXES")] == ["ready", "ready"]


def test_partitions_of_strange_names(lab: Lab) -> None:
    """Partition values can be NULL, or contain blanks, %, =, quotes, slashes and other scripts."""
    values = ["a b", "50%", "x=y", "a/b", "'q'", "日本"]
    with lab.database("strange"):
        lab.sql("CREATE TABLE t (id BIGINT, p STRING) USING parquet PARTITIONED BY (p)")
        rows = [(k * 10 + n, value) for k, value in enumerate([*values, None]) for n in range(10)]
        frame = lab.spark.createDataFrame(rows, "id BIGINT, p STRING").repartition(1)
        frame.write.insertInto("t")
        assert len(lab.spark.table("t").inputFiles()) == len(values) + 1
        assert lab.sql("CREATE SIEVE INDEX ON t (id)")[0][2] == len(values) + 1
        # The query has one scan for each value. The total number of files shows that each scan
        # reads one file.
        keys = [k * 10 + 5 for k in range(len(values))]
        each = (f"SELECT id, p FROM t WHERE id = {key}" for key in keys)
        found = lab.check(" UNION ALL ".join(each), exactly=len(values))
        assert found.rows == {repr(row): 1 for row in zip(keys, values, strict=True)}
        lab.check("SELECT id, p FROM t WHERE id IN (3, 65) AND p IS NULL", exactly=1)
        lab.check("SELECT id FROM t WHERE id = 15 AND p = '50%'", exactly=1)


@pytest.mark.long
def test_a_partition_elsewhere_is_indexed_too(lab: Lab, tmp_path: Path) -> None:
    """An index also skips files of a partition whose folder is outside of the table's folder."""
    foreign = tmp_path / "p=away %20 =ü"
    lab.spark.range(100, 120, 1, 2).write.parquet(str(foreign))
    with lab.database("foreign_root"):
        lab.sql("CREATE TABLE t (id BIGINT, p INT) USING parquet PARTITIONED BY (p)")
        lab.sql("INSERT INTO t SELECT id, 1 FROM range(0, 20, 1, 2)")
        lab.sql(f"ALTER TABLE t ADD PARTITION (p = 2) LOCATION '{foreign}'")
        assert lab.sql("CREATE SIEVE INDEX ON t (id)")[0][2] == 4
        assert lab.check("SELECT * FROM t WHERE id = 105", exactly=1).rows == {"(105, 2)": 1}
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)
        lab.check("SELECT * FROM t WHERE id = 105 AND p = 1", exactly=0)
        lab.sql("ALTER TABLE t DROP PARTITION (p = 2)")
        assert not lab.check("SELECT * FROM t WHERE id = 105", exactly=0).rows


def test_file_in_several_partitions_is_always_read(lab: Lab, tmp_path: Path) -> None:
    """A scan always reads a file that several partitions list.

    A file in several partitions must not bound a top-k query. With such a bound, low keys of one
    partition would exclude rows of other partitions. In this test, partitions share a location, in
    the same or another spelling. Or one partition's location contains another partition's location.
    """
    shared = tmp_path / "shared"
    lab.spark.range(100, 110, 1, 1).toDF("k").write.parquet(str(shared))
    with lab.database("shared_files"):
        lab.sql("CREATE TABLE t (k BIGINT, q INT, p INT) USING parquet PARTITIONED BY (q, p)")
        lab.sql("INSERT INTO t SELECT id * 100, id, 0 FROM range(0, 6, 1, 1)")
        for q, location in (
            (0, shared),
            (1, f"file:{shared}"),
            (5, f"{tmp_path}/x/..//shared/"),
            (6, lab.files()[3].parent),
        ):
            lab.sql(f"ALTER TABLE t ADD PARTITION (q = {q}, p = 9) LOCATION '{location}'")
        lab.sql("INSERT INTO t VALUES (7, 6, 1), (8, 5, 1)")
        lab.sql("CREATE SIEVE INDEX ON t (k)")
        lab.check("SELECT * FROM t WHERE k = 105", exactly=3)
        lab.check("SELECT q, min(k), max(k) FROM t GROUP BY q", exactly=12)
        lab.check("SELECT min(k), max(k) FROM t", exactly=2 + 5)
        lab.check("SELECT min(k) FROM t WHERE q IN (1, 5)", exactly=1 + 2)
        lab.check("SELECT k, q FROM t ORDER BY k, q LIMIT 5", exactly=5 + 5)
        lab.check("SELECT k, q FROM t WHERE k >= 100 ORDER BY k DESC, q LIMIT 3", exactly=3 + 5)


def test_new_partition_is_read_until_refresh(lab: Lab) -> None:
    """Queries read all files of a new partition until REFRESH indexes them.

    After DROP PARTITION, queries return no row of the partition, and REFRESH removes its files from
    the index.
    """
    with lab.database("come_and_go"):
        lab.sql("CREATE TABLE t (id BIGINT, p INT) USING parquet PARTITIONED BY (p)")
        lab.sql("INSERT INTO t SELECT id, CAST(id DIV 20 AS INT) FROM range(0, 60, 1, 3)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.sql("INSERT INTO t PARTITION (p = 9) SELECT id FROM range(900, 920, 1, 1)")
        (scan,) = lab.explain("SELECT * FROM t WHERE id = 5")
        assert (scan["files_read"], scan["reasons"]) == (2, "new-file: 1")
        lab.check("SELECT * FROM t WHERE id = 5", exactly=2)
        lab.sql("ALTER TABLE t DROP PARTITION (p = 0)")
        assert not lab.check("SELECT * FROM t WHERE id = 5", exactly=1).rows
        assert lab.sql("REFRESH SIEVE INDEX ON t")[0][:3] == ("id_sieve", 2, 3)
        lab.check("SELECT * FROM t WHERE id = 5", exactly=0)
        lab.check("SELECT * FROM t WHERE id = 905", exactly=1)
