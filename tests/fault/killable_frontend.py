"""A front end that kills the driver and itself just before its n-th write.

A write goes to a store or to the metastore. A test writes the number n to a file, whose path is
this program's first argument.

Drivers start this program as their Python interpreter.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sieve.storage.local import LocalStore
from sieve.tables.table import CatalogTable
from sql_ext.frontend import main

COUNT = Path(sys.argv[1])
_counting = threading.Lock()


def mortal(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a method that writes: before each call, both processes can die."""

    def called(self: Any, *args: Any) -> Any:
        uri = str(args[0])
        if due(f"before {name} {uri.partition('/.sieve/')[2] or uri}"):
            end()
        result = call(self, *args)
        # The front end creates this pending write before Spark writes the run.
        if name == "create" and "/intents/run-" in uri and due("while a run is written"):
            run = Path(uri.removeprefix("file:").replace("/intents/run-", "/runs/"))
            threading.Thread(target=end_when, args=(run / "_temporary",), daemon=True).start()
        return result

    return called


def due(what: str) -> bool:
    """Counts writes, once a test has set the number of the fatal write.

    Records the name of the fatal write, and then returns true.
    """
    with _counting:
        if not COUNT.exists():
            return False
        left = int(COUNT.read_text())
        COUNT.write_text(str(left - 1))
        if left == 0:
            COUNT.with_name("told").write_text(what)
        return left == 0


def end_when(path: Path) -> None:
    """Waits until a path exists, then kills both processes."""
    while not path.exists():
        time.sleep(0.001)
    end()


def end() -> None:
    """Kills the driver first; otherwise, the driver could report the death of the front end."""
    os.kill(os.getppid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


for method in ("create", "delete", "mkdirs", "restrict"):
    setattr(LocalStore, method, mortal(method, getattr(LocalStore, method)))
CatalogTable._set_property = mortal("property", CatalogTable._set_property)  # type: ignore[method-assign]

if __name__ == "__main__":
    main.main()
