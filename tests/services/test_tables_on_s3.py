"""Tests tables and indexes on S3, with two drivers that share one metastore."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "fault"))

from driver import Driver, DriverError, driver
from processes import wait_until

from sieve.client.spark_home import find_spark, shim_jar
from sql_ext.launcher import metastore
from tests.ports import free_ports
from tests.services.jars import jar
from tests.services.s3 import HEEDLESS, KEEPING, Fault, Gate, answers, jars

pytestmark = pytest.mark.services

ROWS = "SELECT /*+ REPARTITION_BY_RANGE({n}, a) */ id AS a, id % 7 AS r FROM range({span})"
POINT = "SELECT * FROM shop.t WHERE a = 7"
RANGE = "SELECT count(*), sum(r) FROM shop.t WHERE a BETWEEN 990 AND 2000"
ROUNDS = 6


@dataclass(frozen=True, slots=True)
class Drivers:
    """Two drivers on one metastore. A setting declares the second driver to be the only writer."""

    one: Driver
    two: Driver


@pytest.fixture(scope="module")
def drivers(gate: Gate, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    """Starts two drivers; creates two databases, one in a bucket without conditional puts."""
    folder = tmp_path_factory.mktemp("drivers")
    conf = {
        "spark.driver.extraClassPath": f"{shim_jar(find_spark(os.environ))}{os.pathsep}{jars()}",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sieve.registry.ttl": "1s",
    } | {f"spark.hadoop.{key}": value for key, value in gate.conf.items()}
    with serving(folder, gate) as port:
        conf["spark.hadoop.hive.metastore.uris"] = f"thrift://localhost:{port}"
        alone = {"spark.sieve.single.writer": "true"}
        with driver(folder / "a", **conf) as one, driver(folder / "b", **conf | alone) as two:
            one.sql(f"CREATE DATABASE shop LOCATION 's3a://{KEEPING}/shop.db'")
            one.sql(f"CREATE DATABASE heedless LOCATION 's3a://{HEEDLESS}/heedless.db'")
            yield Drivers(one, two)


class serving:  # noqa: N801 - read as a word: with serving(...) as port
    """Runs a metastore server with a Derby database; the server can access S3."""

    def __init__(self, folder: Path, gate: Gate) -> None:
        site, (self._port,) = folder / "site", free_ports(1)
        derby = metastore.derby_in(folder)
        metastore.write_site(site / "hive-site.xml", derby, folder / "warehouse")
        (site / "core-site.xml").write_text(
            "<configuration>"
            + "".join(
                f"<property><name>{escape(key)}</name><value>{escape(value)}</value></property>"
                for key, value in gate.conf.items()
            )
            + "</configuration>"
        )
        client = [jar(name) for name in ("hadoop-aws", "bundle")]
        command = metastore.command(find_spark(os.environ), os.environ, site, self._port, client)
        self._log = folder / "metastore.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)

    def __enter__(self) -> int:
        wait_until(
            lambda: answers(self._port) or self._process.poll() is not None, "the metastore serves"
        )
        assert self._process.poll() is None, self._log.read_text(errors="replace")[-3000:]
        return self._port

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(60)


def check(it: Driver, query: str, files: int) -> None:
    """Checks a query's rows with and without the index, and the number of files that it reads."""
    it.sql("SET spark.sieve.enabled = false")
    off = it.sql(query)
    it.sql("SET spark.sieve.enabled = true")
    it.send(query)
    on, read = it.receive()
    assert Counter(map(str, on)) == Counter(map(str, off))
    assert read == files, query


@pytest.fixture
def table(drivers: Drivers) -> Iterator[Driver]:
    """Yields the first driver, after it has created an indexed table of eight files."""
    one = drivers.one
    one.sql(f"CREATE TABLE shop.t USING parquet AS {ROWS.format(n=8, span='1000')}")
    one.sql("CREATE SIEVE INDEX ON shop.t (a)")
    yield one
    one.sql("DROP TABLE shop.t")


def test_the_life_of_an_index(table: Driver, gate: Gate) -> None:
    """If data and index are on S3, CREATE, queries, REFRESH, VACUUM and DROP work.

    After DROP, no file of the index is left.
    """
    check(table, POINT, 1)
    check(table, RANGE, 1)
    table.sql(f"INSERT INTO shop.t {ROWS.format(n=2, span='1000, 1200')}")
    check(table, POINT, 3)
    gate.faults.append(Fault(".*/versions/2.json", 500, takes_effect=True))
    ((_, version, files, *_),) = table.sql("REFRESH SIEVE INDEX ON shop.t (a)")
    assert (version, files) == (2, 10)
    assert gate.faults == [], "the reply that is lost is that to version 2"
    check(table, POINT, 1)
    table.sql("REFRESH SIEVE INDEX ON shop.t (a) FULL")
    before = gate.keys(KEEPING, "shop.db/.sieve/")
    ((_, versions, gone, size),) = table.sql("VACUUM SIEVE INDEX ON shop.t RETAIN 0 HOURS")
    assert versions == 2
    assert size > 0
    # Before VACUUM deletes files, it adds one file. The added file marks the deletions.
    assert len(gate.keys(KEEPING, "shop.db/.sieve/")) == len(before) - gone + 1
    check(table, POINT, 1)
    table.sql("DROP SIEVE INDEX ON shop.t (a)")
    check(table, POINT, 10)
    assert gate.keys(KEEPING, "shop.db/.sieve/") == []


def test_two_publishers(drivers: Drivers, table: Driver, gate: Gate) -> None:
    """If two drivers publish at once, they use no version number twice, and lose no change."""
    gate.puts.clear()
    wait_until(lambda: drivers.two.files(POINT) == 1, "the second driver knows the index")
    for turn in range(ROUNDS):
        for number, it in enumerate((table, drivers.two)):
            it.send(
                f"ALTER SIEVE INDEX a_sieve ON shop.t SET OPTIONS (error = {turn * 2 + number + 2})"
            )
        for it in (table, drivers.two):
            it.receive()
    versions = [row[1] for row in table.sql("SHOW SIEVE VERSIONS a_sieve ON shop.t")]
    assert sorted(versions) == list(range(1, 2 * ROUNDS + 2))
    puts = [(key, status) for key, status in gate.puts if re.search(r"/versions/\d+\.json$", key)]
    won = Counter(key for key, status in puts if status == 200)
    assert sorted(won.values()) == [1] * (2 * ROUNDS)
    lost = [key for key, status in puts if status == 412]
    sys.stdout.write(f"{2 * ROUNDS} versions of two drivers, {len(lost)} puts lost\n")
    check(table, POINT, 1)


def test_create_is_refused_if_the_store_ignores_conditions(drivers: Drivers, gate: Gate) -> None:
    """If a store ignores conditions, CREATE fails and leaves no file.

    A driver that declares itself the only writer may still create an index.
    """
    one, two = drivers.one, drivers.two
    one.sql(f"CREATE TABLE heedless.t USING parquet AS {ROWS.format(n=4, span='1000')}")
    with pytest.raises(DriverError, match=r"ignores If-None-Match.*spark\.sieve\.single\.writer"):
        one.sql("CREATE SIEVE INDEX ON heedless.t (a)")
    assert one.sql("SHOW SIEVE INDEXES ON heedless.t") == []
    assert gate.keys(HEEDLESS, "heedless.db/.sieve/") == []
    two.sql("CREATE SIEVE INDEX ON heedless.t (a)")
    assert (
        two.logged("ignores If-None-Match; Sieve assumes that only this driver writes to it") == 1
    )
    query = POINT.replace("shop", "heedless")
    check(two, query, 1)
    wait_until(lambda: one.files(query) == 1, "the first driver reads by the index of the second")
    with pytest.raises(DriverError, match="ignores If-None-Match"):
        one.sql("DROP SIEVE INDEX ON heedless.t (a)")
    two.sql("DROP SIEVE INDEX ON heedless.t (a)")
    check(two, query, 4)


def test_create_refuses_another_bucket(table: Driver) -> None:
    """CREATE refuses to write an index to another bucket, because other people might read it."""
    table.sql(f"SET spark.sieve.path = s3a://{HEEDLESS}/indexes")
    table.sql(f"SET spark.sieve.roots = s3a://{HEEDLESS}/indexes")
    with pytest.raises(DriverError, match="SIEVE_STORE_PERMISSIONS"):
        table.sql("CREATE SIEVE INDEX far ON shop.t (r)")
    table.sql("RESET spark.sieve.path")
    table.sql("RESET spark.sieve.roots")
