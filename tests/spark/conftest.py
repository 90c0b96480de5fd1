"""Fixtures for the tests that run statements and queries on Spark."""

from __future__ import annotations

from collections.abc import Iterator

import joined_tables
import pytest
from spark_session import INTERPRETED, Lab

# For these modules, Spark compiles queries, because only compiled queries read columns in batches.
COMPILED = {
    "test_arrow_jobs", "test_bugs_of_others", "test_hashes", "test_join_pruning",
    "test_key_function", "test_python_functions", "test_ranges", "test_reader_fingerprint",
    "test_scan_metrics", "test_sql_of_pages", "test_tables_formats", "test_whole_files",
    "test_zeros",
}  # fmt: skip
"""The modules whose tests are about how Spark reads rows.

All other modules need a sixth less CPU time if Spark interprets queries.
"""


@pytest.fixture(scope="module", autouse=True)
def interpreted(request: pytest.FixtureRequest, lab: Lab) -> Iterator[None]:
    """Makes Spark either compile or interpret all queries of the test module."""
    if request.module.__name__.rpartition(".")[2] in COMPILED:
        yield
        return
    with lab.settings(INTERPRETED):
        yield


@pytest.fixture(scope="module")
def star(lab: Lab) -> Iterator[Lab]:
    """A database that contains the tables of `joined_tables`."""
    with lab.database("joined"):
        joined_tables.create(lab)
        yield lab
