"""A query of a one-file table skips the file if no row matches, for nearly all predicates.

The predicates come from Delta's own tests of data skipping (``DataSkippingDeltaTests``).
"""

from __future__ import annotations

import pytest
from delta_tables import NO_STATISTICS, given
from spark_session import INTERPRETED, Lab

pytestmark = pytest.mark.delta

TABLE = """
SELECT /*+ COALESCE(1) */ * FROM VALUES
  (10, 10, 'apple', '2017-09-01', CAST(NULL AS INT), CAST(NULL AS INT), TRUE,
   named_struct('b', 1, 'c', named_struct('d', 5, 'e', 'apple')), repeat('A', 1000)),
  (20, 20, 'microsoft', '2017-08-31', NULL, 1, TRUE,
   named_struct('b', 1, 'c', named_struct('d', 5, 'e', 'microsoft')), 'B')
AS s(a, b, word, day, none, some, flag, deep, long)
"""
INDEXED = "a, b, word, day, none, some, flag, deep.b, deep.c.d, deep.c.e, long"

READ = (
    "TRUE", "a = 10", "a <=> 10", "a >= 20", "a <= 10", "a < 11", "a > 19", "10 = a", "10 <=> a",
    "20 <= a", "NOT a <=> 10", "NOT a = 20", "a <> 20", "NOT a < 0", "a > 0 AND a < 30",
    "deep.b = 1", "deep.b >= 0", "deep.c.d <= 5", "deep.c.e LIKE 'mic%'", "deep.c.e LIKE '%'",
    "word LIKE 'ap%'", "word LIKE 'm%'", "word LIKE '%'", "long LIKE 'A%'", "long > 'AB'",
    "long = repeat('A', 1000)", "long < 'AB'",
    "a > 0 AND day = '2017-09-01'", "a = 20 AND day >= '2017-08-30'",
    "a >= 20 AND day LIKE '2017-08-%'", "a % 100 < 15 AND b % 100 > 5", "a > 15 OR a < -3",
    "a < 0 OR day = '2017-09-01'", "a >= 20 OR day LIKE '2016-08-%'", "a % 100 < 15 OR b > 20",
    "NOT (a % 100 >= 15 AND b % 100 <= 20)", "NOT (a >= 15 AND b <= 20)", "NOT (a < 1 OR b > 20)",
    "none IS NULL", "none <=> NULL", "NOT none <=> 1", "(none > 1) IS NULL",
    "(none > 1 AND none > 0) IS NULL", "some IS NULL", "some IS NOT NULL", "some <=> NULL",
    "NOT some <=> NULL", "some = 1", "NOT some <=> 1", "(some > 0) IS NULL",
    "NOT ((some > 0) IS NULL)", "(some > 1 OR some < 0) IS NULL", "flag", "flag = TRUE",
    "flag > FALSE", "a IN (1, 10)", "a + 1 = 11",
)  # fmt: skip
SKIPPED = (
    "a = 15", "a <=> 15", "15 = a", "a > 20", "a < 10", "a >= 21", "a <= 9", "20 < a", "10 > a",
    "a > 10 AND a < 20", "NOT a > 0", "NOT (a = 10 OR a > 10)", "a < 0 AND a > -2",
    "deep.b = 2", "deep.b > 1", "deep.c.d < 5", "deep.c.e LIKE 'xyz%'", "deep.c.e = 'cherry'",
    "word LIKE 'xyz%'", "word LIKE 'b%'", "long < 'A'", "long > 'CD'",
    "a > 0 AND day LIKE '2016-%'", "a < 10 AND b % 100 > 20", "a % 100 < 10 AND b > 20",
    "a > 20 OR a < -2", "a < 0 OR day LIKE '2016-%'", "a < 10 OR b > 20",
    "NOT (a >= 10 AND b <= 20)", "NOT (a >= 10 OR b <= 20)", "NOT (a % 100 >= 1 OR b <= 20)",
    "NOT (a >= 10 OR b % 100 <= 20)", "none IS NOT NULL", "NOT none <=> NULL", "none = 1",
    "NOT none = 1", "none > 1", "none <> 1", "none <=> 1", "some > 1", "some <> 1", "NOT some = 1",
    "(a > 15) IS NULL", "NOT flag", "flag = FALSE", "a IN (1, 15)", "a = NULL",
)  # fmt: skip

IN_VAIN = ("long = repeat('A', 999)", "a + 1 = 12")
"""Predicates that skip nothing.

An index compares only the first bytes of strings, and cannot solve `a + 1 = 12` for `a`.
"""


@pytest.mark.parametrize("statistics", [False, True], ids=["index", "both"])
def test_predicates_of_all_forms(lab: Lab, statistics: bool) -> None:
    """If Delta's statistics skip the file for a predicate, the index also skips the file."""
    properties = {} if statistics else NO_STATISTICS
    with lab.database("skipping"), lab.settings(INTERPRETED):
        lab.sql(f"CREATE TABLE s USING delta {given(properties)} AS {TABLE}")
        lab.sql(f"CREATE SIEVE INDEX ON s ({INDEXED})")
        wrong = []
        for predicates, files, has_rows in (
            (READ, 1, True),
            (SKIPPED, 0, False),
            (IN_VAIN, 1, False),
        ):
            for predicate in predicates:
                found = lab.check(f"SELECT * FROM s WHERE {predicate}")
                assert bool(found.rows) == has_rows, predicate
                # With Delta's statistics and the index, a query may read fewer files than with the
                # index alone.
                if found.files > files if statistics else found.files != files:
                    wrong.append(f"{found.files} files: {predicate}")
        assert not wrong
