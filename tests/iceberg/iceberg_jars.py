"""Iceberg's jar, and the settings of a session with Iceberg."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sieve.client.spark_conf import EXTENSIONS
from sieve.client.spark_home import find_spark, shim_jar

ICEBERG_EXTENSION = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
FOLDER = Path(__file__).parents[2] / "build" / "iceberg" / os.environ.get("ICEBERG", "1.12.0")


def jar() -> Path:
    """The jar that ``make test-iceberg`` downloads for this Spark.

    A test fails if this jar is missing.
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
        warehouse: the folder of the catalog `files`, which stores tables as folders.
    """
    paths = [str(path) for path in (shim_jar(find_spark(os.environ)), jar())]
    own = "spark.sql.catalog"
    catalog = "org.apache.iceberg.spark.SparkCatalog"
    return {
        "spark.jars": ",".join(paths),
        "spark.driver.extraClassPath": os.pathsep.join(paths),
        "spark.sql.extensions": f"{EXTENSIONS},{ICEBERG_EXTENSION}",
        f"{own}.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog",
        f"{own}.spark_catalog.type": "hive",
        f"{own}.files": catalog,
        f"{own}.files.type": "hadoop",
        f"{own}.files.warehouse": f"file:{warehouse}",
        f"{own}.store": catalog,
        f"{own}.store.type": "hive",
        "spark.hadoop.datanucleus.connectionPoolingType": "dbcp",
        # By default, Hive's server refuses changes of a column's type or position.
        "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false",
        "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
        "spark.hadoop.iceberg.engine.hive.lock-enabled": "false",
    }
