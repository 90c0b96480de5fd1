"""Runs a query in several modes in turn, so that the machine's other load slows all modes alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Row, SparkSession

from bench.answers import same_rows
from bench.session import files_read, with_settings
from bench.task_totals import TaskMeter, TaskTotals


@dataclass(frozen=True, slots=True)
class Turns:
    """Cost of a query in each of several modes. The dictionaries' keys are the modes' names.

    Attributes:
        files: number of files that the query's scans read.
        tasks: the input and the CPU time of the query's tasks in the last run.
        ms: median milliseconds of a run.
        spread: time of the slowest run, divided by the time of the fastest run.
        differing: a mode whose rows differ from the rows of the first mode; None if all modes
            agree.
    """

    files: dict[str, int]
    tasks: dict[str, TaskTotals]
    ms: dict[str, float]
    spread: dict[str, float]
    differing: str | None


def in_turns(
    spark: SparkSession,
    text: str,
    modes: Mapping[str, Mapping[str, str]],
    runs: int,
    same: Callable[[Sequence[Row], Sequence[Row]], bool] = same_rows,
) -> Turns:
    """Runs a query in each mode in turn.

    Args:
        spark: the session.
        text: the query's SQL text.
        modes: a dict from the name of each mode to its session settings.
        runs: number of timed runs in each mode. An untimed run comes first, and compiles the query.
            If ``runs`` is 0, the only run is timed.
        same: a function that returns whether two answers count as equal.
    """
    files: dict[str, int] = {}
    tasks: dict[str, TaskTotals] = {}
    times: dict[str, list[float]] = {mode: [] for mode in modes}
    expected: Sequence[Row] | None = None
    differing, meter = None, TaskMeter(spark)
    for turn in range(runs + 1):
        for mode, conf in modes.items():
            with with_settings(spark, conf):
                started = time.perf_counter()
                frame = spark.sql(text)
                rows = frame.collect()
                if turn or not runs:
                    times[mode].append((time.perf_counter() - started) * 1000)
                files[mode], tasks[mode] = files_read(frame), meter.since_last()
            expected = rows if expected is None else expected
            if not same(expected, rows):
                differing = mode
    ms = {mode: statistics.median(each) for mode, each in times.items()}
    spread = {mode: max(each) / min(each) for mode, each in times.items()}
    return Turns(files, tasks, ms, spread, differing)
