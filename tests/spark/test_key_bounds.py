"""Tests queries that use the least and greatest key of each location: top-k, MIN, MAX and ranges.

With an index of any shape, ORDER BY with LIMIT reads only files that can contain a row of the
result. A coarse index locates most keys only roughly, but stores the least and greatest key
exactly.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from spark_session import Answer, Lab

FILES, EACH, WANTED = 20, 200, 5
ROWS = FILES * EACH
TYPES = {
    "i": "CAST({} AS INT)",
    "l": "{} * 1000003 - 5000000",
    "x": "{} / 7D",
    "m": "CAST({} AS DECIMAL(18, 2))",
    "w": "CAST({} AS DECIMAL(30, 2)) * 1000000007",
    "d": "date_add(DATE '2000-01-01', CAST({} AS INT))",
    "t": "timestamp_millis({} * 1000)",
    "s": "concat('order-', lpad({}, 12, '0'))",
}
SHAPES = ("intervals", "sieve", "map")
LONG = pytest.mark.long


def scattered(id_: int) -> int:
    """The value in the row with the given id. All values together are a permutation of the ids."""
    return id_ * 7919 % ROWS


def holders(first: int, *, descending: bool = False) -> int:
    """How many files contain one of the ``first`` least (or, ``descending``, greatest) values."""
    rows = sorted(range(ROWS), key=scattered, reverse=descending)[:first]
    return len({row // EACH for row in rows})


@pytest.fixture(
    scope="module",
    params=[pytest.param(each, marks=() if each == "map" else LONG) for each in SHAPES],
)
def scattered_table(lab: Lab, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A table with permuted numbers in one column per type, and with coarse indexes."""
    with lab.database("bounded"):
        columns = ", ".join(
            f"{text.format(f'(id * 7919 % {ROWS})')} AS {name}" for name, text in TYPES.items()
        )
        lab.sql(
            f"CREATE TABLE t USING parquet AS SELECT {columns}, id AS k, "
            "IF(id % 400 < 150, NULL, id * 7919 % 4000) AS n, id * 7919 % 4000 DIV 1000 AS tied "
            f"FROM range(0, {ROWS}, 1, {FILES})"
        )
        # An index of the shape `sieve` stores every key, so it has no option `budget`.
        budget = "" if request.param == "sieve" else ", budget = '1%'"
        options = f"OPTIONS (shape = '{request.param}'{budget})"
        lab.sql(f"CREATE SIEVE INDEX ON t ({', '.join(TYPES)}, n, tied) {options}")
        yield lab


_KNOWN: dict[str, Answer] = {}
"""Caches the answers without the index. The tests of all shapes share the cached answers."""


def check(lab: Lab, query: str, needed: int) -> None:
    """Asserts that rows equal Spark's, and that a query reads at most 1.2 * `needed` + 1 files."""
    with lab.setting("spark.sieve.audit.sample", "1.0"):
        lab.check(query, at_most=int(1.2 * needed + 1), known=_KNOWN)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("column", TYPES)
def test_first_rows_of_scattered_values(scattered_table: Lab, column: str) -> None:
    """ORDER BY with LIMIT on scattered values reads few files, both ascending and descending."""
    order = f"SELECT {column} FROM t ORDER BY {column}"
    check(scattered_table, f"{order} LIMIT {WANTED}", holders(WANTED))
    check(scattered_table, f"{order} DESC LIMIT {WANTED}", holders(WANTED, descending=True))
    scattered_table.check(f"SELECT min({column}) FROM t", exactly=1, known=_KNOWN)
    scattered_table.check(f"SELECT max({column}) FROM t", exactly=1, known=_KNOWN)


@pytest.mark.parametrize(("nulls", "reads"), [("FIRST", 10), ("LAST", None)])
@pytest.mark.parametrize("direction", ["ASC", "DESC"])
def test_bounds_do_not_include_null(
    scattered_table: Lab, direction: str, nulls: str, reads: int | None
) -> None:
    """Half of the files contain NULL, which is neither a least nor a greatest key.

    With NULLS FIRST, ORDER BY reads the files that contain NULL. With NULLS LAST, ORDER BY selects
    files by their least and greatest keys.
    """
    values = [(scattered(k), k // EACH) for k in range(ROWS) if k % 400 >= 150]
    ends = sorted(values, reverse=direction == "DESC")[:WANTED]
    query = f"SELECT n FROM t ORDER BY n {direction} NULLS {nulls} LIMIT {WANTED}"
    if reads is None:
        check(scattered_table, query, len({file for _, file in ends}))
        check(scattered_table, f"SELECT max(n), min(n) FROM t /* {direction} */", 2)
    else:
        scattered_table.check(query, exactly=reads, known=_KNOWN)


def test_ties_are_read(scattered_table: Lab) -> None:
    """If every file contains the least value, MIN reads one file, but ORDER BY reads all files."""
    query = "SELECT tied, k FROM t ORDER BY tied, k LIMIT 3"
    scattered_table.check(query, exactly=FILES, known=_KNOWN)
    scattered_table.check("SELECT min(tied) FROM t", exactly=1, known=_KNOWN)
    scattered_table.check("SELECT max(tied) FROM t", exactly=1, known=_KNOWN)


def test_a_filter_on_the_column_and_on_another(scattered_table: Lab) -> None:
    """If a filter is on an indexed column, only rows that pass the filter bound the result.

    If a filter's column has no index, a query for MIN reads all files.
    """
    scattered_table.check("SELECT min(i) FROM t WHERE k % 2 = 1", exactly=FILES, known=_KNOWN)
    scattered_table.check("SELECT l FROM t WHERE i < 2 ORDER BY l LIMIT 1", at_most=2, known=_KNOWN)


def test_texts_with_one_code_are_not_taken_as_equal(lab: Lab) -> None:
    """Different long texts can share a code, so ORDER BY with LIMIT on texts reads all files."""
    with lab.database("long_texts"):
        lab.sql(
            "CREATE TABLE t USING parquet AS SELECT IF(id % 50 = 0, "
            "concat(repeat('!', 200), 200 - id), sha2(string(id), 256)) AS s "
            "FROM range(0, 200, 1, 4)"
        )
        for shape in SHAPES:
            lab.sql(f"CREATE SIEVE INDEX ON t (s) OPTIONS (shape = '{shape}')")
            lab.check("SELECT min(s), max(s) FROM t", exactly=4)
            lab.check("SELECT s FROM t ORDER BY s LIMIT 2", exactly=4)
            lab.sql("DROP SIEVE INDEX ON t (s)")


def test_a_range_reads_no_more_than_minimum_and_maximum(lab: Lab) -> None:
    """Even with a map (an index of hashes), a range reads only files whose bounds allow a match."""
    with lab.database("in_order"):
        lab.sql(
            "CREATE TABLE t USING parquet AS SELECT id * 3 + id % 3 AS k FROM "
            f"range(0, {ROWS}, 1, {FILES})"
        )
        lab.sql("CREATE SIEVE INDEX ON t (k) OPTIONS (shape = 'map', budget = '1%')")
        for k in range(1, ROWS, ROWS // 7):
            lo, hi = k * 3, (k + EACH // 4) * 3
            files = hi // 3 // EACH - lo // 3 // EACH + 1
            lab.check(f"SELECT k FROM t WHERE k BETWEEN {lo} AND {hi}", at_most=files)
        # No key lies between the greatest key of a file and the least key of the next file.
        end = EACH * 3 - 3 + (EACH - 1) % 3
        lab.check(f"SELECT k FROM t WHERE k BETWEEN {end} AND {end}", exactly=1)
        lab.check(f"SELECT k FROM t WHERE k > {end} AND k < {EACH * 3 + EACH % 3}", exactly=0)


@pytest.mark.parametrize(
    "shape", [pytest.param(each, marks=() if each == "map" else LONG) for each in SHAPES]
)
def test_refresh_adds_bounds(lab: Lab, shape: str) -> None:
    """REFRESH adds new files' least and greatest keys, and forgets the keys of removed files."""
    with lab.database("grown"):
        lab.sql(
            "CREATE TABLE t USING parquet PARTITIONED BY (p) AS SELECT id * 7919 % 4000 AS k, "
            f"id DIV 1000 AS p FROM range(0, 4000, 1, {FILES})"
        )
        lab.sql(f"CREATE SIEVE INDEX ON t (k) OPTIONS (shape = '{shape}')")
        grouped = "SELECT p, min(k), max(k) FROM t GROUP BY p"
        lab.check(grouped, at_most=2 * 4)
        lab.sql("INSERT INTO t SELECT k - 4000, p FROM t WHERE k < 3 AND p < 3")
        first, last = "SELECT min(k) FROM t", "SELECT k FROM t ORDER BY k DESC LIMIT 1"
        lab.check(last)
        lab.sql("REFRESH SIEVE INDEX ON t")
        lab.check(first, exactly=1)
        lab.check(last, exactly=1)
        lab.check(grouped, at_most=2 * 4)
        lab.sql("INSERT OVERWRITE t PARTITION (p = 0) VALUES (CAST(7 AS BIGINT))")
        lab.sql("REFRESH SIEVE INDEX ON t")
        lab.check(first, at_most=2)
        lab.check(last, exactly=1)
        lab.check("SELECT k FROM t WHERE p = 0 ORDER BY k LIMIT 3", exactly=1)
