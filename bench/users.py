"""Measures throughput and latency of many users of one Thrift server: ``make bench-users``.

The benchmark starts a real metastore and a real Thrift server, as a user would. In each run, 32
sessions query single keys of a table of 1,000 files for 40 seconds. In the first run, queries do
not use the index. In the second and third run, queries use the index. In the third run, four
further sessions (writers) create, refresh and drop indexes of the same table. In the first round of
runs, each session sends a query every four seconds, as people do. Each writer starts a cycle every
20 seconds. In the second round, each session sends its next query as soon as it has received an
answer. Before both rounds, an unmeasured run warms up the server. The warm-up is like the third
run, but four times as long. Without the warm-up, the JVM would spend most of the time on
compilation.

The output shows the queries per second, the milliseconds of a query, and the latency of front-end
calls according to ``sieve_status()``. The percentiles of the latency cover the last 256 calls. The
maximum of the latency covers all calls since the server's start. In the second round, the sessions
would use far more than two cores, so this round measures an overloaded server.

By default, tasks run in threads of the server's process, so they compete with planning for the
cores. With ``--apart``, tasks run in an executor process of Spark's standalone cluster, with the
lowest priority. The tasks then get only the CPU time that the server, the metastore and the clients
leave. So the server works as if the tasks ran on other machines.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from pyhive import hive
from pyhive.exc import OperationalError
from rich import box
from rich.console import Console
from rich.table import Table

from sieve.client.spark_home import find_spark
from sql_ext.launcher import servers
from sql_ext.launcher.launch import environment

READERS, WRITERS, FILES, ROWS = 32, 4, 1_000, 100
FOLDER = Path(__file__).resolve().parent.parent / "build" / "bench-users"
_PAUSE_S, _WRITERS_PAUSE_S = 4.0, 20.0
PORTS = {"metastore": 19083, "thriftserver": 19090, "master": 19077, "worker": 19081}


def main() -> None:
    """Starts the servers, measures all runs, prints one table, and stops the servers."""
    parser = argparse.ArgumentParser(prog="python -m bench users", description=__doc__)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument(
        "--apart", action="store_true", help="executors in a process of their own, least priority"
    )
    args = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 130, highlight=False)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with ExitStack() as started:
        started.callback(shutil.rmtree, FOLDER, ignore_errors=True)
        started.enter_context(chdir(FOLDER))
        with console.status("starting a metastore and a Thrift server"):
            started.callback(_sieve, "metastore", "stop")
            options = _sieve("metastore", "start", "--port", str(PORTS["metastore"])).split()
            if args.apart:
                options += ["--master", started.enter_context(_cluster())]
            started.callback(_sieve, "thriftserver", "stop")
            _sieve("thriftserver", "start", "--port", str(PORTS["thriftserver"]), *options)
            _create()
        console.print(_measured(args.seconds, console))


def _sieve(*args: str) -> str:
    command = [str(Path(sys.executable).with_name("sieve")), *args]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    return ended.stdout.strip()


@contextmanager
def _cluster() -> Iterator[str]:
    """Within the block, runs Spark's standalone cluster with one worker.

    Yields the master's URL.
    """
    spark, url = find_spark(os.environ), f"spark://localhost:{PORTS['master']}"
    master = ["master.Master", "--host", "localhost", "--port", PORTS["master"]]
    worker = ["worker.Worker", "--webui-port", PORTS["worker"], "--memory", "2g", url]
    with ExitStack() as started:
        for kind, priority, (name, *options) in (("master", 0, master), ("worker", 19, worker)):
            run = ["nice", f"-n{priority}", spark.path / "bin" / "spark-class"]
            command = [str(word) for word in (*run, f"org.apache.spark.deploy.{name}", *options)]
            environ = environment(spark, os.environ)
            server = servers.start(kind, PORTS[kind], command, environ, "localhost")
            started.callback(servers.stop, server)
            group = Path(f"/proc/{server.pid}/autogroup")
            if priority and group.exists():
                # If Linux schedules by session (autogroup), the priority of a process counts only
                # within its own session. The executors belong to the worker's session, so this line
                # sets the priority of that session.
                group.write_text(str(priority))
        yield url


@contextmanager
def _connection() -> Iterator[Any]:
    connection = hive.connect("localhost", PORTS["thriftserver"])
    try:
        yield connection
    finally:
        # Closes only the socket, because the server sometimes never answers CloseSession. The first
        # session registers Hive's functions, and can fail at a class that Spark lacks. All later
        # sessions then wait for the first session.
        connection._transport.close()  # noqa: SLF001 - no public API


def _create() -> None:
    with _connection() as connection:
        cursor = connection.cursor()
        cursor.execute(
            "CREATE TABLE t USING parquet AS SELECT id, id * 3 AS v "
            f"FROM range(0, {FILES * ROWS}, 1, {FILES})"
        )
        cursor.execute("CREATE SIEVE INDEX ON t (id)")


def _measured(seconds: float, console: Console) -> Table:
    table = Table(box=box.SIMPLE, title=f"{READERS} sessions, {FILES:,} files")
    for name in (
        "",
        "queries a second",
        "query p50 ms",
        "p95 ms",
        "asking p50 ms",
        "p95 ms",
        "greatest ms",
    ):
        table.add_column(name, justify="left" if not name else "right")
    runs = (
        ("without the index", False, 0),
        ("with it", True, 0),
        (f"with it, {WRITERS} sessions changing indexes", True, WRITERS),
    )
    with console.status("warming up"):
        _run(4 * seconds, enabled=True, writers=WRITERS, pauses=True)
    for pauses, (label, enabled, writers) in itertools.product((True, False), runs):
        with console.status(label):
            times = _run(seconds, enabled=enabled, writers=writers, pauses=pauses)
        status = _status()
        asking = [
            str(status[f"prune_ms_{name}"]) if enabled else ""
            for name in ("p50", "p95", "greatest")
        ]
        rate = f"{len(times) / seconds:.0f}"
        load = label if pauses else f"{label}, full load"
        table.add_row(load, rate, *(f"{np.percentile(times, p):.0f}" for p in (50, 95)), *asking)
    return table


def _status() -> dict[str, int]:
    with _connection() as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT counter, value FROM sieve_status() WHERE reason IS NULL")
        return dict(cursor.fetchall())


def _run(seconds: float, *, enabled: bool, writers: int, pauses: bool) -> list[float]:
    """Runs all sessions for `seconds`. Returns the milliseconds of each query.

    If `pauses` is false, each session sends its next query as soon as the session has an answer.
    """
    end = time.monotonic() + seconds
    ask, change = (_PAUSE_S, _WRITERS_PAUSE_S) if pauses else (0.0, 0.0)
    with ThreadPoolExecutor(READERS + writers) as pool:
        readers = [pool.submit(_session, _read, k, end, ask, enabled) for k in range(READERS)]
        others = [pool.submit(_session, _write, k, end, change, True) for k in range(writers)]
        for other in others:
            other.result()
        return [taken for reader in readers for taken in reader.result()]


def _session(
    work: Callable[[Any, int], float], number: int, end: float, every: float, enabled: bool
) -> list[float]:
    taken: list[float] = []
    with _connection() as connection:
        cursor = connection.cursor()
        cursor.execute(f"SET spark.sieve.enabled = {str(enabled).lower()}")
        next_one = time.monotonic() + every * number / (READERS if work is _read else WRITERS)
        while next_one < end and time.monotonic() < end:
            time.sleep(max(0.0, next_one - time.monotonic()))
            next_one = max(next_one, time.monotonic()) + every
            taken.append(work(cursor, number + 1000 * len(taken)))
    return taken


def _read(cursor: Any, seed: int) -> float:
    key = seed * 7919 % (FILES * ROWS)
    started = time.perf_counter()
    cursor.execute(f"SELECT v FROM t WHERE id = {key}")
    rows = cursor.fetchall()
    took = (time.perf_counter() - started) * 1000
    if rows != [(key * 3,)]:
        raise SystemExit(f"key {key} gave {rows}")
    return took


def _write(cursor: Any, seed: int) -> float:
    name = f"i{seed % 1000}"
    started = time.perf_counter()
    for statement in (
        f"CREATE SIEVE INDEX {name} ON t (v)",
        f"REFRESH SIEVE INDEX {name} ON t FULL",
        f"DROP SIEVE INDEX {name} ON t",
    ):
        try:
            cursor.execute(statement)
            cursor.fetchall()
        except OperationalError as error:
            if "SIEVE_" not in str(error):
                raise
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
