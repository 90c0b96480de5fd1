"""A client session on a Thrift server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyhive import hive


@contextmanager
def thrift_session(port: int, **options: Any) -> Iterator[Any]:
    """Opens a PyHive connection to this machine. At the end of the block, closes only the socket.

    Hive sometimes never answers the request CloseSession, so the block does not send it. The first
    session that registers functions can fail at a class that Spark lacks. All later sessions then
    wait for the failed session.
    """
    connection = hive.connect("localhost", port, **options)
    try:
        yield connection
    finally:
        connection._transport.close()
