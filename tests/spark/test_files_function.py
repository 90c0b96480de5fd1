from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from spark_session import Lab

MAY, SKIPPED = "may hold a match (i@1)", "skipped by i@1"


@pytest.fixture(scope="module")
def table(lab: Lab) -> Iterator[str]:
    """Ten files in the order of ``k``, with an index on ``k``."""
    with lab.database("scanned"):
        lab.spark.range(0, 200, 1, 10).selectExpr("id AS k", "id % 7 AS r").write.saveAsTable("t")
        lab.sql("CREATE SIEVE INDEX i ON t (k)")
        yield "t"


def _jobs(lab: Lab) -> int:
    """How many jobs the driver has started so far."""
    return int(lab.spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def _why(lab: Lab, table: str, predicate: str) -> Counter[tuple[bool, str]]:
    rows = lab.sql(f'SELECT * FROM sieve_files("{table}", "{predicate}")')
    assert len({path for path, *_ in rows}) == len(rows)
    return Counter((kept, reason) for _, kept, reason, *_ in rows)


@pytest.mark.parametrize("predicate", ["k = 25", "k BETWEEN 15 AND 44", "k < 0", "k IN (1, 199)"])
def test_sieve_files_keeps_the_files_that_a_scan_reads(
    lab: Lab, table: str, predicate: str
) -> None:
    """`sieve_files` keeps each file with a match, and no more files than the query reads."""
    rows = lab.sql(f"SELECT * FROM sieve_files('{table}', '{predicate}')")
    kept = {path for path, kept, *_ in rows if kept}
    assert {reason for _, _, reason, *_ in rows} <= {MAY, SKIPPED}
    assert len(rows) == 10
    query = f"FROM {table} WHERE {predicate}"
    lab.check(f"SELECT * {query}", exactly=len(kept))
    holding = lab.sql(f"SELECT DISTINCT _metadata.file_path {query}")
    assert {path.replace("file:///", "file:/") for (path,) in holding} <= kept


def test_reasons_say_why_no_index_helps(lab: Lab, table: str) -> None:
    """`sieve_files` gives reasons: no index on the column, a disabled index, or no index at all."""
    assert _why(lab, table, "r = 3") == {(True, "no index used: no-predicate"): 10}
    assert _why(lab, table, "hash(k) = 1") == {(True, "no index used: unsupported-predicate"): 10}
    assert _why(lab, table, "true") == {(True, "no index used: no-predicate"): 10}
    with lab.setting("spark.sieve.enabled", "false"):
        assert _why(lab, table, "k = 25") == {(True, "no index used: disabled"): 10}
    with lab.setting("spark.sql.parquet.enableVectorizedReader", "false"):
        assert _why(lab, table, "k = 25") == {(True, "no index used: reader-changed"): 10}
    lab.sql("CREATE TABLE plain USING parquet AS SELECT * FROM t WHERE k < 3")
    assert _why(lab, "plain", "k = 2") == {(True, "no index used: no-index"): 1}


def test_stale_files_have_different_reasons(lab: Lab, table: str) -> None:
    """`sieve_files` keeps a changed file and a new file, and gives a different reason for each."""
    lab.sql(f"CREATE TABLE stale USING parquet AS SELECT * FROM {table} WHERE k < 60")
    before = {Path(path.removeprefix("file:")) for (path,) in lab.sql(
        "SELECT DISTINCT _metadata.file_path FROM stale"
    )}  # fmt: skip
    lab.sql("CREATE SIEVE INDEX i ON stale (k)")
    lab.sql("INSERT INTO stale VALUES (1, 1)")
    changed = Path("/") / min(before)
    changed.touch()
    lab.sql("REFRESH TABLE stale")
    found = _why(lab, "stale", "k = -1")
    assert found[True, "changed since the index was built"] == 1
    assert found[True, "new since the index was built"] == 1
    assert found.total() == len(before) + 1


def test_pruning_by_spark_is_a_reason(lab: Lab, table: str) -> None:
    """If Spark itself skips files by false predicates, partitions or caches, a reason says so."""
    lab.sql(
        f"CREATE TABLE parted USING parquet PARTITIONED BY (p) AS SELECT k, k % 2 AS p FROM {table}"
    )
    lab.sql("CREATE SIEVE INDEX i ON parted (k)")
    found = _why(lab, "parted", "p = 1 AND k = 25")
    assert {reason for _, reason in found} <= {MAY, SKIPPED, "partition pruned"}
    assert found[False, "partition pruned"] > 0
    assert found[True, MAY] == 1
    assert _why(lab, table, "false") == {(False, "not read: the predicate is never true"): 10}
    assert _why(lab, table, "k > 5 AND k < 3")[True, MAY] == 0
    lab.sql(f"CACHE TABLE {table}")
    assert _why(lab, table, "k = 25") == {(False, "not read: the table is cached"): 10}
    lab.sql(f"UNCACHE TABLE {table}")


def test_rows_describe_only_the_outer_scan(lab: Lab, table: str) -> None:
    """If a predicate has a subquery on the same table, the rows describe the outer scan alone."""
    assert _why(lab, table, "k < 40 AND k IN (SELECT k FROM t WHERE k = 199)") == {
        (True, MAY): 2,
        (False, SKIPPED): 8,
    }


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("'t', 'nope = 1'", "SIEVE_INVALID_PREDICATE.*nope"),
        ("'t', 'k ='", "SIEVE_INVALID_PREDICATE"),
        ("'t', 'k = 1) OR (1 = 1'", "SIEVE_INVALID_PREDICATE"),
        ("'t', 'count(k) = 1'", "SIEVE_INVALID_PREDICATE"),
        ("'t', 'k'", "SIEVE_INVALID_PREDICATE"),
        ("'nowhere', 'k = 1'", "SIEVE_UNKNOWN_TABLE"),
        ("'v', 'k = 1'", "SIEVE_UNSUPPORTED_TABLE.*v is a view"),
        ("'t', concat('k = ', rand())", "SIEVE_INVALID_ARGUMENT.*constant strings"),
    ],
)
def test_wrong_call_raises_an_error_of_sieve(lab: Lab, arguments: str, problem: str) -> None:
    """For an invalid predicate, an unknown table, or a view, Sieve raises an error."""
    lab.sql("CREATE OR REPLACE VIEW v AS SELECT * FROM t")
    with pytest.raises(Exception, match=problem):
        lab.sql(f"SELECT * FROM sieve_files({arguments})")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("function", "statement"),
    [
        ("sieve_indexes()", "SHOW SIEVE INDEXES"),
        ("sieve_indexes('scanned')", "SHOW SIEVE INDEXES IN scanned"),
        ("sieve_indexes('spark_catalog.`default`')", "SHOW SIEVE INDEXES IN default"),
        ("sieve_versions('t')", "SHOW SIEVE VERSIONS ON t"),
        ("sieve_describe('scanned.t', 'I')", "DESCRIBE SIEVE INDEX i ON t"),
        ("sieve_describe('t', 'i', 'extended')", "DESCRIBE SIEVE INDEX EXTENDED i ON t"),
        (
            "sieve_explain('SELECT r FROM t WHERE k = 25')",
            "EXPLAIN SIEVE SELECT r FROM t WHERE k = 25",
        ),
        (
            "sieve_explain('CREATE TABLE u USING orc AS TABLE t')",
            "EXPLAIN SIEVE CREATE TABLE u USING orc AS TABLE t",
        ),
    ],
)
def test_function_and_statement_return_the_same_rows(
    lab: Lab, table: str, function: str, statement: str
) -> None:
    """The function and the statement return the same columns and rows, and start no Spark job."""
    said = lab.spark.sql(statement)
    before = _jobs(lab)
    told = lab.spark.sql(f"SELECT * FROM {function}")
    assert (told.schema, told.collect()) == (said.schema, said.collect())
    assert told.columns
    assert _jobs(lab) == before
    assert lab.check(f"SELECT * FROM {table} WHERE k = 25", exactly=1).rows
    assert not lab.spark.catalog.tableExists("u")


@pytest.mark.usefixtures("table")
def test_statement_without_scans_is_refused(lab: Lab) -> None:
    """If a statement reads no table, both the function and EXPLAIN SIEVE refuse the statement."""
    for text in ("EXPLAIN SIEVE DROP TABLE t", "SELECT * FROM sieve_explain('DROP TABLE t')"):
        with pytest.raises(Exception, match="SIEVE_UNSUPPORTED_STATEMENT"):
            lab.sql(text)
    assert lab.spark.catalog.tableExists("t")


@pytest.mark.usefixtures("table")
def test_functions_work_in_joins_and_temporary_views_only(lab: Lab) -> None:
    """Queries can join the functions with tables, also in a temporary view.

    Spark refuses a permanent view whose query calls a function of Sieve.
    """
    joined = lab.sql(
        "SELECT i.index, v.change, d.value FROM sieve_indexes() i JOIN sieve_versions('t') v "
        "ON i.index = v.index CROSS JOIN sieve_describe('t', 'i') d WHERE d.property = 'files' "
        "AND i.table = 't'"
    )
    assert joined == [("i", "created", "10")]
    lab.sql("CREATE OR REPLACE TEMPORARY VIEW told AS SELECT * FROM sieve_versions('t')")
    assert len(lab.sql("SELECT * FROM told")) == 1
    lab.sql("DROP VIEW told")
    with pytest.raises(Exception, match=r"sieve_versions|FunctionCall|INVALID_TEMP_OBJ"):
        lab.sql("CREATE VIEW told AS SELECT * FROM sieve_versions('t')")


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("sieve_indexes('nowhere')", "nowhere"),
        ("sieve_indexes('a..b')", "SIEVE_INVALID_ARGUMENT.*not the name of a database"),
        ("sieve_indexes('a', 'b')", "SIEVE_INVALID_ARGUMENT.*takes 0 to 1 arguments, not 2"),
        ("sieve_versions('nowhere')", "SIEVE_UNKNOWN_TABLE"),
        ("sieve_describe('t', 'nope')", "SIEVE_UNKNOWN_INDEX"),
        ("sieve_describe('t', 'i', 'all')", "SIEVE_INVALID_ARGUMENT.*'extended'"),
        ("sieve_explain('SELECT nope FROM t')", "nope"),
        ("sieve_explain('SELEC')", "SELEC"),
    ],
)
def test_wrong_argument_raises_the_error_of_the_statement(
    lab: Lab, call: str, problem: str
) -> None:
    """If an argument is wrong, the function raises the same error as the SIEVE statement."""
    with pytest.raises(Exception, match=problem):
        lab.sql(f"SELECT * FROM {call}")


@pytest.mark.usefixtures("table")
def test_more_calls_than_threads_run_at_once(lab: Lab) -> None:
    """All calls return, even nested calls, and even if more calls than threads run at once."""
    inner = "sieve_explain('SELECT * FROM sieve_indexes()')"
    texts = [f"SELECT * FROM {inner}", "EXPLAIN SIEVE SELECT * FROM sieve_status()"] * 16
    with ThreadPoolExecutor(len(texts)) as pool:
        asked = [pool.submit(lab.sql, text) for text in texts]
        assert [one.result(timeout=120) for one in asked] == [[]] * len(texts)
    with pytest.raises(Exception, match=r"SIEVE_INVALID_ARGUMENT.*whose argument has a query"):
        lab.sql(f'SELECT * FROM sieve_explain("SELECT * FROM {inner}")')
