"""Star schemas with random joins: the rows are those of Spark without the index."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from spark_session import INTERPRETED, Lab

FACT_KEYS = ("k", "i", "s", "d", "m")
DIMENSIONS = ("days", "shops", "goods")
JOINS = ("JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
FILTERS = ("IN", "NOT IN", "EXISTS", "NOT EXISTS", "LEFT SEMI", "LEFT ANTI", "=", ">", "max")
SETTINGS = {
    "spark.sql.adaptive.enabled": ("true", "false"),
    "spark.sql.autoBroadcastJoinThreshold": ("10MB", "10MB", "10MB", "-1"),
    "spark.sql.exchange.reuse": ("true", "true", "true", "false"),
    "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": ("true", "false"),
}


@pytest.fixture(scope="module")
def stars(lab: Lab) -> Iterator[Lab]:
    """A fact of thirty files with five keys, NULL and NaN among them; three dimensions alike."""
    with lab.database("stars"):
        keys = (
            "IF(id % 41 = 0, NULL, {0}) AS k, CAST(pmod(xxhash64({0}), 900) AS INT) AS i, "
            "IF(id % 37 = 0, NULL, CONCAT('key-', {0} % 700)) AS s, "
            "CASE id % 97 WHEN 0 THEN DOUBLE('NaN') WHEN 1 THEN NULL WHEN 2 THEN -0.0D "
            "ELSE {0} / 4 END AS d, CAST({0} % 500 / 10 AS DECIMAL(10, 2)) AS m"
        )
        lab.sql(
            f"CREATE TABLE fact USING parquet PARTITIONED BY (p) AS SELECT {keys.format('id')}, "
            "id % 11 AS v, id DIV 1000 AS p FROM range(0, 3000, 1, 10)"
        )
        for n, name in enumerate(DIMENSIONS):
            lab.sql(
                f"CREATE TABLE {name} USING parquet AS SELECT {keys.format(f'(id * {7 + n})')}, "
                f"id % {5 + n} AS c, id % 4 AS p FROM range(0, {150 - 30 * n}, 1, 2)"
            )
        lab.sql("CREATE SIEVE INDEX ON fact (k, i, s, d, m)")
        lab.sql("CREATE SIEVE INDEX ON shops (k, i)")
        yield lab


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
    """An equality of keys of two aliases, at times through a cast, or with a second one."""
    key = rng.choice(FACT_KEYS)
    equal = "<=>" if rng.random() < 0.1 else "="
    if key in "ki" and rng.random() < 0.3:
        text = f"{one}.{key} {equal} {other}.{'i' if key == 'k' else 'k'}"
    else:
        text = f"{one}.{key} {equal} {other}.{key}"
    if rng.random() < 0.2:
        text += f" AND {one}.p = {other}.p"
    if rng.random() < 0.15:
        text += f" AND {one}.v > {other}.c"
    return text


def _probe(rng: random.Random, depth: int) -> str:
    """What is joined: the fact, a part of it, groups or a union of it, or a join."""
    choice = rng.randrange(9 if depth else 6)
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
    return _joined(rng, depth - 1, "q.*")


def _joined(rng: random.Random, depth: int, columns: str) -> str:
    """A query of a probe, with dimensions joined to it or as a filter of it."""
    source, conditions = f"({_probe(rng, depth)}) q", []
    for n in range(rng.choice((1, 1, 2, 3))):
        side = rng.choice((*DIMENSIONS, "fact")) if rng.random() < 0.9 else "fact"
        if side == "fact":
            side = f"(SELECT *, v AS c FROM fact WHERE k < {rng.randrange(200)})"
        alias, kind = f"x{n}", rng.choice(FILTERS)
        on, where = _on(rng, "q", alias), _condition(rng, alias)
        if rng.random() < 0.6:
            source += f" {rng.choice(JOINS)} {side} {alias} ON {on} AND {where}"
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
    hint = rng.choice(
        ("", "", "/*+ BROADCAST(x0) */ ", "/*+ BROADCAST(q) */ ", "/*+ MERGE(x0) */ ")
    )
    text = _joined(rng, 2, f"{hint}q.k, q.i, q.s, q.d, q.m, q.v")
    if rng.random() < 0.2:
        text += f" UNION ALL {_joined(rng, 1, 'q.k, q.i, q.s, q.d, q.m, q.v')}"
    if rng.random() < 0.4:
        return f"SELECT v, count(*), count(k), max(s), sum(i) FROM ({text}) GROUP BY v"
    return text


def _check(lab: Lab, seed: int) -> int:
    """Rows with the index and without are equal; how many scans got values at run time."""
    rng = random.Random(seed)
    query = _query(rng)
    conf = {key: rng.choice(values) for key, values in SETTINGS.items()}
    # Compiling takes longer than the query: one in four is.
    conf |= INTERPRETED if seed % 4 else {}
    count = "SELECT value FROM sieve_status() WHERE counter = 'scans_at_run_time'"
    with lab.settings(conf):
        before = lab.sql(count)[0][0]
        with lab.setting("spark.sieve.enabled", "false"):
            off = lab.run(query)
        with lab.setting("spark.sieve.strict", "true"):
            on = lab.run(query)
        assert on.rows == off.rows, f"seed {seed}, {conf}: other rows with the index: {query}"
        return int(lab.sql(count)[0][0] - before)


def test_random_joins_give_the_rows_of_spark(stars: Lab) -> None:
    """A hundred of them; in a good part values of the query pick files."""
    assert sum(_check(stars, seed) > 0 for seed in range(100)) >= 25


@pytest.mark.soak
def test_many_random_joins_give_the_rows_of_spark(stars: Lab) -> None:
    """Two thousand of them."""
    for seed in range(1000, 3000):
        _check(stars, seed)
