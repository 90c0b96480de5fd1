"""Engines that run the golden corpus. An engine runs a statement and returns the rows as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from pyhive.exc import OperationalError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from spark_session import INTERPRETED, files_read

SETTINGS: Mapping[str, Mapping[str, str]] = {
    "off": {"spark.sieve.enabled": "false"},
    "on": {},
    "strict": {"spark.sieve.strict": "true"},
    # In this mode, an audit reads all files and ranges that a scan has skipped.
    "audited": {"spark.sieve.strict": "true", "spark.sieve.audit.sample": "1.0"},
    "thrift": {"spark.sieve.strict": "true"},
}
"""The settings of a session in each mode."""

MASKED = {"instant", "bytes", "seconds", "bytes_total", "bytes_read"}
"""Result columns of SIEVE statements with values that differ between runs."""

MASKED_PROPERTIES = {
    "uuid", "instant", "bytes", "bytes as share of column", "build seconds", "built by", "path",
    "bytes read for a key that occurs", "bytes read for a key that does not occur",
    "bytes read for a range of 0.05% of the domain",
}  # fmt: skip

_SIEVE = re.compile(r"\s*\w+\s+SIEVE\b", re.IGNORECASE)
_SILENT = re.compile(r"\s*(SET|RESET|USE)\b", re.IGNORECASE)
# The Thrift server prints the error condition twice, with the exception's class in between.
_ERROR = re.compile(r".*(\[SIEVE_[A-Z_]+\] [^\n]*)")


@dataclass(frozen=True, slots=True)
class Result:
    """The sorted rows of a statement, and the number of files that it read, if known."""

    rows: tuple[str, ...]
    files: int | None = None


class Engine(Protocol):
    """A session or connection that runs statements."""

    def run(self, sql: str) -> Result:
        """Runs one statement.

        If Sieve refuses the statement, the only row is Sieve's error. All other errors are raised.
        """


class SparkEngine:
    """Runs statements in a session of the test run's driver."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def run(self, sql: str) -> Result:
        """Runs a statement; returns the rows in the format of spark-sql."""
        try:
            frame = self._spark.sql(sql)
            plan = frame._jdf.queryExecution().executedPlan()
            # Outside of a query's execution, Spark does not pass the session's settings to tasks.
            for key in INTERPRETED:
                self._spark.sparkContext.setLocalProperty(key, self._spark.conf.get(key, None))
            lines = self._spark._jvm.org.apache.spark.sql.execution.HiveResult.hiveResultString(
                plan
            )
            rows = [str(lines.apply(k)).split("\t") for k in range(lines.size())]
            return Result(presented(sql, frame.columns, rows), files_read(frame))
        except PySparkException as error:
            return Result((refusal(error),))


class ThriftEngine:
    """Runs statements on a connection to a Thrift server, as BI tools and notebooks do.

    Args:
        cursor: a cursor of PyHive.
        server: a session in the server's driver. The driver's UI store knows how many files queries
            read.
    """

    def __init__(self, cursor: Any, server: SparkSession) -> None:
        self._cursor = cursor
        self._server = server
        self._store = server._jsparkSession.sharedState().statusStore()

    def run(self, sql: str) -> Result:
        """Runs a statement; returns the rows in the format of spark-sql."""
        before = self._last_execution()
        try:
            self._cursor.execute(sql)
        except OperationalError as error:
            return Result((refusal(error),))
        files = self._files_read(before)
        if self._cursor.description is None:
            return Result((), files)
        columns = [column[0] for column in self._cursor.description]
        rows = [[_cell(value) for value in row] for row in self._cursor.fetchall()]
        return Result(presented(sql, columns, rows), files)

    def _last_execution(self) -> int:
        self._server.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        known = self._store.executionsList()
        return int(known.last().executionId()) if known.size() else -1

    def _files_read(self, before: int) -> int:
        """Sums the numbers of files read in Spark's UI, over all executions after `before`."""
        read = 0
        for number in range(before + 1, self._last_execution() + 1):
            found = self._store.execution(number)
            if found.isEmpty():
                continue
            execution = found.get()
            values = self._store.executionMetrics(execution.executionId())
            metrics = execution.metrics()
            wanted = {
                metrics.apply(m).accumulatorId()
                for m in range(metrics.size())
                if metrics.apply(m).name() == "number of files read"
            }
            read += sum(int(values.apply(m).replace(",", "")) for m in wanted if values.contains(m))
        return read


def presented(sql: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """The rows as sorted lines. A mask replaces times and sizes in results of SIEVE statements."""
    if _SILENT.match(sql):
        return ()
    if not _SIEVE.match(sql):
        return tuple(sorted(" | ".join(row).rstrip() for row in rows))
    hidden = {k for k, name in enumerate(columns) if name in MASKED}
    lines = []
    for row in rows:
        cells = ["#" if k in hidden and x != "NULL" else x for k, x in enumerate(row)]
        if list(columns) == ["property", "value"] and cells[0] in MASKED_PROPERTIES:
            cells[1] = "#"
        lines.append(" | ".join(cells))
    return tuple(sorted(lines))


def refusal(error: Exception) -> str:
    """Returns Sieve's error from a client's exception. Raises other exceptions again."""
    text = str(error)
    if isinstance(error, OperationalError) and hasattr(error.args[0], "status"):
        text = error.args[0].status.errorMessage
    found = _ERROR.search(text)
    if found is None:
        raise error
    return re.sub(r"file:/\S+?(?=[,;\s]|$)", "#", f"error: {found[1]}")


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
