"""Shared fixtures: one Spark session per test run, started when a test first needs it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

from spark_session import THRIFT_PORT, Lab, start_session
from xdist.scheduler import LoadFileScheduling

# Every JVM of a test run (driver, executor, metastore or beeline) lives for seconds or minutes. In
# such a short life, the JVM's second compiler (C2) and a parallel collector cost more time than
# they save. Without C2 and a parallel collector, a test run takes a third less CPU time. With only
# one compiler, the JVM makes its code cache a fifth of the usual size by default. Spark's generated
# code would fill such a small cache. The JVM would then discard code and compile the code again,
# which costs a sixth of the CPU time. By default, a JVM starts its first full collection when class
# data reaches 21 MB, which happens soon. Hadoop starts a `chmod` process for each new file and
# folder. VFORK is the fastest way to start a process.
JVM_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m "
    "-XX:MetaspaceSize=256m -Djdk.lang.Process.launchMechanism=VFORK"
)
os.environ.setdefault("JDK_JAVA_OPTIONS", JVM_OPTIONS)
# By default, a heap starts with a 64th of the machine's memory, and a third of the heap is for new
# objects. With such a small heap, the JVM would collect new objects every second, and each time
# copy all objects still in use.
_HEAP = "-Xms896m -Xmn512m"
# If `make test` has made a class archive, drivers load the archive and start in half the time. A
# JVM ignores an archive that was made from different jars.
_ARCHIVE = Path(__file__).parent.parent / "build" / "spark-4.1.jsa"
_ARCHIVED = f"-XX:SharedArchiveFile={_ARCHIVE} -Xlog:disable" if _ARCHIVE.exists() else ""
os.environ.setdefault("SPARK_SUBMIT_OPTS", f"{JVM_OPTIONS} {_HEAP} {_ARCHIVED}")


# Hypothesis gets no deadline, because an example's time depends more on the machine than on the
# code.
settings.register_profile("sieve", deadline=None, print_blob=True)
settings.load_profile("sieve")


SHARING = {
    "tests/clients/": "clients",
    "tests/fault/test_metastore_gone.py": "metastore",
    "tests/fault/test_two_drivers.py": "metastore",
}
"""Maps folders and files to the name of the servers that their tests share."""


class _OneSite(LoadFileScheduling):
    """Runs each file's tests on one worker, and tests that share servers on one worker."""

    def _split_scope(self, nodeid: str) -> str:
        for start, servers in SHARING.items():
            if nodeid.startswith(start):
                return servers
        return super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> _OneSite:
    """The scheduler that distributes tests to workers."""
    return _OneSite(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options ``--regenerate`` and ``--every`` of golden tests."""
    parser.addoption("--regenerate", action="store_true", help="write the golden .out files anew")
    parser.addoption("--every", type=int, metavar="N", help="run each N-th golden query alone")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Adds the mark `long` to the test cases that the mark `sampled` leaves out."""
    cases: Counter[tuple[Path, str]] = Counter()
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled is not None and item.get_closest_marker("long") is None:
            test = item.path, getattr(item, "originalname", item.name)
            if cases[test] % sampled.args[0]:
                item.add_marker("long")
            cases[test] += 1


_BEFORE_THE_END = 5
_watch = pytest.StashKey[threading.Timer]()


def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> None:
    """Shortly before a test times out, makes the test's JVMs print what their threads wait for.

    At the time-out, ends the process. A failure of the test alone is not enough: PySpark would call
    the hung JVM again.
    """
    item.stash[_watch] = threading.Timer(
        settings.timeout - _BEFORE_THE_END,
        lambda: subprocess.run(["pkill", "-QUIT", "-P", str(os.getpid()), "java"], check=False),
    )
    item.stash[_watch].daemon = True
    item.stash[_watch].start()


def pytest_timeout_cancel_timer(item: pytest.Item) -> None:
    """Stops the timer of a test."""
    if _watch in item.stash:
        item.stash[_watch].cancel()


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The Spark session of the test run."""
    with socket.create_server(("localhost", 0)) as free:
        port = str(free.getsockname()[1])
    # Hive keeps the settings of its first use of the metastore. So this fixture sets the port
    # before the server starts.
    spark = start_session(tmp_path_factory.mktemp("spark"), **{THRIFT_PORT: port})
    yield Lab(spark)
    spark.stop()
