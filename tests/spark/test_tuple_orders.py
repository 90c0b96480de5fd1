"""Queries can name the columns of an indexed tuple in any order, even if all types are equal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import pytest
from spark_session import Lab


@pytest.fixture(scope="module")
def alike(lab: Lab) -> Iterator[Lab]:
    """A table of four columns of one type, with an index on four columns and an index on three."""
    with lab.database("alike"):
        lab.sql(
            "CREATE TABLE t USING parquet AS SELECT int(id) a, int(id * 7 % 100) b, "
            "int(id * 13 % 100) c, int(id * 31 % 100) d FROM range(0, 100, 1, 4)"
        )
        lab.sql("CREATE TABLE k USING parquet AS SELECT /*+ COALESCE(1) */ * FROM t WHERE a = 57")
        lab.sql("CREATE SIEVE INDEX three ON t ((b, a, c)) OPTIONS (shape = 'map')")
        lab.sql("CREATE SIEVE INDEX four ON t ((c, d, a, b)) OPTIONS (shape = 'map')")
        with lab.settings({"spark.sieve.join.pruning": "always", "spark.sieve.audit.sample": "1"}):
            yield lab


@pytest.mark.parametrize("columns", ["abc", pytest.param("abcd", marks=pytest.mark.long)])
def test_columns_of_one_type_in_any_order(alike: Lab, columns: str) -> None:
    """Lists, subqueries and joins can name the columns of a tuple in any order, and find the row.

    If all columns have one type, only the order distinguishes the values of a row.
    """
    ((*row,),) = alike.sql(f"SELECT {', '.join(columns)} FROM k")
    value = dict(zip(columns, row, strict=True))
    # The test uses all six orders of three columns, and five orders of four columns.
    for order in list(permutations(columns))[:: 1 if len(columns) == 3 else 5]:
        names = ", ".join(order)
        list_of = (
            f"({', '.join(str(value[name]) for name in order)}), ({', '.join(['-1'] * len(order))})"
        )
        found = alike.check(f"SELECT * FROM t WHERE ({names}) IN ({list_of})", exactly=1)
        assert found.rows.total() == 1, names
    for order in list(permutations(columns))[:: len(columns)]:
        names = ", ".join(order)
        found = alike.check(
            f"SELECT * FROM t WHERE ({names}) IN (SELECT {names} FROM k)", at_most=3
        )
        assert found.rows.total() == 1, names
        on = " AND ".join(f"k.{name} = t.{name}" for name in order)
        found = alike.check(f"SELECT t.* FROM t JOIN k ON {on}", at_most=3)
        assert found.rows.total() == 1, on
