"""Adds the scans of event logs to a workload, and counts the unreadable parts of the logs.

Adaptive execution replaces the plan of a query while the query runs, so this module counts only the
last plan. If a scan's metrics have no values in the log, the scan did not run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sieve.errors import CorruptError, UnsupportedError
from sieve.workload.event_log.open_logs import EventLog, read_lines
from sieve.workload.event_log.plans import Node, scans_of
from sieve.workload.scan_groups import Workload

_DAY_MS: Final = 86_400_000
_PACKAGE: Final = "org.apache.spark.sql.execution.ui."
# Most lines of a log describe tasks; this module parses only lines with this package name.
_OF_SQL = _PACKAGE.encode()
_DAMAGE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
_DAMAGED: Final = "events that are damaged"
_OF_EXECUTIONS = (
    "SparkListenerSQLAdaptiveExecutionUpdate",
    "SparkListenerDriverAccumUpdates",
    "SparkListenerSQLExecutionEnd",
)


@dataclass(slots=True)
class _Execution:
    plan: Node
    values: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Replay:
    """The result of reading event logs.

    Attributes:
        workload: the table scans that the logs record.
        logs: number of applications whose logs were read.
        executions: number of query executions, including the executions that were still running
            when the log ended.
        scans: number of scans in the workload.
        unread: number of unreadable parts, for each kind of problem.
    """

    workload: Workload = field(default_factory=Workload)
    logs: int = 0
    executions: int = 0
    scans: int = 0
    unread: Counter[str] = field(default_factory=Counter)
    _first_ms: int | None = None
    _last_ms: int = 0

    @property
    def days(self) -> float:
        """Days from the start of the first execution to the end of the last; at least 1."""
        if self._first_ms is None:
            return 1.0
        return max(1.0, (self._last_ms - self._first_ms) / _DAY_MS)

    def read(self, log: EventLog) -> None:
        """Adds the query executions in the log of one application."""
        self.logs += 1
        executions: dict[int, _Execution] = {}
        try:
            for file in log.files:
                self._add(read_lines(file), executions)
        except CorruptError:
            self.unread["logs that end in damage"] += 1
        except UnsupportedError:
            self.unread["logs of a codec that is not read (lzf)"] += 1
        for execution in executions.values():
            self._end(execution)

    def _add(self, lines: Iterable[bytes], executions: dict[int, _Execution]) -> None:
        for line in lines:
            if _OF_SQL not in line:
                continue
            try:
                self._act(json.loads(line), executions)
            except _DAMAGE:
                self.unread[_DAMAGED] += 1

    def _act(self, event: Mapping[str, Any], executions: dict[int, _Execution]) -> None:
        kind = str(event["Event"]).removeprefix(_PACKAGE)
        if kind == "SparkListenerSQLExecutionStart":
            self._seen(int(event["time"]))
            executions[event["executionId"]] = _Execution(event["sparkPlanInfo"])
        elif kind in _OF_EXECUTIONS and event["executionId"] in executions:
            execution = executions[event["executionId"]]
            if kind == "SparkListenerSQLAdaptiveExecutionUpdate":
                execution.plan = event["sparkPlanInfo"]
            elif kind == "SparkListenerDriverAccumUpdates":
                execution.values.update(event["accumUpdates"])
            else:
                self._seen(int(event["time"]))
                self._end(executions.pop(event["executionId"]))

    def _seen(self, time_ms: int) -> None:
        self._first_ms = time_ms if self._first_ms is None else min(time_ms, self._first_ms)
        self._last_ms = max(time_ms, self._last_ms)

    def _end(self, execution: _Execution) -> None:
        self.executions += 1
        try:
            scans = scans_of(execution.plan)
        except _DAMAGE:
            self.unread[_DAMAGED] += 1
            return
        for scan in scans:
            self.unread.update(str(why) for why in scan.unread)
            read = execution.values.get(scan.bytes)
            if scan.table is None or read is None:
                continue
            self.scans += 1
            self.workload.add(scan.table, scan.uses, read, execution.values.get(scan.files, 0))
