"""Only the front end can use its connection to the driver. User sessions stay unchanged."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from processes import argv, environment, front_ends, listening, wait_until
from spark_session import Lab

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}

CALL = b"c\nt\ndefaultSession\ne\n"
"""A request in py4j's protocol: call the method ``defaultSession`` of the entry point."""

TALK = """
import contextlib, socket, sys
heard = b""
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60) as s:
    with contextlib.suppress(ConnectionError):
        s.sendall(bytes.fromhex(sys.argv[2]))
        with contextlib.suppress(OSError):  # the other side may have hung up at the first words
            s.shutdown(socket.SHUT_WR)
        while more := s.recv(4096):
            heard += more
print(heard.hex())
"""


@pytest.fixture
def front_end(lab: Lab, jvm: int) -> int:
    """The process id of the front end; the fixture starts the front end if necessary."""
    lab.sql("SHOW SIEVE INDEXES IN default")
    (pid,) = front_ends(jvm)
    return pid


@pytest.fixture
def port(front_end: int) -> int:
    """The port on which the driver accepts the front end's connection."""
    return int(environment(front_end)["PYSPARK_GATEWAY_PORT"])


def talk(port: int, words: bytes, prefix: Sequence[str] = ()) -> bytes:
    """Sends bytes to the driver; returns the bytes of the driver's reply."""
    command = [*(prefix or [sys.executable]), "-c", TALK, str(port), words.hex()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    return bytes.fromhex(done.stdout.strip())


def test_front_end_listens_on_no_socket(lab: Lab, front_end: int) -> None:
    """The front end listens on no socket, even after building an index."""
    with lab.database("listens"):
        lab.spark.range(100).write.saveAsTable("t")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.check("SELECT * FROM t WHERE id = 5")
        assert listening(front_end) == []


def test_the_gateway_is_on_loopback(jvm: int, port: int) -> None:
    """The driver accepts the front end's connection only on the loopback address."""
    addresses = {address for address, p in listening(jvm) if p == port}
    assert addresses
    assert addresses <= LOOPBACK


def test_gateway_requires_the_complete_token(front_end: int, port: int) -> None:
    """A process that does not send the complete token can use no object of the driver.

    The test sends no token, an empty token, wrong tokens, and the first half of the right token.
    """
    secret = environment(front_end)["PYSPARK_GATEWAY_SECRET"]
    assert len(secret) == 64
    right = f"A\n{secret}\n".encode()
    assert talk(port, right + CALL).startswith(b"!yv\n!yro"), "the right one is let in"
    for words in (
        CALL,
        b"A\n\n" + CALL,
        f"A\n{'0' * 64}\n".encode() + CALL,
        f"A\n{secret[:32]}\n".encode() + CALL,
        f"A\n{secret[::-1]}\n".encode() + CALL,
    ):
        assert b"!yro" not in talk(port, words), words


def test_another_user_is_refused_too(front_end: int, port: int) -> None:
    """A process of another user cannot read the token, and the driver refuses this process."""
    setpriv = shutil.which("setpriv")
    if setpriv is None or os.geteuid() != 0:
        pytest.skip("needs root and setpriv to become another user")
    nobody = [setpriv, "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
    assert b"!yro" not in talk(port, CALL, [*nobody, python])
    read = subprocess.run(
        [*nobody, "cat", f"/proc/{front_end}/environ"], capture_output=True, check=False
    )
    assert read.returncode != 0


def test_the_token_is_on_no_command_line(front_end: int) -> None:
    """No process on the machine shows the token on its command line."""
    secret = environment(front_end)["PYSPARK_GATEWAY_SECRET"]
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            assert not any(secret in word for word in argv(int(path.name)))


def test_sessions_of_the_user_do_not_change(lab: Lab) -> None:
    """After statements and scans, the driver's default and active sessions are still the user's."""
    with lab.database("sessions_stay"):
        lab.spark.range(100).write.saveAsTable("t")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.check("SELECT * FROM t WHERE id = 5")
    jvm = lab.spark._jvm
    assert jvm.SparkSession.getDefaultSession().get().equals(lab.spark._jsparkSession)
    assert jvm.SparkSession.getActiveSession().get().equals(lab.spark._jsparkSession)
    assert lab.spark.sparkContext._jsc.sc().isStopped() is False


def test_an_interrupted_front_end_cancels_nothing(lab: Lab, front_end: int) -> None:
    """SIGINT to the front end cancels no job of a user, and does not stop the Spark context."""
    with lab.database("interrupted"):
        lab.spark.range(100).write.saveAsTable("t")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        context = lab.spark.sparkContext
        gate = Path(lab.spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")) / "gate"
        results: list[list[int]] = []

        def wait_for_gate(_: int) -> int:
            while not gate.exists():
                time.sleep(0.05)
            return 7

        job = threading.Thread(
            target=lambda: results.append(context.parallelize([0], 1).map(wait_for_gate).collect())
        )
        job.start()
        wait_until(context.statusTracker().getActiveJobsIds, "the user's job runs")
        os.kill(front_end, signal.SIGINT)
        lab.sql("SHOW SIEVE INDEXES ON t")
        gate.touch()
        job.join()
        assert results == [[7]]
        lab.check("SELECT * FROM t WHERE id = 5")
