"""Drivers on one standalone metastore; and the metastore goes away under a statement."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from driver import Driver, DriverError, driver
from processes import alive, front_ends, wait_until

from sieve.client.spark_home import find_spark
from sql_ext.launcher import metastore

ROWS = "SELECT /*+ REPARTITION_BY_RANGE(10, id) */ id, concat('k', id) AS s FROM range(1000)"
POINT = "SELECT count(*) FROM shop.t WHERE id = 123"


@dataclass(frozen=True, slots=True)
class Metastore:
    """A metastore server."""

    process: subprocess.Popen[bytes]
    conf: dict[str, str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all of them lie."""
    return tmp_path_factory.mktemp("two")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Metastore]:
    """On Derby, in a folder of its own."""
    with socket.create_server(("localhost", 0)) as free:
        port = free.getsockname()[1]
    site, warehouse = folder / "site", folder / "warehouse"
    metastore.write_site(site / "hive-site.xml", metastore.derby_in(folder), warehouse)
    command = metastore.command(find_spark(os.environ), os.environ, site, port)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: answers(port) or process.poll() is not None, "the metastore serves")
        assert process.poll() is None, (folder / "log").read_text(errors="replace")[-3000:]
        conf = {
            "spark.hadoop.hive.metastore.uris": f"thrift://localhost:{port}",
            "spark.sql.warehouse.dir": str(warehouse),
            "spark.sieve.registry.ttl": "1s",
            "spark.hadoop.hive.metastore.connect.retries": "2",
            "spark.sieve.history": "true",
        }
        yield Metastore(process, conf)
    finally:
        process.kill()
        process.wait(60)


@pytest.fixture(scope="module")
def one(server: Metastore, folder: Path) -> Iterator[Driver]:
    """A driver, which has made a table of ten files."""
    with driver(folder / "one", **server.conf) as it:
        it.sql("CREATE DATABASE shop")
        it.sql(f"CREATE TABLE shop.t USING parquet AS {ROWS}")
        yield it


@pytest.fixture(scope="module")
def two(server: Metastore, folder: Path) -> Iterator[Driver]:
    """Another driver."""
    with driver(folder / "two", **server.conf) as it:
        yield it


def answers(port: int) -> bool:
    """Whether something accepts connections there."""
    with socket.socket() as probe:
        return probe.connect_ex(("localhost", port)) == 0


def reads(it: Driver, files: int) -> None:
    """Before long the driver's point query reads so many files; it gives its row all the time."""

    def so() -> bool:
        it.send(POINT)
        rows, read = it.receive()
        assert rows == [[1]]
        return read == files

    wait_until(so, f"it reads {files} files")


def test_a_driver_acts_on_what_another_publishes(one: Driver, two: Driver) -> None:
    """And on what it disables and drops, within the registry's time.

    A registration that another tool writes back costs one warning, and the next CREATE mends it.
    """
    assert two.files(POINT) == 10
    one.sql("CREATE SIEVE INDEX ON shop.t (id) OPTIONS (error = 1)")
    reads(two, 1)
    assert two.sql("SHOW SIEVE INDEXES ON shop.t")[0][:7] == [
        *("shop", "t", "id_sieve", "id", "bigint"), "sieve", "ready",
    ]  # fmt: skip
    two.sql("ALTER SIEVE INDEX id_sieve ON shop.t DISABLE")
    reads(one, 10)
    one.sql("ALTER SIEVE INDEX id_sieve ON shop.t ENABLE")
    reads(two, 1)
    two.sql("DROP SIEVE INDEX ON shop.t (id)")
    reads(one, 10)
    assert one.sql("SHOW SIEVE INDEXES IN shop") == []
    assert one.logged("is read in full: index-corrupt") == 0

    two.sql("CREATE SIEVE INDEX ON shop.t (id) OPTIONS (error = 1)")
    reads(one, 1)
    old = dict(one.sql("SHOW TBLPROPERTIES shop.t"))["sieve.index.id_sieve"]
    two.sql("DROP SIEVE INDEX ON shop.t (id)")
    two.sql(f"ALTER TABLE shop.t SET TBLPROPERTIES ('sieve.index.id_sieve' = '{old}')")
    gone = f"{json.loads(old)['uuid']} holds no version"
    wait_until(lambda: one.files(POINT) == 10 and one.logged(gone), "it learns of the relic")
    for _ in range(3):
        assert one.files(POINT) == 10
    assert one.logged(gone) == 1, "one warning a cause"
    two.sql("CREATE SIEVE INDEX ON shop.t (id) OPTIONS (error = 1)")
    reads(one, 1)


def test_a_driver_advises_by_what_others_have_scanned(
    server: Metastore, two: Driver, folder: Path
) -> None:
    """With ``spark.sieve.history``, as far as they kept it when they ended; without a constant.

    A damaged file is passed over. A driver that ends takes its front end with it.
    """
    with driver(folder / "first", **server.conf) as first:
        first.sql("CREATE DATABASE stock")
        first.sql(f"CREATE TABLE stock.t USING parquet AS {ROWS}")
        for _ in range(2):
            first.sql("SELECT * FROM stock.t WHERE id = 717171 AND s <> 'utrecht'")
        first.end()
    (history,) = (folder / "warehouse").glob("stock.db/.sieve/history")
    (file,) = history.iterdir()
    assert '"id' in file.read_text().replace("\\", "")
    assert not any(constant in file.read_text() for constant in ("7171", "utrecht"))
    (history / ("e" * 32 + "-1.json")).write_text("{")
    columns = ("action", "table", "column", "asked", "scans")
    advice = f"SELECT {', '.join(columns)} FROM sieve_advice('stock')"
    assert two.sql(advice) == [["create", "t", "id", "= 2", 2.0]]
    two.sql("SELECT * FROM stock.t WHERE id = 717171")
    assert two.sql(advice) == [["create", "t", "id", "= 3", 3.0]]
    assert two.logged("1 files of") == 2
    (pid,) = front_ends(two.jvm)
    two.end()
    wait_until(lambda: not alive(pid), "the front end of a driver that ended ends")
    assert len(list(history.iterdir())) == 3


def test_the_metastore_goes_away_under_a_create(server: Metastore, one: Driver) -> None:
    """It says so and leaves no file, and its driver goes on."""
    one.sql("CREATE SIEVE INDEX IF NOT EXISTS ON shop.t (id) OPTIONS (error = 1)")
    root = Path(server.conf["spark.sql.warehouse.dir"], "shop.db", ".sieve")
    before = {path.name for path in root.iterdir()}
    one.send("CREATE SIEVE INDEX ON shop.t (s)")
    wait_until(lambda: {path.name for path in root.iterdir()} > before, "it has begun")
    server.process.kill()
    with pytest.raises(DriverError, match="metastore"):
        one.receive()
    assert {path.name for path in root.iterdir()} == before
    assert one.sql("SELECT 1") == [[1]]
