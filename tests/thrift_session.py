"""A client's session on a Thrift server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyhive import hive


@contextmanager
def thrift_session(port: int, **options: Any) -> Iterator[Any]:
    """A PyHive connection to this machine; the end of the block closes only the socket.

    Sometimes Hive never answers CloseSession. The first session that registers functions can fail
    at a class that Spark lacks; all later sessions then wait for this session.
    """
    connection = hive.connect("localhost", port, **options)
    try:
        yield connection
    finally:
        connection._transport.close()
