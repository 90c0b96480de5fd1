"""The metrics that Spark's web UI shows for a scan of an indexed table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from spark_session import Lab, shown_scans


@pytest.fixture(scope="module")
def table(lab: Lab) -> Iterator[str]:
    """Ten files in the order of ``k``, with an index on ``k``."""
    with lab.database("shown"):
        lab.spark.range(0, 200, 1, 10).selectExpr("id AS k", "id % 7 AS r").write.saveAsTable("t")
        lab.sql("CREATE SIEVE INDEX ON t (k)")
        yield "t"


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_scan_shows_the_files_it_skips(lab: Lab, table: str, adaptive: str) -> None:
    """The web UI shows how many files a scan reads and skips, and how long the index took."""
    query = f"SELECT r, count(*) FROM {table} WHERE k BETWEEN 25 AND 45 GROUP BY r"
    with lab.setting("spark.sql.adaptive.enabled", adaptive):
        (scan,) = shown_scans(lab, query)
        lab.check(query, exactly=2)
    assert (scan["number of files read"], scan["number of files skipped"]) == ("2", "8")
    assert scan["number of ranges skipped"] == "8"
    assert scan["bytes skipped"].endswith("KiB")
    assert scan["prune time"].endswith(("ms", " s"))


def test_each_scan_has_its_own_metrics(lab: Lab, table: str) -> None:
    """If a query scans one table twice, each scan has its own metrics."""
    query = f"SELECT * FROM {table} a JOIN {table} b ON a.r = b.r WHERE a.k = 5 AND b.k > 175"
    shown = sorted(
        (scan["number of files read"], scan["number of files skipped"])
        for scan in shown_scans(lab, query)
    )
    assert shown == [("1", "9"), ("2", "8")]


def test_scan_without_an_index_has_no_metric_of_sieve(lab: Lab, table: str) -> None:
    """A scan of a table without an index has no metric of Sieve."""
    with lab.setting("spark.sieve.enabled", "false"):
        (scan,) = shown_scans(lab, f"SELECT * FROM {table} WHERE k = 5")
    assert scan["number of files read"] == "10"
    assert (
        not {"number of files skipped", "number of ranges skipped", "bytes skipped", "prune time"}
        & scan.keys()
    )
