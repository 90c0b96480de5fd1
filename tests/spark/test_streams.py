"""Indexes on tables that a streaming file sink writes, and on tables that join a stream."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions
from spark_session import Lab

FEED = (
    "SELECT /*+ REPARTITION_BY_RANGE(4, id) */ id + {} AS id, concat('s', id) AS s FROM range({})"
)


@pytest.fixture(autouse=True)
def database(lab: Lab) -> Iterator[None]:
    """A table that streams read, and an indexed table to which streams write."""
    with lab.database("streams"):
        lab.sql(f"CREATE TABLE feed USING parquet AS {FEED.format(5000, 400)}")
        lab.sql(f"CREATE TABLE t USING parquet AS {FEED.format(0, 800)}")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        yield


def write(frame: Any, table: str, folder: Path) -> None:
    """Appends the rows of a stream that arrived since the last call."""
    writer = frame.writeStream.option("checkpointLocation", str(folder / f"of-{table}"))
    writer.trigger(availableNow=True).toTable(table).awaitTermination()


@pytest.mark.long
def test_a_table_of_a_file_sink_is_indexed(lab: Lab, tmp_path: Path) -> None:
    """A table that a file sink writes can be indexed; the sink's log lists the table's files."""
    feed = lab.spark.readStream.table("feed")
    write(feed, "t", tmp_path)
    lab.sql("REFRESH TABLE t")
    kind = lab.spark.table("t")._jdf.queryExecution().analyzed().toString()
    assert lab.check("SELECT * FROM t WHERE id = 77").rows.total() == 0, kind
    files = lab.check("SELECT * FROM t").files
    assert files > 1
    lab.check("SELECT * FROM t WHERE id = 5077", exactly=files)
    lab.sql("REFRESH SIEVE INDEX ON t")
    lab.check("SELECT * FROM t WHERE id = 5077", exactly=1)
    lab.check("SELECT max(id) FROM t WHERE id < 5100 GROUP BY s IS NULL")
    lab.check("SELECT * FROM t ORDER BY id LIMIT 3")
    assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}
    with lab.setting("spark.sieve.refresh.auto", "true"):
        lab.sql("INSERT INTO feed SELECT id + 9000, 'm' FROM range(10)")
        write(lab.spark.readStream.table("feed"), "t", tmp_path)
        deadline = time.monotonic() + 60
        while lab.sql("SHOW SIEVE INDEXES ON t")[0][7] < 3 and time.monotonic() < deadline:
            time.sleep(0.2)
    lab.sql("REFRESH TABLE t")
    assert lab.check("SELECT * FROM t WHERE id = 9003", exactly=1).rows.total() == 1
    lab.check("SELECT * FROM t WHERE id = 5077", exactly=1)
    assert lab.sql("ALTER SIEVE INDEX id_sieve ON t DISABLE") == [("id_sieve", "disabled")]
    assert lab.sql("DROP SIEVE INDEX ON t (id)") == [("id_sieve",)]


def test_a_partitioned_table_of_a_file_sink(lab: Lab, tmp_path: Path) -> None:
    """If a sink's table is partitioned, the paths in the sink's log determine the partitions."""
    lab.sql("CREATE TABLE p (id BIGINT, s STRING, d INT) USING parquet PARTITIONED BY (d)")
    feed = lab.spark.readStream.table("feed")
    write(feed.withColumn("d", (functions.col("id") % 2).cast("int")), "p", tmp_path)
    lab.sql("CREATE SIEVE INDEX ON p (id)")
    assert lab.check("SELECT * FROM p WHERE id = 5077", exactly=1).rows.total() == 1
    assert lab.check("SELECT * FROM p WHERE id = 5077 AND d = 0", at_most=1).rows.total() == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "how",
    [
        "inner",
        pytest.param("left_outer", marks=pytest.mark.long),
        pytest.param("left_semi", marks=pytest.mark.long),
        "left_anti",
    ],
)
def test_static_side_of_a_stream_is_pruned(lab: Lab, tmp_path: Path, how: str) -> None:
    """In a join of a stream with a table, each batch skips files of the table, but loses no row."""
    static = lab.spark.table("t").where("id BETWEEN 100 AND 110").withColumnRenamed("id", "k")
    facts = lab.spark.readStream.table("feed").selectExpr("id - 4900 AS f")

    def joined(folder: str) -> tuple[list[Any], int]:
        found: list[Any] = []
        before = skipped(lab)
        frame = facts.join(static.drop("s"), functions.expr("f = k"), how)
        writer = frame.writeStream.foreachBatch(
            lambda batch, _: found.extend(tuple(row) for row in batch.collect())
        )
        writer = writer.option("checkpointLocation", str(tmp_path / folder))
        writer.trigger(availableNow=True).start().awaitTermination()
        return sorted(found, key=repr), skipped(lab) - before

    with lab.setting("spark.sieve.enabled", "false"):
        rows, none = joined("off")
    assert (rows != [], none) == (True, 0)
    again, files = joined("on")
    assert again == rows
    assert files > 0


def skipped(lab: Lab) -> int:
    """How many files this driver's scans have skipped so far."""
    found = "SELECT value FROM sieve_status() WHERE counter = 'files_skipped'"
    return int(sum(row[0] for row in lab.sql(found)))
