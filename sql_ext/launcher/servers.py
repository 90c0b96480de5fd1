"""Starts, stops and finds the background servers that were started in a working directory.

`start` returns when the server's port accepts connections. The file
``.sieve-run/<kind>-<port>.json`` is a server's record, and the file next to the record is the
server's log. The record identifies the server's process by pid and start time. So `stop` never ends
a later process with the same pid.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sieve.errors import ConflictError, InvalidInputError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RUN_DIR = Path(".sieve-run")
START_SECONDS = 180.0
STOP_SECONDS = 30.0
_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Server:
    """A server that was started in this working directory.

    Attributes:
        kind: ``thriftserver``, ``connect-server`` or ``metastore``.
        port: TCP port on which the server listens.
        pid: the server's process id.
        born: start time of the process, as the operating system reports it. A later process with
            the same pid has another start time.
    """

    kind: str
    port: int
    pid: int
    born: str

    @property
    def log(self) -> Path:
        """Path of the file to which the server writes its output."""
        return RUN_DIR / f"{self.kind}-{self.port}.log"


def running(kind: str) -> list[Server]:
    """The running servers of a kind that were started in this directory."""
    servers = []
    for path in sorted(RUN_DIR.glob(f"{kind}-*.json")):
        try:
            server = Server(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError):
            continue  # an interrupted start left an incomplete record, which names no process
        if _is_alive(server):
            servers.append(server)
    return servers


def start(
    kind: str, port: int, command: Sequence[str], environ: Mapping[str, str], host: str
) -> Server:
    """Starts a server, and returns when its port accepts connections.

    Raises:
        ConflictError: another process already listens on the port.
        UnavailableError: the server ended, or its port did not accept a connection in time. After a
            time-out, the function stops the server.
    """
    for server in running(kind):
        if server.port == port:
            raise ConflictError(
                "SIEVE_SERVER_RUNNING", f"A {kind} runs on port {port} already, pid {server.pid}."
            )
    if _answers(host, port):
        raise ConflictError(
            "SIEVE_PORT_TAKEN",
            f"Another program listens on port {port} of {host}; choose another port: --port.",
        )
    RUN_DIR.mkdir(mode=0o700, exist_ok=True)
    with (RUN_DIR / f"{kind}-{port}.log").open("wb") as log:
        # The server's process gets its own session. So the server continues if the user closes the
        # terminal or presses Ctrl-C.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=dict(environ),
            start_new_session=True,
        )
    server = Server(kind, port, process.pid, _born(process.pid))
    _record(server).write_text(json.dumps(_fields(server)), encoding="utf-8")
    try:
        _await_port(server, process, host)
    except BaseException:
        stop(server)
        raise
    return server


def stop(server: Server) -> None:
    """Stops a server by SIGTERM. If the server still runs after 30 s, sends SIGKILL.

    Also removes the record of a server that has already ended.
    """
    for sign, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, STOP_SECONDS)):
        if not _is_alive(server):
            break
        with contextlib.suppress(ProcessLookupError):  # the process may end at any time
            os.kill(server.pid, sign)
        deadline = time.monotonic() + seconds
        while _is_alive(server) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
    _record(server).unlink(missing_ok=True)


def _is_alive(server: Server) -> bool:
    """Returns whether the server's process runs. `_born` returns "" for an ended process."""
    return server.born != "" and _born(server.pid) == server.born


def the_one(kind: str, port: int | None) -> Server:
    """The running server of this kind on ``port``; if ``port`` is None, the only running server.

    Raises:
        InvalidInputError: no such server runs, or ``port`` is None and several servers run.
    """
    servers = [s for s in running(kind) if port in {None, s.port}]
    if len(servers) == 1:
        return servers[0]
    if servers:
        ports = ", ".join(str(s.port) for s in servers)
        message = f"Several run here; name one with --port: {ports}."
    else:
        on = "" if port is None else f" on port {port}"
        message = f"No {kind}{on} was started from this directory ({Path.cwd()})."
    raise InvalidInputError("SIEVE_NO_SERVER", message)


def _await_port(server: Server, process: subprocess.Popen[bytes], host: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _answers(host, server.port):
        if process.poll() is not None:
            raise UnavailableError(
                "SIEVE_START_FAILED",
                f"The {server.kind} ended while starting. {_why(server.log)}"
                f"The whole log is in {server.log}.",
            )
        if time.monotonic() > deadline:
            raise UnavailableError(
                "SIEVE_START_FAILED",
                f"The {server.kind} did not answer on port {server.port} within "
                f"{START_SECONDS:.0f} s and was stopped; see {server.log}.",
            )
        time.sleep(_POLL_SECONDS)


def _why(log: Path) -> str:
    text = log.read_text(encoding="utf-8", errors="replace")
    if "Another instance of Derby may have already booted" in text:
        return (
            "Another Spark holds the embedded metastore of this directory (metastore_db); stop "
            "it, or let both use a server: sieve metastore start. "
        )
    causes = [line.strip() for line in text.splitlines() if line.startswith(("Caused by", "Error"))]
    return f"Its last error: {causes[-1]}. " if causes else ""


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False


def _born(pid: int) -> str:
    """The start time of a process, as text. For a zombie or an unknown pid, the result is ""."""
    if Path("/proc/self/stat").exists():
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        # The program's name is in parentheses and can contain any character. So this code counts
        # the fields after the name.
        fields = stat.rpartition(")")[2].split()
        state, started = fields[0], f"{fields[19]} ticks after boot"
    else:
        # Systems without /proc have ps. Small Linux containers have /proc, but may lack ps.
        result = subprocess.run(
            ["ps", "-o", "stat=,lstart=", "-p", str(pid)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},
        )
        state, _, started = result.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else started.strip()


def _record(server: Server) -> Path:
    return RUN_DIR / f"{server.kind}-{server.port}.json"


def _fields(server: Server) -> dict[str, str | int]:
    return {"kind": server.kind, "port": server.port, "pid": server.pid, "born": server.born}
