"""Writers in separate processes, which tests kill, stop or run concurrently.

A fork server without a JVM and without threads loads the writers' modules once. A new writer
process therefore starts within milliseconds.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

from pyspark.errors import PySparkException

from sieve.errors import SieveError
from sql_ext.statements.parser import parse_statement
from tests.fake_scan import scan
from tests.fake_spark import Session, Warehouse, without_spark

# The fork server loads the grammar once, for all writers.
parse_statement("SHOW SIEVE INDEXES")


def context() -> ForkServerContext:
    """The multiprocessing context of the fork server."""
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(["tests.plain_writers"])
    return made


def started(target: Callable[..., None], *args: object) -> ForkServerProcess:
    """Starts a process that runs a function."""
    process = context().Process(target=target, args=args, daemon=True)
    process.start()
    return process


def struck(folder: Path, statement: str, at: str, number: int, how: signal.Signals) -> None:
    """Runs a statement, and signals its own process at the n-th call with a given prefix.

    Args:
        folder: the folder of the warehouse.
        statement: the statement to run.
        at: only calls whose names have this prefix count.
        number: the number n, from 1. If the statement makes fewer such calls, the process ends with
            status 0.
        how: the signal to send, SIGKILL or SIGSTOP.
    """
    calls = 0

    def seam(what: str) -> None:
        nonlocal calls
        calls += what.startswith(at)
        if calls == number and what.startswith(at):
            os.kill(os.getpid(), how)

    with without_spark():
        Session(Warehouse(folder), seam).sql(statement)
    os._exit(0)


def begun(folder: Path, statement: str) -> None:
    """Creates the file ``begun``, and then runs a statement."""
    with without_spark():
        session = Session(Warehouse(folder))
        (folder / "begun").touch()
        session.sql(statement)
    os._exit(0)


def busy(folder: Path, seed: int, statements: int, out: Path) -> None:
    """Creates, refreshes and drops indexes of a table in use; reports the outcomes."""
    chance, warehouse = random.Random(seed), Warehouse(folder)
    ends: Counter[str] = Counter()
    with without_spark():
        for _ in range(statements):
            name = chance.choice(("one", "two"))
            (statement,) = chance.choices(
                (
                    f"CREATE SIEVE INDEX IF NOT EXISTS {name} ON t (id) OPTIONS (error = 1)",
                    f"REFRESH SIEVE INDEX {name} ON t",
                    f"REFRESH SIEVE INDEX {name} ON t FULL",
                    f"DROP SIEVE INDEX {name} ON t",
                ),
                (4, 3, 3, 1),
            )
            if chance.random() < 0.1:
                warehouse.append("t", range(seed * 1000, seed * 1000 + 10))
            try:
                Session(warehouse).sql(statement)
                ends["done"] += 1
            except SieveError as error:
                ends[error.condition] += 1
            except PySparkException as error:
                ends[type(error).__name__] += 1
    out.write_text("\n".join(f"{number} {end}" for end, number in sorted(ends.items())))


def watching(folder: Path, seed: int, reads: int, stop: Path, out: Path) -> None:
    """Scans the table until the file ``stop`` exists, and at least ``reads`` times.

    Fails if a scan loses a row.
    """
    chance, warehouse = random.Random(seed), Warehouse(folder)
    done = used = 0
    while done < reads or not stop.exists():
        key = chance.randrange(60)
        used += bool(scan(warehouse, "t", key).used)
        done += 1
        time.sleep(0.002)
    out.write_text(f"{done} {used}")
