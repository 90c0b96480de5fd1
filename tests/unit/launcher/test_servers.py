"""Servers that the command line starts, finds and stops."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from sieve.errors import ConflictError, UnavailableError
from sql_ext.launcher import servers

LISTEN = (
    "import socket,sys,time; s=socket.create_server(('localhost',int(sys.argv[1]))); time.sleep(60)"
)


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Finds a free port, and makes a temporary folder the working directory."""
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("localhost", 0)) as listener:
        return int(listener.getsockname()[1])


def test_a_server_is_started_found_and_stopped(port: int) -> None:
    """`start` returns when the port answers. `stop` ends the process of the server."""
    command = [sys.executable, "-c", LISTEN, str(port)]
    server = servers.start("metastore", port, command, os.environ, "localhost")
    with pytest.raises(ConflictError, match="already"):
        servers.start("metastore", port, command, os.environ, "localhost")
    assert servers.the_one("metastore", None) == server
    servers.stop(server)
    assert servers.running("metastore") == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("localhost", port), timeout=1)


def test_a_server_that_ends_is_reported_with_its_reason(port: int) -> None:
    """If a server ends early, the error names the server's log, and quotes the log's last cause."""
    command = [sys.executable, "-c", "print('Caused by: no luck'); raise SystemExit(1)"]
    with pytest.raises(UnavailableError, match=r"no luck.*metastore-\d+\.log"):
        servers.start("metastore", port, command, os.environ, "localhost")
    assert servers.running("metastore") == []


def test_a_server_that_ends_at_once_is_not_running(port: int) -> None:
    """`stop` ends no process if the server ended before `start` could record it."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    gone = servers.Server("metastore", port, process.pid, "")
    servers.RUN_DIR.mkdir(exist_ok=True)
    record = servers.RUN_DIR / f"metastore-{port}.json"
    record.write_text(json.dumps({"kind": "metastore", "port": port, "pid": gone.pid, "born": ""}))
    assert servers.running("metastore") == []
    servers.stop(gone)
    assert not record.exists()


def test_start_fails_if_another_program_has_the_port(port: int) -> None:
    """If another program listens on the port, the error of `start` says so."""
    with (
        socket.create_server(("localhost", port)),
        pytest.raises(ConflictError, match=str(port)),
    ):
        servers.start("metastore", port, ["false"], os.environ, "localhost")


def test_stop_does_not_end_another_process(port: int) -> None:
    """`stop` does not end another process with the recorded process ID."""
    servers.RUN_DIR.mkdir()
    record = f'{{"kind": "metastore", "port": {port}, "pid": {os.getpid()}, "born": "long ago"}}'
    (servers.RUN_DIR / f"metastore-{port}.json").write_text(record)
    assert servers.running("metastore") == []
    servers.stop(servers.Server("metastore", port, os.getpid(), "long ago"))
