"""Tests how run-time values change Spark's plans, and how EXPLAIN and counters show the values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from joined_tables import (
    FETCHED,
    FILES,
    JOIN,
    LONG,
    PLANNED_ONCE,
    SHUFFLED,
    check,
    fact_files,
    without,
)
from spark_session import Lab, scans, shown_scans


@pytest.mark.long
def test_setting_off_reads_all_files(star: Lab) -> None:
    """With spark.sieve.join.pruning off, neither join keys nor subquery results skip files."""
    conf = {"spark.sieve.join.pruning": "off"}
    check(star, f"{JOIN} WHERE attr = 77", FILES, conf)
    check(star, "SELECT v FROM fact WHERE k = (SELECT max(k) FROM dim)", FILES, conf)
    check(star, f"{JOIN} WHERE attr = 77", FILES, {"spark.sql.exchange.reuse": "false"})
    dpp = {"spark.sql.optimizer.dynamicPartitionPruning.enabled": "false"}
    check(star, f"{JOIN} WHERE attr = 77", FILES, dpp)


@pytest.mark.sampled(2)
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
    """The result of a scalar subquery selects the same files as an equal constant."""
    conf = {"spark.sql.adaptive.enabled": adaptive}
    check(star, f"SELECT v FROM fact WHERE {condition}", files, conf)


def test_parameters_and_variables_select_files(star: Lab) -> None:
    """Parameters select files as constants do, and on Spark 4, so do session variables."""
    frame = star.spark.sql("SELECT v FROM fact WHERE k = :k", args={"k": 1540})
    assert [tuple(row) for row in frame.collect()] == [(0,)]
    assert fact_files(frame) == 1
    if star.spark.version.startswith("3."):
        return
    star.sql("DECLARE OR REPLACE VARIABLE wanted BIGINT DEFAULT 1540")
    check(star, "SELECT v FROM fact WHERE k = wanted", 1)
    star.sql("SET VAR wanted = (SELECT max(k) FROM dim)")
    check(star, "SELECT v, 'largest' FROM fact WHERE k >= wanted", 1)
    check(star, "EXECUTE IMMEDIATE 'SELECT v FROM fact WHERE k = ?' USING 1540", 1)
    check(star, "EXECUTE IMMEDIATE 'SELECT v FROM fact WHERE k < :k' USING 250 AS k", 3)
    star.sql("DROP TEMPORARY VARIABLE wanted")


def test_many_keys_become_ranges(star: Lab) -> None:
    """If a join has over 10,000 keys, Sieve makes at most 1,000 ranges that contain all keys."""
    few = "SELECT /*+ BROADCAST(d) */ count(*) FROM fact JOIN range(500, 1500) d ON fact.k = d.id"
    check(star, few, 10)
    many = "SELECT /*+ BROADCAST(d) */ count(*) FROM fact JOIN range(500, 30000) d ON fact.k = d.id"
    check(star, f"{many} WHERE d.id != 5", 35)
    holes = (
        "SELECT /*+ BROADCAST(d) */ count(*) FROM fact JOIN "
        "(SELECT IF(id < 3, id * 1000, id + 10000) AS k FROM range(20000) WHERE id != 7) d "
        "ON fact.k = d.k"
    )
    check(star, holes, 3)


def test_side_without_a_predicate_supplies_no_keys(star: Lab) -> None:
    """A dimension without a predicate supplies no keys, because all its keys exclude no file."""
    query = (
        "SELECT /*+ BROADCAST(d) */ count(*) FROM fact JOIN range(500, 30000) d ON fact.k = d.id"
    )
    check(star, query, FILES)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_scans_with_and_without_keys_share_no_exchange(star: Lab, adaptive: str) -> None:
    """Two scans share no exchange if only one of them has join keys."""
    grouped = "SELECT v, count(*) AS n FROM fact GROUP BY v"
    keyed = (
        "SELECT v, count(*) AS n FROM fact JOIN dim ON fact.k = dim.k WHERE attr = {} GROUP BY v"
    )
    conf = {"spark.sql.adaptive.enabled": adaptive}
    parts = [grouped, keyed.format(77), keyed.format(7), grouped, keyed.format(77)]
    check(star, " UNION ALL ".join(parts), 2 * FILES // 2 + 2 + 2, conf)


@pytest.mark.parametrize("adaptive", [pytest.param("true", marks=LONG), "false"])
def test_a_query_runs_twice(star: Lab, adaptive: str) -> None:
    """A data frame that runs twice, is cached, or joins a cached table returns the same rows."""
    with star.setting("spark.sql.adaptive.enabled", adaptive):
        frame = star.spark.sql(f"{JOIN} WHERE attr = 77")
        once = sorted(frame.collect())
        assert fact_files(frame) == 2
        assert sorted(frame.collect()) == once
        cached = star.spark.sql(f"{JOIN} WHERE attr < 3").cache()
        assert cached.count() == cached.filter("attr < 3").count() == 6
        cached.unpersist()
        star.sql("CACHE TABLE kept AS SELECT * FROM dim WHERE attr = 77")
        # Under adaptive execution, a separate plan contains the scans of a cached table.
        files = FILES if adaptive == "true" else 2
        query = "SELECT v FROM fact JOIN kept ON fact.k = kept.k"
        check(star, query, files)
        check(star, query, 2, {"spark.sieve.join.pruning": "always"})
        star.sql("DROP VIEW kept")


def test_files_unknown_to_the_index_are_read(star: Lab) -> None:
    """A join also returns rows that were written after the index was built."""
    with star.database("later"):
        star.sql(
            "CREATE TABLE fact USING parquet AS SELECT id AS k, 1 AS v FROM range(0, 4000, 1, 40)"
        )
        star.sql("CREATE SIEVE INDEX ON fact (k)")
        star.sql("INSERT INTO fact VALUES (1540, 2)")
        query = "SELECT v FROM fact JOIN joined.dim ON fact.k = dim.k WHERE attr = 77"
        check(star, query, 2 + 1)
    star.sql("USE joined")


def _explained(lab: Lab, query: str) -> tuple[str, str | None]:
    """What EXPLAIN SIEVE shows for the scan of `fact`: the predicate and the reasons."""
    with lab.setting("spark.sieve.strict", "true"):
        (fact,) = (row for row in lab.explain(query) if row["table"].endswith("fact"))
    return fact["predicate"], fact["reasons"]


@pytest.mark.parametrize("adaptive", ["true", pytest.param("false", marks=LONG)])
def test_explain_names_the_source_of_run_time_values(star: Lab, adaptive: str) -> None:
    """EXPLAIN shows where run-time values come from, and counts the files that constants select."""
    with star.setting("spark.sql.adaptive.enabled", adaptive):
        predicate, reasons = _explained(star, f"{JOIN} WHERE attr = 77")
        assert "k IN (keys of spark_catalog.joined.dim at run time)" in predicate
        assert reasons is None
        scalar, _ = _explained(star, "SELECT v FROM fact WHERE k = (SELECT max(k) FROM dim)")
        assert "(k = (subquery at run time))" in scalar
        with star.settings(FETCHED):
            fetched, _ = _explained(star, f"{JOIN} WHERE attr = 77")
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
    """EXPLAIN says why a join supplies no keys, and `sieve_status` counts the reasons."""
    count = f"SELECT value FROM sieve_status() WHERE reason = '{reason}'"
    with star.settings(conf):
        ((before,),) = star.sql(count)
        predicate, reasons = _explained(star, query)
        assert "at run time" not in predicate
        assert reason in {part.partition(":")[0] for part in (reasons or "").split(", ")}
        assert star.sql(count) == [(before + 1,)]
    check(star, query, FILES, conf)


@pytest.mark.parametrize("adaptive", ["true", pytest.param("false", marks=LONG)])
def test_shared_exchange_needs_the_same_keys_in_all_scans(star: Lab, adaptive: str) -> None:
    """Join keys prune scans that share an exchange only if all of these scans get the same keys."""
    keyed = "SELECT f.v FROM fact f JOIN dim ON f.k = dim.k WHERE attr = {}"
    apart = f"SELECT * FROM ({keyed.format(77)}) UNION ALL SELECT * FROM ({keyed.format(7)})"
    alike = f"SELECT * FROM ({keyed.format(77)}) UNION ALL SELECT * FROM ({keyed.format(77)})"
    conf = FETCHED | {"spark.sql.adaptive.enabled": adaptive}
    with star.settings(conf | {"spark.sieve.strict": "true"}):
        rows = star.explain(apart)
    reasons = {row["reasons"] for row in rows if row["table"].endswith("fact")}
    assert reasons == {f"exchange-shared: {FILES}"}
    check(star, apart, FILES, conf)
    check(star, alike, 2, conf)


def test_scans_with_values_of_the_query_are_counted(star: Lab) -> None:
    """`sieve_status` counts the scans that got run-time values, and the keys of these scans.

    Spark's SQL tab shows how long scans waited for run-time values.
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
def test_require_accepts_ranges_for_too_many_keys(
    star: Lab, hint: str, conf: Mapping[str, str]
) -> None:
    """If a join has too many keys, a scan uses key ranges, which satisfy `spark.sieve.require`."""
    many = "FROM fact JOIN range(500, 30000) d ON fact.k = d.id WHERE d.id != 5"
    count = "SELECT value FROM sieve_status() WHERE reason = 'keys-too-many'"
    ((before,),) = star.sql(count)
    check(star, f"SELECT /*+ {hint} */ count(*) {many}", 35, conf)
    assert star.sql(count) == [(before + 1,)]


BROADCAST = "BroadcastHashJoin"
MERGED = "SortMergeJoin"
LIMITED = {"spark.sql.autoBroadcastJoinThreshold": "20KB"}
"""This limit is above the size of three files of `fact`, and below the size of all its files."""


def _join_of(lab: Lab, query: str, conf: Mapping[str, str]) -> str:
    """The join algorithm in Spark's physical plan, before adaptive execution changes it."""
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
def test_index_does_not_cause_a_broadcast(star: Lab, conf: Mapping[str, str]) -> None:
    """An index does not make Spark broadcast a side, as few remaining bytes can hold many rows."""
    few = "SELECT f.v FROM fact f JOIN fact g ON f.v = g.v WHERE f.k BETWEEN 110 AND 250"
    assert _join_of(star, few, LIMITED | conf) == MERGED
    with star.settings(LIMITED | conf):
        sizes = []
        for enabled in ("true", "false"):
            with star.setting("spark.sieve.enabled", enabled):
                leaves = star.spark.sql(few)._jdf.queryExecution().optimizedPlan().collectLeaves()
                sizes.append([str(leaves.apply(k).stats().sizeInBytes()) for k in range(2)])
        assert sizes[0] == sizes[1]
    check(star, f"{few} AND g.k = 7", 2 + 1, LIMITED | conf)


@pytest.mark.long
@pytest.mark.parametrize("adaptive", ["true", pytest.param("false", marks=LONG)])
def test_few_bytes_of_many_rows_are_not_broadcast(star: Lab, adaptive: str) -> None:
    """A file of 60 KB with 40 MB of rows is not broadcast if the limit on a broadcast is 4 MB."""
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
def test_side_pruned_by_an_upper_join_is_broadcast_once(star: Lab, adaptive: str) -> None:
    """Spark broadcasts a join side once, even if an upper join selects partitions of this side.

    The broadcast of this side contains only the partitions that the upper join selects.
    """
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
    assert rows == without(star, query)
    assert read == [20]
