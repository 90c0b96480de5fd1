"""What tests of all kinds share: one Spark session a run, started when a test first needs it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from lab import Lab, start_session


def pytest_addoption(parser: pytest.Parser) -> None:
    """``pytest tests/golden --regenerate`` writes the expected rows anew, without the index."""
    parser.addoption("--regenerate", action="store_true", help="write the golden .out files anew")


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The session of the test run."""
    spark = start_session(tmp_path_factory.mktemp("spark"))
    yield Lab(spark)
    spark.stop()
