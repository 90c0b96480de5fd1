"""Writes a class archive for test drivers (JEP 350, Dynamic CDS).

Run it as ``python class_archive.py FILE``.

A test run starts dozens of JVMs. With the archive, a JVM starts in half the CPU time. A JVM with
other jars on its class path ignores the archive.
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
    """Does the typical work of a driver, and archives the classes that this work loads."""
    os.environ["SPARK_SUBMIT_OPTS"] = (
        f"{JVM_OPTIONS} -XX:ArchiveClassesAtExit={archive} -Xlog:disable"
    )
    with tempfile.TemporaryDirectory() as folder:
        spark = start_session(Path(folder) / "spark")
        for statement in tour("t"):
            spark.sql(statement).collect()
        driver = spark.sparkContext._gateway.proc
        spark.stop()
        # When its input ends, the JVM writes the archive and exits.
        driver.stdin.close()
        driver.wait()


if __name__ == "__main__":
    main(sys.argv[1])
