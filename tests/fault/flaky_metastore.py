"""A metastore that is killed or disconnected at a given point between a request and its reply."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from processes import wait_until

from sieve.client.spark_home import find_spark
from sql_ext.launcher import metastore


def never(_: bytes) -> bool:
    """Matches no request."""
    return False


def free_port() -> int:
    """A free TCP port."""
    with socket.create_server(("localhost", 0)) as server:
        return int(server.getsockname()[1])


class CutMetastore:
    """A metastore server on Derby, and the proxy through which clients reach it.

    Attributes:
        conf: settings of a Spark that uses it.
        before: predicate on a client's request; if true, the server is killed before the request
            reaches it.
        after: the same, but the server is killed after its reply, and the reply is dropped.
        hangs_up: cut the connection instead of killing the server.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port, self._outer = free_port(), free_port()
        self._door: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.before: Callable[[bytes], bool] = never
        self.after: Callable[[bytes], bool] = never
        self.hangs_up = False
        self.conf = {
            "spark.hadoop.hive.metastore.uris": f"thrift://localhost:{self._outer}",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.hadoop.hive.metastore.connect.retries": "1",
            "spark.hadoop.hive.metastore.failure.retries": "1",
            "spark.hadoop.hive.metastore.client.connect.retry.delay": "1",
        }
        site = folder / "site"
        metastore.write_site(
            site / "hive-site.xml", metastore.derby_in(folder), folder / "warehouse"
        )
        self._command = metastore.command(find_spark(os.environ), os.environ, site, self._port)

    def start(self) -> None:
        """Starts the server, for the first time or again."""
        self.before = self.after = never
        self.hangs_up = False
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self._folder, stdout=log, stderr=subprocess.STDOUT
            )
        wait_until(lambda: self._reach() is not None, "the metastore serves")
        self._door = socket.create_server(("localhost", self._outer))
        threading.Thread(target=self._serve, args=(self._door,), daemon=True).start()

    def kill(self) -> None:
        """Kills the server at any point of its work; later connections are refused."""
        if self._door is not None:
            # A thread blocked in `accept` would keep the socket open.
            with contextlib.suppress(OSError):
                self._door.shutdown(socket.SHUT_RDWR)
            self._door.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)
            # A killed Derby leaves this lock file; it would otherwise look for its owner's process.
            (self._folder / "metastore_db" / "db.lck").unlink(missing_ok=True)

    def _reach(self) -> socket.socket | None:
        try:
            return socket.create_connection(("localhost", self._port))
        except OSError:
            return None

    def _serve(self, door: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = door.accept()
                threading.Thread(target=self._attend, args=(client,), daemon=True).start()

    def _attend(self, client: socket.socket) -> None:
        server = self._reach()
        if server is None:
            client.close()
            return
        doomed = threading.Event()
        answering = threading.Thread(target=self._answer, args=(server, client, doomed))
        answering.start()
        with client, server, contextlib.suppress(OSError):
            while request := client.recv(1 << 20):
                if self.before(request):
                    self._fail()
                    break
                if self.after(request):
                    doomed.set()
                server.sendall(request)
            server.shutdown(socket.SHUT_RDWR)
            answering.join()

    def _fail(self) -> None:
        if not self.hangs_up:
            self.kill()

    def _answer(
        self, server: socket.socket, client: socket.socket, doomed: threading.Event
    ) -> None:
        with contextlib.suppress(OSError):
            while reply := server.recv(1 << 20):
                if doomed.is_set():
                    self._fail()
                    break
                client.sendall(reply)
            client.shutdown(socket.SHUT_RDWR)
