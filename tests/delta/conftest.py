"""The Spark session with Delta, which replaces the usual session in this folder's tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
# These tests also use modules of the golden corpus and of the fault tests.
sys.path.insert(0, str(Path(__file__).parents[1] / "golden"))
sys.path.insert(0, str(Path(__file__).parents[1] / "fault"))

import delta_jars
from spark_session import Lab, start_session


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A test session in which Delta is enabled."""
    spark = start_session(tmp_path_factory.mktemp("delta"), **delta_jars.conf())
    spark.sparkContext.setLogLevel("ERROR")
    yield Lab(spark)
    spark.stop()
