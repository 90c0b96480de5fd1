"""Runs a dbt model that merges into a Hudi table.

The test runs on Spark 3.5, because Hudi has a bundle for this version.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from command import sieve
from dbt_project import HOME, Project
from ports import free_ports

pytestmark = pytest.mark.tools

SPARK = HOME / "build" / "spark-3.5"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """The example project, on a Thrift server with Hudi."""
    (port,) = free_ports(1)
    bundles = list((HOME / "build" / "hudi").glob("hudi-spark3.5-bundle_*.jar"))
    if not bundles:
        pytest.fail("run `make test-clients`, which fetches Hudi")
    home = {"SPARK_HOME": str(SPARK / "pyspark"), "PYTHONPATH": str(SPARK)}
    sieve(
        tmp_path,
        *("thriftserver", "start", "--port", str(port), "--hudi", "--jars", str(bundles[-1])),
        *("--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.ui.enabled=false"),
        *("--conf", "spark.sieve.start.timeout=120s"),
        **home,
    )
    try:
        yield Project(tmp_path, port, "hudi")
    finally:
        sieve(tmp_path, "thriftserver", "stop", "--port", str(port), **home)


def test_a_merge_refreshes_the_index(project: Project) -> None:
    """After dbt runs that update and add rows, the index is ready, and queries read few slices."""
    project.dbt("run", "--select", "accounts")
    assert project.indexes() == {("accounts", "card_sieve"): ("ready", 1)}
    project.check("SELECT id, turn FROM shop.accounts WHERE card = 100 * 7919 % 100003", at_most=1)
    for turn in (1, 2):
        project.dbt("run", "--select", "accounts")
        counts = "SELECT count(*), count(DISTINCT id), max(turn) FROM shop.accounts"
        assert project.sql(counts) == [(4000 + 100 * turn,) * 2 + (turn,)]
        assert project.indexes() == {("accounts", "card_sieve"): ("ready", turn + 1)}
        # The run updated the first of these two account numbers, and added the second.
        for number in (3900 + 100 * turn - 99, 3999 + 100 * turn):
            card = f"({number} + {turn}) * 7919 % 100003"
            query = f"SELECT id, turn FROM shop.accounts WHERE card = {card}"
            assert (number, turn) in project.sql(query)
            project.check(query, at_most=3)
    assert project.changes("accounts", "card_sieve") == ["refreshed", "refreshed", "created"]
