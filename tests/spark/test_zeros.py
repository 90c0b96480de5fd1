"""In comparisons and IN lists, whether short or long, -0.0 and 0.0 are the same value."""

from __future__ import annotations

import pytest
from spark_session import Lab

MANY = ", ".join(f"{n}.0" for n in range(1, 13))


@pytest.mark.long
@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
def test_a_list_may_have_either_zero(lab: Lab, kind: str) -> None:
    """Spark turns a long IN list into a set. Lists with 0.0 or -0.0 find the same rows."""
    with lab.database("zeros"):
        lab.sql(f"CREATE TABLE t (id INT, x {kind}) USING parquet")
        for row in ("1, -0.0D", "2, 0.0D", "3, 5.0D", "4, 77.0D", "5, NULL"):
            number, value = row.split(", ")
            lab.sql(f"INSERT INTO t SELECT {number}, CAST({value} AS {kind})")
        lab.sql("CREATE SIEVE INDEX ON t (x) OPTIONS (error = 1)")
        for zero in ("0.0", "-0.0"):
            for values in (zero, f"{zero}, {MANY}"):
                typed = ", ".join(f"CAST('{value}' AS {kind})" for value in values.split(", "))
                lab.check(f"SELECT id FROM t WHERE x IN ({typed})", at_most=3)
                lab.check(f"SELECT id FROM t WHERE x NOT IN ({typed})")
