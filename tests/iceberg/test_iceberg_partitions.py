"""Partition columns, and data files that other programs have written or added."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from iceberg_tables import create, insert, namespace, sizes
from pyspark.errors import PySparkException
from spark_session import Lab

pytestmark = pytest.mark.iceberg
MAPPING = (
    '[{"field-id":1,"names":["id"]},{"field-id":2,"names":["v"]},{"field-id":3,"names":["p"]}]'
)
GROUPED = {
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
}


@pytest.fixture(autouse=True)
def database(lab: Lab) -> Iterator[None]:
    """Creates a namespace for each test."""
    with namespace(lab, "spark_catalog.parted"):
        yield


def append(lab: Lab, file: Path | str, rows: int, partition: str | None = None) -> None:
    """Adds a Parquet file to the table `t` by Iceberg's classes, which allow duplicates."""
    jvm: Any = lab.spark._jvm
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
        lab.spark._jsparkSession, "parted.t"
    )
    table.updateProperties().set("schema.name-mapping.default", MAPPING).commit()
    made = jvm.org.apache.iceberg.DataFiles.builder(table.spec()).withPath(f"file:{file}")
    made = (
        made.withFileSizeInBytes(Path(file).stat().st_size)
        .withRecordCount(rows)
        .withFormat("parquet")
    )
    if partition is not None:
        made = made.withPartitionPath(partition)
    table.newAppend().appendFile(made.build()).commit()
    lab.sql("REFRESH TABLE t")


def foreign(lab: Lab, folder: Path, start: int) -> Path:
    """Writes a Parquet file of ten rows. The file contains no field ids."""
    frame = lab.spark.sql(f"SELECT id, 'x' AS v FROM range({start}, {start + 10}, 1, 1)")
    frame.write.mode("append").parquet(str(folder / str(start)))
    (file,) = (folder / str(start)).glob("*.parquet")
    return file


def test_file_added_twice_is_read_twice(lab: Lab, tmp_path: Path) -> None:
    """If a table lists a file twice, queries always read the file twice."""
    create(lab)
    twice, once = foreign(lab, tmp_path, 0), foreign(lab, tmp_path, 10)
    for file in (twice, once, twice):
        append(lab, file, 10)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    assert lab.check("SELECT id FROM t WHERE id = 7", exactly=2).rows == {"(7,)": 2}
    assert lab.check("SELECT id FROM t WHERE id = 17", exactly=3).rows == {"(17,)": 1}
    # Until the table contains this file twice, queries skip the file.
    assert lab.check("SELECT id FROM t WHERE id = 7", exactly=2).rows == {"(7,)": 2}
    append(lab, once, 10)
    for _ in range(2):
        assert lab.check("SELECT id FROM t WHERE id = 7", exactly=4).rows == {"(7,)": 2}
        assert lab.check("SELECT id FROM t WHERE id = 17", exactly=4).rows == {"(17,)": 2}


def test_files_of_equal_size_differ(lab: Lab) -> None:
    """A query finds each file by its location, even if it lists other files than the last query."""
    plain = {"write__parquet__compression__codec": "uncompressed"}
    create(lab, "t", "id BIGINT, p BIGINT", "PARTITIONED BY (p)", **plain)
    lab.sql("INSERT INTO t SELECT id, id DIV 10 FROM range(0, 40, 1, 1)")
    assert len({sizes(lab, f"p = {p}") for p in range(4)}) == 1
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    lab.check("SELECT id FROM t WHERE id = 7", exactly=1)
    for p in (3, 2, 1):
        found = lab.check(f"SELECT id FROM t WHERE p = {p} AND id = 1{p}", exactly=int(p == 1))
        assert len(found.rows) == int(p == 1)
        lab.check(f"SELECT id FROM t WHERE p = {p} AND id = {p}7", exactly=1)


def test_file_is_always_read_if_its_path_has_two_adjacent_slashes(lab: Lab, tmp_path: Path) -> None:
    """Queries always read a file `a//b`, because Hadoop also calls this file `a/b`."""
    create(lab)
    plain, odd = foreign(lab, tmp_path, 0), foreign(lab, tmp_path, 10)
    append(lab, plain, 10)
    append(lab, f"{odd.parent}//{odd.name}", 10)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    assert lab.check("SELECT id FROM t WHERE id = 17", exactly=1).rows == {"(17,)": 1}
    assert lab.check("SELECT id FROM t WHERE id = 7", exactly=2).rows == {"(7,)": 1}


def test_replaced_file_at_the_same_path_is_read(lab: Lab, tmp_path: Path) -> None:
    """If a new file takes the path of an indexed file, queries read the new file."""
    create(lab)
    file, other = foreign(lab, tmp_path, 0), tmp_path / "other"
    append(lab, file, 10)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    lab.check("SELECT id FROM t WHERE id = 17", exactly=0)
    lab.sql("DELETE FROM t")
    frame = lab.spark.range(10, 30, 1, 1).selectExpr("id", "'x' AS v")
    frame.write.parquet(str(other))
    (made,) = other.glob("*.parquet")
    file.with_name(f".{file.name}.crc").unlink()
    made.replace(file)
    append(lab, file, 20)
    assert lab.check("SELECT id FROM t WHERE id = 17", exactly=1).rows == {"(17,)": 1}
    lab.sql("REFRESH SIEVE INDEX ON t")
    assert lab.check("SELECT id FROM t WHERE id = 17", exactly=1).rows == {"(17,)": 1}
    lab.check("SELECT id FROM t WHERE id = 7", exactly=0)


def test_index_is_not_used_if_another_name_denotes_its_column(lab: Lab, tmp_path: Path) -> None:
    """A name mapping decides which column of a file without column ids supplies the values."""
    create(lab, columns="id BIGINT, v STRING, p BIGINT")
    frame = lab.spark.range(0, 10, 1, 1).selectExpr("id", "'x' AS v", "id + 100 AS p")
    frame.write.parquet(str(tmp_path / "named"))
    (file,) = (tmp_path / "named").glob("*.parquet")
    append(lab, file, 10)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    lab.check("SELECT id FROM t WHERE id = 107", exactly=0)
    other = MAPPING.replace('"id"', '"?"').replace('"p"', '"id"').replace('"?"', '"p"')
    assert other != MAPPING
    lab.sql(f"ALTER TABLE t SET TBLPROPERTIES ('schema.name-mapping.default' = '{other}')")
    assert lab.check("SELECT id FROM t WHERE id = 107", exactly=1).rows == {"(107,)": 1}
    lab.sql("REFRESH SIEVE INDEX ON t")
    assert lab.check("SELECT id FROM t WHERE id = 107", exactly=1).rows == {"(107,)": 1}
    lab.check("SELECT id FROM t WHERE id = 7", exactly=0)


@pytest.mark.parametrize("recorded", [9, 11])
def test_file_with_a_wrong_row_count_is_always_read(
    lab: Lab, tmp_path: Path, recorded: int
) -> None:
    """If a manifest contains a wrong row count for a file, queries always read this file.

    A build compares its own row count with the manifest's.
    """
    create(lab)
    append(lab, foreign(lab, tmp_path, 0), 10)
    append(lab, foreign(lab, tmp_path, 10), recorded)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    assert lab.check("SELECT id FROM t WHERE id = 7", exactly=2).rows == {"(7,)": 1}
    lab.check("SELECT id FROM t WHERE id = 1000", exactly=1)


def test_a_partition_column_has_no_index(lab: Lab, tmp_path: Path) -> None:
    """CREATE refuses a partition column.

    One file can be in two partitions, and then has two values of the column.
    """
    create(lab, columns="id BIGINT, v STRING, p INT", more="PARTITIONED BY (p)")
    file = foreign(lab, tmp_path, 0)
    append(lab, file, 10, "p=1")
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    with pytest.raises(PySparkException, match=r"SIEVE_PARTITION_COLUMN.*p is a partition column"):
        lab.sql("CREATE SIEVE INDEX ON t (p)")
    append(lab, file, 10, "p=2")
    assert lab.check("SELECT * FROM t WHERE p = 2 OR id = 1000").rows.total() == 10
    assert lab.check("SELECT * FROM t WHERE p = 2 AND id = 3").rows.total() == 1


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_join_of_two_partition_specs_works_after_a_filter(lab: Lab, adaptive: str) -> None:
    """A planned join still works if a run-time filter leaves only one of two partition specs."""
    some = "id, date_add(date'2024-01-01', CAST(id % 3 AS INT)) d"
    create(lab, "p", "id BIGINT, d DATE", "PARTITIONED BY (days(d), bucket(4, id))")
    insert(lab, some, "p", files=2)
    lab.sql("ALTER TABLE p DROP PARTITION FIELD days(d)")
    lab.sql("INSERT INTO p VALUES (100, date'2024-01-01')")
    create(lab, "q", "id BIGINT, d DATE", "PARTITIONED BY (bucket(4, id))")
    insert(lab, some, "q", files=1)
    create(lab, "dim", "id BIGINT, z INT")
    lab.sql("INSERT INTO dim SELECT id, CAST(id AS INT) FROM range(8)")
    lab.sql("CREATE SIEVE INDEX ON p (id)")
    with lab.settings(GROUPED | {"spark.sql.adaptive.enabled": adaptive}):
        for wanted in range(8):
            answer = lab.check(
                "SELECT /*+ MERGE(a, b) BROADCAST(m) */ a.id, a.d FROM "
                "(SELECT * FROM p WHERE id < 10) a "
                f"JOIN dim m ON a.id = m.id AND m.z = {wanted} JOIN q b ON a.id = b.id"
            )
            assert answer.rows.total() == 1


@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("pushed", ["true", "false"])
def test_run_time_values_in_a_join_without_a_shuffle(lab: Lab, adaptive: str, pushed: str) -> None:
    """Run-time filters do not change the number of partitions in a storage-partitioned join.

    A storage-partitioned join pairs the partitions of its sides by position.
    """
    for name in ("p", "q"):
        create(lab, name, "id BIGINT, g BIGINT", "PARTITIONED BY (bucket(8, id))")
        insert(lab, "id, id g", name, files=4)
        lab.sql(f"CREATE SIEVE INDEX ON {name} (g)")
    lab.sql("CREATE TABLE k USING iceberg AS SELECT id FROM range(40)")

    def rows(name: str, low: int, high: int) -> str:
        ends = [f"(SELECT min(id) FROM k WHERE id >= {end})" for end in (low, high)]
        return f"(SELECT * FROM {name} WHERE g >= {ends[0]} AND g < {ends[1]})"

    own = {
        "spark.sql.adaptive.enabled": adaptive,
        "spark.sql.sources.v2.bucketing.pushPartValues.enabled": pushed,
    }
    with lab.settings(GROUPED | own):
        for kind in ("INNER", "RIGHT", "FULL"):
            query = (
                f"SELECT /*+ MERGE(a, b) */ a.id, b.id FROM {rows('p', 11, 16)} a "
                f"{kind} JOIN {rows('q', 12, 17)} b ON a.id = b.id"
            )
            assert lab.check(query).rows.total() == {"INNER": 4, "RIGHT": 5, "FULL": 6}[kind]
        lab.check("SELECT a.id FROM p a JOIN q b ON a.id = b.id WHERE a.g = 11", at_most=15)
