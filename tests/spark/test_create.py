"""CREATE SIEVE INDEX, and the queries that read fewer files because of the index."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from spark_session import Lab


def test_a_point_query_reads_one_file_after_create(lab: Lab) -> None:
    """A query for a key in one of ten files reads only that file."""
    with lab.database("first"):
        lab.spark.range(0, 10000, 1, 10).selectExpr("id", "id % 7 AS r").write.saveAsTable("t")
        (row,) = lab.sql("CREATE SIEVE INDEX ON t (id) OPTIONS (error = 1)")
        assert row[:3] == ("id_sieve", 1, 10)
        lab.check("SELECT * FROM t WHERE id = 1234", at_most=2)
        lab.check("SELECT count(*) FROM t WHERE id BETWEEN 5 AND 7", at_most=2)
        lab.check("SELECT * FROM t WHERE id = -1", exactly=0)
        (scan,) = lab.explain("SELECT * FROM t WHERE id = 1234")
        assert scan["indexes"] == "id_sieve@1"
        assert scan["files_read"] <= 2 < scan["files_total"] == 10


def test_a_misspelt_statement_fails_in_our_words(lab: Lab) -> None:
    """A SIEVE statement with a syntax error raises Spark's ParseException, with a caret."""
    with pytest.raises(AnalysisException, match=r"(?s)SIEVE_SYNTAX_ERROR.*INDX.*\^"):
        lab.sql("CREATE SIEVE INDX ON t (id)")


def test_long_blanks_and_comments_before_a_statement_are_no_burden(lab: Lab) -> None:
    """The parser accepts statements that begin with thousands of blanks or with long comments."""
    assert lab.sql(" " * 20_000 + "SELECT 1") == [(1,)]
    assert lab.sql("-- generated\n" * 20_000 + "SELECT 2") == [(2,)]
    assert lab.sql("-- generated\n" * 20_000 + "SHOW SIEVE INDEXES IN default") == []


def test_long_and_deep_filters(lab: Lab) -> None:
    """A chain of hundreds of conditions is pruned; a filter nested too deep reads all files."""
    with lab.database("deep"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 80, 1, 8)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        chain = " OR ".join(f"(id = {k % 20} AND id != {-k})" for k in range(400))
        lab.check(f"SELECT * FROM t WHERE {chain}", exactly=2)
        nested = "id = 5"
        for k in range(105):
            nested = f"(id != {-k - 1} AND ({nested})) OR id = {-k - 1000}"
        lab.check(f"SELECT * FROM t WHERE {nested}", exactly=8)
