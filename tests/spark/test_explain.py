"""Tests EXPLAIN SIEVE for subqueries, collated joins, and statements other than queries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException
from spark_session import Lab

_INNER = "SELECT /*+ BROADCAST(f) */ f.k FROM big JOIN fact f ON big.c = f.k"
KEYS = "{} IN (keys of spark_catalog.explained.dim{} at run time)"


@pytest.fixture(scope="module")
def star(lab: Lab) -> Iterator[Lab]:
    """An indexed table of eight files, and a table with one row, whose key is in one file."""
    with lab.database("explained"):
        lab.sql(
            "CREATE TABLE fact USING parquet AS SELECT /*+ REPARTITION_BY_RANGE(8, id) */ id, "
            "concat('key', id) AS k FROM range(80)"
        )
        lab.sql("CREATE TABLE dim USING parquet AS SELECT /*+ COALESCE(1) */ 42L AS n, 'x' AS c")
        lab.sql("CREATE SIEVE INDEX ON fact (id)")
        yield lab


def at_run_time(lab: Lab) -> tuple[int, int]:
    """How many scans have got values at run time, and how many files all scans have skipped."""
    rows = {name: value for name, _, value in lab.sql("SELECT * FROM sieve_status()")}
    return int(rows["scans_at_run_time"]), int(rows["files_skipped"])


@pytest.mark.parametrize("adaptive", ["true", pytest.param("false", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("condition", "predicate"),
    [
        ("id IN (SELECT n FROM dim WHERE c = 'x')", KEYS.format("id", "")),
        ("id = (SELECT max(n) FROM dim)", "(id = (subquery at run time))"),
        ("id = 3 OR id = (SELECT max(n) FROM dim)", "(id = (subquery at run time))"),
    ],
)
def test_explain_names_the_index_for_subquery_results(
    star: Lab, condition: str, predicate: str, adaptive: str
) -> None:
    """EXPLAIN names the index that will look up a subquery's result, and shows no obstacle."""
    query = f"SELECT k FROM fact WHERE {condition}"
    with star.setting("spark.sql.adaptive.enabled", adaptive):
        fact = star.explain(query)[0]
        scans, files = at_run_time(star)
        star.check(query, at_most=3)
        assert at_run_time(star)[0] == scans + 1
        assert at_run_time(star)[1] >= files + 6
    assert (fact["indexes"], fact["reasons"]) == ("id_sieve@1", None)
    assert predicate in fact["predicate"]


def test_explain_promises_no_pruning_without_an_index(star: Lab) -> None:
    """If the column has no index, EXPLAIN announces no run-time pruning, and shows the reason."""
    fact = star.explain("SELECT id FROM fact WHERE k = (SELECT max(c) FROM dim)")[0]
    assert (fact["indexes"], fact["reasons"]) == (None, "no-predicate: 8")
    assert "at run time" not in (fact["predicate"] or "")


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_join_by_a_collated_key_has_no_broadcast(star: Lab, adaptive: str) -> None:
    """Spark broadcasts no side of a join by a collated key.

    Under default settings, a job for the keys of a collated join would cost too much.
    """
    if star.spark.version.startswith("3."):
        pytest.skip("Spark 3.5 has no collations")
    query = (
        "SELECT f.id FROM fact f JOIN (SELECT n, concat('KEY', n) COLLATE UTF8_LCASE AS folded "
        "FROM dim WHERE c = 'x') d ON f.k COLLATE UTF8_LCASE = d.folded AND f.id = d.n"
    )
    with star.setting("spark.sql.adaptive.enabled", adaptive):
        fact = star.explain(query)[0]
        assert fact["reasons"] == "join-too-costly: 8"
        assert "at run time" not in fact["predicate"]
        before = at_run_time(star)
        assert star.check(query, exactly=9).rows.total() == 1
        assert at_run_time(star) == before
        with star.setting("spark.sieve.join.pruning", "always"):
            fact = star.explain(query)[0]
            assert KEYS.format("id", ", read for them,") in fact["predicate"]
            assert fact["reasons"] is None
            assert star.check(query, at_most=3).rows.total() == 1


@pytest.mark.long
@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT f.k FROM big JOIN fact f ON big.n = f.id WHERE big.c = 'c3'",
        "SELECT n FROM big WHERE n IN (SELECT id FROM fact) AND c = 'c3'",
        # The lower join broadcasts one side, so this side cannot get keys from the upper join.
        f"{_INNER} JOIN dim d ON f.id = d.n",
    ],
)
def test_a_side_that_spark_broadcasts_gets_no_keys(star: Lab, query: str, adaptive: str) -> None:
    """A join side that Spark broadcasts gets no keys; both EXPLAIN and the run show the reason."""

    def refused() -> int:
        rows = star.sql("SELECT * FROM sieve_status()")
        return sum(int(value) for _, reason, value in rows if reason == "join-broadcast")

    star.sql(
        "CREATE OR REPLACE TEMP VIEW big AS SELECT /*+ REPARTITION(2) */ id AS n, "
        "concat('c', id) AS c FROM range(1000000)"
    )
    with star.setting("spark.sql.adaptive.enabled", adaptive):
        (fact,) = (row for row in star.explain(query) if row["table"].endswith(".fact"))
        assert "join-broadcast: 8" in fact["reasons"]
        assert "at run time" not in (fact["predicate"] or "")
        before = refused()
        star.sql(query)
        assert refused() > before


READS = {
    "CREATE TABLE made USING parquet AS SELECT k FROM fact WHERE id < 3": 1,
    "INSERT INTO dim SELECT id, k FROM fact WHERE id < 3": 1,
    "WITH few AS (SELECT * FROM fact WHERE id < 3) INSERT INTO dim SELECT id, k FROM few": 1,
    "INSERT OVERWRITE dim SELECT id, k FROM fact WHERE id < 3": 1,
    "FROM fact INSERT INTO dim SELECT id, k WHERE id < 3 "
    "INSERT INTO dim SELECT id, k WHERE id > 75": 2,
}


@pytest.mark.parametrize("statement", READS)
def test_explain_shows_the_scans_of_a_query_in_a_statement(star: Lab, statement: str) -> None:
    """If a statement contains a query, EXPLAIN shows the query's scans, and runs nothing."""
    rows = star.explain(statement)
    assert [(row["indexes"], row["files_read"]) for row in rows] == [("id_sieve@1", 1)] * len(rows)
    assert len(rows) == READS[statement]
    assert star.sql("SELECT count(*) FROM dim") == [(1,)]
    assert ("made",) not in {row[1:2] for row in star.sql("SHOW TABLES")}


@pytest.mark.parametrize(
    "statement",
    [
        "REFRESH SIEVE INDEX ON fact",
        "DROP TABLE fact",
        "SHOW TABLES",
        "EXPLAIN SELECT * FROM fact",
        "TRUNCATE TABLE fact",
        "EXECUTE IMMEDIATE 'INSERT INTO dim SELECT id, k FROM fact'",
        "BEGIN INSERT INTO dim SELECT id, k FROM fact; END",
    ],
)
def test_explain_refuses_an_unsupported_statement(star: Lab, statement: str) -> None:
    """EXPLAIN does not run a statement that it cannot explain; the error names the statement."""
    with pytest.raises(PySparkException, match=r"SIEVE_UNSUPPORTED_STATEMENT|PARSE_SYNTAX_ERROR"):
        star.explain(statement)
    assert star.sql("SELECT count(*) FROM dim") == [(1,)]
    assert star.check("SELECT * FROM fact WHERE id = 7", exactly=1).rows.total() == 1


@pytest.mark.parametrize("statement", ["DELETE FROM fact WHERE id = 3", "UPDATE fact SET k = 'x'"])
def test_explain_raises_the_error_of_the_statement(star: Lab, statement: str) -> None:
    """For UPDATE on a Parquet table, EXPLAIN SIEVE raises the same error as the UPDATE itself."""
    with pytest.raises(PySparkException) as run:
        star.sql(statement)
    with pytest.raises(PySparkException) as explained:
        star.explain(statement)
    assert str(run.value).split("]")[0].lstrip("[") in str(explained.value)
