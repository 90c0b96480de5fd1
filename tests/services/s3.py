"""Runs a local S3 server (moto) behind a proxy, the gate, which can inject faults."""

from __future__ import annotations

import http.client
import os
import re
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.ports import free_ports
from tests.services.jars import FOLDER, jar

START_SECONDS = 60
KEEPING, HEEDLESS, ANCIENT = "keeping", "heedless", "ancient"
"""Three buckets: KEEPING obeys a put's condition, HEEDLESS ignores it, ANCIENT answers 501."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that the gate injects into the next put of a matching key.

    Attributes:
        key: the regular expression that matches the whole key.
        status: the HTTP status of the reply.
        takes_effect: whether the server still executes the put.
    """

    key: str
    status: int
    takes_effect: bool = False


@dataclass
class Gate:
    """A proxy in front of the S3 server. The proxy injects faults and records puts.

    Attributes:
        port: the port for requests, on the loopback address.
        faults: the remaining faults. Each fault strikes once.
        puts: the keys of conditional puts, each with the status of the reply.
    """

    port: int
    faults: list[Fault] = field(default_factory=list)
    puts: list[tuple[str, int]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def conf(self) -> dict[str, str]:
        """Hadoop's settings for access through the gate, without Spark's prefix."""
        return {
            "fs.s3a.endpoint": f"http://127.0.0.1:{self.port}",
            "fs.s3a.endpoint.region": "us-east-1",
            "fs.s3a.path.style.access": "true",
            "fs.s3a.access.key": "test",
            "fs.s3a.secret.key": "test",
            # Two attempts suffice, because a third time-out would add nothing to a test.
            "fs.s3a.attempts.maximum": "2",
            "fs.s3a.retry.limit": "2",
            "fs.s3a.retry.interval": "50ms",
        }

    def keys(self, bucket: str, prefix: str) -> list[str]:
        """The keys in a bucket that begin with a prefix, without folder markers."""
        query = urllib.parse.urlencode({"list-type": 2, "prefix": prefix})
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{bucket}?{query}") as reply:
            found = re.findall(r"<Key>(.*?)</Key>", reply.read().decode())
        return [key for key in found if not key.endswith("/")]

    def next_fault(self, key: str) -> Fault | None:
        """Removes and returns the fault for the next put of this key, or returns None."""
        with self._lock:
            for fault in self.faults:
                if re.fullmatch(fault.key, key):
                    self.faults.remove(fault)
                    return fault
        return None


def jars() -> str:
    """The class path of Hadoop's S3 client, in the version of Spark's Hadoop."""
    return os.pathsep.join(str(jar(name)) for name in ("hadoop-aws", "bundle"))


@contextmanager
def started(folder: Path) -> Iterator[Gate]:
    """Starts a new server with the three buckets; stops the server afterwards.

    The server writes its log to the given folder.
    """
    programs = sorted(FOLDER.glob("moto-*/bin/moto_server"))
    if not programs:
        pytest.fail(f"{FOLDER} has no moto: run `make test-services`.", pytrace=False)
    (port,), log = free_ports(1), folder / "moto.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(programs[-1]), "-H", "127.0.0.1", "-p", str(port)],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
    try:
        _wait(process, port, log)
        for bucket in (KEEPING, HEEDLESS, ANCIENT):
            made = urllib.request.Request(f"http://127.0.0.1:{port}/{bucket}", method="PUT")
            urllib.request.urlopen(made).close()
        server = _Server(("127.0.0.1", 0), _Handler)
        gate = Gate(server.server_address[1])
        _Handler.gate, _Handler.behind = gate, port
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield gate
        finally:
            server.shutdown()
            server.server_close()
    finally:
        process.kill()
        process.wait()


class _Server(ThreadingHTTPServer):
    """Serves each connection in its own thread. The threads end with the test process."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Ignores errors, because killed drivers reset their connections."""


class _Handler(BaseHTTPRequestHandler):
    """Forwards a request to the server, or injects a fault."""

    protocol_version = "HTTP/1.1"
    gate: Gate
    behind: int

    def _pass(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        bucket, _, key = self.path.partition("?")[0].strip("/").partition("/")
        conditional = self.headers.get("If-None-Match") == "*"
        fault = self.gate.next_fault(key) if self.command == "PUT" and key else None
        if conditional and bucket == ANCIENT:
            status = 501
        elif fault is not None:
            if fault.takes_effect:
                self._ask(bucket, body)
            status = fault.status
        else:
            reply, data = self._ask(bucket, body)
            status = reply.status
        if conditional:
            self.gate.puts.append((key, status))
        if fault is not None or (conditional and bucket == ANCIENT):
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response_only(reply.status, reply.reason)
        for name, value in reply.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        # The reply to HEAD states the length of a body, but contains no body.
        told = reply.getheader("Content-Length") if self.command == "HEAD" else None
        self.send_header("Content-Length", told or str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _ask(self, bucket: str, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.behind, timeout=60)
        try:
            headers = {
                name: value
                for name, value in self.headers.items()
                if not (bucket == HEEDLESS and name.lower() == "if-none-match")
                and name.lower() not in ("expect", "connection")
            }
            connection.request(self.command, self.path, body, headers)
            reply = connection.getresponse()
            return reply, reply.read()
        finally:
            connection.close()

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass  # noqa: N815 - names of the protocol

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not answers(port):
        assert process.poll() is None, f"moto ended: {log.read_text()[-3000:]}"
        assert time.monotonic() < deadline, f"no S3 in {START_SECONDS} s: {log.read_text()[-3000:]}"
        time.sleep(0.1)


def answers(port: int) -> bool:
    """Returns whether a server accepts connections on the port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
