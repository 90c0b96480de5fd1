"""Tests tables and indexes whose files are on HDFS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from spark_session import Lab

from sieve.storage.interface import Store, join

pytestmark = pytest.mark.services


@pytest.fixture
def database(lab: Lab, hdfs: str) -> Iterator[str]:
    """Creates a database on HDFS, makes it current, and yields the URI of its folder."""
    location = f"{hdfs}/warehouse/far.db"
    lab.sql(f"CREATE DATABASE far LOCATION '{location}'")
    lab.sql("USE far")
    yield location
    lab.sql("USE default")
    lab.sql("DROP DATABASE far CASCADE")


def test_the_life_of_an_index(lab: Lab, store: Store, database: str) -> None:
    """If data and index are on HDFS, CREATE, queries and REFRESH work; DROP leaves no file."""
    rows = "SELECT /*+ REPARTITION_BY_RANGE({n}, a) */ id AS a, id % 7 AS r FROM range({span})"
    lab.sql(f"CREATE TABLE t USING parquet AS {rows.format(n=8, span='1000')}")
    lab.sql("CREATE SIEVE INDEX ON t (a)")
    (facts,) = lab.spark.sql("SHOW SIEVE INDEXES ON t").collect()
    root = join(database, ".sieve")
    (index,) = [join(root, entry.name) for entry in store.list(root) if entry.is_dir]
    versions = join(index, "versions")
    assert [entry.name for entry in store.list(versions)] == ["1.json"], facts
    lab.check("SELECT * FROM t WHERE a = 7", exactly=1)
    lab.check("SELECT count(*), sum(r) FROM t WHERE a BETWEEN 990 AND 2000", exactly=1)
    lab.sql(f"INSERT INTO t {rows.format(n=2, span='1000, 1200')}")
    lab.check("SELECT * FROM t WHERE a = 7", exactly=3)
    lab.sql("REFRESH SIEVE INDEX ON t (a)")
    assert [entry.name for entry in store.list(versions)] == ["1.json", "2.json"]
    # An index block with keys from two files lists both files. So a query for a key in this block
    # reads two files.
    lab.check("SELECT * FROM t WHERE a = 1199", at_most=2)
    lab.sql("DROP SIEVE INDEX ON t (a)")
    assert not store.exists(index)
    lab.check("SELECT * FROM t WHERE a = 7", exactly=10)
