"""The Spark session with Iceberg, which replaces the usual session in this folder's tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
# These tests also use modules of the golden corpus.
sys.path.insert(0, str(Path(__file__).parents[1] / "golden"))

import iceberg_jars
from spark_session import Lab, start_session


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A session with Iceberg in the session catalog and in two further catalogs."""
    folder = tmp_path_factory.mktemp("iceberg")
    spark = start_session(folder / "session", **iceberg_jars.conf(folder / "own"))
    spark.sparkContext.setLogLevel("ERROR")
    yield Lab(spark)
    spark.stop()
