"""Finds TCP ports for servers that tests start."""

from __future__ import annotations

import contextlib
import secrets
import socket


def free_ports(count: int) -> list[int]:
    """Finds ports below the range that the system assigns to programs, so they stay free."""
    ports: list[int] = []
    while len(ports) < count:
        port = secrets.randbelow(10_000) + 20_000
        with contextlib.suppress(OSError), socket.create_server(("localhost", port)):
            ports.append(port)
    return ports
