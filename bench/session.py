"""Starts Spark sessions with an embedded metastore, and reads metrics of executed queries."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sieve.client.spark_home import find_spark
from sql_ext.launcher.launch import shipped_settings

SWITCH = "spark.sieve.enabled"


def start_session(
    folder: Path, settings: Mapping[str, str], *, indexed: bool = True
) -> SparkSession:
    """Starts a local session like `sieve sql`, with metastore and warehouse in `folder`.

    Args:
        folder: the session's working folder, in which the JVM writes its output to ``spark.log``.
        settings: Spark settings that override the defaults.
        indexed: whether Spark loads Sieve.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shipped = shipped_settings(find_spark(os.environ), os.environ)
    if not indexed:
        for key in ("spark.sql.extensions", "spark.jars", "spark.driver.extraClassPath"):
            shipped.pop(key)
    java = f"{shipped.get('spark.driver.extraJavaOptions', '')} -Dderby.system.home={folder}"
    own = {
        "spark.master": "local[*]",
        "spark.driver.memory": "3g",
        "spark.driver.extraJavaOptions": java.strip(),
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={folder}/metastore_db;create=true"
        ),
        "spark.sql.warehouse.dir": (folder / "spark-warehouse").as_uri(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.appName("sieve-bench")
    for key, value in (shipped | own | dict(settings)).items():
        builder = builder.config(key, value)
    with _output_to(folder / "spark.log"):
        return builder.enableHiveSupport().getOrCreate()


@contextmanager
def _output_to(log: Path) -> Iterator[None]:
    """Within the block, redirects the output of this process and its new children to a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        for number, descriptor in enumerate(kept, 1):
            os.dup2(descriptor, number)
            os.close(descriptor)


@contextmanager
def with_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Within the block, sets settings of a session. Afterwards unsets these settings."""
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            spark.conf.unset(key)


def files_read(frame: DataFrame) -> int:
    """Metric "number of files read", summed over the scans of an executed query."""
    return _summed(frame, "numFiles")


def bytes_read(frame: DataFrame) -> int:
    """Metric "size of files read", summed over the scans of an executed query."""
    return _summed(frame, "filesSize")


def rows_scanned(frame: DataFrame) -> int:
    """Number of rows that the scans of an executed query return, before any filter."""
    return _summed(frame, "numOutputRows")


def scan_tasks(frame: DataFrame) -> int:
    """Number of tasks that ran the scans of an executed query."""
    return sum(scan.inputRDD().getNumPartitions() for scan in scans_of(frame))


def _summed(frame: DataFrame, metric: str) -> int:
    return sum(scan.metrics().apply(metric).value() for scan in scans_of(frame))


def scans_of(
    frame: DataFrame, kinds: Collection[str] = ("FileSourceScanExec", "SieveScan")
) -> Iterator[Any]:
    """File scans of an executed query, without scans that adaptive execution has dropped."""
    return _scans(frame._jdf.queryExecution().executedPlan(), kinds)  # noqa: SLF001 - no public API


def _scans(plan: Any, kinds: Collection[str]) -> Iterator[Any]:
    kind = plan.getClass().getSimpleName()
    if kind == "AdaptiveSparkPlanExec":
        yield from _scans(plan.executedPlan(), kinds)
    elif kind.endswith("QueryStageExec"):
        yield from _scans(plan.plan(), kinds)
    elif kind in kinds:
        yield plan
    for nested in (plan.children(), plan.subqueries()):
        for k in range(nested.size()):
            yield from _scans(nested.apply(k), kinds)
