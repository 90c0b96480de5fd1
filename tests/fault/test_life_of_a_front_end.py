"""Tests when a front end starts and ends, and what happens if no front end can start."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from driver import Driver, DriverError, driver
from processes import alive, front_ends, wait_until

ROWS = "SELECT /*+ REPARTITION_BY_RANGE(10, id) */ id FROM range(500)"
POINT = "SELECT count(*) FROM t WHERE id = 123"
UUID = "01234567-89ab-cdef-0123-456789abcdef"
REGISTRATION = f'{{"format":1,"uuid":"{UUID}","column":["id"],"root":"file:/nowhere"}}'
"""The registration of an index that was never built."""


class Python:
    """The script that a driver runs as Python. In some tests, the script hangs or fails."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def becomes(self, first: str) -> None:
        """Makes the script run the given line of shell code before Python."""
        self.path.write_text(f'#!/bin/sh\n{first}\nexec {sys.executable} "$@"\n')
        self.path.chmod(0o755)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Python:
    """A script that starts the test run's Python."""
    made = Python(tmp_path_factory.mktemp("python") / "python")
    made.becomes("")
    return made


@pytest.fixture(scope="module")
def alive_driver(python: Python, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """The driver that this module's tests share; its start time-out is 3 s."""
    conf = {"spark.sieve.python": str(python.path), "spark.sieve.start.timeout": "3s"}
    with driver(tmp_path_factory.mktemp("life") / "driver", **conf) as it:
        yield it


@pytest.fixture
def it(alive_driver: Driver, request: pytest.FixtureRequest) -> Driver:
    """The shared driver without a running front end, in a database with a table of ten files."""
    alive_driver.sql(f"CREATE DATABASE {request.node.name}")
    alive_driver.sql(f"USE {request.node.name}")
    alive_driver.sql(f"CREATE TABLE t USING parquet AS {ROWS}")
    if front_ends(alive_driver.jvm):
        alive_driver.kill_front_end()
    return alive_driver


@pytest.mark.long
def test_front_end_starts_while_the_first_query_is_planned(it: Driver) -> None:
    """EXPLAIN runs no query, but starts a front end if an index could serve the query.

    This test must run first, because EXPLAIN starts only the driver's first front end in advance.
    """
    it.sql(f"EXPLAIN {POINT}")
    it.sql(
        "CREATE TABLE indexed (id BIGINT) USING parquet "
        f"TBLPROPERTIES ('sieve.index.id_sieve' = '{REGISTRATION}')"
    )
    it.sql("EXPLAIN SELECT * FROM indexed")
    assert front_ends(it.jvm) == []
    it.sql("EXPLAIN SELECT * FROM indexed WHERE id = 1")
    wait_until(lambda: front_ends(it.jvm), "the front end starts", every=0.1)
    assert it.sql("SHOW SIEVE INDEXES ON t") == []


@pytest.mark.long
def test_hanging_front_end_is_replaced(it: Driver, python: Python) -> None:
    """Once no caller can still wait for a hanging front end, the driver replaces the front end.

    Until the driver replaces the front end, statements fail before their full time-out.
    """
    python.becomes("exec sleep 1000")
    with pytest.raises(DriverError, match="SIEVE_FRONT_END"):
        it.sql("CREATE SIEVE INDEX ON t (id)")
    python.becomes("")
    # Only the first front end hangs; a later statement starts another front end, which works.
    wait_until(lambda: works(it, "SHOW SIEVE INDEXES ON t"), "another one is started", every=0.1)
    assert it.logged("the front end did not start in") == 1
    it.sql("CREATE SIEVE INDEX ON t (id) OPTIONS (error = 1)")
    assert it.files(POINT) == 1


def test_no_row_is_lost_if_no_front_end_starts(it: Driver, python: Python) -> None:
    """If no front end can start, a statement's error tells the user to set `spark.sieve.python`.

    Queries return the right rows and log one warning; with `spark.sieve.strict`, queries fail.
    """
    python.becomes("echo no module named sql_ext; exit 3")
    it.sql("SET spark.sieve.start.timeout = 120s")
    with pytest.raises(DriverError, match=r"no module named sql_ext.*set spark\.sieve\.python"):
        it.sql("CREATE SIEVE INDEX ON t (id)")
    it.sql(f"ALTER TABLE t SET TBLPROPERTIES ('sieve.index.id_sieve' = '{REGISTRATION}')")
    it.sql("SET spark.sieve.registry.ttl = 0s")
    it.sql(POINT)
    wait_until(
        lambda: it.sql(POINT) == [[1]] and it.logged("is read in full"), "it is tried", every=0.1
    )
    it.sql("SET spark.sieve.registry.ttl = 1h")
    for _ in range(5):
        it.send(POINT)
        assert it.receive() == ([[1]], 10)
    assert it.logged("is read in full: front-end-down: the front end cannot be started") == 1
    it.sql("SET spark.sieve.strict = true")
    with pytest.raises(DriverError, match=r"SIEVE_STRICT.*front-end-down"):
        it.sql(POINT)
    python.path.unlink()
    with pytest.raises(DriverError, match=r"No such file.*set spark\.sieve\.python"):
        it.sql("SHOW SIEVE INDEXES ON t")
    it.sql("RESET")


def test_front_end_ends_with_its_driver(it: Driver, python: Python) -> None:
    """Queries of a table without an index start no front end.

    The first Sieve statement starts a front end, which ends with the driver. The front end has its
    own process group, so that Ctrl-C in the driver's terminal does not stop it. The driver tells
    the front end that a table was dropped.
    """
    python.becomes("")
    it.sql("SET spark.sieve.start.timeout = 120s")
    assert (it.sql(POINT), it.files(POINT)) == ([[1]], 10)
    assert front_ends(it.jvm) == []
    it.sql("CREATE SIEVE INDEX ON t (id) OPTIONS (error = 1)")
    (pid,) = front_ends(it.jvm)
    assert it.files(POINT) == 1
    assert os.getpgid(pid) == pid
    os.killpg(os.getpgid(it.jvm), signal.SIGINT)
    assert it.files(POINT) == 1
    assert front_ends(it.jvm) == [pid]
    it.sql("DROP TABLE t")
    wait_until(
        lambda: it.logged("index id_sieve went with table test_front_end_ends"), "told of DROP"
    )
    it.kill()
    wait_until(lambda: not alive(pid), "the front end of a killed driver ends")


@pytest.mark.long
def test_a_driver_starts_with_wrong_settings(tmp_path: Path) -> None:
    """The driver warns once about each wrong value and each unknown name of a setting.

    Queries return the right rows, and the errors of statements name the wrong values.
    """
    conf = {
        "spark.sieve.enabled": "maybe",
        "spark.sieve.registry.ttl": "often",
        "spark.sieve.enable": "true",
        "spark.sieve.single.writer": "no",
    }
    with driver(tmp_path / "driver", **conf) as it:
        it.sql(f"CREATE TABLE t USING parquet AS {ROWS}")
        for _ in range(3):
            it.send(POINT)
            assert it.receive() == ([[1]], 10)
        it.sql("SET spark.sieve.enabled = true")
        it.sql(f"ALTER TABLE t SET TBLPROPERTIES ('sieve.index.id_sieve' = '{REGISTRATION}')")
        for _ in range(3):
            it.send(POINT)
            assert it.receive() == ([[1]], 10)
        with pytest.raises(DriverError, match=r"SIEVE_INVALID_SETTING.*registry\.ttl = 'often'"):
            it.sql("SHOW SIEVE INDEXES ON t")
        it.sql("SET spark.sieve.registry.ttl = 1s")
        with pytest.raises(DriverError, match=r"SIEVE_INVALID_SETTING.*single\.writer = 'no'"):
            it.sql("SHOW SIEVE INDEXES ON t")
        for reset in ("RESET spark.sieve.registry.ttl", "RESET"):
            it.sql(reset)
            assert it.sql(POINT) == [[1]]
        assert it.sql("SET spark.sieve.registry.ttl")[0][1] == "often"
        assert it.sql("SET spark.sieve.prun.timeout = 1s")[1:] == [
            [
                "warning",
                (
                    "there is no setting spark.sieve.prun.timeout; did you mean "
                    "spark.sieve.prune.timeout?"
                ),
            ]
        ]
        told = {
            "spark.sieve.enabled = 'maybe' is not valid; allowed: true or false; queries run with "
            "false": 1,
            "spark.sieve.registry.ttl = 'often' is not valid; allowed: a duration such as 30s or "
            "500ms; queries run with 30s": 1,
            "there is no setting spark.sieve.enable; did you mean spark.sieve.enabled?": 1,
            "spark.sieve.single.writer = 'no' is not valid": 1,
        }  # fmt: skip
        assert {text: it.logged(f"sieve: {text}") for text in told} == told


def works(it: Driver, statement: str) -> bool:
    """Returns whether the driver can run a statement."""
    try:
        it.sql(statement)
    except DriverError:
        return False
    return True
