"""One session of Spark and Delta for all tests here, in the place of that of the other tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
# Whatever the golden corpus and fault tests are run with serves here, too.
sys.path.insert(0, str(Path(__file__).parents[1] / "golden"))
sys.path.insert(0, str(Path(__file__).parents[1] / "fault"))

import delta_jars
from spark_session import Lab, start_session


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A session with Delta."""
    spark = start_session(tmp_path_factory.mktemp("delta"), **delta_jars.conf())
    spark.sparkContext.setLogLevel("ERROR")
    yield Lab(spark)
    spark.stop()
