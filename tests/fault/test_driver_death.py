"""Kills a driver and its JVM before each write of a CREATE and of a REFRESH."""

from __future__ import annotations

import itertools
import os
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from driver import Driver, DriverError, driver
from processes import alive, wait_until

ROWS = "SELECT /*+ REPARTITION_BY_RANGE(8, id) */ id, id div 100 AS r FROM range(800)"
BY_ID = "SELECT count(*), sum(r) FROM d.t WHERE id = 123"
BY_R = "SELECT count(*), sum(id) FROM d.t WHERE r = 5"
DAY_S = 24 * 3600


@pytest.fixture
def conf(tmp_path: Path) -> dict[str, str]:
    """Settings for a metastore and a warehouse that outlive a killed driver.

    With these settings, a driver starts front ends that die before a chosen write.
    """
    script = tmp_path / "python"
    mortal = [sys.executable, str(Path(__file__).with_name("killable_frontend.py"))]
    script.write_text(f'#!/bin/sh\nexec {shlex.join([*mortal, str(tmp_path / "count")])} "$@"\n')
    script.chmod(0o755)
    database = f"jdbc:derby:;databaseName={tmp_path}/metastore;create=true"
    return {
        "spark.hadoop.javax.jdo.option.ConnectionURL": database,
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        "spark.sieve.python": str(script),
    }


def check(it: Driver, query: str) -> int:
    """Checks that a query returns the same rows with and without the index.

    Returns the number of files that the query reads with the index.
    """
    it.sql("SET spark.sieve.enabled = false")
    off = it.sql(query)
    it.sql("SET spark.sieve.enabled = true")
    it.send(query)
    on, files = it.receive()
    assert on == off
    return files


def kill_before_effect(it: Driver, statement: str, number: int, folder: Path) -> str:
    """Runs a statement, and kills the driver before the statement's n-th write (n = ``number``).

    Returns:
        The name of the n-th write. If the statement makes fewer than n writes, it succeeds, and the
        name is "".
    """
    (folder / "told").unlink(missing_ok=True)
    (folder / "count").write_text(str(number))
    it.send(statement)
    with suppress(DriverError, AssertionError):
        it.receive()
        (folder / "count").unlink()
        return ""
    wait_until((folder / "told").exists, "it told where it died")
    (folder / "count").unlink()
    wait_until(lambda: not alive(it.jvm), "the driver is dead")
    return (folder / "told").read_text()


def names(it: Driver) -> list[str]:
    """The names of the table's indexes; asserts that each index is ready."""
    rows = it.sql("SHOW SIEVE INDEXES ON d.t")
    assert {row[6] for row in rows} <= {"ready"}
    return sorted(row[2] for row in rows)


def check_vacuum(it: Driver, root: Path) -> None:
    """Checks that VACUUM deletes day-old leftovers and keeps the table's indexes.

    The first file that CREATE writes is `intent.json`, so a folder without this file is empty.
    """
    for mark in (*root.glob("*/intent.json"), *root.glob("*/registered")):
        os.utime(mark, (time.time() - DAY_S - 60,) * 2)
    it.sql("VACUUM SIEVE INDEXES IN d")
    (own,) = (
        path.removeprefix("file:")
        for key, path, *_ in it.sql("DESCRIBE SIEVE INDEX EXTENDED id_sieve ON d.t")
        if key == "path"
    )
    others = [path for path in root.iterdir() if path != Path(own)]
    assert [file for path in others for file in path.rglob("*")] == []


def drivers(folder: Path, conf: dict[str, str]) -> Iterator[tuple[int, Driver]]:
    """Starts one driver after another; the first driver creates a table and an index."""
    for number in itertools.count():
        with driver(folder / f"driver-{number}", **conf) as it:
            if number == 0:
                it.sql("CREATE DATABASE d")
                it.sql(f"CREATE TABLE d.t USING parquet AS {ROWS}")
                it.sql("CREATE SIEVE INDEX ON d.t (id)")
            yield number, it


@pytest.mark.soak
def test_a_driver_killed_at_each_effect_of_a_create(tmp_path: Path, conf: dict[str, str]) -> None:
    """If a driver dies at any write of a CREATE, queries and another CREATE work.

    VACUUM deletes the dead driver's files.
    """
    root = tmp_path / "warehouse" / "d.db" / ".sieve"
    deaths = []
    for number, it in drivers(tmp_path, conf):
        if number > 0:
            assert check(it, BY_ID) == 1
            by_r = check(it, BY_R)
            if names(it) == ["id_sieve"]:
                assert by_r == 8
                it.sql("CREATE SIEVE INDEX ON d.t (r)")
            assert names(it) == ["id_sieve", "r_sieve"]
            assert check(it, BY_R) == 1
            it.sql("DROP SIEVE INDEX ON d.t (r)")
            check_vacuum(it, root)
        death = kill_before_effect(it, "CREATE SIEVE INDEX ON d.t (r)", number, tmp_path)
        if not death:
            assert check(it, BY_R) == 1
            break
        deaths.append(death)
    _print_deaths("CREATE", deaths)
    assert "while a run is written" in deaths
    assert "before property r_sieve" in deaths
    assert len(deaths) >= 14


@pytest.mark.soak
def test_a_driver_killed_at_each_effect_of_a_refresh(tmp_path: Path, conf: dict[str, str]) -> None:
    """If a driver dies at any write of a REFRESH, the old or new version is complete and in use.

    The next REFRESH works.
    """
    deaths = []
    for number, it in drivers(tmp_path, conf):
        if number > 0:
            assert check(it, BY_ID) == 1
            it.sql("REFRESH SIEVE INDEX ON d.t")
            assert check(it, BY_ID) == 1
            versions = [row[1] for row in it.sql("SHOW SIEVE VERSIONS id_sieve ON d.t")]
            assert sorted(versions) == list(range(min(versions), max(versions) + 1))
        death = kill_before_effect(it, "REFRESH SIEVE INDEX ON d.t FULL", number, tmp_path)
        if not death:
            break
        deaths.append(death)
    _print_deaths("REFRESH", deaths)
    assert len(deaths) >= 6


def _print_deaths(statement: str, deaths: list[str]) -> None:
    lines = "".join(f"  {death}\n" for death in deaths)
    sys.stdout.write(f"{statement}: {len(deaths)} drivers killed, 0 wrong rows\n{lines}")
