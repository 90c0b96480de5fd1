"""A proxy of a Thrift server. Through it, a test sees a client's statements and their rows.

A HiveServer2 client sends one request at a time, and waits for each reply. The proxy relays a
client's requests one by one on the client's connection. So a test can run statements in the
client's session while the client waits for a reply.
"""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
import traceback
from collections.abc import Callable
from typing import Any, Protocol

from pyhive.hive import _unwrap_column
from TCLIService import TCLIService, ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TFramedTransport, TMemoryBuffer, TTransportException

BATCH = 10_000
_START, _BAD, _ERROR, _COMPLETE = 1, 3, 4, 5
"""Status bytes of SASL messages.

The first byte of a frame is 0 as long as the frame is shorter than 16 MB.
"""

Row = tuple[Any, ...]


class StatementError(Exception):
    """The server has answered a statement with an error."""


class Watcher(Protocol):
    """The callbacks that a test implements. The proxy calls them while the client waits."""

    def before(self, statement: str) -> None:
        """Is called when a client has sent a statement that the server has not yet received."""

    def after(self, statement: str, rows: list[Row] | StatementError) -> None:
        """Is called with a statement's rows or error, after the client has closed the statement."""

    def closed(self) -> None:
        """Is called after the client has left, while the client's session is still open."""


class Session:
    """The session that a client has opened. A test can run statements in this session, too."""

    def __init__(self, upstream: socket.socket) -> None:
        transport = TSocket()
        transport.setHandle(upstream)
        self._client = TCLIService.Client(TBinaryProtocol(TFramedTransport(transport)))
        self.handle: Any = None

    def run(self, statement: str) -> list[Row]:
        """The rows that a statement returns.

        Raises:
            StatementError: the server has refused the statement, or the statement has failed.
        """
        request = ttypes.TExecuteStatementReq(self.handle, statement, runAsync=False)
        reply = self._client.ExecuteStatement(request)
        _check(reply.status)
        rows: list[Row] = []
        try:
            while batch := self._fetch(reply.operationHandle):
                rows += batch
        finally:
            self._client.CloseOperation(ttypes.TCloseOperationReq(reply.operationHandle))
        return rows

    def _fetch(self, operation: Any) -> list[Row]:
        if not operation.hasResultSet:
            return []
        next_rows = ttypes.TFetchOrientation.FETCH_NEXT
        reply = self._client.FetchResults(ttypes.TFetchResultsReq(operation, next_rows, BATCH))
        _check(reply.status)
        return _rows(reply)


class HiveProxy(socketserver.ThreadingTCPServer):
    """Listens on a port, and relays each client's connection to a Thrift server on this machine.

    Args:
        server_port: the port of the Thrift server.
        watch: a function that returns the watcher of a session that a client has opened.

    Attributes:
        errors: the tracebacks of errors in watchers; each error has closed a client's connection.
    """

    daemon_threads = True

    def __init__(self, server_port: int, watch: Callable[[Session], Watcher]) -> None:
        super().__init__(("localhost", 0), _Connection)
        self.server_port = server_port
        self.watch = watch
        self.errors: list[str] = []

    @property
    def port(self) -> int:
        """The port to which clients connect."""
        return int(self.server_address[1])

    def start(self) -> None:
        """Starts serving clients in a background thread."""
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - its signature
        """Stores the error that ended a connection's thread."""
        self.errors.append(traceback.format_exc())


class _Connection(socketserver.BaseRequestHandler):
    """Relays the messages of one client in its own thread, and stores statements and rows."""

    server: HiveProxy

    def handle(self) -> None:
        self._watcher: Watcher | None = None
        self._open: dict[bytes, tuple[str, list[Row] | StatementError]] = {}
        with socket.create_connection(("localhost", self.server.server_port)) as upstream:
            upstream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._upstream = upstream
            self._session = Session(upstream)
            try:
                while message := _read(self.request):
                    self._relay(message)
                self._close()
            except (ConnectionError, TTransportException):
                pass  # if a client or the server stops, a message can end in the middle

    def _relay(self, message: bytes) -> None:
        if 0 < message[0] <= _COMPLETE:
            self._upstream.sendall(message)
            if message[0] not in (_START, _BAD, _ERROR):
                self.request.sendall(_read(self._upstream))
            return
        name, request = _parse(message, "args")
        if name == "ExecuteStatement" and self._watcher:
            self._watcher.before(request.statement)
        if name == "CloseOperation":
            self._finish(request.operationHandle)
        if name == "CloseSession":
            self._close()
        self._upstream.sendall(message)
        reply = _read(self._upstream)
        self._note(name, request, _parse(reply, "result")[1])
        self.request.sendall(reply)

    def _close(self) -> None:
        if self._watcher:
            self._watcher.closed()
            self._watcher = None

    def _note(self, name: str, request: Any, reply: Any) -> None:
        if name == "OpenSession" and reply.sessionHandle:
            self._session.handle = reply.sessionHandle
            self._watcher = self.server.watch(self._session)
        elif name == "ExecuteStatement" and self._watcher:
            try:
                _check(reply.status)
                self._open[_key(reply.operationHandle)] = request.statement, []
            except StatementError as error:
                self._watcher.after(request.statement, error)
        elif name == "GetOperationStatus":
            if reply.operationState == ttypes.TOperationState.ERROR_STATE:
                self._fail(request.operationHandle, StatementError(reply.errorMessage or ""))
        elif name == "FetchResults":
            try:
                _check(reply.status)
                _, rows = self._open.get(_key(request.operationHandle), ("", []))
                if isinstance(rows, list):
                    rows += _rows(reply)
            except StatementError as error:
                self._fail(request.operationHandle, error)

    def _fail(self, operation: Any, error: StatementError) -> None:
        if known := self._open.get(_key(operation)):
            self._open[_key(operation)] = known[0], error

    def _finish(self, operation: Any) -> None:
        known = self._open.pop(_key(operation), None)
        if known and self._watcher:
            self._watcher.after(*known)


def _key(operation: Any) -> bytes:
    guid: bytes = operation.operationId.guid
    return guid


def _check(status: Any) -> None:
    if status.statusCode in (
        ttypes.TStatusCode.ERROR_STATUS,
        ttypes.TStatusCode.INVALID_HANDLE_STATUS,
    ):
        raise StatementError(status.errorMessage)


def _rows(reply: Any) -> list[Row]:
    return list(zip(*(_unwrap_column(column) for column in reply.results.columns), strict=True))


def _parse(message: bytes, part: str) -> tuple[str, Any]:
    """Reads a message: the name of the call, and its request (``args``) or reply (``result``)."""
    protocol = TBinaryProtocol(TMemoryBuffer(message[4:]))
    name, _, _ = protocol.readMessageBegin()
    found = getattr(TCLIService, f"{name}_{part}", None)
    if found is None:
        return name, None
    record = found()
    record.read(protocol)
    return name, record.req if part == "args" else record.success


def _read(source: socket.socket) -> bytes:
    """One message with its header, or empty bytes if the connection has ended."""
    first = source.recv(1)
    if not first:
        return b""
    rest = 4 if 0 < first[0] <= _COMPLETE else 3
    header = first + _read_exactly(source, rest)
    (length,) = struct.unpack("!i", header[-4:])
    return header + _read_exactly(source, length)


def _read_exactly(source: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        part = source.recv(length - len(parts))
        if not part:
            raise ConnectionError("The connection ended within a message.")
        parts += part
    return bytes(parts)
