"""CREATE SIEVE INDEX, and the queries that then read fewer files."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from spark_session import Lab, together


def test_a_point_query_reads_one_file_after_create(lab: Lab) -> None:
    """A query for a key that is in one of ten files reads one file."""
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


def test_misspelt_statement_raises_a_parse_exception(lab: Lab) -> None:
    """A misspelt SIEVE statement raises Spark's ParseException with a caret."""
    with pytest.raises(AnalysisException, match=r"(?s)SIEVE_SYNTAX_ERROR.*INDX.*\^"):
        lab.sql("CREATE SIEVE INDX ON t (id)")


def test_statement_after_long_blanks_or_comments_parses(lab: Lab) -> None:
    """The parser accepts a statement after thousands of blanks or a long comment."""
    assert lab.sql(" " * 20_000 + "SELECT 1") == [(1,)]
    assert lab.sql("-- generated\n" * 20_000 + "SELECT 2") == [(2,)]
    assert lab.sql("-- generated\n" * 20_000 + "SHOW SIEVE INDEXES IN default") == []


@pytest.mark.long
def test_long_and_deep_filters(lab: Lab) -> None:
    """An index serves a filter of hundreds of conditions, but no filter of a hundred levels."""
    with lab.database("deep"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 80, 1, 8)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        chain = " OR ".join(f"(id = {k % 20} AND id != {-k})" for k in range(400))
        lab.check(f"SELECT * FROM t WHERE {chain}", exactly=2)
        nested = "id = 5"
        for k in range(105):
            nested = f"(id != {-k - 1} AND ({nested})) OR id = {-k - 1000}"
        lab.check(f"SELECT * FROM t WHERE {nested}", exactly=8)


def test_bounds_of_a_file_cover_the_keys_of_all_tasks(lab: Lab) -> None:
    """If several build tasks read one file, the file's bounds cover the keys of all these tasks."""
    # With fewer rows, the driver would build the index without tasks.
    rows, files = 3000, 3
    with lab.database("tasks"), lab.setting("spark.sql.files.maxPartitionBytes", "60000"):
        lab.sql("CREATE TABLE t (k BIGINT, r BIGINT, s STRING, m BIGINT, pad STRING) USING csv")
        for number in range(files):
            k = f"id * {files} + {number}"
            lab.sql(
                f"INSERT INTO t SELECT /*+ COALESCE(1) */ {k}, -({k}), lpad({k}, 9, '0'), "
                f"({k}) * 7919 % {files * rows}, md5(CAST(id AS STRING)) FROM range({rows})"
            )
        lab.sql("CREATE SIEVE INDEX ON t (k, r, s) OPTIONS (granularity = 'file')")
        lab.sql("CREATE SIEVE INDEX ON t (m) OPTIONS (granularity = 'file', shape = 'map')")
        assert lab.spark.table("t").rdd.getNumPartitions() > files
        ends = [(n, (rows - 1) * files + n) for n in range(files)]
        queries, expected = [], {}
        for keys in (*ends, (rows // 2 * files,)):
            listed = ", ".join(map(str, keys))
            conditions = (
                f"k IN ({listed})",
                "r IN ({})".format(", ".join(str(-key) for key in keys)),
                "s IN ({})".format(", ".join(f"'{key:09}'" for key in keys)),
                "m IN ({})".format(", ".join(str(key * 7919 % (files * rows)) for key in keys)),
            )
            queries += [f"SELECT '{on[0]}', k FROM t WHERE {on}" for on in conditions]
            expected |= {repr((name, key)): 1 for name in "krsm" for key in keys}
        # Spark plans one query with many scans faster than many queries.
        assert lab.check(" UNION ALL ".join(queries)).rows == expected
        queries = []
        for column in ("k", "r", "s", "m"):
            first = f"SELECT {column} FROM t ORDER BY {column}"
            queries += [f"{first} LIMIT 4", f"{first} DESC LIMIT 4"]
            queries += [f"SELECT min({column}), max({column}) FROM t"]
        lab.check(together(queries))
        assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}
