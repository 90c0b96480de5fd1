"""What tests of all kinds share: one Spark session a run, started when a test first needs it."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

from spark_session import THRIFT_PORT, Lab, start_session
from xdist.scheduler import LoadFileScheduling

# Drivers of tests live for seconds or minutes: what the JVM's second compiler and a parallel
# collector would save later, they cost two cores first (a third of all the run's CPU time). With
# one compiler the JVM reserves a fifth of the usual code cache, which Spark's generated code fills:
# code then is swept and compiled again (another sixth).
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
# Where `make test` has made one, classes come from an archive, which halves the start of a driver.
_ARCHIVE = Path(__file__).parent.parent / "build" / "spark-4.1.jsa"
_ARCHIVED = f" -XX:SharedArchiveFile={_ARCHIVE} -Xlog:disable" if _ARCHIVE.exists() else ""
os.environ.setdefault("SPARK_SUBMIT_OPTS", JVM_OPTIONS + _ARCHIVED)


# No deadline: how long one example takes says more about the machine than about the code.
settings.register_profile("sieve", deadline=None, print_blob=True)
settings.load_profile("sieve")


class _OneSite(LoadFileScheduling):
    """A file's tests on one worker; on one, too, all tests of clients, who share their servers."""

    def _split_scope(self, nodeid: str) -> str:
        return "clients" if nodeid.startswith("tests/clients/") else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> _OneSite:
    """How the tests are dealt out to workers."""
    return _OneSite(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    """``pytest tests/golden --regenerate`` writes the expected rows anew, without the index."""
    parser.addoption("--regenerate", action="store_true", help="write the golden .out files anew")


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The session of the test run."""
    with socket.create_server(("localhost", 0)) as free:
        port = str(free.getsockname()[1])
    # Hive keeps what it finds when the metastore is first asked; the server itself starts later.
    spark = start_session(tmp_path_factory.mktemp("spark"), **{THRIFT_PORT: port})
    yield Lab(spark)
    spark.stop()
