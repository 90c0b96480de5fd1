"""Builds on executors in separate processes that can lack packages, files or settings."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "fault"))

from driver import Driver, DriverError, driver
from processes import children

ROWS = "SELECT /*+ REPARTITION_BY_RANGE(10, id) */ id, id % 7 AS r FROM range(20000)"
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


class Python:
    """The command that starts Python on executors; the driver keeps the Python of the tests."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def becomes(self, command: str, it: Driver) -> None:
        """Changes the executors' Python command, and ends the workers of the earlier command."""
        self.path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        self.path.chmod(0o755)
        for executor in children(it.jvm, EXECUTOR):
            for daemon in children(executor, "pyspark.daemon"):
                os.killpg(daemon, signal.SIGKILL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the driver writes."""
    return tmp_path_factory.mktemp("executors")


@pytest.fixture(scope="module")
def python(folder: Path) -> Python:
    """The executors' Python command; it starts nothing until a test sets a program."""
    return Python(folder / "python")


@pytest.fixture(scope="module")
def cluster(folder: Path, python: Python) -> Iterator[Driver]:
    """A driver with a table, and two executors in another time zone than the driver's."""
    (folder / "events").mkdir()
    conf = {
        "spark.master": "local-cluster[2,1,1024]",
        "spark.executor.memory": "512m",
        "spark.driver.memory": "1g",
        "spark.pyspark.python": str(python.path),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.executor.extraJavaOptions": "-Duser.timezone=Europe/Berlin",
    }
    with driver(folder / "driver", **conf) as it:
        it.sql(f"CREATE TABLE t USING parquet AS {ROWS}")
        yield it


@pytest.mark.long
def test_create_names_a_python_without_packages(
    cluster: Driver, python: Python, tmp_path: Path
) -> None:
    """If executors lack packages, CREATE names the packages and the interpreter, and fails."""
    bare = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    python.becomes(str(bare / "bin" / "python"), cluster)
    with pytest.raises(DriverError, match="SIEVE_EXECUTOR_LACKS") as failed:
        cluster.sql("CREATE SIEVE INDEX ON t (id)")
    for word in (str(python.path), "numpy", "pyarrow", "spark.pyspark.python"):
        assert word in str(failed.value)
    assert cluster.sql("SHOW SIEVE INDEXES ON t") == []


@pytest.mark.long
def test_build_fails_if_executors_do_not_see_the_root(
    cluster: Driver, python: Python, tmp_path: Path
) -> None:
    """If executors do not see the driver's root folder, a build publishes no run.

    The driver sees only the run files that the driver itself has written. These run files alone
    look like a complete run.
    """
    root = tmp_path / "root"
    root.mkdir()
    hide = f"mount -t tmpfs none '{root}' && exec '{sys.executable}' \"$@\""
    stray = f"unshare --mount sh -c {shlex.quote(hide)} python"
    if subprocess.run(f"{stray} -c ''", shell=True, check=False, capture_output=True).returncode:
        pytest.skip("hiding a folder from a process takes the right to mount")
    python.becomes(stray, cluster)
    cluster.sql(f"SET spark.sieve.path = {root.as_uri()}")
    cluster.sql(f"SET spark.sieve.roots = {root}")
    with pytest.raises(DriverError, match="SIEVE_ROOT_NOT_SHARED") as failed:
        cluster.sql("CREATE SIEVE INDEX ON t (id)")
    assert "spark.sieve.path" in str(failed.value)
    assert "Traceback" not in str(failed.value)
    assert cluster.sql("SHOW SIEVE INDEXES ON t") == []
    assert [path for path in root.rglob("*") if path.is_file()] == []
    cluster.sql("RESET spark.sieve.path")
    cluster.sql("RESET spark.sieve.roots")


@pytest.mark.long
def test_executors_build(cluster: Driver, python: Python, folder: Path) -> None:
    """Executors build an index. A new front end does not send the code to the executors again.

    The executors' time zone only affects builds that convert a file's times. The description of
    each job names the statement, even if the job only probes executors.
    """
    python.becomes(sys.executable, cluster)
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
    (log,) = (folder / "events").iterdir()
    jobs = [json.loads(line) for line in log.read_text().splitlines() if "JobStart" in line]
    labels = {
        job["Properties"].get("spark.job.description", "")
        for job in jobs
        if "sieve-" in job["Properties"].get("spark.job.tags", "")
    }
    assert "CREATE SIEVE INDEX ON t (r) (asking the executors)" in labels
    assert all(label.startswith("CREATE SIEVE INDEX ON ") for label in labels)
