"""Reads peak memory, CPU time and read bytes of this process's descendants from Linux's /proc."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

DRIVER, FRONT_END, WORKER = "driver JVM", "front end", "a Python worker"
_COMMANDS: Final = {b"sql_ext.frontend.main": FRONT_END, b"pyspark.daemon": WORKER, b"java": DRIVER}
_EVERY: Final = 0.2


class PeakMemory:
    """Records the peak resident memory (VmHWM) of this process's descendants, for each role.

    The kernel forgets the peak of an ended process. So this class polls the peaks of running
    processes, and misses growth between the last poll and the end of a process.
    """

    def __init__(self) -> None:
        self._peaks = dict.fromkeys((DRIVER, FRONT_END, WORKER), 0.0)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()

    def now(self) -> dict[str, float]:
        """Peak memory so far, in MB, of the largest process of each role."""
        for pid in _descendants(os.getpid()):
            try:
                command = (pid / "cmdline").read_bytes()
                status = (pid / "status").read_text()
            except OSError:
                continue
            role = next((role for part, role in _COMMANDS.items() if part in command), None)
            mark = status.partition("VmHWM:")[2].split()
            if role and mark:
                self._peaks[role] = max(self._peaks[role], int(mark[0]) * 1024 / 1e6)
        return dict(self._peaks)

    def _watch(self) -> None:
        while not self._done.wait(_EVERY):
            self.now()


def cpu_seconds() -> float:
    """CPU seconds of all descendants of this process, including ended processes.

    Other load of the machine affects wall-clock time far more than CPU time.
    """
    ticks = 0
    for pid in _descendants(os.getpid()):
        try:
            fields = (pid / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        # These fields are user and system time of the process, and of its ended child processes.
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def timed(run: Callable[[], object]) -> tuple[float, float]:
    """Wall-clock seconds of a call, and the CPU seconds of this process's descendants."""
    started, cpu = time.perf_counter(), cpu_seconds()
    run()
    return time.perf_counter() - started, cpu_seconds() - cpu


def read_bytes() -> int:
    """Bytes that this process's running descendants have read, from files or elsewhere.

    Spark's own counters omit Iceberg's reads, and vectored reads from a local disk.
    """
    total = 0
    for pid in _descendants(os.getpid()):
        with contextlib.suppress(OSError):
            total += int((pid / "io").read_text().partition("rchar:")[2].split()[0])
    return total


def _descendants(pid: int) -> Iterator[Path]:
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found = children.read_text().split()
        except OSError:
            continue
        for child in map(int, found):
            yield Path(f"/proc/{child}")
            yield from _descendants(child)
