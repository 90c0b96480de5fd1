"""Random joins in star schemas return the same rows as Spark without the index."""

from __future__ import annotations

import random
import sys
from collections import Counter

import pytest
from py4j.protocol import Py4JJavaError
from spark_session import INTERPRETED, Answer, Lab

FACT_KEYS = ("k", "i", "s", "d", "m")
DIMENSIONS = ("days", "shops", "goods")
EMPTY = "nothing"
JOINS = ("JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
FILTERS = ("IN", "NOT IN", "EXISTS", "NOT EXISTS", "LEFT SEMI", "LEFT ANTI", "=", ">", "max")
HINTS = ("BROADCAST(x0)", "BROADCAST(q)", "MERGE(x0)", "SHUFFLE_HASH(x0)", "SHUFFLE_HASH(q)")
CASTS = (
    "CAST({0}.k AS STRING) = CAST({1}.k AS STRING)",
    "{0}.m = {1}.i",
    "{0}.i + 1 = {1}.k + 1",
    "CAST({0}.d AS FLOAT) = CAST({1}.d AS FLOAT)",
)
SETTINGS = {
    "spark.sql.adaptive.enabled": ("true", "false"),
    "spark.sql.autoBroadcastJoinThreshold": ("10MB", "10MB", "10MB", "-1"),
    "spark.sieve.join.pruning": ("auto", "always"),
    "spark.sql.exchange.reuse": ("true", "true", "true", "false"),
    "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": ("true", "false"),
}


def _make_star(lab: Lab, rng: random.Random) -> None:
    """Makes a fact table of about thirty files with five keys each, and the dimension tables.

    Keys can be NULL or NaN.

    The keys of the fact table are random, or ascend from file to file. The fact table can be
    partitioned, and the index can miss some of the table's files.
    """
    keys = (
        "IF(id % 41 = 0, NULL, {0}) AS k, CAST(pmod(xxhash64({0}), 900) AS INT) AS i, "
        "IF(id % 37 = 0, NULL, CONCAT('key-', {0} % 700)) AS s, "
        "CASE id % 97 WHEN 0 THEN DOUBLE('NaN') WHEN 1 THEN NULL WHEN 2 THEN -0.0D "
        "ELSE {0} / 4 END AS d, CAST({0} % 500 / 10 AS DECIMAL(10, 2)) AS m"
    )
    number = rng.choice(("id", "id", "(id * 7919 % 3000)"))
    partitions = rng.choice(("PARTITIONED BY (p)", ""))
    files = 10 if partitions else 30
    lab.sql(
        f"CREATE TABLE fact USING {rng.choice(('parquet', 'parquet', 'orc'))} {partitions} AS "
        f"SELECT {keys.format(number)}, id % 11 AS v, id DIV 1000 AS p "
        f"FROM range(0, 3000, 1, {files})"
    )
    for n, name in enumerate((*DIMENSIONS, EMPTY)):
        rows = 0 if name == EMPTY else 150 - 30 * n
        lab.sql(
            f"CREATE TABLE {name} USING parquet AS SELECT {keys.format(f'(id * {7 + n})')}, "
            f"id % {5 + n} AS c, id % 4 AS p FROM range(0, {rows}, 1, 2)"
        )
    lab.sql("CREATE VIEW seen AS SELECT * FROM fact WHERE v != 7")
    shape = rng.choice(("auto", "sieve", "intervals"))
    lab.sql(f"CREATE SIEVE INDEX ON fact (k, i, s, d, m) OPTIONS (shape = '{shape}')")
    lab.sql("CREATE SIEVE INDEX ON shops (k, i)")
    if rng.random() < 0.5:
        lab.sql("INSERT INTO fact SELECT * FROM fact WHERE k IN (7, 8, 70, 2000)")


def _condition(rng: random.Random, alias: str) -> str:
    return rng.choice(
        [
            f"{alias}.c = {rng.randrange(6)}",
            f"{alias}.c < {rng.randrange(3)}",
            f"{alias}.k BETWEEN {rng.randrange(300)} AND {rng.randrange(300, 600)}",
            f"{alias}.s LIKE 'key-{rng.randrange(10)}%'",
            f"{alias}.c = -1",
            "true",
        ]
    )


def _on(rng: random.Random, one: str, other: str) -> str:
    """A join condition on keys of two aliases, sometimes with a cast or a second pair of keys."""
    key = rng.choice(FACT_KEYS)
    equal = "<=>" if rng.random() < 0.1 else "="
    if rng.random() < 0.1:
        text = rng.choice(CASTS).format(one, other)
    elif key in "ki" and rng.random() < 0.3:
        text = f"{one}.{key} {equal} {other}.{'i' if key == 'k' else 'k'}"
    else:
        text = f"{one}.{key} {equal} {other}.{key}"
    if rng.random() < 0.2:
        text += f" AND {one}.p = {other}.p"
    if rng.random() < 0.15:
        text += f" AND {one}.v > {other}.c"
    return text


def _probe(rng: random.Random, depth: int) -> str:
    """A relation to join: the fact table, some of its rows, groups, a union, or another join."""
    choice = rng.randrange(10 if depth else 7)
    if choice < 3:
        return "SELECT k, i, s, d, m, v, p FROM fact"
    if choice == 3:
        return f"SELECT * FROM fact WHERE v < {rng.randrange(11)} AND k > {rng.randrange(2000)}"
    if choice == 4:
        return "SELECT k, i, s, d, m, max(v) AS v, p FROM fact GROUP BY k, i, s, d, m, p"
    if choice == 5:
        return (
            "SELECT * FROM fact WHERE v = 1 UNION ALL "
            "SELECT i AS k, i, s, d, m, v, p FROM fact WHERE v = 2"
        )
    if choice == 6:
        return "SELECT * FROM seen"
    return _joined(rng, depth - 1, "q.*")


def _joined(rng: random.Random, depth: int, columns: str) -> str:
    """A query that joins a table with dimensions, or filters by subqueries on dimensions."""
    source, conditions = f"({_probe(rng, depth)}) q", []
    for n in range(rng.choice((1, 1, 2, 3))):
        side = rng.choice((*DIMENSIONS, "fact")) if rng.random() < 0.9 else "fact"
        if rng.random() < 0.05:
            side = EMPTY
        if side == "fact":
            side = f"(SELECT *, v AS c FROM fact WHERE k < {rng.randrange(200)})"
        alias, kind = f"x{n}", rng.choice(FILTERS)
        on, where = _on(rng, "q", alias), _condition(rng, alias)
        if rng.random() < 0.6:
            joined = [f"({source})", f"{side} {alias}"]
            if rng.random() < 0.3:
                joined.reverse()
            source = f"{joined[0]} {rng.choice(JOINS)} {joined[1]} ON {on} AND {where}"
            if rng.random() < 0.5:
                conditions.append(_condition(rng, alias))
        elif kind.endswith("EXISTS"):
            conditions.append(f"{kind} (SELECT 1 FROM {side} {alias} WHERE {on} AND {where})")
        elif kind.endswith("IN"):
            key = rng.choice("kis")
            conditions.append(f"q.{key} {kind} (SELECT {key} FROM {side} {alias} WHERE {where})")
        elif kind.startswith("LEFT"):
            source += f" {kind} JOIN {side} {alias} ON {on} AND {where}"
        else:
            key, op = rng.choice("ksdm"), rng.choice(("=", "<", ">="))
            value = f"(SELECT max({key}) FROM {side} {alias} WHERE {where})"
            conditions.append(f"q.{key} {op} {value}")
    text = f"SELECT {columns} FROM {source}"
    return f"{text} WHERE {' AND '.join(conditions)}" if conditions else text


def _query(rng: random.Random) -> str:
    hint = f"/*+ {rng.choice(HINTS)} */ " if rng.random() < 0.5 else ""
    columns = "q.k, q.i, q.s, q.d, q.m, q.v"
    text = _joined(rng, 2, hint + columns)
    if rng.random() < 0.2:
        text += f" UNION ALL {_joined(rng, 1, columns)}"
    if rng.random() < 0.15:
        return f"WITH c AS ({text}) SELECT * FROM c WHERE v < 4 UNION ALL SELECT * FROM c"
    if rng.random() < 0.4:
        return f"SELECT v, count(*), count(k), max(s), sum(i) FROM ({text}) GROUP BY v"
    return text


def _check(lab: Lab, seed: int, queries: int) -> Counter[str]:
    """Checks that each query of a star schema returns the same rows with and without the index.

    Returns:
        Three counts: queries with run-time values, queries that read fewer files because of such
        values, and queries that fail in Spark itself.
    """
    rng, found = random.Random(seed), Counter()
    with lab.database("stars"):
        _make_star(lab, rng)
        for number in range(queries):
            query = _query(rng)
            conf = {key: rng.choice(values) for key, values in SETTINGS.items()}
            # A query takes longer to compile than to run, so Spark compiles only one query in four.
            conf |= INTERPRETED if number % 4 else {}
            with lab.settings(conf):
                before = _scans_at_run_time(lab)
                off = _without(lab, query)
                with lab.setting("spark.sieve.strict", "true"):
                    on = None if off is None else _run(lab, query)
                if off is None or on is None:
                    fails = off is None or _fails_without(lab, query)
                    assert fails, f"seed {seed}, {conf}: fails with the index alone: {query}"
                    found["fail in Spark"] += 1
                    continue
                assert on.rows == off.rows, f"seed {seed}, {conf}: other rows: {query}"
                if _scans_at_run_time(lab) > before:
                    found["given values"] += 1
                    found["skip by them"] += on.files < off.files
    return found


def _without(lab: Lab, query: str) -> Answer | None:
    with lab.setting("spark.sieve.enabled", "false"):
        return _run(lab, query)


def _run(lab: Lab, query: str) -> Answer | None:
    """Runs a query; returns None if Spark's ORC reader fails at a NULL from a subquery."""
    try:
        return lab.run(query)
    except Py4JJavaError as error:
        if "OrcFilters" not in str(error):
            raise
        return None


def _fails_without(lab: Lab, query: str) -> bool:
    """Runs a query several times without Sieve, and returns whether at least one run fails.

    Some runs succeed, because adaptive execution drops the failing scan if it first finds another
    side of the join empty.
    """
    return any(_without(lab, query) is None for _ in range(20))


def _scans_at_run_time(lab: Lab) -> int:
    count = "SELECT value FROM sieve_status() WHERE counter = 'scans_at_run_time'"
    return int(lab.sql(count)[0][0])


@pytest.mark.parametrize(
    ("seeds", "queries"), [((0,), 4), pytest.param((0, 1), 12, marks=pytest.mark.long)]
)
def test_random_joins_give_the_rows_of_spark(
    lab: Lab, seeds: tuple[int, ...], queries: int
) -> None:
    """Random joins in star schemas return Spark's rows.

    In many of these joins, values from run time select the files to read.
    """
    found = sum((_check(lab, seed, queries) for seed in seeds), Counter())
    least = len(seeds) * queries
    assert found["given values"] >= least // 4, found
    assert found["skip by them"] >= max(least // 8, 1), found
    assert found["fail in Spark"] == 0, found


@pytest.mark.soak
def test_many_random_joins_give_the_rows_of_spark(lab: Lab) -> None:
    """Ten thousand random joins in two hundred star schemas return Spark's rows."""
    found = Counter()
    for seed in range(1000, 1200):
        found += _check(lab, seed, 50)
        sys.stdout.write(f"star {seed}: {dict(found)}\n")
    assert found["given values"] >= 2_500, found
    assert found["skip by them"] >= 1_500, found
    assert found["fail in Spark"] <= 400, found
