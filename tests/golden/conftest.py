"""A Thrift server of its own for the corpus, on an embedded metastore."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def thrift_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Port of a server started, and stopped, by the commands that a user would type."""
    folder = tmp_path_factory.mktemp("thrift")
    with socket.create_server(("localhost", 0)) as free:
        port = int(free.getsockname()[1])

    def sieve(*args: str) -> None:
        command = [str(Path(sys.executable).with_name("sieve")), "thriftserver", *args]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=240, check=False
        )
        assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"

    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
    }
    options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    sieve("start", "--port", str(port), *options)
    yield port
    sieve("stop", "--port", str(port))
