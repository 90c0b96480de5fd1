"""Joins and subqueries select files by values that are known only while a query runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
from pyspark.sql import DataFrame
from spark_session import Lab, scans, shown_scans

FILES = 40
JOIN = "SELECT fact.k, v, attr FROM fact JOIN dim ON fact.k = dim.k"


@pytest.fixture(scope="module")
def star(lab: Lab) -> Iterator[Lab]:
    """Forty files with a hundred ascending keys each, and a dimension with every twentieth key.

    A second fact table has the same number of files, in four partitions.
    """
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
        lab.sql(
            "CREATE TABLE parted USING parquet PARTITIONED BY (p) AS SELECT id AS k, id % 7 AS v, "
            f"id DIV 1000 AS p FROM range(0, 4000, 1, {FILES})"
        )
        lab.sql("CREATE SIEVE INDEX ON fact (k, i, s, d, st.n, day)")
        lab.sql("CREATE SIEVE INDEX ON parted (k)")
        yield lab


def _fact_files(frame: DataFrame) -> int:
    """The files of `fact` that an executed query read."""
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
    """The query's rows without Sieve, computed once, because they are the same for every plan."""
    if query not in _ROWS:
        with lab.setting("spark.sieve.enabled", "false"):
            _ROWS[query], _ = _run(lab, query)
    return _ROWS[query]


def _check(lab: Lab, query: str, files: int, conf: Mapping[str, str] | None = None) -> None:
    """Asserts that the rows equal those without Sieve, and that `fact` reads this many files."""
    strict = {"spark.sieve.strict": "true", "spark.sieve.audit.sample": "1.0"}
    with lab.settings(strict | (conf or {})):
        on, read = _run(lab, query)
    assert on == _without(lab, query), f"other rows: {query}"
    assert read == files, f"read {read} files of fact, not {files}: {query}"


PLANNED_ONCE = {"spark.sql.adaptive.enabled": "false"}
SHUFFLED = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
LONG = pytest.mark.long
FETCHED = SHUFFLED | {"spark.sieve.join.pruning": "always"}
MODES = {
    "adaptive": {},
    "planned once": PLANNED_ONCE,
    "fetched": FETCHED,
    "fetched, planned once": FETCHED | PLANNED_ONCE,
}


def _in_turns(kinds: Iterable[str], *turns: tuple[str, ...]) -> list[Any]:
    """Pairs each kind of query with the modes of one turn; successive kinds use successive turns.

    `make test` runs the first two modes of a turn.

    Sieve decides whether a join supplies keys before Spark chooses the algorithm of the join.
    tests/golden/joinkinds.sql runs each kind of join in all modes.
    """
    return [
        pytest.param(kind, mode, marks=LONG if place > 1 else ())
        for n, kind in enumerate(kinds)
        for place, mode in enumerate(turns[n % len(turns)])
    ]


# The keys 1540 and 3540, in files 15 and 35, have attr = 77.
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
    "a function without order": (
        "SELECT v FROM fact JOIN dim ON fact.k % 100000 = dim.k WHERE attr = 77"
    ),
    "a limited side": (
        "SELECT count(*) FROM fact JOIN (SELECT k FROM dim ORDER BY k LIMIT 2) USING (k)"
    ),
}  # fmt: skip


# In these joins, Spark cannot broadcast a side that has keys to prune the other side.
OUTER = {
    "left, through another": (
        (
            "SELECT d.k, f.v, e.attr FROM (SELECT * FROM dim WHERE attr = 77) d LEFT JOIN "
            "(fact f LEFT JOIN dim e ON f.v = e.attr) ON d.k = f.k"
        ),
        2,
    ),
    "left, with a further condition": (
        (
            "SELECT d.k, v FROM (SELECT * FROM dim WHERE attr IN (7, 77)) d "
            "LEFT JOIN fact f ON d.k = f.k AND d.attr = 77"
        ),
        4,
    ),
}


@pytest.mark.parametrize(
    ("kind", "mode"),
    _in_turns(
        PRUNED,
        ("adaptive", "fetched", "planned once"),
        ("planned once", "fetched, planned once", "adaptive"),
    ),
)
def test_a_join_reads_the_files_that_hold_a_partner(star: Lab, kind: str, mode: str) -> None:
    """Keys come from the broadcast of the other side; in a shuffle join, they come from a job."""
    query, files = PRUNED[kind]
    if mode.startswith("fetched"):
        # A job that fetches keys from the table itself scans the table a second time.
        files += kind == "with itself"
        # A subquery does not fetch keys, because Spark has few threads for subqueries.
        files = FILES if kind == "in a subquery" else files
    _check(star, query, files, MODES[mode])


@pytest.mark.parametrize("adaptive", ["true", pytest.param("false", marks=LONG)])
@pytest.mark.parametrize("kind", OUTER)
def test_the_side_that_gets_nulls_reads_files_with_a_partner(
    star: Lab, kind: str, adaptive: str
) -> None:
    """A side that returns all its rows still supplies keys; Spark never broadcasts such a side."""
    query, files = OUTER[kind]
    conf = {"spark.sql.adaptive.enabled": adaptive}
    _check(star, query, files, FETCHED | conf)
    _check(star, query, FILES, SHUFFLED | conf)


# For each kind of join, the files of `fact` that are read if `fact` is the left side, and if it is
# the right side.
SIDES = {
    "INNER": (1, 1),
    "LEFT": (FILES, 1),
    "RIGHT": (1, FILES),
    "FULL": (FILES, FILES),
    "LEFT SEMI": (1, 1),
    # The right side only decides which rows of the left side have a partner.
    "LEFT ANTI": (FILES, 1),
}


@pytest.mark.parametrize("on_right", [False, True])
@pytest.mark.parametrize("kind", SIDES)
def test_a_side_whose_rows_without_a_partner_are_given_out_reads_all(
    star: Lab, kind: str, *, on_right: bool
) -> None:
    """Either side of the join can have the index.

    Both sides have rows without a partner, and one side has a NULL key.
    """
    few = "(SELECT IF(k = 3540, 9999, k) AS k FROM dim WHERE attr = 77) d"
    left, right = (few, "fact f") if on_right else ("fact f", few)
    query = f"SELECT * FROM {left} {kind} JOIN {right} ON f.k = d.k"
    files = SIDES[kind][on_right]
    _check(star, query, files, FETCHED)
    # A semi join can broadcast only its right side (here `fact`), and then it fetches no other
    # keys.
    is_own = (kind, on_right) == ("LEFT SEMI", True)
    _check(star, query, FILES if is_own else files, {"spark.sieve.join.pruning": "always"})


@pytest.mark.parametrize(
    "kind",
    [
        "inner",
        pytest.param("in", marks=LONG),
        "below a union",
        pytest.param("the same dimension twice", marks=LONG),
    ],
)
def test_no_keys_are_fetched_for_a_small_table(star: Lab, kind: str) -> None:
    """The job for the keys would take longer than the scan, but `always` runs the job."""
    query, _ = PRUNED[kind]
    with star.settings(SHUFFLED | {"spark.sieve.join.pruning": "off"}):
        _, files = _run(star, query)
    assert files > PRUNED[kind][1]
    _check(star, query, files, SHUFFLED)


@pytest.mark.parametrize(
    ("kind", "mode"),
    _in_turns(UNPRUNED, ("adaptive", "fetched, planned once"), ("planned once", "fetched")),
)
def test_a_join_that_gives_out_rows_without_a_partner_reads_all(
    star: Lab, kind: str, mode: str
) -> None:
    """If a plan node between scan and join depends on other rows, the scan also reads all files."""
    _check(star, UNPRUNED[kind], FILES, MODES[mode])


@pytest.mark.parametrize("mode", MODES)
def test_an_empty_side_reads_no_file(star: Lab, mode: str) -> None:
    """A join with an empty side reads no file, not even files that the index does not know."""
    conf = MODES[mode]
    _check(star, f"{JOIN} WHERE attr = -1", 0, conf)
    nulls = "SELECT v FROM fact JOIN (SELECT k FROM dim WHERE k IS NULL OR attr = -1) USING (k)"
    _check(star, nulls, 0, conf)
    outer = (
        "SELECT d.attr, v FROM (SELECT * FROM dim WHERE k IS NULL) d LEFT JOIN fact f ON d.k = f.k"
    )
    _check(star, outer, 0, conf | FETCHED)


def test_off_reads_all(star: Lab) -> None:
    """The setting turns off pruning by join keys and by results of subqueries."""
    conf = {"spark.sieve.join.pruning": "off"}
    _check(star, f"{JOIN} WHERE attr = 77", FILES, conf)
    _check(star, "SELECT v FROM fact WHERE k = (SELECT max(k) FROM dim)", FILES, conf)
    _check(star, f"{JOIN} WHERE attr = 77", FILES, {"spark.sql.exchange.reuse": "false"})
    dpp = {"spark.sql.optimizer.dynamicPartitionPruning.enabled": "false"}
    _check(star, f"{JOIN} WHERE attr = 77", FILES, dpp)


@pytest.mark.parametrize("adaptive", ["true", pytest.param("false", marks=LONG)])
@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ("k = (SELECT max(k) FROM dim)", 1),
        ("k > (SELECT max(k) - 200 FROM dim)", 3),
        ("i >= (SELECT max(k) FROM dim) AND v > 0", 1),
        ("k = (SELECT max(k) FROM dim WHERE attr = -1)", 0),
        ("k < (SELECT min(k) + 150 FROM dim) OR k = (SELECT max(k) FROM dim)", 3),
        ("v = (SELECT min(attr) FROM dim)", FILES),
        ("k BETWEEN (SELECT min(k) + 150 FROM dim) AND (SELECT min(k) + 250 FROM dim)", 2),
        ("d = (SELECT max(DOUBLE('NaN')) FROM dim WHERE attr = 3)", 1),
        ("k IN ((SELECT max(k) FROM dim), 5)", 2),
    ],
)
def test_a_scalar_subquery_picks_files(
    star: Lab, condition: str, files: int, adaptive: str
) -> None:
    """The result of a scalar subquery selects files as a constant would."""
    conf = {"spark.sql.adaptive.enabled": adaptive}
    _check(star, f"SELECT v FROM fact WHERE {condition}", files, conf)


def test_values_given_apart_from_the_text_pick_files(star: Lab) -> None:
    """Parameters select files; on Spark 4, session variables and EXECUTE IMMEDIATE do so, too."""
    frame = star.spark.sql("SELECT v FROM fact WHERE k = :k", args={"k": 1540})
    assert [tuple(row) for row in frame.collect()] == [(0,)]
    assert _fact_files(frame) == 1
    if star.spark.version.startswith("3."):
        return
    star.sql("DECLARE OR REPLACE VARIABLE wanted BIGINT DEFAULT 1540")
    _check(star, "SELECT v FROM fact WHERE k = wanted", 1)
    star.sql("SET VAR wanted = (SELECT max(k) FROM dim)")
    _check(star, "SELECT v, 'largest' FROM fact WHERE k >= wanted", 1)
    _check(star, "EXECUTE IMMEDIATE 'SELECT v FROM fact WHERE k = ?' USING 1540", 1)
    _check(star, "EXECUTE IMMEDIATE 'SELECT v FROM fact WHERE k < :k' USING 250 AS k", 3)
    star.sql("DROP TEMPORARY VARIABLE wanted")


def test_many_keys_go_as_ranges(star: Lab) -> None:
    """More than 10,000 keys become at most 1,000 ranges that contain all keys."""
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
    """All keys of a dimension together would skip no file, and Spark would plan this side twice."""
    query = (
        "SELECT /*+ BROADCAST(d) */ count(*) FROM fact JOIN range(500, 30000) d ON fact.k = d.id"
    )
    _check(star, query, FILES)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_scan_with_keys_is_not_taken_for_one_without(star: Lab, adaptive: str) -> None:
    """Spark reuses only exchanges of equal scans, and scans with different keys are unequal."""
    grouped = "SELECT v, count(*) AS n FROM fact GROUP BY v"
    keyed = (
        "SELECT v, count(*) AS n FROM fact JOIN dim ON fact.k = dim.k WHERE attr = {} GROUP BY v"
    )
    conf = {"spark.sql.adaptive.enabled": adaptive}
    parts = [grouped, keyed.format(77), keyed.format(7), grouped, keyed.format(77)]
    _check(star, " UNION ALL ".join(parts), 2 * FILES // 2 + 2 + 2, conf)


@pytest.mark.parametrize("adaptive", [pytest.param("true", marks=LONG), "false"])
def test_a_query_runs_twice(star: Lab, adaptive: str) -> None:
    """The same data frame runs twice, and so do a cached frame and a cached dimension."""
    with star.setting("spark.sql.adaptive.enabled", adaptive):
        frame = star.spark.sql(f"{JOIN} WHERE attr = 77")
        once = sorted(frame.collect())
        assert _fact_files(frame) == 2
        assert sorted(frame.collect()) == once
        cached = star.spark.sql(f"{JOIN} WHERE attr < 3").cache()
        assert cached.count() == cached.filter("attr < 3").count() == 6
        cached.unpersist()
        star.sql("CACHE TABLE kept AS SELECT * FROM dim WHERE attr = 77")
        # For adaptive execution, each scan of a cached table belongs to a separate plan.
        files = FILES if adaptive == "true" else 2
        query = "SELECT v FROM fact JOIN kept ON fact.k = kept.k"
        _check(star, query, files)
        _check(star, query, 2, {"spark.sieve.join.pruning": "always"})
        star.sql("DROP VIEW kept")


def test_files_that_the_index_does_not_know_are_read(star: Lab) -> None:
    """Rows that were written after the build are joined with their partners."""
    with star.database("later"):
        star.sql(
            "CREATE TABLE fact USING parquet AS SELECT id AS k, 1 AS v FROM range(0, 4000, 1, 40)"
        )
        star.sql("CREATE SIEVE INDEX ON fact (k)")
        star.sql("INSERT INTO fact VALUES (1540, 2)")
        query = "SELECT v FROM fact JOIN joined.dim ON fact.k = dim.k WHERE attr = 77"
        _check(star, query, 2 + 1)
    star.sql("USE joined")


def _told(lab: Lab, query: str) -> tuple[str, str | None]:
    """The predicate and the reasons that EXPLAIN SIEVE shows for the scan of `fact`."""
    with lab.setting("spark.sieve.strict", "true"):
        (fact,) = (row for row in lab.explain(query) if row["table"].endswith("fact"))
    return fact["predicate"], fact["reasons"]


@pytest.mark.parametrize("adaptive", ["true", pytest.param("false", marks=LONG)])
def test_explain_names_what_comes_at_run_time(star: Lab, adaptive: str) -> None:
    """EXPLAIN shows the source of run-time values, and counts the files that constants select."""
    with star.setting("spark.sql.adaptive.enabled", adaptive):
        predicate, reasons = _told(star, f"{JOIN} WHERE attr = 77")
        assert "k IN (keys of spark_catalog.joined.dim at run time)" in predicate
        assert reasons is None
        scalar, _ = _told(star, "SELECT v FROM fact WHERE k = (SELECT max(k) FROM dim)")
        assert "(k = (subquery at run time))" in scalar
        with star.settings(FETCHED):
            fetched, _ = _told(star, f"{JOIN} WHERE attr = 77")
        assert "k IN (keys of spark_catalog.joined.dim, read for them, at run time)" in fetched


@pytest.mark.parametrize(
    ("query", "conf", "reason"),
    [
        (f"{JOIN} WHERE attr = 77", SHUFFLED, "join-too-costly"),
        (
            ("SELECT /*+ BROADCAST(d) */ 1 FROM fact JOIN range(500, 30000) d ON fact.k = d.id"),
            {},
            "join-not-selective",
        ),
        (
            "SELECT 1 FROM fact JOIN (SELECT k FROM dim ORDER BY k LIMIT 2) USING (k)",
            {},
            "join-not-repeatable",
        ),
        (
            (
                "SELECT 1 FROM fact JOIN (SELECT k, row_number() OVER (ORDER BY attr) AS n "
                "FROM dim) d ON fact.k = d.k WHERE n = 5"
            ),
            FETCHED,
            "join-not-repeatable",
        ),
        (
            (
                "SELECT 1 FROM fact JOIN (SELECT k FROM dim GROUP BY k HAVING avg(attr) > 3) d "
                "ON fact.k = d.k"
            ),
            FETCHED,
            "join-not-repeatable",
        ),
    ],
)
def test_explain_says_why_a_join_gives_no_keys(
    star: Lab, query: str, conf: Mapping[str, str], reason: str
) -> None:
    """`sieve_status` also counts the reason, and the query reads all files."""
    count = f"SELECT value FROM sieve_status() WHERE reason = '{reason}'"
    with star.settings(conf):
        ((before,),) = star.sql(count)
        predicate, reasons = _told(star, query)
        assert "at run time" not in predicate
        assert reason in {part.partition(":")[0] for part in (reasons or "").split(", ")}
        assert star.sql(count) == [(before + 1,)]
    _check(star, query, FILES, conf)


@pytest.mark.parametrize("adaptive", ["true", pytest.param("false", marks=LONG)])
def test_one_exchange_for_scans_alike_is_worth_more(star: Lab, adaptive: str) -> None:
    """Scans that share an exchange use keys only if all of them get the same keys."""
    keyed = "SELECT f.v FROM fact f JOIN dim ON f.k = dim.k WHERE attr = {}"
    apart = f"SELECT * FROM ({keyed.format(77)}) UNION ALL SELECT * FROM ({keyed.format(7)})"
    alike = f"SELECT * FROM ({keyed.format(77)}) UNION ALL SELECT * FROM ({keyed.format(77)})"
    conf = FETCHED | {"spark.sql.adaptive.enabled": adaptive}
    with star.settings(conf | {"spark.sieve.strict": "true"}):
        rows = star.explain(apart)
    reasons = {row["reasons"] for row in rows if row["table"].endswith("fact")}
    assert reasons == {f"exchange-shared: {FILES}"}
    _check(star, apart, FILES, conf)
    _check(star, alike, 2, conf)


def test_scans_with_values_of_the_query_are_counted(star: Lab) -> None:
    """`sieve_status` counts scans and their keys.

    Spark's SQL tab shows the time for which the scans waited.
    """
    counters = ("scans_at_run_time", "keys_received")
    count = f"SELECT value FROM sieve_status() WHERE counter IN {counters} ORDER BY counter DESC"
    for conf in ({}, FETCHED):
        with star.settings(conf):
            ((scans_before,), (keys_before,)) = star.sql(count)
            shown = shown_scans(star, f"{JOIN} WHERE attr = 77")
            assert star.sql(count) == [(scans_before + 1,), (keys_before + 2,)]
        (fact,) = (scan for scan in shown if "fact" in scan[""])
        assert fact["number of keys received"] == "2"
        assert fact["number of files skipped"] == str(FILES - 2)
        assert fact["time waiting for keys"].endswith(("ms", " s"))
        assert all("number of keys received" not in scan for scan in shown if scan != fact)


@pytest.mark.parametrize(
    ("hint", "conf"),
    [
        ("BROADCAST(d)", {"spark.sieve.require": "true"}),
        pytest.param("MERGE(d)", FETCHED, marks=LONG),
    ],
)
def test_more_keys_than_are_looked_up_are_told_of(
    star: Lab, hint: str, conf: Mapping[str, str]
) -> None:
    """The scan uses ranges that contain the keys, and `spark.sieve.require` accepts this."""
    many = "FROM fact JOIN range(500, 30000) d ON fact.k = d.id WHERE d.id != 5"
    count = "SELECT value FROM sieve_status() WHERE reason = 'keys-too-many'"
    ((before,),) = star.sql(count)
    _check(star, f"SELECT /*+ {hint} */ count(*) {many}", 35, conf)
    assert star.sql(count) == [(before + 1,)]


BROADCAST = "BroadcastHashJoin"
MERGED = "SortMergeJoin"
LIMITED = {"spark.sql.autoBroadcastJoinThreshold": "20KB"}
"""Between the sizes of three files of `fact` and of all of them."""


def _join_of(lab: Lab, query: str, conf: Mapping[str, str]) -> str:
    """The join's algorithm in Spark's plan before execution."""
    with lab.settings(conf):
        plan = lab.spark.sql(query)._jdf.queryExecution().sparkPlan().toString()
    kinds = {kind for kind in (BROADCAST, MERGED) if kind in plan}
    assert len(kinds) == 1, plan
    return kinds.pop()


@pytest.mark.parametrize(
    "conf",
    [
        {},
        PLANNED_ONCE,
        {"spark.sieve.join.pruning": "always"},
        {"spark.sql.autoBroadcastJoinThreshold": "1KB"},
    ],
)
def test_an_index_makes_no_table_a_broadcast(star: Lab, conf: Mapping[str, str]) -> None:
    """Few bytes can be many rows, so an index does not change the algorithm of Spark's joins."""
    few = "SELECT f.v FROM fact f JOIN fact g ON f.v = g.v WHERE f.k BETWEEN 110 AND 250"
    assert _join_of(star, few, LIMITED | conf) == MERGED
    with star.settings(LIMITED | conf):
        sizes = []
        for enabled in ("true", "false"):
            with star.setting("spark.sieve.enabled", enabled):
                leaves = star.spark.sql(few)._jdf.queryExecution().optimizedPlan().collectLeaves()
                sizes.append([str(leaves.apply(k).stats().sizeInBytes()) for k in range(2)])
        assert sizes[0] == sizes[1]
    _check(star, f"{few} AND g.k = 7", 2 + 1, LIMITED | conf)


@pytest.mark.parametrize("adaptive", ["true", pytest.param("false", marks=LONG)])
def test_a_few_bytes_of_many_rows_are_joined_as_without_an_index(star: Lab, adaptive: str) -> None:
    """The file has 60 KB, but its rows need 40 MB, and the broadcast limit is 4 MB."""
    conf = {
        "spark.sql.adaptive.enabled": adaptive,
        "spark.sql.autoBroadcastJoinThreshold": "300KB",
        "spark.sql.maxBroadcastTableSize": "4MB",
    }
    text = "IF(id DIV 10000 = 7, repeat('x', 4000), repeat(sha2(CAST(id AS STRING), 256), 2))"
    star.sql(
        f"CREATE TABLE events USING parquet AS SELECT id, id DIV 10000 AS g, {text} AS text "
        "FROM range(0, 80000, 1, 8)"
    )
    star.sql(
        "CREATE TABLE others USING parquet AS SELECT id, sha2(CAST(id AS STRING), 256) AS pad "
        "FROM range(0, 80000, 4, 2)"
    )
    try:
        star.sql("CREATE SIEVE INDEX ON events (g)")
        with star.settings(conf):
            query = (
                "SELECT count(*), sum(length(text)), max(pad) FROM others JOIN events USING (id) "
                "WHERE g = 7"
            )
            star.check(query, exactly=1 + 2)
    finally:
        star.sql("DROP TABLE events")
        star.sql("DROP TABLE others")


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_side_whose_partitions_a_join_above_picks_is_broadcast_once(
    star: Lab, adaptive: str
) -> None:
    """If a side were planned without the outer join, it would be broadcast with all partitions."""
    query = (
        "SELECT /*+ BROADCAST(p), BROADCAST(d) */ f.v FROM fact f JOIN parted p ON f.k = p.k "
        "JOIN (SELECT k DIV 1000 AS q FROM dim WHERE attr = 77) d ON p.p = d.q"
    )
    with star.settings({"spark.sql.adaptive.enabled": adaptive, "spark.sieve.strict": "true"}):
        frame = star.spark.sql(query)
        rows = Counter(repr(tuple(row)) for row in frame.collect())
        read = [
            scan.metrics().apply("numFiles").value()
            for scan in scans(frame._jdf.queryExecution().executedPlan())
            if scan.tableIdentifier().get().table() == "parted"
        ]
    assert rows == _without(star, query)
    assert read == [20]
