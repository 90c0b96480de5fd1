"""Local time that runs twice through an hour: both passes are found."""

from __future__ import annotations

import pytest
from lab import Lab

TWICE = "TIMESTAMP_NTZ '2024-11-03 00:20:00'"

QUERIES = [
    f"CAST(ts AS TIMESTAMP_NTZ) = {TWICE}",
    f"CAST(ts AS TIMESTAMP_NTZ) > {TWICE}",
    f"CAST(ts AS TIMESTAMP_NTZ) <= {TWICE}",
    "CAST(CAST(ts AS TIMESTAMP_NTZ) AS DATE) = DATE '2024-11-03'",
    "date_trunc('DAY', ts) = TIMESTAMP '2024-11-03 00:00:00'",
    "date_trunc('HOUR', ts) >= TIMESTAMP '2024-11-03 00:00:00'",
]


@pytest.mark.parametrize("rule", ["", "org.apache.spark.sql.catalyst.optimizer.UnwrapCast"])
def test_an_hour_that_comes_twice_is_found_twice(lab: Lab, rule: str) -> None:
    """Where clocks go back at one, functions of a time fall once, and no row is lost for it.

    Spark 4 rewrites the comparison of a cast into one of the column, and so finds one pass only:
    without that rule the comparison reaches the index as it was typed.
    """
    excluded = f"{rule}InBinaryComparison" if rule else "none"
    with (
        lab.database("clocks"),
        lab.setting("spark.sql.session.timeZone", "America/Havana"),
        lab.setting("spark.sql.optimizer.excludedRules", excluded),
    ):
        lab.sql(
            "CREATE TABLE t USING parquet AS SELECT id, "
            "timestamp_micros(1730548800000000 + id * 1200000000) AS ts FROM range(0, 240, 1, 40)"
        )
        lab.sql("CREATE SIEVE INDEX ON t (ts) OPTIONS (error = 1)")
        for query in QUERIES:
            lab.check(f"SELECT * FROM t WHERE {query}")
        found = lab.check(f"SELECT id FROM t WHERE {QUERIES[0]}", at_most=6).rows
        if rule:
            assert found == {"(49,)": 1, "(52,)": 1}
