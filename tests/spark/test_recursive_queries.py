"""Tests recursive queries, which Spark plans round by round; Sieve prunes each round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
from spark_session import Lab

FILES = 8


@pytest.fixture(scope="module")
def graph(lab: Lab) -> Iterator[Lab]:
    """A table of eight files with a hundred edges each; each edge leads to another file's node."""
    if lab.spark.version.startswith("3."):
        pytest.skip("Spark 3.5 has no recursive queries")
    with lab.database("graph"):
        lab.sql(
            "CREATE TABLE edges USING parquet AS "
            f"SELECT id AS src, (id + 137) % 800 AS dst FROM range(0, 800, 1, {FILES})"
        )
        lab.sql("CREATE SIEVE INDEX ON edges (src)")
        yield lab


WALK = (
    "WITH RECURSIVE walk(node, hops) AS (SELECT 0L, 0 UNION ALL SELECT {} e.dst, w.hops + 1 "
    "FROM walk w JOIN edges e ON e.src = w.node WHERE w.hops < 4) "
)
LONG = pytest.mark.long
FETCHED = {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sieve.join.pruning": "always"}
PLANNED_ONCE = {"spark.sql.adaptive.enabled": "false"}
AS_FRAMES = {"spark.sql.cteRecursionAnchorRowsLimitToConvertToLocalRelation": "0"}
MODES = {
    "adaptive": {},
    "planned once": PLANNED_ONCE,
    "always": {"spark.sieve.join.pruning": "always"},
    "fetched": FETCHED,
    "rounds as data frames": AS_FRAMES,
    "fetched, planned once, as data frames": FETCHED | PLANNED_ONCE | AS_FRAMES,
}


OFTEN = {
    "adaptive", "fetched", "fetched, planned once, as data frames", "a join with the result",
    "a subquery", "an outer join", "a loop over its rows",
}  # fmt: skip
"""The members of `MODES` and `BEYOND` that `make test` runs."""


def _some(names: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=() if name in OFTEN else LONG) for name in names]


def _listed(lab: Lab) -> Counter[str]:
    """The counters of listed and skipped files. Plans do not show the scans of single rounds."""
    status = lab.sql("SELECT counter, value FROM sieve_status() WHERE counter LIKE 'files_%'")
    return Counter(dict(status))


def _check(lab: Lab, query: str, conf: Mapping[str, str]) -> tuple[int, int]:
    """Asserts that Sieve changes no rows; returns the numbers of files listed and read."""
    with lab.settings(conf):
        with lab.setting("spark.sieve.enabled", "false"):
            rows = Counter(map(repr, lab.sql(query)))
        before = _listed(lab)
        with lab.setting("spark.sieve.strict", "true"):
            assert Counter(map(repr, lab.sql(query))) == rows, query
    done = _listed(lab)
    done.subtract(before)
    return done["files_listed"], done["files_listed"] - done["files_skipped"]


@pytest.mark.parametrize("mode", _some(MODES))
@pytest.mark.parametrize("hint", ["/*+ BROADCAST(w) */", pytest.param("", marks=LONG)])
def test_each_round_reads_only_files_with_its_keys(graph: Lab, hint: str, mode: str) -> None:
    """Each round of a loop (a recursive query) reads only the files with the keys of the round."""
    listed, read = _check(graph, WALK.format(hint) + "SELECT * FROM walk", MODES[mode])
    assert listed >= 4 * FILES
    # If the rows of a shuffled round are not constants, Spark can run the round again with other
    # keys.
    assert read < listed if "data frames" in mode else read == listed // FILES


BEYOND = {
    "a join with the result": (
        "SELECT /*+ BROADCAST(walk) */ walk.hops, f.dst FROM walk JOIN edges f ON f.src = walk.node"
    ),
    "twice": "SELECT a.node FROM walk a JOIN walk b ON a.node = b.node JOIN edges ON src = a.node",
    "a subquery": "SELECT dst FROM edges WHERE src = (SELECT max(node) FROM walk)",
    "a limit": "SELECT * FROM walk LIMIT 3",
    "an outer join": "SELECT * FROM walk LEFT JOIN edges ON src = node",
    "a semi join": "SELECT dst FROM edges WHERE src IN (SELECT node FROM walk)",
    "a loop over its rows": (
        ", far(n, h) AS (SELECT node, hops FROM walk WHERE hops = 4 UNION ALL "
        "SELECT dst, h + 1 FROM far JOIN edges ON src = n WHERE h < 6) SELECT * FROM far"
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", _some(BEYOND))
@pytest.mark.parametrize("adaptive", ["true", pytest.param("false", marks=LONG)])
def test_queries_around_a_loop(graph: Lab, kind: str, adaptive: str) -> None:
    """If join keys come from the result of a loop, queries skip files by these keys."""
    query = WALK.format("") + BEYOND[kind]
    listed, read = _check(graph, query, {"spark.sql.adaptive.enabled": adaptive})
    assert read < listed
    if kind == "a join with the result":
        # The five nodes of the result are in four or five different files.
        assert read <= (listed // FILES - 1) + 5


INSIDE = {
    "a subquery in a round": (
        "SELECT e.dst, w.hops + 1 FROM walk w JOIN edges e ON e.src = w.node "
        "WHERE w.hops < (SELECT max(x.src) % 5 FROM edges x JOIN edges y ON x.src = y.src "
        "WHERE x.dst = 9)"
    ),
    "a table beside": (
        "SELECT /*+ BROADCAST(y) */ y.dst, w.hops + 1 FROM walk w JOIN edges e ON e.src = w.node "
        "JOIN edges y ON e.dst = y.src AND y.dst % 2 = 0 WHERE w.hops < 3"
    ),
    "an outer join": (
        "SELECT e.dst, w.hops + 1 FROM walk w LEFT JOIN edges e ON e.src = w.node WHERE w.hops < 3"
    ),
}


@pytest.mark.long
@pytest.mark.parametrize(
    "kind",
    ["a subquery in a round", "a table beside", pytest.param("an outer join", marks=LONG)],
)
@pytest.mark.parametrize("mode", ["fetched", pytest.param("adaptive", marks=LONG)])
def test_joins_and_subqueries_in_a_round(graph: Lab, kind: str, mode: str) -> None:
    """Queries skip files and lose no row even if a round of the loop has joins or subqueries."""
    loop = f"WITH RECURSIVE walk(node, hops) AS (SELECT 0L, 0 UNION ALL {INSIDE[kind]}) "
    listed, read = _check(graph, f"{loop} SELECT * FROM walk", MODES[mode])
    assert read <= listed


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", ["adaptive", pytest.param("planned once", marks=LONG)])
@pytest.mark.parametrize("where", ["view", "cached"])
def test_view_of_a_loop_used_twice_is_pruned(graph: Lab, where: str, mode: str) -> None:
    """Scans skip files if a query uses a view of a loop twice, or joins it with a cached table."""
    names = (
        "CREATE TABLE names USING parquet AS SELECT id AS k, id % 7 AS g FROM range(0, 800, 1, 8)"
    )
    loop = WALK.format("/*+ BROADCAST(w) */")
    try:
        if where == "view":
            graph.sql(f"CREATE TEMPORARY VIEW far AS {loop} SELECT * FROM walk")
            query = "SELECT * FROM far a JOIN far b USING (node) JOIN edges ON src = node"
        else:
            graph.sql(names)
            graph.sql("CACHE TABLE far AS SELECT k, g FROM names JOIN edges ON k = src WHERE g = 4")
            beside = "JOIN far ON k % 7 = 4 AND k > e.dst AND k < e.dst + 9 WHERE"
            query = loop.replace("WHERE", beside) + "SELECT * FROM walk"
        listed, read = _check(graph, query, MODES[mode])
        assert listed > FILES
        assert read <= listed // 2
    finally:
        graph.sql("DROP VIEW IF EXISTS far")
        graph.sql("DROP TABLE IF EXISTS names")


def test_explain_shows_the_scans_in_a_loop(graph: Lab) -> None:
    """EXPLAIN shows the scans of a loop's anchor, and the scans of a single round."""
    anchor = WALK.format("").replace("SELECT 0L, 0", "SELECT src, 0 FROM edges WHERE src = 5")
    with graph.setting("spark.sieve.strict", "true"):
        first, round_ = graph.explain(f"{anchor} SELECT * FROM walk")
    assert (first["files_total"], first["files_read"]) == (FILES, 1)
    assert "src IN (keys of the join at run time)" in round_["predicate"]
    assert round_["reasons"] is None


@pytest.mark.parametrize("conf", [{}, FETCHED])
def test_scans_get_keys_if_a_plan_is_analysed_again(lab: Lab, conf: Mapping[str, str]) -> None:
    """If Spark or a library analyses an optimized plan again, the plan's scans still get keys."""
    if lab.spark.version.startswith("3."):
        pytest.skip("frames of a plan are made in another way")
    with lab.database("analysed_again"), lab.settings(conf | {"spark.sieve.strict": "true"}):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 80, 1, 8)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        frame = lab.spark.sql("SELECT t.id FROM t JOIN range(3, 5) r ON t.id = r.id")
        plan = frame._jdf.queryExecution().optimizedPlan()
        assert "RunTimeFilteredScan" in plan.toString()
        dataset = lab.spark._jvm.org.apache.spark.sql.classic.Dataset
        before = _listed(lab)
        again = dataset.ofRows(lab.spark._jsparkSession, plan).filter("id > 3")
        assert [row.getLong(0) for row in again.collectAsList()] == [4]
        done = _listed(lab)
        done.subtract(before)
        assert done["files_listed"] - done["files_skipped"] == 1
