"""Tests streams of this driver that read from indexed Delta tables or write to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from delta_tables import AUDITED, ROWS, create, insert, wait_for
from pyspark.sql import DataFrame
from spark_session import Lab

pytestmark = pytest.mark.delta


@pytest.fixture(autouse=True)
def tables(lab: Lab) -> Iterator[None]:
    """Creates an indexed table `t` of ten files, and an empty table `u`."""
    with lab.database("streams"), lab.settings(AUDITED):
        create(lab)
        insert(lab, ROWS)
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        create(lab, "u")
        yield


def append(frame: DataFrame, table: str, folder: Path) -> None:
    """Appends all current rows of a stream's source to a table, and waits for the end."""
    writer = frame.writeStream.format("delta").option("checkpointLocation", str(folder))
    writer.trigger(availableNow=True).toTable(table).awaitTermination(60)


def test_stream_reads_all_files_of_an_indexed_source(lab: Lab, tmp_path: Path) -> None:
    """A stream reads an indexed table's commits, so the stream's filter skips no file."""
    counters = "SELECT value FROM sieve_status() WHERE counter = 'scans_pruned'"
    before = lab.sql(counters)
    append(lab.spark.readStream.table("t").where("id IN (42, 97)"), "u", tmp_path / "first")
    assert lab.sql(counters) == before
    assert Counter(lab.sql("SELECT id FROM u")) == {(42,): 1, (97,): 1}


def test_a_refresh_follows_each_batch_of_a_sink(lab: Lab, tmp_path: Path) -> None:
    """With spark.sieve.refresh.auto, a refresh of the target follows each batch of a stream."""
    lab.sql("INSERT INTO u VALUES (500, 'a')")
    source = lab.spark.readStream.table("u")
    with lab.setting("spark.sieve.refresh.auto", "true"):
        for key, version in ((500, 2), (501, 3)):
            append(source, "t", tmp_path / "second")
            wait_for(lab, "id_sieve", "files new", "0")
            assert lab.facts()["instant"].endswith(f"(version {version})")
            lab.check(f"SELECT * FROM t WHERE id IN (42, {key})", exactly=2)
            lab.sql(f"INSERT INTO u VALUES ({key + 1}, 'a')")
