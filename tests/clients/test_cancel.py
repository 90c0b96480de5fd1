"""Cancels a long CREATE in each client, in the way that the client offers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from pymetastore.metastore import HMS
from TCLIService import ttypes
from thrift_session import thrift_session

sys.path.insert(0, str(Path(__file__).parent.parent / "fault"))

from processes import wait_until

if TYPE_CHECKING:
    from conftest import Site

CREATE = "CREATE SIEVE INDEX ON slow (a)"
NEXT = "SELECT 'still', 'here', count(*) FROM range(7)"
ROWS, LINKS = 200_000, 400
OLD = 1_600_000_000


@pytest.fixture(scope="module")
def slow(site: Site) -> Iterator[None]:
    """Creates a table of 80 million CSV rows, fast: all files are links to one file."""
    folder = site.folder / "slow"
    folder.mkdir()
    first = folder / "0.csv"
    first.write_text("\n".join(map(str, range(ROWS))))
    os.utime(first, (OLD, OLD))
    for k in range(1, LINKS):
        (folder / f"{k}.csv").hardlink_to(first)
    with thrift_session(site.thrift_port) as connection:
        connection.cursor().execute(f"CREATE TABLE slow (a INT) USING csv LOCATION '{folder}'")
        yield
        connection.cursor().execute("DROP TABLE slow")


def jobs(ui_port: int) -> list[str]:
    """The descriptions of a driver's running jobs, from the driver's user interface."""
    api = f"http://localhost:{ui_port}/api/v1/applications"
    try:
        with urlopen(api) as reply:
            (application,) = json.load(reply)
        with urlopen(f"{api}/{application['id']}/jobs?status=running") as reply:
            return [job.get("description", "") for job in json.load(reply)]
    except (URLError, ValueError):
        return []  # the driver is starting, or has ended


def building(ui_port: int) -> bool:
    """Returns whether a job of the CREATE statement is running."""
    return any(job.startswith(f"{CREATE} (") for job in jobs(ui_port))


@contextmanager
def leaves_nothing(site: Site, ui_port: int) -> Iterator[None]:
    """Asserts that a CREATE in the block leaves no folder, no property and no running job."""
    root = site.folder / "spark-warehouse" / ".sieve"
    before = set(root.iterdir()) if root.exists() else set()
    yield
    wait_until(lambda: not jobs(ui_port), "its jobs have stopped", every=0.1)
    wait_until(lambda: not root.exists() or set(root.iterdir()) == before, "its folder is gone")
    with HMS.create("localhost", site.metastore_port) as metastore:
        assert "sieve.index.a_sieve" not in metastore.get_table("default", "slow").parameters


@contextmanager
def shell(site: Site, *args: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Starts a shell in a new terminal.

    Yields the process and the file with the shell's output.
    """
    output = site.folder / f"{args[0]}.out"
    program = str(Path(sys.executable).with_name("sieve"))
    with output.open("w") as sink:
        process = subprocess.Popen(
            # If the test run ignores Ctrl-C, its child processes also ignore Ctrl-C. So `env`
            # restores the default handling of Ctrl-C.
            ["env", "--default-signal=INT", program, *args],
            cwd=site.folder, stdin=subprocess.PIPE, stdout=sink, stderr=sink, text=True,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield process, output
    finally:
        process.kill()
        process.wait()


def type_in(process: subprocess.Popen[str], *statements: str) -> None:
    """Types statements into the shell, one per line."""
    assert process.stdin is not None
    for statement in statements:
        process.stdin.write(f"{statement};\n")
    process.stdin.flush()


def cancel_in_a_shell(site: Site, ui_port: int, *args: str) -> str:
    """Presses Ctrl-C during a CREATE, and then runs one more statement.

    Returns the shell's output.
    """
    with leaves_nothing(site, ui_port), shell(site, *args) as (process, output):
        type_in(process, CREATE)
        wait_until(lambda: building(ui_port) or process.poll() is not None, "it builds", every=0.1)
        assert process.poll() is None, output.read_text()
        os.killpg(process.pid, signal.SIGINT)
        type_in(process, NEXT)
        assert process.stdin is not None
        process.stdin.close()
        wait_until(lambda: not jobs(ui_port), "its jobs have stopped", every=0.1)
        assert process.wait(120) == 0, output.read_text()
    return output.read_text()


@pytest.mark.long
@pytest.mark.usefixtures("slow")
def test_spark_sql(site: Site) -> None:
    """Ctrl-C in spark-sql ends a CREATE at once, and the shell stays usable."""
    settings = {"spark.ui.enabled": "true", "spark.ui.port": str(site.other_port)}
    conf = [word for k, v in settings.items() for word in ("--conf", f"{k}={v}")]
    said = cancel_in_a_shell(site, site.other_port, "sql", *site.metastore_option, *conf)
    assert "cancelled" in said
    assert "still\there\t7" in said


@pytest.mark.long
@pytest.mark.usefixtures("slow")
def test_beeline(site: Site) -> None:
    """Ctrl-C in beeline ends a CREATE at once, and the shell stays usable."""
    said = cancel_in_a_shell(site, site.ui_port, "beeline", "--outputformat=tsv2")
    assert "cancelled" in said.lower()
    assert "still\there\t7" in said


@pytest.mark.usefixtures("slow")
def test_pyhive(site: Site) -> None:
    """A cursor's `cancel` ends a CREATE at once, and the connection stays usable."""
    with thrift_session(site.thrift_port) as connection:
        cursor = connection.cursor()
        with leaves_nothing(site, site.ui_port):
            cursor.execute(CREATE, async_=True)
            wait_until(lambda: building(site.ui_port), "it builds", every=0.1)
            cursor.cancel()
            state = cursor.poll().operationState
            assert state == ttypes.TOperationState.CANCELED_STATE
        cursor.execute(NEXT)
        assert cursor.fetchall() == [("still", "here", 7)]


@pytest.mark.usefixtures("slow")
def test_a_time_out(site: Site) -> None:
    """A CREATE ends when the query time-out of a JDBC client expires."""
    with thrift_session(site.thrift_port) as connection:
        with leaves_nothing(site, site.ui_port):
            request = ttypes.TExecuteStatementReq(
                connection.sessionHandle, CREATE, runAsync=True, queryTimeout=3
            )
            handle = connection.client.ExecuteStatement(request).operationHandle
            wait_until(lambda: building(site.ui_port), "it builds", every=0.1)
            ask = ttypes.TGetOperationStatusReq(operationHandle=handle)
            over = ttypes.TOperationState.TIMEDOUT_STATE
            wait_until(
                lambda: connection.client.GetOperationStatus(ask).operationState == over,
                "its time is over",
            )
        cursor = connection.cursor()
        cursor.execute(NEXT)
        assert cursor.fetchall() == [("still", "here", 7)]
