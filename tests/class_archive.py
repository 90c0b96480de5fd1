"""Writes an archive of the classes that a driver loads: ``python class_archive.py FILE``.

A JVM that maps it (JEP 350, Dynamic CDS Archives) starts in half the CPU time, and a run of the
tests starts dozens. One that has other jars on its class path goes without.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from client_smoke import tour
from conftest import JVM_OPTIONS
from spark_session import start_session


def main(archive: str) -> None:
    """Do once what drivers do, and keep what that has loaded."""
    os.environ["SPARK_SUBMIT_OPTS"] = (
        f"{JVM_OPTIONS} -XX:ArchiveClassesAtExit={archive} -Xlog:disable"
    )
    with tempfile.TemporaryDirectory() as folder:
        spark = start_session(Path(folder) / "spark")
        for statement in tour("t"):
            spark.sql(statement).collect()
        driver = spark.sparkContext._gateway.proc
        spark.stop()
        # The JVM writes the archive as it exits, which it does when its input ends.
        driver.stdin.close()
        driver.wait()


if __name__ == "__main__":
    main(sys.argv[1])
