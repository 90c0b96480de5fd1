"""Scans of tables with buckets.

Spark selects the files of some buckets, and an index skips further files of these buckets.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from spark_session import RANGES, Lab, scans

BUCKETS = 4


@pytest.fixture(scope="module")
def bucketed(lab: Lab) -> Iterator[Lab]:
    """A table with 4 buckets of 3 files each; in a bucket, ``k`` ascends from file to file.

    A second table has the same buckets as `t`. Each file of both tables has several row groups.
    """
    with lab.database("bucketed"), lab.settings(RANGES):
        rows = "SELECT id % 40 AS b, id AS k, id % 7 AS v FROM range(0, 1200, 1, 3)"
        for table in ("t", "other"):
            lab.sql(
                f"CREATE TABLE {table} USING parquet CLUSTERED BY (b) INTO {BUCKETS} BUCKETS "
                f"AS {rows}"
            )
        lab.sql("CREATE SIEVE INDEX ON t (k) OPTIONS (granularity = 'range', shape = 'map')")
        yield lab


def _buckets_of(lab: Lab, query: str) -> tuple[bool, bool]:
    """Returns whether a scan prunes buckets, and whether each task of the scan reads one bucket."""
    frame = lab.spark.sql(query)
    frame.collect()
    (scan,) = scans(frame._jdf.queryExecution().executedPlan())
    return scan.optionalBucketSet().nonEmpty(), scan.bucketedScan()


@pytest.mark.parametrize(
    ("condition", "files", "picks"),
    [
        ("k = 77", 1, False),
        ("b = 37 AND k IN (77, 477, 79)", 3, True),
        ("b IN (37, 38) AND k < 400", BUCKETS, True),
        ("b = 37", 3 * BUCKETS, True),
    ],
)
@pytest.mark.parametrize("automatic", ["true", "false"])
def test_index_skips_files_of_buckets(
    bucketed: Lab, condition: str, files: int, picks: bool, automatic: str
) -> None:
    """An index skips files of selected buckets, with and without Spark's automatic bucketed scans.

    The expected number also includes files that the index keeps, but that Spark prunes by bucket.
    """
    query = f"SELECT b, v FROM t WHERE {condition}"
    with bucketed.setting("spark.sql.sources.bucketing.autoBucketedScan.enabled", automatic):
        bucketed.check(query, at_most=files)
        assert _buckets_of(bucketed, query) == (picks, automatic == "false")


@pytest.mark.parametrize("of_buckets", ["true", "false"])
def test_a_join_of_buckets_needs_no_exchange(bucketed: Lab, of_buckets: str) -> None:
    """If two tables have equal buckets, a join needs no exchange, even with an index."""
    query = (
        "SELECT t.b, t.k, o.v FROM t JOIN other o ON t.b = o.b "
        "WHERE t.k BETWEEN 400 AND 430 AND o.k < 30"
    )
    own = {
        "spark.sql.sources.bucketing.enabled": of_buckets,
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    }
    with bucketed.settings(own):
        bucketed.check(query)
        plan = str(bucketed.spark.sql(query)._jdf.queryExecution().executedPlan())
        assert ("hashpartitioning(b" in plan) == (of_buckets == "false")


def test_first_rows_of_a_bucket(bucketed: Lab) -> None:
    """For ORDER BY with LIMIT on some buckets, rows of other buckets do not bound the result."""
    for direction in ("", " DESC"):
        bucketed.check(f"SELECT k, v FROM t WHERE b = 37 ORDER BY k{direction} LIMIT 3")
        bucketed.check(f"SELECT k, v FROM t ORDER BY k{direction} LIMIT 3", at_most=BUCKETS)
    bucketed.check("SELECT min(k), max(k) FROM t WHERE b = 5")
