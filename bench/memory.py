"""Peak memory and CPU time of a Spark in local mode, by its processes, from Linux's /proc."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

DRIVER, FRONT_END, WORKER = "driver JVM", "front end", "a Python worker"
_COMMANDS: Final = {b"sql_ext.frontend.main": FRONT_END, b"pyspark.daemon": WORKER, b"java": DRIVER}
_EVERY: Final = 0.2


class PeakMemory:
    """High-water marks of resident memory (VmHWM) among the processes that this one has started.

    The kernel keeps each process's mark, so looking from time to time is needed only for those that
    end; a worker's last mark before its end may be missed by that much time.
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
        """MB that the largest process of each role has taken so far."""
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
    """CPU time of all processes that this one has started, of those that ended too.

    Unlike seconds by the clock it hardly hangs on what else the machine does.
    """
    ticks = 0
    for pid in _descendants(os.getpid()):
        try:
            fields = (pid / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        # User and system time, its own and that of children it has waited for.
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _descendants(pid: int) -> Iterator[Path]:
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found = children.read_text().split()
        except OSError:
            continue
        for child in map(int, found):
            yield Path(f"/proc/{child}")
            yield from _descendants(child)
