"""Finds Hudi's bundle, and returns the settings of a session with Hudi."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from sieve.client.spark_conf import EXTENSIONS
from sieve.client.spark_home import find_spark, shim_jar

VERSION = os.environ.get("HUDI_VERSION", "1.2.0")
HUDI_EXTENSION = "org.apache.spark.sql.hudi.HoodieSparkSessionExtension"


def bundle() -> Path:
    """Hudi's jar, which ``make test-hudi`` downloads; a test fails if it is missing."""
    folder = Path(__file__).parents[2] / "build" / "hudi"
    found = sorted(folder.glob(f"hudi-spark*-bundle_*-{VERSION}.jar"))
    if not found:
        pytest.fail(
            f"{folder} has no bundle of Hudi {VERSION}: run `make test-hudi`.", pytrace=False
        )
    return found[-1]


def conf(extensions: Sequence[str] = (EXTENSIONS, HUDI_EXTENSION)) -> dict[str, str]:
    """The settings of a session with Sieve's and Hudi's SQL extensions, in the given order."""
    jars = [str(shim_jar(find_spark(os.environ))), str(bundle())]
    return {
        "spark.jars": ",".join(jars),
        "spark.driver.extraClassPath": os.pathsep.join(jars),
        "spark.sql.extensions": ",".join(extensions),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.driver.memory": "3g",
    }
