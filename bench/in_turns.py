"""Runs a query in several modes that take turns, so that a busy machine slows all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from bench.session import files_read, with_settings


@dataclass(frozen=True, slots=True)
class Turns:
    """By mode, the files that a query read, and its median milliseconds."""

    files: dict[str, int]
    ms: dict[str, float]


def in_turns(
    spark: SparkSession, text: str, modes: Mapping[str, Mapping[str, str]], runs: int
) -> Turns:
    """Runs a query in each mode.

    Args:
        spark: the session.
        text: of the query; its first column is compared between the modes.
        modes: settings by name of a mode.
        runs: of each mode, after one that compiles the query.
    """
    files: dict[str, int] = {}
    times: dict[str, list[float]] = {mode: [] for mode in modes}
    answers = set()
    for turn in range(runs + 1):
        for mode, conf in modes.items():
            with with_settings(spark, conf):
                started = time.perf_counter()
                frame = spark.sql(text)
                answers.add(tuple(row[0] for row in frame.collect()))
                if turn:
                    times[mode].append((time.perf_counter() - started) * 1000)
                files[mode] = files_read(frame)
    assert len(answers) == 1, f"the modes give different rows: {text}"
    return Turns(files, {mode: statistics.median(each) for mode, each in times.items()})
