"""Starts drivers in separate processes, so that tests can kill them or run them concurrently."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from processes import alive, front_ends, wait_until
from spark_session import INTERPRETED

LOGGING = """
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n
logger.sieve.name = org.apache.spark.sql.sieve
logger.sieve.level = info
"""
RANGES = {
    "spark.sieve.range.bytes": "100",
    "spark.hadoop.parquet.block.row.count.limit": "20",
}
"""With these driver settings, Sieve divides even small files into ranges."""
TESTS = Path(__file__).resolve().parent.parent


class DriverError(Exception):
    """Raised if a statement fails in the driver; the text is the message that a user sees."""


class Driver:
    """A PySpark driver in a separate process, which runs SQL statements."""

    def __init__(self, folder: Path, conf: dict[str, str], under: Sequence[str] = ()) -> None:
        folder.mkdir(parents=True)
        self.log = folder / "log"
        logging = folder / "log4j2.properties"
        logging.write_text(LOGGING)
        options = (
            f"-Dderby.system.home={folder / 'spark'} -Duser.timezone=UTC "
            f"-Dlog4j2.configurationFile={logging.as_uri()}"
        )
        own = {"spark.driver.extraJavaOptions": options, "spark.driver.memory": "1g"}
        conf = own | INTERPRETED | RANGES | conf
        path = [str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*under, sys.executable, str(Path(__file__).with_name("driver_main.py")),
                 str(folder / "spark"), json.dumps(conf)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in path if p)},
                start_new_session=True,
            )  # fmt: skip
        self.jvm = int(self._reply()["jvm"])

    def send(self, sql: str) -> None:
        """Starts a statement and returns at once; `receive` waits for the result."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(sql) + "\n")
        self.process.stdin.flush()

    def receive(self) -> tuple[list[list[Any]], int]:
        """The rows of the last statement that `send` started, and the number of files read.

        Raises DriverError if the statement failed.
        """
        reply = self._reply()
        if "error" in reply:
            raise DriverError(reply["error"])
        return reply["rows"], reply["files"]

    def sql(self, text: str) -> list[list[Any]]:
        """Runs a statement and returns its rows."""
        self.send(text)
        return self.receive()[0]

    def files(self, text: str) -> int:
        """Runs a query and returns the number of files that it reads."""
        self.send(text)
        return self.receive()[1]

    def logged(self, text: str) -> int:
        """The number of lines in the driver's log that contain a given text."""
        return sum(text in line for line in self.log.read_text(errors="replace").splitlines())

    def kill_front_end(self) -> None:
        """Kills the driver's front end, but not the driver."""
        (pid,) = front_ends(self.jvm)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not alive(pid), "the front end is dead")

    def end(self) -> None:
        """Ends the driver normally, by closing its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(120)

    def kill(self) -> None:
        """Kills the driver with SIGKILL, as the operating system does when memory runs out."""
        for pid in (self.jvm, self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(60)

    def _reply(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("@@"):
                reply: dict[str, Any] = json.loads(line[2:])
                return reply
        raise AssertionError(f"the driver ended: {self.log.read_text(errors='replace')[-4000:]}")


@contextlib.contextmanager
def driver(folder: Path, *, under: Sequence[str] = (), **conf: str) -> Iterator[Driver]:
    """Starts a driver, and kills it after the block.

    Args:
        folder: working folder of the driver.
        under: a command that starts the driver, such as ``setpriv``.
        conf: settings of the driver.
    """
    made = Driver(folder, conf, under)
    try:
        yield made
    finally:
        made.kill()
