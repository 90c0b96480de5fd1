"""Sums the input and the CPU time of a session's tasks, from Spark's own status store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

COUNTED_READS = {"spark.hadoop.parquet.hadoop.vectored.io.enabled": "false"}
"""With these settings, Spark counts all bytes that it reads from Parquet files on a local disk."""


@dataclass(frozen=True, slots=True)
class TaskTotals:
    """Totals over some tasks: their number, input bytes, input rows and CPU milliseconds."""

    tasks: int
    bytes: int
    rows: int
    cpu_ms: float


class TaskMeter:
    """Sums the metrics of all stages that are new since the previous call.

    Spark stores a limited number of stages, so callers must read the meter after each query.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext._jsc.sc()  # noqa: SLF001 - no public API
        stages = self._stages()
        self._last = stages.apply(0).stageId() if stages.size() else -1

    def since_last(self) -> TaskTotals:
        """Totals of the stages that are new since the previous call of this method."""
        stages, last = self._stages(), self._last
        tasks = size = rows = cpu_ns = 0
        for k in range(stages.size()):
            stage = stages.apply(k)
            if stage.stageId() <= last:
                break
            self._last = max(self._last, stage.stageId())
            tasks += stage.numCompleteTasks()
            size += stage.inputBytes()
            rows += stage.inputRecords()
            cpu_ns += stage.executorCpuTime()
        return TaskTotals(tasks, size, rows, cpu_ns / 1e6)

    def _stages(self) -> Any:
        """All stages that Spark still stores, the newest stage first."""
        self._context.listenerBus().waitUntilEmpty()  # task metrics arrive as events
        store = self._context.statusStore()
        defaults = (getattr(store, f"stageList$default${k}")() for k in range(2, 6))
        return store.stageList(None, *defaults)
