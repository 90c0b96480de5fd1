"""Fixtures for fault tests: a process id, an indexed table, a metastore, and a driver."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from driver import Driver, driver
from flaky_metastore import CutMetastore
from spark_session import INTERPRETED, RANGES, Lab


@pytest.fixture(scope="session")
def jvm(lab: Lab) -> int:
    """The process id of the test run's driver JVM."""
    return int(lab.spark._jvm.java.lang.ProcessHandle.current().pid())


@pytest.fixture
def table(lab: Lab) -> Iterator[str]:
    """Yields the name of a new table of ten files, sorted by ``id`` and indexed on ``id``.

    The index divides each file into several ranges. Spark interprets expressions and does not
    compile them.
    """
    with lab.settings(RANGES | INTERPRETED), lab.database("fault"):
        lab.spark.range(0, 1000, 1, 10).selectExpr(
            "id", "cast(id % 7 AS int) AS r", "concat('k', id) AS s"
        ).write.saveAsTable("t")
        lab.sql("CREATE SIEVE INDEX ON t (id) OPTIONS (error = 1, granularity = 'range')")
        assert "ranges read for a key that occurs" in lab.facts()
        yield "fault.t"


@pytest.fixture
def root(lab: Lab, table: str) -> Path:
    """The root: the folder with the indexes of the table's database."""
    facts = dict(row[:2] for row in lab.sql(f"DESCRIBE DATABASE {table.partition('.')[0]}"))
    return Path(facts["Location"].removeprefix("file:")) / ".sieve"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CutMetastore]:
    """A running metastore. The tests that end the metastore run last (see `_OneSite`)."""
    made = CutMetastore(tmp_path_factory.mktemp("metastore"))
    made.start()
    yield made
    made.end()


@pytest.fixture(scope="session")
def user(server: CutMetastore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """A driver that uses the metastore; its database `shop` contains a table of four files."""
    conf = server.conf | {"spark.sieve.registry.ttl": "1h", "spark.sieve.history": "true"}
    with driver(tmp_path_factory.mktemp("user") / "driver", **conf) as it:
        it.sql("CREATE DATABASE shop")
        it.sql(
            "CREATE TABLE shop.t USING parquet AS "
            "SELECT /*+ REPARTITION_BY_RANGE(4, id) */ id, 'k' || id AS s FROM range(100)"
        )
        yield it
