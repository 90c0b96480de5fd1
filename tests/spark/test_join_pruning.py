"""Joins select files by keys that Sieve learns only while the query runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from joined_tables import (
    FETCHED,
    FILES,
    JOIN,
    LONG,
    MODES,
    SHUFFLED,
    check,
    run,
)
from spark_session import Lab


def _in_turns(kinds: Iterable[str], *turns: tuple[str, ...]) -> list[Any]:
    """Pairs each kind of query with the modes of one list. The kinds take the lists in turn.

    `make test` runs only the first two modes of each list.

    The golden file joinkinds.sql runs each kind of join in all modes. A few modes per kind suffice
    in this module, because Sieve decides on keys before Spark chooses the join algorithm.
    """
    return [
        pytest.param(kind, mode, marks=LONG if place > 1 else ())
        for n, kind in enumerate(kinds)
        for place, mode in enumerate(turns[n % len(turns)])
    ]


# The keys 1540 and 3540, which are in files 15 and 35, have attr = 77.
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


# In these joins, one side's keys prune the other side, but Spark cannot broadcast the first side.
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


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("kind", "mode"),
    _in_turns(
        PRUNED,
        ("adaptive", "fetched", "planned once"),
        ("planned once", "fetched, planned once", "adaptive"),
    ),
)
def test_join_reads_only_files_with_a_partner(star: Lab, kind: str, mode: str) -> None:
    """A join reads only files with matching rows; a broadcast or a separate job supplies keys."""
    query, files = PRUNED[kind]
    if mode.startswith("fetched"):
        # If `fact` itself supplies the keys, the job that fetches the keys scans `fact` a second
        # time.
        files += kind == "with itself"
        # Spark has few threads for subqueries, so a subquery fetches no keys.
        files = FILES if kind == "in a subquery" else files
    check(star, query, files, MODES[mode])


@pytest.mark.parametrize("adaptive", ["true", pytest.param("false", marks=LONG)])
@pytest.mark.parametrize("kind", OUTER)
def test_side_filled_with_nulls_reads_files_with_a_partner(
    star: Lab, kind: str, adaptive: str
) -> None:
    """If an outer join returns a side in full, a separate job fetches this side's keys.

    Spark never broadcasts a side that an outer join returns in full.
    """
    query, files = OUTER[kind]
    conf = {"spark.sql.adaptive.enabled": adaptive}
    check(star, query, files, FETCHED | conf)
    check(star, query, FILES, SHUFFLED | conf)


# For each kind of join, two counts of the files of `fact` that a query reads: first with `fact` on
# the left, then on the right.
SIDES = {
    "INNER": (1, 1),
    "LEFT": (FILES, 1),
    "RIGHT": (1, FILES),
    "FULL": (FILES, FILES),
    "LEFT SEMI": (1, 1),
    # In an anti join, the right side supplies no rows; it only shows which left rows have a match.
    "LEFT ANTI": (FILES, 1),
}
OFTEN = {
    ("LEFT", False), ("RIGHT", True), ("FULL", False), ("LEFT SEMI", True), ("LEFT ANTI", False),
}  # fmt: skip
"""The joins that `make test` runs. All of them read all files in at least one mode."""


@pytest.mark.parametrize(
    ("kind", "on_right"),
    [
        pytest.param(kind, on_right, marks=() if (kind, on_right) in OFTEN else LONG)
        for kind in SIDES
        for on_right in (False, True)
    ],
)
def test_side_returned_in_full_reads_all_files(star: Lab, kind: str, *, on_right: bool) -> None:
    """If a join also returns the unmatched rows of a side, the join reads all files of this side.

    In these joins, both sides have rows without a match, and one side has a NULL key.
    """
    few = "(SELECT IF(k = 3540, 9999, k) AS k FROM dim WHERE attr = 77) d"
    left, right = (few, "fact f") if on_right else ("fact f", few)
    query = f"SELECT * FROM {left} {kind} JOIN {right} ON f.k = d.k"
    files = SIDES[kind][on_right]
    check(star, query, files, FETCHED)
    # In a semi join, Spark can broadcast only the right side. Here, `fact` is on the right, and
    # Sieve fetches no keys of the left side.
    is_own = (kind, on_right) == ("LEFT SEMI", True)
    check(star, query, FILES if is_own else files, {"spark.sieve.join.pruning": "always"})


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
    """Sieve fetches keys for a small table only if spark.sieve.join.pruning is `always`."""
    query, _ = PRUNED[kind]
    with star.settings(SHUFFLED | {"spark.sieve.join.pruning": "off"}):
        _, files = run(star, query)
    assert files > PRUNED[kind][1]
    check(star, query, files, SHUFFLED)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("kind", "mode"),
    _in_turns(UNPRUNED, ("adaptive", "fetched, planned once"), ("planned once", "fetched")),
)
def test_scan_reads_all_if_a_plan_node_needs_other_rows(star: Lab, kind: str, mode: str) -> None:
    """If Sieve cannot use the join keys of a query, the scan of `fact` reads all files."""
    check(star, UNPRUNED[kind], FILES, MODES[mode])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", MODES)
def test_an_empty_side_reads_no_file(star: Lab, mode: str) -> None:
    """A join with an empty side reads no file of the other side, not even an unindexed file."""
    conf = MODES[mode]
    check(star, f"{JOIN} WHERE attr = -1", 0, conf)
    nulls = "SELECT v FROM fact JOIN (SELECT k FROM dim WHERE k IS NULL OR attr = -1) USING (k)"
    check(star, nulls, 0, conf)
    outer = (
        "SELECT d.attr, v FROM (SELECT * FROM dim WHERE k IS NULL) d LEFT JOIN fact f ON d.k = f.k"
    )
    check(star, outer, 0, conf | FETCHED)
