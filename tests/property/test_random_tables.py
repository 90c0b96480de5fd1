"""Random predicates on random tables return the same rows with and without the index."""

from __future__ import annotations

import os
import random
import sys
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest
from generated_predicates import draw_predicate
from generated_tables import GeneratedTable, draw_table, table_statements
from spark_session import INTERPRETED, RANGES, Lab, files_read

from sieve.metadata.index_options import SHAPES

# Each predicate is tested together with its negation. `make test` runs half as many predicates as
# `make test-long`, and so do the tests on the second Spark version.
PAIRS = (
    [200]
    if pyspark.__version__.startswith("3.")
    else [100, pytest.param(400, marks=pytest.mark.long)]
)
PAIRS_PER_TABLE = 100
SOAK_PAIRS = 100_000
SOAK_PAIRS_PER_TABLE = 200
BRANCHES = 50
_TOLD = 25

_SETTINGS = INTERPRETED | {
    # Both the staged files and the tables contain days before 1582. The rebase modes `CORRECTED`
    # are the defaults of Spark 4.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    # In file readers, pushed filters follow other rules than Spark's own evaluation. ORC's pushed
    # filter fails on a NULL in a list of days. Parquet's dictionary filter distinguishes -0.0 from
    # 0.0, and JSON's filter never finds 14 October 1582. Without pushed filters, only the index
    # decides which rows a query skips.
    "spark.sql.orc.filterPushdown": "false",
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.csv.filterPushdown.enabled": "false",
    "spark.sql.json.filterPushdown.enabled": "false",
    # With a short time-out, scans in `strict` mode would fail on a busy machine.
    "spark.sieve.prune.timeout": "120s",
}

# One task reads each staged file, so each staged file becomes one file of the table.
_WRITING = {"spark.sql.files.openCostInBytes": str(1 << 30)}
# Spark runs each branch of a query as one task, for any size of the branch.
_READING = {"spark.sql.files.openCostInBytes": "0", "spark.sql.files.minPartitionNum": "1"}


@dataclass(slots=True)
class Tally:
    """Counts the comparisons of a test run."""

    pairs: int = 0
    files: int = 0
    files_read: int = 0


def compare(lab: Lab, seed: str, folder: Path, pairs: int, tally: Tally) -> None:
    """Makes a table from a seed, indexes it, and compares the results of ``pairs`` predicates."""
    rng = random.Random(seed)
    folder.mkdir(parents=True)
    table = draw_table(rng, folder)
    parts = "PARTITIONED BY (p)" if rng.random() < 0.25 else ""
    own = {
        "spark.sql.session.timeZone": table.zone,
        "spark.sql.ansi.enabled": str(table.ansi).lower(),
        **rng.choice([{}, RANGES]),
    }
    with lab.settings(_SETTINGS | own):
        with lab.settings(_WRITING):
            for statement in table_statements(table, str(folder), parts):
                lab.sql(statement)
        shape = rng.choice(SHAPES)
        booleans = {c.sql for c in table.columns if c.kind.family == "boolean"}
        # CREATE refuses a map if the column has only two keys.
        columns = [c for c in table.indexed if shape != "map" or c not in booleans]
        if columns:
            lab.sql(f"CREATE SIEVE INDEX ON t ({', '.join(columns)}) OPTIONS (shape = '{shape}')")
        predicates = [draw_predicate(rng, table) for _ in range(pairs // 2)]
        with lab.settings(_READING):
            check(lab, seed, table, predicates, tally)


def check(lab: Lab, seed: str, table: GeneratedTable, predicates: list[str], tally: Tally) -> None:
    """Compares the rows of each predicate, and of its negation, with and without the index."""
    listed = len(lab.spark.table("t").inputFiles())
    for start in range(0, len(predicates), BRANCHES // 2):
        pairs = [(p, f"NOT ({p})") for p in predicates[start : start + BRANCHES // 2]]
        branches = [p for pair in pairs for p in pair]
        numbers, truth = without_index(lab, branches)
        found, read = with_index(lab, branches)
        tally.pairs += len(branches)
        tally.files_read += read
        tally.files += listed * len(branches)
        odd = set()
        for k, predicate in enumerate(branches):
            expected = [n for n, t in zip(numbers, truth[k], strict=True) if t]
            if found[k] != expected:
                # Spark can evaluate a predicate differently in WHERE and in SELECT. NOT IN with
                # NULL in its list is false in WHERE. In SELECT, NOT IN with a long list is TRUE for
                # NaN.
                odd.add(k // 2)
                expected = rows_where(lab, predicate)
            assert found[k] == expected, (
                f"seed {seed!r}: {table.format} in {table.zone}, ANSI {table.ansi}, indexes on "
                f"{table.indexed}: other rows with the index: WHERE {predicate}"
            )
        for k in range(0, len(branches), 2):
            nulls = [n for n, t in zip(numbers, truth[k], strict=True) if t is None]
            whole = sorted(found[k] + found[k + 1] + nulls) == numbers
            assert whole or k // 2 in odd, f"{seed!r}: {branches[k]}"


def rows_where(lab: Lab, predicate: str) -> list[int]:
    """Returns the row numbers that a query with WHERE selects without the index."""
    with lab.setting("spark.sieve.enabled", "false"):
        return sorted(n for (n,) in lab.sql(f"SELECT rid FROM t WHERE {predicate}"))


def without_index(
    lab: Lab, predicates: list[str]
) -> tuple[list[int], list[tuple[bool | None, ...]]]:
    """Returns all row numbers and, for each predicate, the predicate's values for all rows.

    The query has no WHERE, so Spark skips no file.
    """
    columns = ", ".join(f"({p})" for p in predicates)
    with lab.setting("spark.sieve.enabled", "false"):
        numbers, *truth = zip(*sorted(lab.sql(f"SELECT rid, {columns} FROM t")), strict=True)
    return list(numbers), truth


def with_index(lab: Lab, predicates: list[str]) -> tuple[dict[int, list[int]], int]:
    """Returns the row numbers that each predicate selects, and the total number of files read."""
    branches = (f"SELECT {k} AS k, rid FROM t WHERE {p}" for k, p in enumerate(predicates))
    with lab.setting("spark.sieve.strict", "true"):
        frame = lab.spark.sql(" UNION ALL ".join(branches))
        found: dict[int, list[int]] = {k: [] for k in range(len(predicates))}
        for k, rid in sorted(tuple(row) for row in frame.collect()):
            found[k].append(rid)
    return found, files_read(frame)


def run(lab: Lab, folder: Path, pairs: int, per_table: int) -> Tally:
    """Compares ``pairs`` predicates in total, ``per_table`` of them on each random table."""
    seed = os.environ.get("SIEVE_SEED", str(random.SystemRandom().getrandbits(32)))
    sys.stdout.write(f"SIEVE_SEED={seed} draws these tables again\n")
    tally = Tally()
    for number in range(pairs // per_table):
        with lab.database("random_tables"):
            compare(lab, f"{seed}/{number}", folder / str(number), per_table, tally)
        if (number + 1) % _TOLD == 0:
            sys.stdout.write(f"{tally.pairs} of {pairs} pairs\n")
            sys.stdout.flush()
    sys.stdout.write(f"{tally.pairs} pairs, {tally.files_read} of {tally.files} files read\n")
    return tally


@pytest.mark.parametrize("pairs", PAIRS)
def test_random_predicates_find_the_same_rows(lab: Lab, tmp_path: Path, pairs: int) -> None:
    """A predicate in WHERE selects the same rows with and without the index.

    For each row, the predicate is true, or its negation is true, or both results are NULL.
    """
    tally = run(lab, tmp_path, pairs, PAIRS_PER_TABLE)
    assert tally.pairs == pairs
    assert tally.files_read < 0.9 * tally.files, "the indexes skipped next to nothing"


@pytest.mark.soak
def test_many_random_predicates_find_the_same_rows(lab: Lab, tmp_path: Path) -> None:
    """For many more random predicates, queries return the same rows with and without the index."""
    assert run(lab, tmp_path, SOAK_PAIRS, SOAK_PAIRS_PER_TABLE).pairs == SOAK_PAIRS
