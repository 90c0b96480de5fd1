"""Tests join keys that a separate job fetches: which side supplies them, and at what cost."""

from __future__ import annotations

import os
import queue
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest
from pyspark.sql import functions
from spark_session import Answer, Lab, scans

FETCHED = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sieve.join.pruning": "always",
    "spark.sieve.strict": "true",
}
AUTO = FETCHED | {"spark.sieve.join.pruning": "auto"}
JOB, SHARE = 32 << 20, 8
"""By decision 16, a job counts as 32 MB, and fetching may cost an eighth of the scan's bytes."""


@pytest.fixture(scope="module")
def star(lab: Lab) -> Iterator[Lab]:
    """Tables for joins.

    The fact table has ten files with a hundred keys each. Two partitioned tables have the same
    rows.

    The dimension exists as three tables: one in Parquet, one in JSON, and one with an option.
    """
    with lab.database("fetched"):
        fact = "SELECT id AS k, id % 7 AS v, lpad(id, 9, '0') AS s"
        lab.sql(f"CREATE TABLE fact USING parquet AS {fact} FROM range(0, 1000, 1, 10)")
        lab.sql(
            f"CREATE TABLE parts USING parquet PARTITIONED BY (p) AS {fact}, id DIV 500 AS p "
            "FROM range(0, 1000, 1, 10)"
        )
        lab.sql("CREATE TABLE plain_parts USING parquet PARTITIONED BY (p) AS SELECT * FROM parts")
        dimension = "SELECT id * 20 AS k, id % 10 AS attr, id / 2 AS d, lpad(id * 20, 9, '0') AS s"
        rows = "FROM range(0, 50, 1, 1)"
        lab.sql(f"CREATE TABLE dim USING parquet AS {dimension} {rows}")
        lab.sql(f"CREATE TABLE text_dim USING json AS {dimension} {rows}")
        lab.sql(
            "CREATE TABLE lenient_dim USING parquet OPTIONS (ignoreMissingFiles = true) AS "
            f"{dimension} {rows}"
        )
        lab.sql("CREATE SIEVE INDEX ON fact (k, s)")
        lab.sql("CREATE SIEVE INDEX ON parts (k)")
        yield lab


def _plan(lab: Lab, query: str) -> str:
    return str(lab.spark.sql(query)._jdf.queryExecution().optimizedPlan().toString())


def _supplies_keys(lab: Lab, build: str, fact: str = "fact") -> bool:
    """Returns whether one side of a join supplies keys to the scan of the fact table."""
    plan = _plan(lab, f"SELECT v FROM ({build}) d LEFT JOIN {fact} f ON f.k = d.k")
    return "amongkeys" in plan


AGAIN = {
    "a filter": "SELECT k FROM dim WHERE attr = 7",
    "groups": "SELECT k, max(s) FROM dim WHERE attr = 7 GROUP BY k, d HAVING sum(attr) > 0",
    "a sum of decimals": "SELECT k FROM dim GROUP BY k HAVING sum(CAST(d AS DECIMAL(27, 2))) > 3",
    "some partitions": "SELECT k FROM parts WHERE p = 1 AND v = 3",
    "a union": "SELECT k FROM dim WHERE attr = 7 UNION ALL SELECT explode(array(id)) FROM range(3)",
}
OTHERWISE = {
    "a subquery": "SELECT k FROM dim WHERE attr = (SELECT max(attr) FROM dim)",
    "text": "SELECT k FROM text_dim WHERE attr = 7",
    "a lenient reader": "SELECT k FROM lenient_dim WHERE attr = 7",
    "all partitions": "SELECT k FROM parts WHERE v = 3",
    "a window": "SELECT k FROM (SELECT k, rank() OVER (ORDER BY attr) AS n FROM dim) WHERE n = 5",
    "any of a group": "SELECT first(k) AS k FROM dim WHERE attr = 7 GROUP BY s",
    "a sum of floats": "SELECT k FROM dim GROUP BY k HAVING sum(d) > 3",
    "a greatest float": "SELECT k FROM dim GROUP BY k HAVING CAST(max(d) AS STRING) != '-0.0'",
    "a sum that may overflow": "SELECT k FROM dim GROUP BY k HAVING try_sum(attr) > 3",
    "a sum of long ones": "SELECT k FROM dim GROUP BY k HAVING sum(CAST(d AS DECIMAL(28, 2))) > 3",
    "their mean": "SELECT k FROM dim GROUP BY k HAVING avg(CAST(d AS DECIMAL(29, 2))) > 3",
    "a subquery of one": "SELECT k FROM dim WHERE attr = (SELECT first(attr) FROM dim)",
}
COLLATED = {
    "a group of texts alike": "SELECT max(k) AS k FROM dim GROUP BY s COLLATE UTF8_LCASE",
    "the greatest of texts alike": (
        "SELECT k FROM dim GROUP BY k HAVING max(s COLLATE UTF8_LCASE) != 'a'"
    ),
}


def test_side_with_changing_rows_supplies_no_keys(star: Lab) -> None:
    """A join side that may return other rows in a second run supplies no keys.

    With the keys of the first run, a join would lose rows whose keys only the second run returns.
    """
    with star.settings(FETCHED):
        assert {kind for kind, build in AGAIN.items() if _supplies_keys(star, build)} == set(AGAIN)
        otherwise = OTHERWISE | ({} if star.spark.version.startswith("3.") else COLLATED)
        assert not {kind for kind, build in otherwise.items() if _supplies_keys(star, build)}


def test_cached_side_supplies_keys_only_if_it_is_repeatable(star: Lab) -> None:
    """A cached join side supplies keys only if Spark can compute the same rows again.

    Spark can lose a cached block after the job for keys, and then computes the block again for the
    join.
    """
    dim = star.spark.table("dim")
    inner = dim.filter("rand() < 0.5").cache()
    good = (
        dim.filter("attr = 7"),
        dim.groupBy("k").count(),
        dim.repartition(3),
        dim.join(dim, "k"),
    )
    other = (
        dim.filter("rand() < 0.5"),
        dim.orderBy("k").limit(5),
        dim.limit(5),
        dim.sample(0.9, seed=1),
        dim.selectExpr("k", "rank() OVER (ORDER BY attr) AS n"),
        dim.groupBy("attr").agg({"k": "first"}).toDF("attr", "k"),
        dim.select("k").mapInPandas(lambda frames: frames, "k BIGINT"),
        star.spark.table("lenient_dim"),
        dim.join(dim.filter("rand() < 0.5").select("k"), "k"),
        star.spark.sql("SELECT k FROM dim WHERE attr = (SELECT max(attr) FROM dim)"),
        inner.filter("attr = 7"),
    )
    if not star.spark.version.startswith("3."):
        other += (
            dim.groupBy(functions.expr("s COLLATE UTF8_LCASE")).agg(functions.max("k").alias("k")),
        )
    for adaptive in ("true", "false"):
        with star.settings(FETCHED | {"spark.sql.adaptive.enabled": adaptive}):
            for k, frame in enumerate((*good, *other)):
                cached = frame.cache()
                cached.createOrReplaceTempView("made_once")
                gives = _supplies_keys(star, "SELECT k FROM made_once")
                star.spark.catalog.dropTempView("made_once")
                cached.unpersist()
                assert gives == (k < len(good)), frame._jdf.queryExecution().toString()
    inner.unpersist()


@contextmanager
def _of_size(lab: Lab, table: str, size: int) -> Iterator[None]:
    """Adds a sparse file, so that the table's files have the given total size."""
    files = lab.files(table)
    large = files[0].with_name("large.parquet")
    large.touch()
    os.truncate(large, size - sum(file.stat().st_size for file in files))
    try:
        lab.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS NOSCAN")
        lab.sql(f"REFRESH TABLE {table}")
        yield
    finally:
        large.unlink()
        lab.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS NOSCAN")
        lab.sql(f"REFRESH TABLE {table}")


def _declare(lab: Lab, table: str, size: int) -> None:
    """Changes only the size of a table in the catalog; the table's files do not change."""
    own = lab.files(table)[0].with_name("own.parquet")
    own.touch()
    os.truncate(own, size)
    lab.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS NOSCAN")
    own.unlink()
    lab.sql(f"REFRESH TABLE {table}")


@pytest.mark.parametrize(
    ("build", "cost"),
    [
        ("SELECT k FROM dim WHERE attr = 7", 1 << 20),
        ("SELECT k FROM dim WHERE attr = 7 GROUP BY k", 2 << 20),
        ("SELECT a.k FROM dim a JOIN dim b USING (k) WHERE a.attr = 7", 4 << 20),
    ],
)
def test_keys_are_fetched_up_to_an_eighth_of_the_scan(star: Lab, build: str, cost: int) -> None:
    """Sieve fetches keys if the cost is at most an eighth of the scan's bytes.

    The cost of fetching is the cost of a job, plus the bytes of the side that supplies keys.
    """
    with star.settings(AUTO), _of_size(star, "dim", 1 << 20):
        with _of_size(star, "fact", SHARE * (JOB + cost)):
            assert _supplies_keys(star, build)
        with _of_size(star, "fact", SHARE * (JOB + cost) - 1):
            assert not _supplies_keys(star, build)


def test_cost_counts_only_bytes_that_indexes_leave(star: Lab) -> None:
    """On both sides of the join, the cost counts only bytes that indexes do not skip.

    In the catalog, each of the two joined tables has a size of 1 GB.
    """
    rows = "FROM range(0, 1000, 1, 10)"
    star.sql(f"CREATE TABLE large USING parquet AS SELECT id AS k, id % 7 AS v {rows}")
    star.sql(f"CREATE TABLE wide USING parquet AS SELECT id * 7 % 1000 AS k, id AS n {rows}")
    for table in ("large", "wide"):
        _declare(star, table, 1 << 30)
    star.sql("CREATE SIEVE INDEX ON large (k, v)")
    star.sql("CREATE SIEVE INDEX ON wide (n)")
    few = "SELECT k FROM wide WHERE n < 3"
    with star.settings(AUTO):
        assert _supplies_keys(star, few, "large")
        star.check(f"SELECT v FROM ({few}) d LEFT JOIN large f ON f.k = d.k", exactly=1 + 1 + 1)
        assert not _supplies_keys(star, "SELECT k FROM wide WHERE k < 3", "large")
        assert not _supplies_keys(star, few, "(SELECT * FROM large WHERE k < 42)")


COSTLY = {
    "a higher-order function": "exists(sequence(0, attr), x -> x = 7)",
    "a regular expression": "s RLIKE '0*1[24].?0'",
    "a pattern": "s LIKE '%1%4%'",
    "JSON": "get_json_object(s, '$.a') = '7'",
    "text of any length": "length(repeat(s, 1000)) > 7 AND attr = 7",
    "a digest": "sha2(s, 256) > 'e'",
}
CHEAP = {
    "comparisons": "attr = 7 AND s > '1' AND NOT d <=> 3",
    "IN": "attr IN (7, 8) OR k IN (20, 40)",
    "arithmetic": "abs(k * 3 - attr) % 7 = 3",
    "a prefix": "s LIKE '00%'",
    "a cast": "CAST(k AS STRING) = '40'",
    "a choice": "CASE WHEN attr = 7 THEN k WHEN coalesce(d, 1) = 3 THEN 1 END = 140",
    "a part of a date": "year(date_add(DATE '2020-01-01', CAST(k AS INT))) = 2021",
    "a part of a text": "substring(upper(s), 2, 3) = '000' AND attr = 7",
}


def test_keys_are_fetched_only_by_cheap_expressions(star: Lab) -> None:
    """Sieve fetches keys of cheap expressions only, as Spark evaluates the expressions twice."""
    with star.settings(AUTO), _of_size(star, "fact", 1 << 30):
        for kind, condition in (CHEAP | COSTLY).items():
            gives = _supplies_keys(star, f"SELECT k FROM dim WHERE {condition}")
            assert gives is (kind in CHEAP), kind
        others = (
            "SELECT k FROM dim LATERAL VIEW explode(sequence(0, k * 1000)) e AS x WHERE attr = 7",
            "SELECT a.k FROM dim a JOIN dim b ON a.k < b.k WHERE a.attr = 7",
            "SELECT CAST(regexp_replace(s, '^0+', '') AS BIGINT) AS k FROM dim WHERE attr = 7",
        )
        assert not [build for build in others if _supplies_keys(star, build)]
        # `sha2` does not affect the keys, so the job that fetches keys does not compute `sha2`.
        assert _supplies_keys(star, "SELECT k, sha2(s, 256) FROM dim WHERE attr = 7")
        with star.setting("spark.sieve.join.pruning", "always"):
            assert all(
                _supplies_keys(star, f"SELECT k FROM dim WHERE {c}") for c in COSTLY.values()
            )


def _records_read(lab: Lab, query: str) -> int:
    """How many records all jobs of a query read from files."""
    context = lab.spark.sparkContext
    group, tracker, store = uuid4().hex, context.statusTracker(), context._jsc.sc().statusStore()
    context.setJobGroup(group, query)
    try:
        lab.spark.sql(query).collect()
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    jobs = map(tracker.getJobInfo, tracker.getJobIdsForGroup(group))
    stages = {stage for job in jobs for stage in job.stageIds if tracker.getStageInfo(stage)}
    return sum(store.lastStageAttempt(stage).inputRecords() for stage in stages)


def test_costly_expressions_are_evaluated_once(star: Lab) -> None:
    """Sieve fetches no keys through a costly filter, unless a setting says so.

    If a job fetches keys, it reads the 50 rows of the dimension and evaluates the filter a second
    time. With the fetched keys, the scan reads five of ten files, so 500 rows instead of 1,000.
    """
    star.sql("CREATE TABLE heavy USING parquet AS SELECT id AS k FROM range(0, 1000, 1, 10)")
    _declare(star, "heavy", 1 << 30)
    star.sql("CREATE SIEVE INDEX ON heavy (k)")
    costly = COSTLY["a higher-order function"]
    for condition, conf, records in (
        (costly, AUTO, 50 + 1000),
        (costly, FETCHED, 50 + 50 + 500),
        ("attr = 7", AUTO, 50 + 50 + 500),
    ):
        build = f"SELECT k FROM dim WHERE {condition}"
        query = f"SELECT h.k FROM ({build}) d LEFT JOIN heavy h ON h.k = d.k"
        with star.settings(conf):
            assert _records_read(star, query) == records, (condition, conf)


def test_scan_of_unknown_size_fetches_no_keys(star: Lab) -> None:
    """Sieve fetches no keys for a scan whose size is unknown.

    For a partitioned table without statistics, Spark estimates the largest possible size.
    """
    build = "SELECT k FROM dim WHERE attr = 7"
    with star.settings(AUTO):
        assert not _supplies_keys(star, build, "parts")
        with _of_size(star, "parts", 1 << 30):
            assert _supplies_keys(star, build, "parts")
            assert _supplies_keys(star, build, "(SELECT * FROM parts WHERE p >= 0)")
        assert not _supplies_keys(star, build, "(SELECT * FROM parts WHERE p >= 0)")


def test_keys_without_an_index_are_not_collected(star: Lab) -> None:
    """Sieve does not collect keys that no index uses, because such keys can have any length."""
    query = (
        "SELECT v FROM fact f JOIN (SELECT k, attr, array(s) AS a FROM dim WHERE attr = 7) d "
        "ON f.v = d.attr AND f.k = d.k AND array(f.s) = d.a"
    )
    with star.settings(FETCHED):
        plan = _plan(star, query)
        assert plan.count("sieve_distinct_keys(") == 1
        star.check(query, at_most=10)


def test_side_that_supplies_keys_is_pruned_too(star: Lab) -> None:
    """A side that both supplies and gets keys is read twice: first in full, then pruned."""
    query = (
        "SELECT d.k, f.v, g.v FROM (SELECT * FROM dim WHERE attr = 7) d "
        "LEFT JOIN fact f ON f.k = d.k LEFT JOIN parts g ON g.k = f.k"
    )
    with star.setting("spark.sieve.enabled", "false"):
        rows = star.run(query).rows
    for adaptive in ("true", "false"):
        with star.settings(FETCHED | {"spark.sql.adaptive.enabled": adaptive}):
            frame = star.spark.sql(query)
            assert Counter(repr(tuple(row)) for row in frame.collect()) == rows
        read = Counter(
            scan.tableIdentifier().get().table()
            for scan in scans(frame._jdf.queryExecution().executedPlan())
            for _ in range(scan.metrics().apply("numFiles").value())
        )
        assert (read["fact"], read["parts"]) == (10 + 5, 5)


def _rows_in_a_minute(lab: Lab, query: str, conf: dict[str, str]) -> Counter[str]:
    """Runs a query in a thread; if it hangs, raises queue.Empty after a minute."""
    answers: queue.Queue[Answer] = queue.Queue()
    with lab.settings(conf):
        threading.Thread(target=lambda: answers.put(lab.run(query)), daemon=True).start()
        return answers.get(timeout=60).rows


@pytest.mark.parametrize("table", ["parts", "plain_parts"])
def test_key_query_does_not_wait_for_partition_pruning(star: Lab, table: str) -> None:
    """The query for a side's keys does not wait for the partition pruning of the same side."""
    query = (
        f"SELECT p.k, f.v FROM {table} p FULL JOIN (SELECT * FROM parts WHERE k < 42) f "
        "ON p.k = f.k JOIN dim d ON p.p = d.attr AND d.k < 100"
    )
    with star.setting("spark.sieve.enabled", "false"):
        rows = star.run(query).rows
    conf = {
        "spark.sql.autoBroadcastJoinThreshold": "10MB",
        "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": "false",
    }
    assert _rows_in_a_minute(star, query, FETCHED | conf) == rows


def test_subqueries_of_the_user_fetch_no_keys(star: Lab) -> None:
    """Subqueries fetch no keys, as a waiting subquery would block one of Spark's 16 threads."""
    sums = (
        f"(SELECT sum(f.v) FROM fact f JOIN dim d ON f.k = d.k WHERE d.attr > {n})"
        for n in range(20)
    )
    query = f"SELECT {', '.join(sums)}"
    with star.setting("spark.sieve.enabled", "false"):
        rows = star.run(query).rows
    assert _rows_in_a_minute(star, query, FETCHED) == rows
    broadcast = FETCHED | {"spark.sql.autoBroadcastJoinThreshold": "10MB"}
    for conf, keys in ((FETCHED, "amongkeys"), (broadcast, "dynamicpruning")):
        with star.settings(conf):
            assert (keys in _plan(star, query)) is (conf is broadcast)
            reasons = {scan["reasons"] for scan in star.explain(query)}
            assert any("join-not-repeatable" in (why or "") for why in reasons) is (conf is FETCHED)


def test_no_job_starts_for_keys_that_no_index_can_use(star: Lab) -> None:
    """Sieve starts no job for keys that no index can look up."""
    query = "SELECT f.v FROM (SELECT * FROM dim WHERE attr = 7) d LEFT JOIN fact f ON f.k = d.k"
    with star.settings(FETCHED | {"spark.sieve.strict": "false"}):
        assert "amongkeys" in _plan(star, query)
        before = star.run(query)
        with star.setting("spark.sql.caseSensitive", "true"):
            assert "amongkeys" not in _plan(star, query)
            after = star.run(query)
            assert (after.rows, after.files) == (before.rows, 1 + 10)
            assert any(scan["reasons"] == "reader-changed: 10" for scan in star.explain(query))


def test_text_keys_are_copied(star: Lab) -> None:
    """Sieve copies the text of each key, because Spark reuses a row's memory for later rows."""
    query = (
        "SELECT d.s, f.v FROM (SELECT * FROM dim WHERE attr = 7) d LEFT JOIN fact f ON f.s = d.s"
    )
    with star.settings(FETCHED):
        star.check(query, exactly=2 + 5)


def test_last_keys_of_a_long_list_become_one_range(star: Lab) -> None:
    """From a long list of keys, Sieve keeps the first keys, and covers the others by one range."""
    keys = "SELECT id AS k FROM range(-30000, 500, 1, 1)"
    with star.settings(FETCHED):
        found = star.check(f"SELECT count(*) FROM fact JOIN ({keys}) d USING (k)", exactly=5)
    assert found.rows == {"(500,)": 1}


def test_ranges_can_exceed_the_limits_of_the_type(star: Lab) -> None:
    """Fetched key ranges can exceed the limits of the indexed column's type."""
    star.sql(
        "CREATE TABLE ends USING parquet AS SELECT CAST(k AS INT) AS k FROM ("
        "SELECT 2147470000 + id AS k FROM range(0, 1000, 1, 2) UNION ALL "
        "SELECT id FROM range(0, 1000, 1, 2) UNION ALL "
        "SELECT id - 2147471000 FROM range(0, 1000, 1, 2))"
    )
    star.sql("CREATE SIEVE INDEX ON ends (k)")
    keys = (
        "SELECT id FROM range(2147450000, 2147500000, 1, 1) UNION ALL "
        "SELECT id FROM range(-2147500000, -2147450000, 1, 1)"
    )
    query = f"SELECT count(*), min(k), max(k) FROM ends JOIN ({keys}) d ON ends.k = d.id"
    with star.settings(FETCHED):
        assert star.check(query, exactly=4).rows == {"(2000, -2147471000, 2147470999)": 1}


def test_narrowing_cast_without_ansi_gets_no_keys(star: Lab) -> None:
    """Without ANSI mode, a narrowing cast wraps values, so keys do not prune the cast's column."""
    star.sql(
        "CREATE TABLE wraps USING parquet AS "
        "SELECT id * 2147483648 + id AS k FROM range(0, 40, 1, 4)"
    )
    star.sql("CREATE SIEVE INDEX ON wraps (k)")
    keys = "SELECT CAST(id AS INT) AS k FROM range(0, 40, 1, 1)"
    query = f"SELECT wraps.k FROM wraps JOIN ({keys}) d ON CAST(wraps.k AS INT) = d.k"
    with star.settings(FETCHED | {"spark.sql.ansi.enabled": "false"}):
        assert star.check(query).rows.total() == 20


@pytest.mark.parametrize("conf", [{}, FETCHED], ids=["broadcast", "fetched"])
def test_union_columns_are_matched_by_position(star: Lab, conf: dict[str, str]) -> None:
    """Sieve matches columns of a union by position, even if the branches use different names."""
    star.sql(
        "CREATE TABLE IF NOT EXISTS swapped USING parquet AS "
        "SELECT id AS low, 999 - id AS high FROM range(0, 1000, 1, 10)"
    )
    star.sql("CREATE SIEVE INDEX IF NOT EXISTS ON swapped (low, high)")
    both = "SELECT low, high FROM swapped UNION ALL SELECT high, low FROM swapped"
    query = f"SELECT low, high FROM ({both}) u JOIN dim ON u.low = dim.k WHERE attr = 7"
    dimension = len(star.files("dim"))
    with star.settings(conf):
        star.check(query, exactly=5 + 5 + dimension * (1 + bool(conf)))


@pytest.mark.parametrize("conf", [{}, FETCHED], ids=["broadcast", "fetched"])
def test_keys_of_one_column_do_not_prune_the_other(star: Lab, conf: dict[str, str]) -> None:
    """If a join compares two columns of one type, each column's keys prune only that column."""
    star.sql(
        "CREATE TABLE IF NOT EXISTS pairs USING parquet AS "
        "SELECT id AS a, 999 - id AS b FROM range(0, 1000, 1, 10)"
    )
    star.sql("CREATE SIEVE INDEX IF NOT EXISTS ON pairs (a, b)")
    build = "SELECT id * 10 AS a, 999 - id * 10 AS b FROM range(0, 50, 1, 1) WHERE id < 5"
    query = f"SELECT a, b FROM pairs JOIN ({build}) d USING (a, b)"
    with star.settings(conf):
        assert star.check(query, exactly=1).rows.total() == 5
