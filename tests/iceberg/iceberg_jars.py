"""Finds Iceberg's jar, and returns the settings of a session with Iceberg."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sieve.client.spark_home import find_spark, shim_jar
from sql_ext.launcher.launch import iceberg_settings

FOLDER = Path(__file__).parents[2] / "build" / "iceberg" / os.environ.get("ICEBERG", "1.12.0")


def jar() -> Path:
    """The Iceberg jar that ``make test-iceberg`` downloads for the current version of Spark.

    A test fails if Iceberg's jar is missing.
    """
    spark = find_spark(os.environ)
    name = f"iceberg-spark-runtime-{spark.line}_{spark.scala}"
    found = sorted(FOLDER.glob(f"{name}-*.jar"))
    if not found:
        pytest.fail(f"{FOLDER} has no {name} jar: run `make test-iceberg`.", pytrace=False)
    return found[-1]


def conf(warehouse: Path) -> dict[str, str]:
    """The settings of a session with Sieve and Iceberg.

    Args:
        warehouse: the folder of the catalog `files`. This catalog stores tables as folders.
    """
    spark = find_spark(os.environ)
    paths = [str(path) for path in (shim_jar(spark), jar())]
    named = {"spark.jars": ",".join(paths), "spark.driver.extraClassPath": os.pathsep.join(paths)}
    own = "spark.sql.catalog"
    catalog = "org.apache.iceberg.spark.SparkCatalog"
    return {
        **iceberg_settings(spark, os.environ, named),
        **named,
        f"{own}.files": catalog,
        f"{own}.files.type": "hadoop",
        f"{own}.files.warehouse": f"file:{warehouse}",
        f"{own}.store": catalog,
        f"{own}.store.type": "hive",
    }
