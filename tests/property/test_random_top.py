"""Random top-k queries, MIN and MAX return the same rows as a full sort without the index."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from spark_session import INTERPRETED, Lab, together

COLUMNS = ("i", "s", "d", "w")
FILES = 20
TURNS = 2
"""In the first turn, all files are indexed. Before the second turn, files change."""


class Table:
    """A table of files with ties, NULL and NaN. Some files change after the build of the index."""

    def __init__(self, lab: Lab, rng: random.Random) -> None:
        self.lab, self.rng, self.number = lab, rng, 0
        lab.sql(
            "CREATE TABLE t (id BIGINT, i INT, s STRING, d DOUBLE, w STRUCT<n: INT>, "
            f"p INT) USING {rng.choice(('parquet', 'orc'))} PARTITIONED BY (p)"
        )
        self.write(FILES)
        shape = rng.choice(("auto", "sieve", "intervals"))
        budget = "" if shape == "sieve" else ", budget = '8KB'"
        lab.sql(f"CREATE SIEVE INDEX ON t (i, s, d, w.n) OPTIONS (shape = '{shape}'{budget})")

    def write(self, files: int) -> None:
        """Writes files with keys of a random kind: ascending, random, few, equal, or all NULL."""
        rng, parts = self.rng, []
        for _ in range(files):
            self.number += 1
            scattered = f"pmod(xxhash64(id, {rng.randrange(99)}), 400)"
            base = rng.choice((f"{self.number * 10} + id % 17", scattered, "7", "id % 5 * 90"))
            absent = rng.choice(("false", "false", "id % 3 = 0", "true"))
            parts.append(
                f"SELECT {self.number} * 1000 + id AS id, IF({absent}, NULL, {base}) AS x, "
                f"{rng.randrange(3)} AS p, {self.number} AS f FROM range({rng.randrange(1, 30)})"
            )
        rows = " UNION ALL ".join(parts)
        self.lab.sql(
            f"INSERT INTO t SELECT /*+ REPARTITION({2 * files}, f) */ id, CAST(x AS INT), "
            "CONCAT('key-', x % 100, '-', x), "
            "CASE x % 11 WHEN 0 THEN DOUBLE('NaN') WHEN 1 THEN NULL ELSE x / 4 END, "
            "NAMED_STRUCT('n', CAST(-x AS INT)), p "
            f"FROM ({rows})"
        )

    def change(self) -> None:
        """Removes some files of the table, and adds others."""
        for path in self.rng.sample(self.lab.files(), 3):
            path.unlink()
            Path(f"{path.parent}/.{path.name}.crc").unlink(missing_ok=True)
        self.lab.sql("REFRESH TABLE t")
        self.write(2)
        if self.rng.random() < 0.5:
            self.lab.sql("REFRESH SIEVE INDEX ON t")


def _filters(rng: random.Random) -> str:
    """Filters on indexed columns, on the partition column, and on a column without an index."""
    conditions = [
        f"i {rng.choice(('<', '>=', '!=', '='))} {rng.randrange(250)}",
        f"s > 'key-{rng.randrange(99)}'",
        f"d {rng.choice(('<=', '>'))} {rng.randrange(60)}",
        f"NOT (i < {rng.randrange(300)} AND s < 'key-5')",
        f"i IN ({rng.randrange(99)}, 7, 90)",
        f"(i > {rng.randrange(99)} OR d IS NULL)",
        f"{rng.choice('isd')} IS NOT NULL",
        f"w.n < {-rng.randrange(99)}",
        f"p {rng.choice(('<', '='))} {rng.randrange(3)}",
        f"id % 3 = {rng.randrange(3)}",
    ]
    chosen = rng.sample(conditions, rng.choice((0, 0, 1, 1, 2)))
    return f" WHERE {' AND '.join(chosen)}" if chosen else ""


def _query(rng: random.Random) -> str:
    """A query for MIN and MAX, or a top-k query with only one possible result despite ties."""
    name = rng.choice(COLUMNS)
    column = "w.n" if name == "w" else name
    if rng.random() < 0.35:
        calls = [f"{rng.choice(('min', 'max'))}({column})"]
        if rng.random() < 0.4:
            calls.append(f"max({rng.choice('is')})")
        group = rng.choice(("", "", "p"))
        named = ", ".join(f"{call} AS c{k}" for k, call in enumerate(calls))
        text = f"SELECT {group + ', ' if group else ''}{named} FROM t{_filters(rng)}"
        return f"{text} GROUP BY {group}" if group else text
    order = f"{column}{rng.choice(('', ' DESC'))}{rng.choice(('', ' NULLS FIRST', ' NULLS LAST'))}"
    # The column contains no -0.0, so tied rows are equal in every column except the last.
    ties = rng.choice(("id", "id DESC", f"{rng.choice('is')}, id"))
    offset = f" OFFSET {rng.randrange(30)}" if rng.random() < 0.2 else ""
    text = f"SELECT id, {column} AS x FROM t{_filters(rng)}"
    return f"{text} ORDER BY {order}, {ties} LIMIT {rng.choice((1, 2, 5, 20, 60, 500))}{offset}"


def _check(lab: Lab, seed: int, queries: int) -> int:
    """Checks queries of a table; returns how many scans skip files by a top-k bound."""
    rng, bounded = random.Random(seed), 0
    with lab.database("random_top"), lab.settings(INTERPRETED):
        table = Table(lab, rng)
        for turn in range(TURNS):
            if turn:
                table.change()
            asked = [_query(rng) for _ in range(queries // TURNS)]
            # A union of all queries needs a fraction of the time of separate queries.
            text = together(asked)
            adaptive = rng.choice(("true", "false"))
            with lab.setting("spark.sql.adaptive.enabled", adaptive):
                with lab.setting("spark.sieve.enabled", "false"):
                    off = sorted(lab.sql(text))
                with lab.setting("spark.sieve.strict", "true"):
                    on = sorted(lab.sql(text))
                    scans = lab.explain(text) if turn else []
            for one, other in zip(on, off, strict=False):
                assert one == other, f"seed {seed}: other rows with the index: {asked[one[0]]}"
            assert len(on) == len(off), f"seed {seed}: other rows with the index: {asked}"
            bounded += sum(
                re.search("LIMIT|MIN|MAX", row["predicate"] or "") is not None
                and "unbounded" not in (row["reasons"] or "")
                and row["files_read"] < row["files_total"]
                for row in scans
            )
    return bounded


@pytest.mark.parametrize(
    ("seed", "queries", "bounded"), [(0, 4, 1), pytest.param(1, 40, 8, marks=pytest.mark.long)]
)
def test_random_top_rows_are_those_of_a_full_sort(
    lab: Lab, seed: int, queries: int, bounded: int
) -> None:
    """Random top-k queries return the same rows as a full sort, and many read fewer files."""
    assert _check(lab, seed, queries) >= bounded


@pytest.mark.soak
def test_many_random_top_rows_are_those_of_a_full_sort(lab: Lab) -> None:
    """Ten thousand random top-k queries return the same rows as a full sort."""
    for seed in range(100, 200):
        _check(lab, seed, 100)
