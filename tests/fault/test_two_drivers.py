"""Several drivers share one metastore server, which one test kills during a statement."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from driver import Driver, DriverError, driver
from flaky_metastore import CutMetastore
from processes import alive, front_ends, wait_until

ROWS = "SELECT /*+ REPARTITION_BY_RANGE(10, id) */ id, concat('k', id) AS s FROM range(500)"
POINT = "SELECT count(*) FROM store.t WHERE id = 123"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the tests start further drivers."""
    return tmp_path_factory.mktemp("two")


@pytest.fixture(scope="module")
def one(user: Driver) -> Driver:
    """A driver with a table of ten files; it looks for other drivers' changes every second."""
    user.sql("SET spark.sieve.registry.ttl = 1s")
    user.sql("CREATE DATABASE store")
    user.sql(f"CREATE TABLE store.t USING parquet AS {ROWS}")
    return user


@pytest.fixture(scope="module")
def two(server: CutMetastore, folder: Path) -> Iterator[Driver]:
    """A second driver.

    The second driver connects to the metastore directly, not through the proxy.
    """
    conf = server.direct | {"spark.sieve.registry.ttl": "1s"}
    with driver(folder / "two", **conf) as it:
        yield it


def reads(it: Driver, files: int) -> None:
    """Repeats a point query until it reads ``files`` files. Each time, checks the query's rows."""

    def so() -> bool:
        it.send(POINT)
        rows, read = it.receive()
        assert rows == [[1]]
        return read == files

    wait_until(so, f"it reads {files} files", every=0.1)


def test_driver_follows_statements_of_another_driver(one: Driver, two: Driver) -> None:
    """A driver notices another driver's CREATE, DISABLE and DROP within `spark.sieve.registry.ttl`.

    If a tool restores an old registration, a driver warns once, and CREATE repairs the
    registration.
    """
    corrupt = one.logged("is read in full: index-corrupt")
    assert two.files(POINT) == 10
    one.sql("CREATE SIEVE INDEX ON store.t (id) OPTIONS (error = 1)")
    reads(two, 1)
    assert two.sql("SHOW SIEVE INDEXES ON store.t")[0][:7] == [
        *("store", "t", "id_sieve", "id", "bigint"), "sieve", "ready",
    ]  # fmt: skip
    two.sql("ALTER SIEVE INDEX id_sieve ON store.t DISABLE")
    reads(one, 10)
    one.sql("ALTER SIEVE INDEX id_sieve ON store.t ENABLE")
    reads(two, 1)
    two.sql("DROP SIEVE INDEX ON store.t (id)")
    reads(one, 10)
    assert one.sql("SHOW SIEVE INDEXES IN store") == []
    assert one.logged("is read in full: index-corrupt") == corrupt

    two.sql("CREATE SIEVE INDEX ON store.t (id) OPTIONS (error = 1)")
    reads(one, 1)
    old = dict(one.sql("SHOW TBLPROPERTIES store.t"))["sieve.index.id_sieve"]
    two.sql("DROP SIEVE INDEX ON store.t (id)")
    two.sql(f"ALTER TABLE store.t SET TBLPROPERTIES ('sieve.index.id_sieve' = '{old}')")
    gone = f"{json.loads(old)['uuid']} holds no version"
    wait_until(
        lambda: one.files(POINT) == 10 and one.logged(gone), "it learns of the relic", every=0.1
    )
    for _ in range(3):
        assert one.files(POINT) == 10
    assert one.logged(gone) == 1, "one warning a cause"
    two.sql("CREATE SIEVE INDEX ON store.t (id) OPTIONS (error = 1)")
    reads(one, 1)


@pytest.mark.long
def test_advise_counts_the_scans_of_other_drivers(
    server: CutMetastore, user: Driver, folder: Path
) -> None:
    """With ``spark.sieve.history``, ADVISE also counts the scans of other drivers.

    The history of scans contains no constants of queries.

    If a file of the history is damaged, ADVISE ignores this file. When a driver ends, its front end
    ends, too.
    """
    conf = server.conf | {"spark.sieve.history": "true"}
    with driver(folder / "first", **conf) as first:
        first.sql("CREATE DATABASE stock")
        first.sql(f"CREATE TABLE stock.t USING parquet AS {ROWS}")
        for _ in range(2):
            first.sql("SELECT * FROM stock.t WHERE id = 717171 AND s <> 'utrecht'")
        first.end()
    (history,) = Path(server.conf["spark.sql.warehouse.dir"]).glob("stock.db/.sieve/history")
    (file,) = history.iterdir()
    assert '"id' in file.read_text().replace("\\", "")
    assert not any(constant in file.read_text() for constant in ("7171", "utrecht"))
    (history / ("e" * 32 + "-1.json")).write_text("{")
    columns = ("action", "table", "column", "asked", "scans")
    advice = f"SELECT {', '.join(columns)} FROM sieve_advice('stock')"
    assert user.sql(advice) == [["create", "t", "id", "= 2", 2.0]]
    user.sql("SELECT * FROM stock.t WHERE id = 717171")
    assert user.sql(advice) == [["create", "t", "id", "= 3", 3.0]]
    assert user.logged("1 files of") == 2
    (pid,) = front_ends(user.jvm)
    user.end()
    wait_until(lambda: not alive(pid), "the front end of a driver that ended ends")
    assert len(list(history.iterdir())) == 3


@pytest.mark.long
@pytest.mark.usefixtures("one")
def test_metastore_vanishes_during_create(server: CutMetastore, two: Driver) -> None:
    """If the metastore dies during CREATE, CREATE leaves no file, and the driver keeps working."""
    two.sql("CREATE SIEVE INDEX IF NOT EXISTS ON store.t (id) OPTIONS (error = 1)")
    root = Path(server.conf["spark.sql.warehouse.dir"], "store.db", ".sieve")
    before = {path.name for path in root.iterdir()}
    two.send("CREATE SIEVE INDEX ON store.t (s)")
    wait_until(lambda: {path.name for path in root.iterdir()} > before, "it has begun")
    server.kill()
    with pytest.raises(DriverError, match="metastore"):
        two.receive()
    assert {path.name for path in root.iterdir()} == before
    assert two.sql("SELECT 1") == [[1]]
