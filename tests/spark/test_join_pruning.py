"""Joins and subqueries pick files by values that are known only while a query runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import pytest
from pyspark.sql import DataFrame
from spark_session import Lab, scans

FILES = 40
JOIN = "SELECT fact.k, v, attr FROM fact JOIN dim ON fact.k = dim.k"


@pytest.fixture(scope="module")
def star(lab: Lab) -> Iterator[Lab]:
    """Forty files of a hundred keys each, ascending; a dimension of every twentieth key."""
    with lab.database("joined"):
        lab.sql(
            "CREATE TABLE fact USING parquet AS SELECT id AS k, CAST(id AS INT) AS i, "
            "CAST(id AS STRING) AS s, CASE id WHEN 150 THEN DOUBLE('NaN') WHEN 250 THEN -0.0D "
            "WHEN 350 THEN NULL ELSE id + 0.5D END AS d, STRUCT(id AS n) AS st, "
            "DATE_ADD(DATE '2020-01-01', CAST(id AS INT)) AS day, id % 7 AS v "
            f"FROM range(0, 4000, 1, {FILES})"
        )
        lab.sql(
            "CREATE TABLE dim USING parquet AS SELECT id * 20 AS k, id % 100 AS attr, "
            "CAST(id * 20 AS STRING) AS s, CAST(id * 20 AS SMALLINT) AS i FROM range(0, 200, 1, 2) "
            "UNION ALL SELECT NULL, 77, NULL, NULL"
        )
        lab.sql("CREATE SIEVE INDEX ON fact (k, i, s, d, st.n, day)")
        yield lab


def _fact_files(frame: DataFrame) -> int:
    """Files of `fact` that an executed query has read."""
    return sum(
        scan.metrics().apply("numFiles").value()
        for scan in scans(frame._jdf.queryExecution().executedPlan())
        if scan.tableIdentifier().get().table() == "fact"
    )


def _run(lab: Lab, query: str) -> tuple[Counter[str], int]:
    frame = lab.spark.sql(query)
    rows = Counter(repr(tuple(row)) for row in frame.collect())
    return rows, _fact_files(frame)


_ROWS: dict[str, Counter[str]] = {}


def _without(lab: Lab, query: str) -> Counter[str]:
    """The rows without Sieve, asked for once: they are the same however Spark plans the query."""
    if query not in _ROWS:
        with lab.setting("spark.sieve.enabled", "false"):
            _ROWS[query], _ = _run(lab, query)
    return _ROWS[query]


def _check(lab: Lab, query: str, files: int, conf: Mapping[str, str] | None = None) -> None:
    """The rows are those without Sieve, and so many files of `fact` are read."""
    strict = {"spark.sieve.strict": "true", "spark.sieve.audit.sample": "1.0"}
    with lab.settings(strict | (conf or {})):
        on, read = _run(lab, query)
    assert on == _without(lab, query), f"other rows: {query}"
    assert read == files, f"read {read} files of fact, not {files}: {query}"


MODES = {
    "adaptive": {},
    "planned once": {"spark.sql.adaptive.enabled": "false"},
    "shuffled": {"spark.sql.autoBroadcastJoinThreshold": "-1"},
    "shuffled, planned once": {
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.adaptive.enabled": "false",
    },
}

# Keys 1540 and 3540, so files 15 and 35, have attr = 77.
PRUNED = {
    "inner": (f"{JOIN} WHERE attr = 77", 2),
    "inner, the fact on the right": (
        "SELECT v FROM dim JOIN fact ON fact.k = dim.k AND attr = 77",
        2,
    ),
    "semi": ("SELECT k, v FROM fact LEFT SEMI JOIN dim ON fact.k = dim.k AND attr = 77", 2),
    "in": ("SELECT v FROM fact WHERE k IN (SELECT k FROM dim WHERE attr = 77)", 2),
    "exists": (
        "SELECT v FROM fact WHERE EXISTS (SELECT 1 FROM dim WHERE dim.k = fact.k AND attr = 77)",
        2,
    ),
    "a narrower column": ("SELECT v FROM fact JOIN dim ON fact.i = dim.k WHERE attr = 77", 2),
    "a wider column": ("SELECT v FROM fact JOIN dim ON fact.k = dim.i WHERE attr = 77", 2),
    "text": ("SELECT v FROM fact JOIN dim USING (s) WHERE attr = 77", 2),
    "a field": ("SELECT v FROM fact JOIN dim ON fact.st.n = dim.k WHERE attr = 77", 2),
    "a rising function": (
        "SELECT v FROM fact JOIN (SELECT TIMESTAMP '2020-01-03 00:00:00' AS t) ON day = t",
        1,
    ),
    "two keys": (
        "SELECT v FROM fact JOIN dim ON fact.k = dim.k AND fact.i = dim.i WHERE attr = 77",
        2,
    ),
    "floats": (
        "SELECT v FROM fact JOIN (VALUES (DOUBLE('NaN')), (0.0D), (NULL)) AS f(d) USING (d)",
        2,
    ),
    "the same dimension twice": (
        (
            "SELECT v FROM fact JOIN dim a ON fact.k = a.k JOIN dim b ON fact.i = b.k "
            "WHERE a.attr = 77 AND b.attr BETWEEN 50 AND 80 AND b.k < 2000"
        ),
        1,
    ),
    "with itself": ("SELECT a.v FROM fact a JOIN fact b ON a.k = b.i WHERE b.k = 1550", 1 + 1),
    "below a group": (
        (
            "SELECT count(*) FROM (SELECT k, sum(v) FROM fact GROUP BY k) f JOIN dim USING (k) "
            "WHERE attr = 77"
        ),
        2,
    ),
    "below a union": (
        (
            "SELECT v FROM (SELECT k, v FROM fact WHERE v = 1 UNION ALL SELECT i, 1 FROM fact) f "
            "JOIN dim ON f.k = dim.k WHERE attr = 77"
        ),
        4,
    ),
    "in a CTE": (f"WITH c AS ({JOIN}) SELECT v FROM c WHERE attr = 77", 2),
    "below an outer join": (
        (
            "SELECT f.v FROM (SELECT f.k, f.v, o.attr FROM fact f "
            "LEFT JOIN dim o ON f.v = o.attr) f JOIN dim ON f.k = dim.k WHERE dim.attr = 77"
        ),
        2,
    ),
    "in a subquery": (f"SELECT (SELECT max(v) FROM ({JOIN} WHERE attr = 77)) AS m", 2),
}
UNPRUNED = {
    "left": "SELECT v, attr FROM fact LEFT JOIN dim ON fact.k = dim.k AND attr = 77",
    "right": "SELECT v, attr FROM fact RIGHT JOIN dim ON fact.k = dim.k AND attr = 77",
    "full": "SELECT v, attr FROM fact FULL JOIN dim ON fact.k = dim.k AND attr = 77",
    "anti": "SELECT v FROM fact LEFT ANTI JOIN dim ON fact.k = dim.k AND attr = 77",
    "not in": "SELECT v FROM fact WHERE k NOT IN (SELECT k FROM dim WHERE attr = 76)",
    "not exists": (
        "SELECT v FROM fact WHERE NOT EXISTS (SELECT 1 FROM dim WHERE dim.k = fact.k AND attr = 77)"
    ),
    "in, or": "SELECT v FROM fact WHERE k IN (SELECT k FROM dim WHERE attr = 77) OR v = 1",
    "null-safe": "SELECT v FROM fact JOIN dim ON fact.k <=> dim.k WHERE attr = 77",
    "below a limit": (
        "SELECT count(*) FROM (SELECT k FROM fact ORDER BY k LIMIT 3990) JOIN dim USING (k) "
        "WHERE attr = 77"
    ),
    "below a window": (
        "SELECT n FROM (SELECT k, row_number() OVER (ORDER BY k) AS n FROM fact) "
        "JOIN dim USING (k) WHERE attr = 77"
    ),
    "a total": (
        "SELECT * FROM (SELECT max(k) AS k, count(*) AS n FROM fact) JOIN dim USING (k)"
    ),
    "a falling function": "SELECT v FROM fact JOIN dim ON -fact.k = dim.k WHERE attr = 77",
    "a limited side": (
        "SELECT count(*) FROM fact JOIN (SELECT k FROM dim ORDER BY k LIMIT 2) USING (k)"
    ),
}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", PRUNED)
def test_a_join_reads_the_files_that_hold_a_partner(star: Lab, kind: str, mode: str) -> None:
    """Where the other side is broadcast; where it is not, the values would cost a job."""
    query, files = PRUNED[kind]
    if mode.startswith("shuffled"):
        with star.settings({**MODES[mode], "spark.sieve.join.pruning": "off"}):
            _, files = _run(star, query)
    _check(star, query, files, MODES[mode])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", UNPRUNED)
def test_a_join_that_gives_out_rows_without_a_partner_reads_all(
    star: Lab, kind: str, mode: str
) -> None:
    """So does one with something between it and the scan that looks at other rows."""
    _check(star, UNPRUNED[kind], FILES, MODES[mode])


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_an_empty_side_reads_no_file(star: Lab, adaptive: str) -> None:
    """Not even files that the index does not know."""
    conf = {"spark.sql.adaptive.enabled": adaptive}
    _check(star, f"{JOIN} WHERE attr = -1", 0, conf)
    nulls = "SELECT v FROM fact JOIN (SELECT k FROM dim WHERE k IS NULL OR attr = -1) USING (k)"
    _check(star, nulls, 0, conf)


def test_off_reads_all(star: Lab) -> None:
    """The setting turns keys of joins off, and results of subqueries."""
    conf = {"spark.sieve.join.pruning": "off"}
    _check(star, f"{JOIN} WHERE attr = 77", FILES, conf)
    _check(star, "SELECT v FROM fact WHERE k = (SELECT max(k) FROM dim)", FILES, conf)
    _check(star, f"{JOIN} WHERE attr = 77", FILES, {"spark.sql.exchange.reuse": "false"})
    dpp = {"spark.sql.optimizer.dynamicPartitionPruning.enabled": "false"}
    _check(star, f"{JOIN} WHERE attr = 77", FILES, dpp)


@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ("k = (SELECT max(k) FROM dim)", 1),
        ("k > (SELECT max(k) - 200 FROM dim)", 3),
        ("i >= (SELECT max(k) FROM dim) AND v > 0", 1),
        ("k = (SELECT max(k) FROM dim WHERE attr = -1)", 0),
        ("k < (SELECT min(k) + 150 FROM dim) OR k = (SELECT max(k) FROM dim)", 3),
        ("v = (SELECT min(attr) FROM dim)", FILES),
    ],
)
def test_a_scalar_subquery_picks_files(
    star: Lab, condition: str, files: int, adaptive: str
) -> None:
    """By its result, as a constant would."""
    conf = {"spark.sql.adaptive.enabled": adaptive}
    _check(star, f"SELECT v FROM fact WHERE {condition}", files, conf)


def test_many_keys_go_as_ranges(star: Lab) -> None:
    """Past 10,000 of them: no more than 1,000 ranges that hold them all."""
    few = "SELECT /*+ BROADCAST(d) */ count(*) FROM fact JOIN range(500, 1500) d ON fact.k = d.id"
    _check(star, few, 10)
    many = "SELECT /*+ BROADCAST(d) */ count(*) FROM fact JOIN range(500, 30000) d ON fact.k = d.id"
    _check(star, f"{many} WHERE d.id != 5", 35)
    holes = (
        "SELECT /*+ BROADCAST(d) */ count(*) FROM fact JOIN "
        "(SELECT IF(id < 3, id * 1000, id + 10000) AS k FROM range(20000) WHERE id != 7) d "
        "ON fact.k = d.k"
    )
    _check(star, holes, 3)


def test_a_large_side_without_a_predicate_is_not_asked_for_its_keys(star: Lab) -> None:
    """All keys of a dimension would skip nothing, and cost the planning of its side twice."""
    query = (
        "SELECT /*+ BROADCAST(d) */ count(*) FROM fact JOIN range(500, 30000) d ON fact.k = d.id"
    )
    _check(star, query, FILES)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_scan_with_keys_is_not_taken_for_one_without(star: Lab, adaptive: str) -> None:
    """Nor for one with other keys: exchanges are reused for equal scans alone."""
    grouped = "SELECT v, count(*) AS n FROM fact GROUP BY v"
    keyed = (
        "SELECT v, count(*) AS n FROM fact JOIN dim ON fact.k = dim.k WHERE attr = {} GROUP BY v"
    )
    conf = {"spark.sql.adaptive.enabled": adaptive}
    parts = [grouped, keyed.format(77), keyed.format(7), grouped, keyed.format(77)]
    _check(star, " UNION ALL ".join(parts), 2 * FILES // 2 + 2 + 2, conf)


def test_a_query_runs_twice(star: Lab) -> None:
    """The same frame again, a cached one, and a cached dimension."""
    for adaptive in ("true", "false"):
        with star.setting("spark.sql.adaptive.enabled", adaptive):
            frame = star.spark.sql(f"{JOIN} WHERE attr = 77")
            once = sorted(frame.collect())
            assert _fact_files(frame) == 2
            assert sorted(frame.collect()) == once
            cached = star.spark.sql(f"{JOIN} WHERE attr < 3").cache()
            assert cached.count() == cached.filter("attr < 3").count() == 6
            cached.unpersist()
            star.sql("CACHE TABLE kept AS SELECT * FROM dim WHERE attr = 77")
            # Adaptive execution takes a scan of a cached table for another plan each time.
            files = FILES if adaptive == "true" else 2
            _check(star, "SELECT v FROM fact JOIN kept ON fact.k = kept.k", files)
            star.sql("DROP VIEW kept")


def test_files_that_the_index_does_not_know_are_read(star: Lab) -> None:
    """Rows that came after the index was built find their partners."""
    with star.database("later"):
        star.sql(
            "CREATE TABLE fact USING parquet AS SELECT id AS k, 1 AS v FROM range(0, 4000, 1, 40)"
        )
        star.sql("CREATE SIEVE INDEX ON fact (k)")
        star.sql("INSERT INTO fact VALUES (1540, 2)")
        query = "SELECT v FROM fact JOIN joined.dim ON fact.k = dim.k WHERE attr = 77"
        _check(star, query, 2 + 1)
    star.sql("USE joined")


def test_explain_names_what_comes_at_run_time(star: Lab) -> None:
    """Beside the constants; the files are those that constants leave."""
    for adaptive in ("true", "false"):
        with star.setting("spark.sql.adaptive.enabled", adaptive):
            rows = star.explain(f"{JOIN} WHERE attr = 77")
            (fact,) = (row for row in rows if row["table"].endswith("fact"))
            assert "k IN (keys of spark_catalog.joined.dim at run time)" in fact["predicate"]
            rows = star.explain("SELECT v FROM fact WHERE k = (SELECT max(k) FROM dim)")
            (fact,) = (row for row in rows if row["table"].endswith("fact"))
            assert "(k = (subquery at run time))" in fact["predicate"]


def test_scans_with_values_of_the_query_are_counted(star: Lab) -> None:
    """In `sieve_status`."""
    count = "SELECT value FROM sieve_status() WHERE counter = 'scans_at_run_time'"
    ((before,),) = star.sql(count)
    star.sql(f"{JOIN} WHERE attr = 77")
    assert star.sql(count) == [(before + 1,)]
