"""The aggregate function that collects the keys of a join, as ranges and as packed keys."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import pytest
from pyspark.sql import DataFrame
from spark_session import Lab


def distinct_keys(lab: Lab, frame: DataFrame) -> tuple[list[Any], bytes | None]:
    """The ranges and the packed keys that the aggregate function returns for the only column."""
    if lab.spark.version.startswith("3."):
        pytest.skip("a column is made of an expression in another way")
    from pyspark.sql.classic.column import Column

    jvm = lab.spark._jvm.org.apache.spark.sql
    column = frame._jdf.queryExecution().analyzed().output().apply(0)
    keys = jvm.sieve.plan.DistinctKeys(column, 0, 0).toAggregateExpression()
    found, packed = frame.agg(Column(jvm.classic.ExpressionUtils.column(keys))).collect()[0][0]
    return found, packed


@pytest.mark.parametrize("sizes", [(1_000_001, 10), (10, 1_000_001), (600_000, 600_000)])
def test_more_than_a_million_keys_become_ranges(lab: Lab, sizes: tuple[int, int]) -> None:
    """If one task or all tasks together have too many keys, the result contains no packed keys."""
    one, other = sizes
    first = lab.spark.range(0, one, 1, 1)
    frame = first.union(lab.spark.range(2_000_000, 2_000_000 + other, 1, 1)).toDF("k")
    found, packed = distinct_keys(lab, frame)
    assert packed is None
    assert (found[0], found[-1]) == (0, 2_000_000 + other - 1)


@pytest.mark.parametrize(
    ("key", "rows", "least"),
    [
        ("xxhash64(id)", 60_000, 9_000),
        ("CAST(xxhash64(id) AS DOUBLE) / 7", 60_000, 9_000),
        ("repeat(md5(CAST(id AS STRING)), 40)", 2_000, 100),
    ],
)
def test_fetched_ranges_cover_all_keys(lab: Lab, key: str, rows: int, least: int) -> None:
    """Fetched ranges cover all keys, even if keys are many, long, or spread over several tasks."""
    frame = lab.spark.range(0, rows, 1, 3).selectExpr(f"{key} AS k")
    found, packed = distinct_keys(lab, frame)
    firsts, lasts = found[::2], found[1::2]
    assert least <= len(firsts) <= 10_000
    assert found == sorted(found)
    assert sum(len(value) for value in lasts if isinstance(value, str)) <= 500_000
    values = [row.k for row in frame.collect()]
    assert all(lasts[bisect_right(firsts, value) - 1] >= value >= firsts[0] for value in values)
    assert (packed is None) == isinstance(values[0], float)
    if isinstance(values[0], int):
        assert packed == b"".join(
            value.to_bytes(8, "little", signed=True) for value in sorted(values)
        )
