"""Entry point of the front-end process, which serves a driver until the driver ends.

Each kind of request has its own queue and threads. So a slow statement cannot delay a scan, and a
function call inside a statement cannot wait for the statement's own thread (deadlock).
"""

from __future__ import annotations

import gc
import logging
import os
import sys
import threading

_TURN_S = 0.0005

log = logging.getLogger("sieve")


def main() -> None:
    """Serves requests until the driver ends, which closes the standard input of this process."""
    # In a separate process group, this process does not receive Ctrl-C from the user's shell; only
    # the driver handles Ctrl-C. `_serve` imports most modules only after this line, because during
    # these imports, which take a second, Ctrl-C would end this process.
    os.setpgid(0, 0)
    _serve()


def _serve() -> None:
    # By default, a thread that computes keeps the interpreter lock for 5 ms, and scans would wait
    # for the lock.
    sys.setswitchinterval(_TURN_S)
    # Modules live as long as this process, so a garbage collection during the imports frees
    # nothing.
    gc.disable()

    from sieve.reader.pruner import Pruner
    from sieve.storage.interface import Store
    from sieve.storage.open import store_for
    from sql_ext.driver import attach
    from sql_ext.driver.roots import Roots
    from sql_ext.driver.settings import DEFAULTS, valid_settings
    from sql_ext.frontend.page import PageService
    from sql_ext.frontend.pruning import PruneService
    from sql_ext.frontend.request_queue import RequestQueue
    from sql_ext.frontend.save_scans import HistoryWriter
    from sql_ext.frontend.service import StatementService

    logging.basicConfig(
        stream=sys.stdout, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    gateway = attach.open_gateway()
    driver = gateway.entry_point
    context = driver.context()
    own = ("spark.sieve.path", "spark.sieve.single.writer", "spark.sieve.history")
    started_with = valid_settings({key: context.getConf().get(key, "") for key in own})
    file_system = str(context.hadoopConfiguration().get("fs.defaultFS"))
    roots = Roots(driver, started_with.path, file_system)
    single_writer = started_with.single_writer

    def open_store(uri: str) -> Store:
        conf = driver.context().hadoopConfiguration()
        return store_for(uri, gateway.jvm, conf, single_writer=single_writer)

    pruner = Pruner(open_store, DEFAULTS.cache_bytes)
    pruning = PruneService(roots, pruner)
    statements = StatementService(gateway, roots, open_store, pruner)
    pages = PageService(roots, open_store, driver.scans, statements.auto_refresh, statements.tests)
    requests = driver.requests()
    history = HistoryWriter(driver, roots, open_store)
    if started_with.history:
        history.start()
    scans = {
        "prune": pruning.prune,
        "dictionary": pruning.dictionary,
        "parse": statements.parse,
    }
    runs = {
        "statement": statements.run,
        "function": statements.function,
        "event": statements.event,
        "history": history.save,
    }
    RequestQueue(requests, "scan", scans)
    # Reference cycles in Python can hold Spark's plans and listings in the driver's memory, until a
    # garbage collection frees these cycles.
    RequestQueue(requests, "statement", runs, afterwards=gc.collect)
    RequestQueue(requests, "nested", {"function": statements.function})
    RequestQueue(requests, "background", {"event": statements.event}, afterwards=gc.collect)
    RequestQueue(requests, "page", {"page": pages.page})
    # Excludes the loaded modules from garbage collection, because scans wait during a collection.
    gc.collect()
    gc.freeze()
    gc.enable()
    driver.ready()
    sys.stdin.buffer.read()
    # Ends the process at once, because threads can be blocked in calls to a JVM that has ended. The
    # front end has no state that must be saved.
    os._exit(0)


if __name__ == "__main__":
    threading.current_thread().name = "sieve-main"
    main()
