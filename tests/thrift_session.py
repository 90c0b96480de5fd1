"""A client's session of a Thrift server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyhive import hive


@contextmanager
def thrift_session(port: int, **options: Any) -> Iterator[Any]:
    """A PyHive connection to this machine; at the end, only its socket is closed.

    Hive sometimes never answers CloseSession. The first session that registers functions can fail
    on a class that is missing in Spark, and all later sessions wait for it.
    """
    connection = hive.connect("localhost", port, **options)
    try:
        yield connection
    finally:
        connection._transport.close()
