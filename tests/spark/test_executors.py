"""Executors in processes of their own, which may lack what a build needs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "fault"))

from driver import Driver, DriverError, driver

CLUSTER = {
    "spark.master": "local-cluster[2,1,1024]",
    "spark.executor.memory": "512m",
    "spark.driver.memory": "1g",
}
ROWS = "SELECT /*+ REPARTITION_BY_RANGE(10, id) */ id, id % 7 AS r FROM range(1000)"


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """An interpreter of the same version without a package."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    return str(tmp_path / "venv" / "bin" / "python")


@pytest.fixture
def stray(tmp_path: Path) -> str:
    """The test run's Python on a machine that has other files where the indexes lie."""
    path = tmp_path / "python"
    hide = f'mount -t tmpfs none "{tmp_path / "root"}" && exec "{sys.executable}" "$@"'
    path.write_text(f"#!/bin/sh\nexec unshare --mount sh -c '{hide}' python \"$@\"\n")
    path.chmod(0o755)
    (tmp_path / "root").mkdir()
    if subprocess.run([path, "-c", ""], check=False, capture_output=True).returncode:
        pytest.skip("hiding a folder from a process takes the right to mount")
    return str(path)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Driver]:
    """A driver with two executors that run the test run's own Python, an hour off."""
    (tmp_path / "events").mkdir()
    conf = CLUSTER | {
        "spark.pyspark.python": sys.executable,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (tmp_path / "events").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.executor.extraJavaOptions": "-Duser.timezone=Europe/Berlin",
    }
    with driver(tmp_path / "driver", **conf) as it:
        yield it


def test_a_bare_python_is_named(bare: str, tmp_path: Path) -> None:
    """CREATE says which interpreter of the executors lacks which packages; nothing is made."""
    conf = CLUSTER | {"spark.master": "local-cluster[1,1,1024]", "spark.pyspark.python": bare}
    with driver(tmp_path / "driver", **conf) as it:
        it.sql(f"CREATE TABLE t USING parquet AS {ROWS}")
        with pytest.raises(DriverError, match="SIEVE_EXECUTOR_LACKS") as failed:
            it.sql("CREATE SIEVE INDEX ON t (id)")
        for word in (bare, "numpy", "pyarrow", "spark.pyspark.python"):
            assert word in str(failed.value)
        assert it.sql("SHOW SIEVE INDEXES ON t") == []


def test_a_root_that_is_not_shared(stray: str, tmp_path: Path) -> None:
    """A run is not published where its writers do not see the driver's files.

    Its files would be whole for the driver, which cannot know of others elsewhere.
    """
    root = tmp_path / "root"
    conf = CLUSTER | {"spark.master": "local-cluster[1,2,1024]", "spark.sieve.path": root.as_uri()}
    with driver(tmp_path / "driver", **conf, **{"spark.pyspark.python": stray}) as it:
        it.sql(f"CREATE TABLE t USING parquet AS {ROWS}")
        with pytest.raises(DriverError, match="SIEVE_ROOT_NOT_SHARED") as failed:
            it.sql("CREATE SIEVE INDEX ON t (id)")
        assert "spark.sieve.path" in str(failed.value)
        assert "Traceback" not in str(failed.value)
        assert it.sql("SHOW SIEVE INDEXES ON t") == []
    assert [path for path in root.rglob("*") if path.is_file()] == []


def test_executors_build(cluster: Driver, tmp_path: Path) -> None:
    """Executors of their own build an index; they are sent the code once, also to a new front end.

    Their time zone matters where a file's times are read in it, and only there. Every job of a
    statement carries it, the probes of executors too.
    """
    cluster.sql(f"CREATE TABLE t USING parquet AS {ROWS}")
    cluster.sql("CREATE SIEVE INDEX ON t (id) OPTIONS (error = 1)")
    assert cluster.files("SELECT count(*) FROM t WHERE id = 123") == 1
    cluster.kill_front_end()
    cluster.sql("CREATE SIEVE INDEX ON t (r)")
    assert cluster.files("SELECT count(*) FROM t WHERE id = 123") == 1
    cluster.sql("CREATE TABLE o USING orc AS SELECT id, timestamp_seconds(id) AS ts FROM t")
    cluster.sql("CREATE SIEVE INDEX ON o (id)")
    with pytest.raises(DriverError, match=r"SIEVE_EXECUTOR_ZONE.*Europe/Berlin"):
        cluster.sql("CREATE SIEVE INDEX ON o (ts)")
    cluster.end()
    (log,) = (tmp_path / "events").iterdir()
    jobs = [json.loads(line) for line in log.read_text().splitlines() if "JobStart" in line]
    labels = {
        job["Properties"].get("spark.job.description", "")
        for job in jobs
        if "sieve-" in job["Properties"].get("spark.job.tags", "")
    }
    assert "CREATE SIEVE INDEX ON t (r) (asking the executors)" in labels
    assert all(label.startswith("CREATE SIEVE INDEX ON ") for label in labels)
