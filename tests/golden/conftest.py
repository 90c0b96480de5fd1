"""Starts a Thrift server in the test run's own driver, and sorts the tests by corpus file.

The tests of clients start, query and stop other Thrift servers in separate processes.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from spark_session import THRIFT_PORT, Lab

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def thrift_port(lab: Lab) -> Iterator[int]:
    """The port of a HiveThriftServer2 that serves the test run's session."""
    port = int(lab.spark.conf.get(THRIFT_PORT))
    servers = lab.spark._jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2
    server = servers.startWithContext(lab.spark._jsparkSession.sqlContext())
    _await(port)
    yield port
    server.stop()


def _await(port: int, seconds: float = 60) -> None:
    """Waits until a background thread has opened the server's port."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection(("localhost", port), 1).close()
        except OSError:
            assert time.monotonic() < deadline, f"nobody listens on {port}"
            time.sleep(0.1)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs all tests of a corpus file in sequence, so the file's tables are created only once."""

    def script(item: pytest.Item) -> str:
        callspec = getattr(item, "callspec", None)
        ours = callspec is not None and item.path.parent == Path(__file__).parent
        return str(callspec.params.get("script", "")) if ours else ""

    places = [k for k, item in enumerate(items) if script(item)]
    for k, item in zip(places, sorted((items[k] for k in places), key=script), strict=True):
        items[k] = item
