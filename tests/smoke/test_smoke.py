"""The most important tests, for every Spark version.

`make test-spark VERSION=4.2` runs these tests on Spark 4.2.
"""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator

import pytest
from spark_session import RANGES, Lab


@pytest.fixture(scope="module")
def table(lab: Lab) -> Iterator[str]:
    """Creates a table of ten files that are sorted by ``id``, with an index on ``id``."""
    with lab.database("smoke"):
        lab.spark.range(0, 1000, 1, 10).selectExpr(
            "id", "cast(id % 7 AS int) AS r", "concat('k', id) AS s"
        ).write.saveAsTable("t")
        (row,) = lab.sql("CREATE SIEVE INDEX ON t (id) OPTIONS (error = 1)")
        assert row[:3] == ("id_sieve", 1, 10)
        yield "t"


def test_queries_read_the_expected_files(lab: Lab, table: str) -> None:
    """A query reads one file for a key, two files for a range, and no file for an absent key.

    The queries on an indexed table return the same rows with and without the index.
    """
    lab.check(f"SELECT * FROM {table} WHERE id = 123", exactly=1)
    lab.check(f"SELECT count(*), max(s) FROM {table} WHERE id BETWEEN 195 AND 204", exactly=2)
    lab.check(f"SELECT * FROM {table} WHERE id = -1", exactly=0)


def test_plan_names_the_listing_of_sieve(lab: Lab, table: str) -> None:
    """In Spark's EXPLAIN, the location of the scan is Sieve's own file listing."""
    ((plan,),) = lab.sql(f"EXPLAIN FORMATTED SELECT * FROM {table} WHERE id = 123")
    assert "Location: SieveFileIndex" in plan


def test_explain_sieve_shows_the_files_to_read(lab: Lab, table: str) -> None:
    """For a scan, EXPLAIN SIEVE shows one row: the index, and the number of files to read."""
    (scan,) = lab.explain(f"SELECT * FROM {table} WHERE id = 123")
    assert (scan["indexes"], scan["files_total"], scan["files_read"]) == ("id_sieve@1", 10, 1)


def test_functions_return_keys_segments_and_files(lab: Lab, table: str) -> None:
    """Three of Sieve's SQL functions return rows, both alone and in a join with a table."""
    assert lab.sql(f"SELECT max(sieve_key(id)), sieve_key(DATE '1969-12-31') FROM {table}") == [
        (999, -1)
    ]
    (ends,) = lab.sql(f"SELECT first_key, last_key FROM sieve_segments('{table}', 'id_sieve')")
    assert ends == ("0", "999")
    kept = f"SELECT kept, reason, count(*) FROM sieve_files('{table}', 'id = 123') GROUP BY 1, 2"
    assert sorted(lab.sql(kept)) == [
        (False, "skipped by id_sieve@1", 9),
        (True, "may hold a match (id_sieve@1)", 1),
    ]
    with pytest.raises(Exception, match="SIEVE_UNKNOWN_INDEX"):
        lab.sql(f"SELECT * FROM sieve_segments('{table}', 'nope')")


@pytest.mark.parametrize("adaptive", ["true", pytest.param("false", marks=pytest.mark.long)])
def test_run_time_values_select_files(lab: Lab, table: str, adaptive: str) -> None:
    """Files are selected by broadcast keys, by an empty set of keys, and by a subquery's result."""
    keys = "(SELECT k + 0 AS k, n FROM VALUES (123L, 1), (777L, 2), (NULL, 3) AS d(k, n))"
    with lab.setting("spark.sql.adaptive.enabled", adaptive):
        lab.check(f"SELECT s, n FROM {table} JOIN {keys} ON id = k", exactly=2)
        lab.check(f"SELECT s FROM {table} WHERE id IN (SELECT k FROM {keys})", exactly=2)
        lab.check(f"SELECT s, n FROM {table} LEFT JOIN {keys} ON id = k", exactly=10)
        lab.check(f"SELECT s FROM {table} WHERE id >= (SELECT max(k) FROM {keys})", exactly=3)


def test_bounds_by_two_subqueries_of_one_table(lab: Lab, table: str) -> None:
    """Two subqueries' results limit a scan's range, even if Spark merges the subqueries into one.

    A merged subquery returns a struct of two results.

    EXPLAIN SIEVE shows that results of subqueries limit the scan at run time.
    """
    ends = f"(SELECT min(id) + 120 FROM {table}) AND id <= (SELECT max(id) - 870 FROM {table})"
    query = f"SELECT * FROM {table} WHERE id >= {ends}"
    # The outer scan reads one file. The merged subquery reads two files, one for each limit.
    lab.check(query, exactly=3)
    told = [str(scan["predicate"]) for scan in lab.explain(query)]
    assert any("subquery at run time" in predicate for predicate in told)


def test_merged_subqueries_lose_no_row(lab: Lab, table: str) -> None:
    """Scalar subqueries with different filters return the right rows, even if Spark merges them."""
    lab.check(
        f"SELECT (SELECT sum(r) FROM {table} WHERE id < 50), "
        f"(SELECT sum(r) FROM {table} WHERE id > 950)",
        at_most=2,
    )


def test_the_web_ui_has_a_page(lab: Lab, table: str) -> None:
    """Sieve's page in Spark's web UI shows the index and the scan, but no constant of the query."""
    jvm, session = lab.spark._jvm, lab.spark._jsparkSession
    assert jvm is not None
    context = session.sparkContext()
    conf = context.conf().clone().set("spark.ui.port", "0")
    # Spark 4.3's package lacks classes that the security manager of the context's environment
    # needs.
    managers = getattr(getattr(jvm.org.apache.spark, "SecurityManager$"), "MODULE$")
    manager = jvm.org.apache.spark.SecurityManager(
        conf, jvm.scala.Option.empty(), getattr(managers, "$lessinit$greater$default$3")()
    )
    ui = jvm.org.apache.spark.ui.SparkUI.create(
        jvm.scala.Option.apply(context), context.statusStore(), conf,
        manager, "smoke", "", 0, context.version(),
    )  # fmt: skip
    ui.bind()
    ui.attachAllHandlers()
    ui.attachTab(jvm.org.apache.spark.sql.sieve.observe.SieveTab(ui, session))

    def page() -> str:
        with urllib.request.urlopen(f"{ui.webUrl()}/sieve/") as answer:
            text: str = answer.read().decode()
        return text

    try:
        lab.check(f"SELECT * FROM {table} WHERE id = 987 AND s IN ('k987', 'k3')", exactly=1)
        shown = page().replace("<wbr>", "")
        assert "<td>smoke.t</td><td>id_sieve</td><td>id bigint</td><td>ready</td>" in shown
        told = [code for code in re.findall(r"<code>(.*?)</code>", shown) if "(id = ?)" in code]
        assert "(s IN (?))" in told[0]
        assert "987" not in "".join(told)
        assert "<td>1 of 10</td>" in shown
    finally:
        ui.stop()


def test_an_index_is_shown_until_it_is_dropped(lab: Lab, table: str) -> None:
    """SHOW lists an index until DROP. After DROP, queries read all files."""
    lab.spark.sql(f"CREATE SIEVE INDEX ON {table} (r, s)").collect()
    shown = [row[2] for row in lab.sql(f"SHOW SIEVE INDEXES ON {table}")]
    assert shown == ["id_sieve", "r_sieve", "s_sieve"]
    lab.check(f"SELECT * FROM {table} WHERE s = 'k555'", at_most=1)
    lab.sql(f"DROP SIEVE INDEX s_sieve ON {table}")
    lab.sql(f"DROP SIEVE INDEX r_sieve ON {table}")
    assert [row[2] for row in lab.sql(f"SHOW SIEVE INDEXES ON {table}")] == ["id_sieve"]
    lab.check(f"SELECT * FROM {table} WHERE s = 'k555'", exactly=10)


@pytest.mark.long
def test_scan_of_small_ranges_can_run_in_one_task(lab: Lab) -> None:
    """Rows stay right if Spark 4.3 runs a scan of small ranges in one task without a shuffle.

    Spark versions before 4.3 ignore the setting that allows a scan in a single task.
    """
    settings = RANGES | {
        "spark.sql.files.openCostInBytes": "0",
        "spark.sql.files.maxPartitionBytes": "1k",
        "spark.sql.files.minPartitionNum": "8",
        "spark.sql.optimizer.singleTaskExecution.enabled": "true",
    }
    with lab.database("one_task"), lab.settings(settings):
        lab.spark.range(0, 2000, 1, 1).selectExpr(
            "id", "cast(id % 3 AS int) AS r", "uuid() AS u"
        ).write.format("csv").saveAsTable("t")
        lab.sql("CREATE SIEVE INDEX ON t (id) OPTIONS (granularity = 'range')")
        where = "WHERE id IN (3, 500, 777, 1200, 1555, 1999)"
        (told,) = lab.explain(f"SELECT * FROM t {where}")
        assert 1 < told["ranges_read"] < told["ranges_total"]
        lab.check(f"SELECT count(*), sum(id) FROM t {where}")
        lab.check(f"SELECT r, count(*), min(u) FROM t {where} GROUP BY r")
        lab.check(f"SELECT id, row_number() OVER (ORDER BY id) FROM t {where}")
