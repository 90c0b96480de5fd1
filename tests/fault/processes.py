"""Reads facts about a driver's front ends from the operating system: processes and sockets."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path


def wait_until(
    true: Callable[[], object], what: str, seconds: float = 120, every: float = 0.01
) -> None:
    """Polls a condition; fails, with the text ``what``, if the condition stays false too long."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"still not so after {seconds} s: {what}"
        time.sleep(every)


def alive(pid: int) -> bool:
    """Returns whether a process exists and is not a zombie."""
    return _state(pid)[0] not in {"", "Z", "X"}


def stop(pid: int) -> None:
    """Stops a process, and waits until each of its threads stands still.

    The kernel delivers SIGSTOP to one thread, which then stops the others. Until the thread with
    the signal runs, the other threads go on.
    """
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: stopped(pid), f"process {pid} stands still")


def stopped(pid: int) -> bool:
    """Returns whether a signal has stopped every thread of a process."""
    states = [
        _state(pid, f"task/{thread.name}/stat") for thread in Path(f"/proc/{pid}/task").iterdir()
    ]
    return all(state == "T" for state, _ in states)


def children(parent: int, word: str) -> list[int]:
    """The process's living children that have a given word in their command lines."""
    pids = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal())
    return [p for p in pids if _state(p)[1] == parent and alive(p) and word in argv(p)]


def front_ends(jvm: int) -> list[int]:
    """The living front ends that a driver's JVM has started."""
    return children(jvm, "sql_ext.frontend.main")


def argv(pid: int) -> list[str]:
    """The command line of a process."""
    return [word.decode() for word in _read(pid, "cmdline").split(b"\0") if word]


def environment(pid: int) -> dict[str, str]:
    """The environment variables with which a process started."""
    entries = (entry.decode().partition("=") for entry in _read(pid, "environ").split(b"\0"))
    return {key: value for key, _, value in entries}


def listening(pid: int) -> list[tuple[str, int]]:
    """The hexadecimal addresses and ports on which a process accepts connections or UDP data."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        target = str(link.readlink())
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = []
    for table, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        path = Path(f"/proc/{pid}/net/{table}")
        for line in path.read_text().splitlines()[1:] if path.exists() else []:
            fields = line.split()
            if fields[3] == state and fields[9] in inodes:
                address, _, port = fields[1].partition(":")
                found.append((address, int(port, 16)))
    return found


def _state(pid: int, file: str = "stat") -> tuple[str, int]:
    fields = _read(pid, file).decode(errors="replace").rpartition(")")[2].split()
    return (fields[0], int(fields[1])) if fields else ("", 0)


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
