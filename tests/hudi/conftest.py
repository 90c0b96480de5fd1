"""The Spark session with Hudi, which replaces the usual session in this folder's tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import bundle
from spark_session import Lab, start_session


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A session in which Hudi itself skips slices only if a test enables Hudi's skipping."""
    # Hive compares columns by position. Without this setting, Hive would allow DROP only for the
    # last column.
    places = {"spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false"}
    spark = start_session(tmp_path_factory.mktemp("hudi"), **bundle.conf(), **places)
    spark.sparkContext.setLogLevel("ERROR")
    spark.conf.set("hoodie.enable.data.skipping", "false")
    yield Lab(spark)
    spark.stop()
