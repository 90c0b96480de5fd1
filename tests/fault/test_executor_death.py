"""Kills executors during a build, while Spark runs speculative copies of tasks."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from driver import DriverError, driver
from processes import children, wait_until

ROWS = "SELECT /*+ REPARTITION_BY_RANGE(24, id) */ id, id * 7919 % 100003 AS r FROM range(3000000)"
CLUSTER = {
    "spark.master": "local-cluster[2,1,1024]",
    "spark.executor.memory": "512m",
    "spark.pyspark.python": sys.executable,
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.3",
}
KILLS = 6


def executors(jvm: int) -> list[int]:
    """The process ids of a driver's executors."""
    return children(jvm, "org.apache.spark.executor.CoarseGrainedExecutorBackend")


@pytest.mark.soak
def test_build_succeeds_or_fails_if_executors_die(tmp_path: Path) -> None:
    """If an executor dies during a build, the build either succeeds or reports the error.

    After a successful build, the index is correct and contains no extra file.
    """
    ended = 0
    with driver(tmp_path / "driver", **CLUSTER) as it:
        it.sql("CREATE DATABASE d")
        it.sql(f"CREATE TABLE d.t USING parquet AS {ROWS}")
        root = tmp_path / "driver" / "spark" / "warehouse" / "d.db" / ".sieve"
        for turn in range(KILLS):
            wait_until(lambda: len(executors(it.jvm)) == 2, "two executors run")
            it.send("CREATE SIEVE INDEX x ON d.t (r) OPTIONS (shape = 'intervals')")
            if turn % 2:
                wait_until(lambda: any(root.rglob("intents/run-*")), "it writes its run")
            else:
                wait_until(lambda: any(root.rglob("intent.json")), "it has begun")
            os.kill(executors(it.jvm)[turn % 2], signal.SIGKILL)
            try:
                it.receive()
            except DriverError as error:
                sys.stdout.write(f"{str(error)[:200]}\n")
                assert list(root.iterdir()) == []
                continue
            ended += 1
            (index,) = root.iterdir()
            (run,) = (index / "runs").iterdir()
            told = [path.name for path in run.glob("part-*")]
            manifest = (index / "versions" / "1.json").read_text()
            assert all(name in manifest for name in told)
            it.sql("CHECK SIEVE INDEX x ON d.t")
            it.sql("DROP SIEVE INDEX x ON d.t")
    sys.stdout.write(f"{KILLS} executors killed: {ended} builds ended, {KILLS - ended} failed\n")
