"""Finds Delta's jars, and returns the settings of a session with Delta."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from sieve.client.spark_conf import EXTENSIONS
from sieve.client.spark_home import find_spark, shim_jar

DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
SMALL = {
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
    # By default, VACUUM and RESTORE would list folders in 10,000 tasks.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}
"""Settings for sessions with small tables."""
FOLDER = Path(__file__).parents[2] / "build" / "delta"


def jars() -> list[Path]:
    """The Delta jars that ``make test-delta`` downloads for the current version of Spark.

    A test fails if Delta's jars are missing.
    """
    spark = find_spark(os.environ)
    name = "delta-spark_2.12" if spark.line == "3.5" else f"delta-spark_{spark.line}_2.13"
    found = sorted(FOLDER.glob(f"{name}-*.jar"))
    if not found:
        pytest.fail(f"{FOLDER} has no {name} jar: run `make test-delta`.", pytrace=False)
    storage = FOLDER / found[-1].name.replace(name, "delta-storage")
    return [found[-1], storage]


def conf(extensions: Sequence[str] = (EXTENSIONS, DELTA_EXTENSION)) -> dict[str, str]:
    """The settings of a session with Sieve's and Delta's SQL extensions, in the given order."""
    paths = [str(path) for path in (shim_jar(find_spark(os.environ)), *jars())]
    return SMALL | {
        "spark.jars": ",".join(paths),
        "spark.driver.extraClassPath": os.pathsep.join(paths),
        "spark.sql.extensions": ",".join(extensions),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
