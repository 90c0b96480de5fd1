"""Runs TPC-DS and TPC-H in three modes: Spark, Sieve without join keys, and Sieve with join keys.

`bench.tpc_data` describes the fact tables. All key columns and date columns that a query uses have
an index.
"""

from __future__ import annotations

import gc
import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from rich.console import Console

from bench.in_turns import Turns, in_turns
from bench.join_modes import SETTINGS
from bench.keyed_scans import KeyedScan, KeyedScans
from bench.session import start_session, with_settings
from bench.task_totals import COUNTED_READS
from bench.tpc_data import ARRIVALS, generate, query_texts

FOLDER = Path(__file__).resolve().parent.parent / "build" / "bench-tpc"
_KEY = re.compile(r"\w+_sk|\w+_(ticket|order)_number|[lo]_\w+key|[lo]_\w+date")
_KEYED = "at run time)"
_REASONS = ("join-not-selective", "join-too-costly", "join-not-repeatable", "exchange-shared")
_LIMIT = re.compile(r"\s+LIMIT\s+\d+\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of a query under one of the `SETTINGS` of Spark.

    Attributes:
        number: the query's number in its suite.
        turns: figures of the query. None if the query failed.
        scans: scans that skipped files by run-time values; only for the first setting, otherwise
            empty.
        unkeyed: scans of indexed tables that used no run-time values, with the reasons from EXPLAIN
            SIEVE; only for the first setting, otherwise empty.
        fault: a mode whose rows differ from the rows of the first mode, or an error. Empty if there
            is no fault.
    """

    number: int
    turns: Turns | None
    scans: tuple[KeyedScan, ...]
    unkeyed: tuple[str, ...]
    fault: str


class Suite:
    """A session with a suite's tables, and with indexes for all or some of the suite's queries."""

    def __init__(
        self,
        suite: str,
        scale: float,
        only: Collection[int],
        modes: Mapping[str, Mapping[str, str]],
        console: Console,
    ) -> None:
        self._modes = modes
        # The queries' texts come from DuckDB, which quotes names with double quotes. Spark quotes
        # names with backquotes.
        self._texts = {
            number: text.replace('"', "`")
            for number, text in query_texts(suite).items()
            if not only or number in only
        }
        named = set(re.findall(r"\w+", " ".join(self._texts.values()).lower()))
        with console.status("") as status:
            data = generate(FOLDER, suite, scale, status.update)
            status.update("starting Spark")
            self._folder = FOLDER / f"session-{suite}-{scale:g}"
            shutil.rmtree(self._folder, ignore_errors=True)
            # This time-out suffices on a busy machine. In strict mode, a query fails after a
            # time-out.
            own = {"spark.sieve.prune.timeout": "10s", "spark.driver.memory": "6g"}
            self.spark = start_session(self._folder, COUNTED_READS | own)
            self._indexed: dict[str, list[str]] = {}
            for table in sorted(data.iterdir()):
                status.update(f"indexing {table.name}")
                self._add(table, named if table.name in ARRIVALS[suite] else ())
        self._scans = KeyedScans(self.spark, self._indexed)

    def close(self) -> None:
        """Stops the session and deletes its folder, but not the data files."""
        self.spark.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def measure(self, setting: str, runs: int) -> Iterator[Measured]:
        """Measures each query under one of the `SETTINGS`, which `setting` names."""
        first = setting == next(iter(SETTINGS))
        with with_settings(self.spark, SETTINGS[setting]):
            for number, text in self._texts.items():
                yield self._measure(number, text, runs, look=first)
                self._release()

    def _release(self) -> None:
        """Collects garbage in Python and the JVM, so that Spark drops broadcasts of old queries."""
        gc.collect()
        self.spark._jvm.java.lang.System.gc()  # noqa: SLF001 - no public API

    def _add(self, folder: Path, named: Collection[str]) -> None:
        """Creates a table, and an index on each key or date column whose name is in `named`."""
        spark, name = self.spark, folder.name
        spark.sql(f"CREATE TABLE {name} USING parquet LOCATION '{folder}'")
        columns = [c for c in spark.table(name).columns if _KEY.fullmatch(c) and c in named]
        if columns:
            self._indexed[name] = columns
            spark.sql(f"CREATE SIEVE INDEX ON {name} ({', '.join(columns)})").collect()

    def _measure(self, number: int, text: str, runs: int, *, look: bool) -> Measured:
        try:
            turns, fault = in_turns(self.spark, text, self._modes, runs), ""
            if turns.differing and self._differs(text, self._modes):
                fault = f"other rows: {turns.differing}"
            scans = tuple(self._keyed(text)) if look else ()
            unkeyed = tuple(self._unkeyed(text)) if look else ()
        except (PySparkException, Py4JJavaError) as error:
            return Measured(number, None, (), (), _reason(error))
        return Measured(number, turns, scans, unkeyed, fault)

    def _differs(self, text: str, modes: Mapping[str, Mapping[str, str]]) -> bool:
        """Returns whether rows also differ without LIMIT; LIMIT may choose among tied rows."""
        whole = _LIMIT.sub("", text)
        return whole == text or in_turns(self.spark, whole, modes, 0).differing is not None

    def _keyed(self, text: str) -> Iterator[KeyedScan]:
        with with_settings(self.spark, self._modes["Sieve"]):
            frame = self.spark.sql(text)
            frame.collect()
            yield from self._scans.of(frame)

    def _unkeyed(self, text: str) -> Iterator[str]:
        with with_settings(self.spark, self._modes["Sieve"]):
            for scan in self.spark.sql(f"EXPLAIN SIEVE {text}").collect():
                table = scan["table"].rpartition(".")[2]
                if table in self._indexed and _KEYED not in (scan["predicate"] or ""):
                    reasons = [r for r in _REASONS if r in (scan["reasons"] or "")]
                    yield f"{table} ({', '.join(reasons) or 'no keys to be had'})"


def _reason(error: PySparkException | Py4JJavaError) -> str:
    """The first line of an error's message.

    If PySpark has no class for a Java error, the result also contains the first line of each cause.
    """
    if isinstance(error, PySparkException):
        return str(error).strip().splitlines()[0][:200]
    lines, cause = [], error.java_exception
    while cause is not None:
        lines.append(cause.toString().strip().splitlines()[0][:200])
        cause = cause.getCause()
    return "; ".join(lines)
