"""Shared fixtures: one Spark session per test run, started when a test first needs it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

from spark_session import THRIFT_PORT, Lab, start_session
from xdist.scheduler import LoadFileScheduling

# Every JVM of a test run lives for seconds or minutes: drivers, executors, metastores, beeline. At
# first, the second compiler and a parallel collector would cost more than they save later (a third
# of the run's CPU time in all). With one compiler, the JVM's code cache has a fifth of the usual
# size. Spark's generated code fills this cache; code is then discarded and compiled again (another
# sixth of the CPU time). Class data soon exceeds 21 MB, at which a JVM starts its first full
# collection. Hadoop starts a `chmod` for each file and folder that it makes; with VFORK, `chmod`
# starts fastest.
JVM_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m "
    "-XX:MetaspaceSize=256m -Djdk.lang.Process.launchMechanism=VFORK"
)
os.environ.setdefault("JDK_JAVA_OPTIONS", JVM_OPTIONS)
# By default, a heap starts with a 64th of the machine's memory, and a third of the heap is for new
# objects. New objects would then be collected every second, and objects that live slightly longer
# would be copied each time.
_HEAP = "-Xms896m -Xmn512m"
# Uses the class archive that `make test` has made, if it exists: the archive halves the time to
# start a driver. A JVM ignores the archive of another jar.
_ARCHIVE = Path(__file__).parent.parent / "build" / "spark-4.1.jsa"
_ARCHIVED = f"-XX:SharedArchiveFile={_ARCHIVE} -Xlog:disable" if _ARCHIVE.exists() else ""
os.environ.setdefault("SPARK_SUBMIT_OPTS", f"{JVM_OPTIONS} {_HEAP} {_ARCHIVED}")


# There is no deadline, because the time of one example depends more on the machine than on the
# code.
settings.register_profile("sieve", deadline=None, print_blob=True)
settings.load_profile("sieve")


SHARING = {
    "tests/clients/": "clients",
    "tests/fault/test_metastore_gone.py": "metastore",
    "tests/fault/test_two_drivers.py": "metastore",
}
"""Folders and files whose tests share servers, and the names of these."""


class _OneSite(LoadFileScheduling):
    """Runs each file's tests on one worker; tests that share servers also run on one worker."""

    def _split_scope(self, nodeid: str) -> str:
        for start, servers in SHARING.items():
            if nodeid.startswith(start):
                return servers
        return super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> _OneSite:
    """The scheduler that distributes tests to workers."""
    return _OneSite(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    """``pytest tests/golden --regenerate`` rewrites the expected rows, without the index."""
    parser.addoption("--regenerate", action="store_true", help="write the golden .out files anew")
    parser.addoption("--every", type=int, metavar="N", help="run each N-th golden query alone")


_BEFORE_THE_END = 5
_watch = pytest.StashKey[threading.Timer]()


def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> None:
    """Lets the JVMs of a test print what their threads wait for, before the test's time is out.

    When the time is out, the process ends. A failure of the test would not end a call to a JVM that
    never answers, because PySpark makes a further call when the first ends.
    """
    item.stash[_watch] = threading.Timer(
        settings.timeout - _BEFORE_THE_END,
        lambda: subprocess.run(["pkill", "-QUIT", "-P", str(os.getpid()), "java"], check=False),
    )
    item.stash[_watch].daemon = True
    item.stash[_watch].start()


def pytest_timeout_cancel_timer(item: pytest.Item) -> None:
    """Ends the watch over a test."""
    if _watch in item.stash:
        item.stash[_watch].cancel()


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The Spark session of the test run."""
    with socket.create_server(("localhost", 0)) as free:
        port = str(free.getsockname()[1])
    # Hive keeps the settings of its first use of the metastore, so the port must be set before the
    # server starts.
    spark = start_session(tmp_path_factory.mktemp("spark"), **{THRIFT_PORT: port})
    yield Lab(spark)
    spark.stop()
