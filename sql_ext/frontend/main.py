"""Entry point of the front-end process, which serves one driver until that driver ends.

Scans, statements, nested calls, background work and pages each have their own queue and threads. So
a slow statement cannot delay a scan. A function call inside a statement uses another queue than the
statement. In a common queue, the call could wait for the statement's own thread (deadlock).
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
    """Serves requests until the driver ends. The end of the driver closes this process's stdin."""
    # Leaves the process group of the user's shell, so that only the driver receives Ctrl-C. Ctrl-C
    # before the call of `setpgid` would end this process. So most imports, which take a second, are
    # in `_serve`.
    os.setpgid(0, 0)
    _serve()


def _serve() -> None:
    # By default, a computing thread holds the interpreter lock for up to 5 ms, while scans wait for
    # the lock. The shorter switch interval limits the wait to 0.5 ms.
    sys.setswitchinterval(_TURN_S)
    # A garbage collection during the imports would find nothing, because Python never frees
    # imported modules.
    gc.disable()

    from sieve.reader.pruner import Pruner
    from sieve.storage.interface import Store
    from sieve.storage.open import store_for
    from sql_ext.driver import attach
    from sql_ext.driver.roots import Roots
    from sql_ext.driver.settings import DEFAULTS, valid_settings
    from sql_ext.frontend.page_data import PageService
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
    pages = PageService(roots, open_store, driver.scans, statements.event_handler, statements.tests)
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
    # Python objects in reference cycles can keep Spark's plans and file listings in the driver's
    # memory. A garbage collection after each statement frees these cycles.
    RequestQueue(requests, "statement", runs, afterwards=gc.collect)
    RequestQueue(requests, "nested", {"function": statements.function})
    RequestQueue(requests, "background", {"event": statements.event}, afterwards=gc.collect)
    RequestQueue(requests, "page", {"page": pages.page})
    # Scans wait during a garbage collection. `gc.freeze` shortens later collections, because it
    # excludes the loaded modules from them.
    gc.collect()
    gc.freeze()
    gc.enable()
    driver.ready()
    sys.stdin.buffer.read()
    # The JVM has ended, and other threads can be blocked in calls to the JVM. So this code ends the
    # process at once. The front end has no state to save.
    os._exit(0)


if __name__ == "__main__":
    threading.current_thread().name = "sieve-main"
    main()
