"""Compares Sieve on a Spark cluster with Sieve in a single Spark process: ``make bench-cluster``.

The benchmark runs a Thrift server in four set-ups. In the first set-up, two threads of the server's
process execute the tasks (``local[2]``). In the second set-up, two executors in separate processes
execute the tasks (``local-cluster[2,1,2048]``). The third and the fourth set-up also have two
executors. In the third set-up, table and index are on HDFS. In the fourth set-up, table and index
are on S3. The servers of HDFS and S3 run on this machine. Each set-up has the same table of
1,000,000 rows in 100 files. The queries use the protocol of JDBC drivers and BI tools.

The output shows the seconds of two CREATE SIEVE INDEX statements. During the second statement, the
benchmark kills an executor. For a query for one key, the output shows the number of files read and
the median milliseconds, without and with the index. After an INSERT, a background refresh indexes
the new rows (``spark.sieve.refresh.auto``). The output shows the seconds from the end of the INSERT
to the end of the refresh. The benchmark compares the result of each query with the rows that it has
written.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, chdir, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyhive import hive
from rich import box
from rich.console import Console
from rich.table import Table

from tests.services import hdfs, s3

FOLDER = Path(__file__).resolve().parent.parent / "build" / "bench-cluster"
PORT = 19091
ROWS, FILES, NEW, RUNS = 1_000_000, 100, 5_000, 7
_EXECUTOR = "CoarseGrainedExecutorBackend"
_THREADS, _PROCESSES = "local[2]", "local-cluster[2,1,2048]"
# The modulus 1,000,003 is prime. So all rows with ids below the modulus have different values of
# `r`.
_QUERY = "SELECT id, r FROM t WHERE r = {key}"
_ROWS = "SELECT id, id * 7919 % 1000003 AS r FROM range({first}, {end}, 1, {files})"
_STEP = 104_729
_DEADLINE, _POLL = 120.0, 0.5


@dataclass(frozen=True, slots=True)
class Way:
    """One set-up of the server.

    Attributes:
        name: the set-up's name in the printed table.
        master: Spark's master URL.
        location: the database's location. Empty if the database is in the local warehouse.
        settings: Spark settings of this set-up.
    """

    name: str
    master: str
    location: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of one set-up. The module's docstring explains each figure.

    `killed` is None for the set-up without separate executors.
    """

    create: float
    without: tuple[int, float]
    with_index: tuple[int, float]
    followed: float
    killed: float | None


def main() -> None:
    """Measures each set-up and prints one table."""
    parser = argparse.ArgumentParser(prog="make bench-cluster", description=__doc__)
    parser.add_argument("--local", action="store_true", help="without HDFS and S3")
    args = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 130, highlight=False)
    shutil.rmtree(FOLDER, ignore_errors=True)
    table = Table(box=box.SIMPLE, title=f"{ROWS:,} rows in {FILES} files, {RUNS} runs")
    for name in ("", "CREATE\ns", "without\nfiles", "\nms", "with\nfiles", "\nms"):
        table.add_column(name, justify="right" if name else "left")
    for name in ("INSERT to\nfresh, s", "CREATE, an\nexecutor lost, s"):
        table.add_column(name, justify="right")
    with ExitStack() as started:
        started.callback(shutil.rmtree, FOLDER, ignore_errors=True)
        for way in _ways(started, far=not args.local):
            with console.status(way.name), _server(way):
                one = _measure(way)
            killed = "" if one.killed is None else f"{one.killed:.1f}"
            cells = (f"{files} {ms:,.0f}".split() for files, ms in (one.without, one.with_index))
            table.add_row(
                way.name, f"{one.create:.1f}", *(c for pair in cells for c in pair),
                f"{one.followed:.1f}", killed,
            )  # fmt: skip
    console.print(table)


def _ways(started: ExitStack, *, far: bool) -> Iterator[Way]:
    yield Way(_THREADS, _THREADS)
    yield Way(_PROCESSES, _PROCESSES)
    if not far:
        return
    (FOLDER / "hdfs").mkdir(parents=True)
    uri = started.enter_context(hdfs.started(FOLDER / "hdfs"))
    yield Way("  on HDFS", _PROCESSES, f"{uri}/far.db")
    (FOLDER / "s3").mkdir()
    gate = started.enter_context(s3.started(FOLDER / "s3"))
    client = {f"spark.{role}.extraClassPath": s3.jars() for role in ("driver", "executor")}
    access = {f"spark.hadoop.{key}": value for key, value in gate.conf.items()}
    yield Way("  on S3", _PROCESSES, f"s3a://{s3.KEEPING}/far.db", client | access)


@contextmanager
def _server(way: Way) -> Iterator[None]:
    """Within the block, runs a Thrift server with its own metastore in a new folder."""
    folder = FOLDER / "server"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    settings = {
        "spark.sql.shuffle.partitions": "4",
        "spark.sieve.refresh.auto": "true",
        "spark.sieve.prune.timeout": "30s",
        **way.settings,
    }
    options = [word for pair in settings.items() for word in ("--conf", "=".join(pair))]
    with chdir(folder):
        _sieve("thriftserver", "start", "--port", str(PORT), "--master", way.master, *options)
        try:
            yield
        finally:
            _sieve("thriftserver", "stop")


def _sieve(*args: str) -> None:
    command = [str(Path(sys.executable).with_name("sieve")), *args]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def _measure(way: Way) -> Measured:
    connection = hive.connect("localhost", PORT)
    cursor = connection.cursor()
    if way.location:
        cursor.execute(f"CREATE DATABASE far LOCATION '{way.location}'")
        cursor.execute("USE far")
    rows = _ROWS.format(first=0, end=ROWS, files=FILES)
    cursor.execute(f"CREATE TABLE t USING parquet AS {rows}")
    create = _timed(cursor, "CREATE SIEVE INDEX ON t (r)")
    without, with_index = (_ask(cursor, enabled=on) for on in (False, True))
    new = _ROWS.format(first=ROWS, end=ROWS + NEW, files=1)
    cursor.execute(f"INSERT INTO t {new}")
    started = time.perf_counter()
    _wait_for_version(cursor, 2)
    followed = time.perf_counter() - started
    killed = None
    if way.master == _PROCESSES:
        cursor.execute("DROP SIEVE INDEX ON t (r)")
        threading.Timer(create / 3, _kill_an_executor).start()
        killed = _timed(cursor, "CREATE SIEVE INDEX ON t (r)")
        _ask(cursor, enabled=True)
    connection.close()
    return Measured(create, without, with_index, followed, killed)


def _ask(cursor: Any, *, enabled: bool) -> tuple[int, float]:
    """Number of files read, and the median milliseconds of warm queries for one key."""
    cursor.execute(f"SET spark.sieve.enabled = {str(enabled).lower()}")
    times = []
    for number in range(RUNS + 1):
        row = (number + 1) * _STEP
        times.append(_timed(cursor, _QUERY.format(key=_key(row)), [(row, _key(row))]))
    files = _files_of_key(cursor) if enabled else FILES
    return files, statistics.median(times[1:]) * 1000


def _key(row: int) -> int:
    """The key in row number ``row``. The inserted rows repeat the keys of the first rows."""
    return row * 7919 % 1_000_003


def _files_of_key(cursor: Any) -> int:
    query = _QUERY.format(key=_key(_STEP))
    cursor.execute(f"SELECT files_read FROM sieve_explain('{query}')")
    ((files,),) = cursor.fetchall()
    return int(files)


def _timed(cursor: Any, statement: str, rows: list[tuple[int, int]] | None = None) -> float:
    started = time.perf_counter()
    cursor.execute(statement)
    found = cursor.fetchall()
    took = time.perf_counter() - started
    if rows is not None and found != rows:
        raise SystemExit(f"{statement} gave {found}, not {rows}")
    return took


def _wait_for_version(cursor: Any, version: int) -> None:
    deadline = time.monotonic() + _DEADLINE
    while time.monotonic() < deadline:
        cursor.execute("SELECT version FROM sieve_indexes() WHERE table = 't'")
        if cursor.fetchall() == [(version,)]:
            return
        time.sleep(_POLL)
    raise SystemExit(f"the index has no version {version} after {_DEADLINE:.0f} s")


def _kill_an_executor() -> None:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if _EXECUTOR.encode() in command and str(FOLDER).encode() in command:
            os.kill(int(process.name), signal.SIGKILL)
            return
    raise SystemExit("there is no executor to kill")


if __name__ == "__main__":
    main()
