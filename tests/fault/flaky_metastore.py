"""A metastore that becomes unreachable, or cuts a connection, at a chosen point of a request.

To clients, a vanished metastore looks like a killed server: connections end, and the port refuses
new connections. Clients connect through a proxy, which can refuse connections while the server
keeps running. A restart of the server would take as long as three tests. `test_two_drivers` kills a
real server.
"""

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
from tests.ports import free_ports


def never(_: bytes) -> bool:
    """Matches no request."""
    return False


class CutMetastore:
    """A metastore server on Derby, and the proxy through which clients reach it.

    Attributes:
        conf: settings of a Spark that uses the metastore through the proxy.
        direct: settings of a Spark that connects to the server directly.
        before: predicate on a client's request. If it is true, the server vanishes before the
            request arrives.
        after: predicate on a client's request. If it is true, the server vanishes after its reply,
            and the proxy drops the reply.
        hangs_up: whether the proxy only cuts the connection; new connections then still work.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port, self._outer = free_ports(2)
        self._door: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._open: set[socket.socket] = set()
        self._gone = False
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
        uris = f"thrift://localhost:{self._port}"
        self.direct = self.conf | {"spark.hadoop.hive.metastore.uris": uris}
        site = folder / "site"
        metastore.write_site(
            site / "hive-site.xml", metastore.derby_in(folder), folder / "warehouse"
        )
        self._command = metastore.command(find_spark(os.environ), os.environ, site, self._port)

    def start(self) -> None:
        """Starts the server, or makes the server reachable again."""
        self.before = self.after = never
        self.hangs_up = self._gone = False
        if self._process is None:
            with (self._folder / "log").open("ab") as log:
                self._process = subprocess.Popen(
                    self._command, cwd=self._folder, stdout=log, stderr=subprocess.STDOUT
                )
            wait_until(lambda: self._reach() is not None, "the metastore serves")
        self._door = socket.create_server(("localhost", self._outer))
        threading.Thread(target=self._serve, args=(self._door,), daemon=True).start()

    def vanish(self) -> None:
        """Makes the server vanish: the proxy ends all connections and refuses new ones."""
        self._gone = True
        if self._door is not None:
            # A thread that is blocked in `accept` would keep the socket open, so `shutdown` comes
            # first.
            with contextlib.suppress(OSError):
                self._door.shutdown(socket.SHUT_RDWR)
            self._door.close()
        for connection in [*self._open]:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """Makes the server vanish, and kills its process."""
        self.vanish()
        self.kill()

    def kill(self) -> None:
        """Kills the server's process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)

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
        self._open |= {client, server}
        with client, server, contextlib.suppress(OSError):
            while (request := client.recv(1 << 20)) and not self._gone:
                if self.before(request):
                    self._fail()
                    break
                if self.after(request):
                    doomed.set()
                server.sendall(request)
            server.shutdown(socket.SHUT_RDWR)
            answering.join()
        self._open -= {client, server}

    def _fail(self) -> None:
        if not self.hangs_up:
            self.vanish()

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
