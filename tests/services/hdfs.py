"""Starts Hadoop's mini cluster (a name node and a data node) in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sieve.client.spark_home import find_spark
from sql_ext.launcher.conf_files import find_java, log_option
from tests.services.jars import jar

START_SECONDS = 180


@contextmanager
def started(folder: Path) -> Iterator[str]:
    """Starts an HDFS whose superuser is the current user; at the end, stops this HDFS.

    Yields the URI of the HDFS.

    Args:
        folder: the folder for the nodes' data and for the log.
    """
    jars = [str(jar(name)) for name in ("hadoop-client-minicluster", "mockito-core", "junit")]
    details, log = folder / "details.json", folder / "log"
    command = [
        *(find_java(os.environ), "-Xmx512m", log_option()),
        *("-cp", os.pathsep.join([*jars, str(find_spark(os.environ).path / "jars" / "*")])),
        *("org.apache.hadoop.test.MiniDFSClusterManager", "-datanodes", "1", "-format"),
        # Without -nnport, the name node uses a free port, and writes the port to the details file.
        *("-writeDetails", str(details), "-D", f"hdfs.minidfs.basedir={folder / 'data'}"),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        yield f"hdfs://localhost:{_port(process, details, log)}"
    finally:
        process.kill()
        process.wait()


def _port(process: subprocess.Popen[bytes], details: Path, log: Path) -> int:
    """Waits until the data node has joined; returns the port of the name node."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            return int(json.loads(details.read_text())["namenode_port"])
        except (FileNotFoundError, ValueError):  # the file is missing or incomplete
            ended = process.poll() is not None
            assert not ended, f"the mini cluster ended: {log.read_text()[-3000:]}"
            late = time.monotonic() > deadline
            assert not late, f"no HDFS in {START_SECONDS} s: {log.read_text()[-3000:]}"
            time.sleep(0.1)
