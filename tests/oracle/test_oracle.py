"""On files of other writers, even damaged files, an index changes no query's result."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest
from foreign_tables import FORMATS, ForeignTable, Probe, draw_table, put_back, write_file
from oracle import Tally, compare, draw_query
from pyspark.errors import PySparkException
from spark_session import INTERPRETED, Lab

PAIRS = [(20, 8), pytest.param(200, 40, marks=pytest.mark.long)]
"""The total number of queries, and the number of queries per table."""
SOAK_PAIRS, SOAK_PAIRS_PER_TABLE = 20_000, 80
_SETTINGS = INTERPRETED | {
    # Spark reads the files of each scan in one task, whatever their size. The task reads the
    # largest files first.
    "spark.sql.files.openCostInBytes": "0",
    "spark.sql.files.minPartitionNum": "1",
    # With a short time-out, `strict` mode would fail on a busy machine.
    "spark.sieve.prune.timeout": "120s",
}


def compare_table(lab: Lab, seed: str, form: str, folder: Path, pairs: int, tally: Tally) -> None:
    """Draws a table from a seed and indexes it; compares queries before and after a change."""
    rng = random.Random(seed)
    table = draw_table(rng, form)
    folder.mkdir(parents=True)
    files = [_write(rng, table, folder, k) for k in range(table.drawn.files)]
    written = [path for path, _ in files]
    probes = [probe for _, some in files for probe in some]
    with lab.settings(_SETTINGS | dict(table.settings)):
        lab.sql(table.statement(folder))
        if table.partitioned:
            lab.sql("MSCK REPAIR TABLE t")
        if not _indexed(rng, lab, table):
            tally.refused += 1
            return
        tally.tables += 1
        context = f"SIEVE_SEED of the table {seed!r}: {table.statement(folder)} {table.settings}"
        for changed in (False, True):
            if changed:
                _change(rng, lab, table, folder, written)
            queries = [draw_query(rng, table, probes) for _ in range(pairs // 2)]
            compare(lab, context, queries, tally)


def _write(
    rng: random.Random, table: ForeignTable, folder: Path, number: int
) -> tuple[Path, list[Probe]]:
    size = rng.choice([0, 1, 5, 12, 25]) if number else 20
    return write_file(rng, table, folder, number, range(number * 100, number * 100 + size))


def _indexed(rng: random.Random, lab: Lab, table: ForeignTable) -> bool:
    """Indexes all columns in one statement; if that fails, indexes each column separately.

    A build fails at a file that it cannot read.
    """
    shape = rng.choice(["auto", "auto", "intervals", "sieve"])
    columns = table.drawn.indexed
    for some in (columns, *((column,) for column in columns)):
        try:
            lab.sql(f"CREATE SIEVE INDEX ON t ({', '.join(some)}) OPTIONS (shape = '{shape}')")
        except PySparkException:
            continue
        if some == columns:
            return True
    return bool(lab.sql("SHOW SIEVE INDEXES ON t"))


def _change(
    rng: random.Random, lab: Lab, table: ForeignTable, folder: Path, written: list[Path]
) -> None:
    """Adds, replaces, truncates or removes one file, as other programs do.

    In some cases, also refreshes the index.
    """
    number = len(written)
    path = rng.choice(written)
    how = rng.random()
    if how < 0.4:
        _write(rng, table, folder, number)
    elif how < 0.6:
        other, _ = _write(rng, table, folder, number)
        path.write_bytes(other.read_bytes())
        put_back(path, number + 1)
    elif how < 0.8:
        body = path.read_bytes()
        path.write_bytes(body[: rng.randrange(len(body) + 1)])
        put_back(path, number)
    else:
        path.unlink()
    if table.partitioned:
        lab.sql("MSCK REPAIR TABLE t")
    lab.sql("REFRESH TABLE t")
    if rng.random() < 0.6:
        try:
            lab.sql("REFRESH SIEVE INDEX ON t")
        except PySparkException as error:
            if "SIEVE_" not in str(error):
                raise


def run(lab: Lab, folder: Path, seed: str, pairs: int, per_table: int) -> Tally:
    """Compares queries on random tables, drawn from a seed, and prints the progress."""
    tally, number = Tally(), 0
    while tally.pairs < pairs:
        with lab.database("oracle"):
            form = FORMATS[number % len(FORMATS)]
            compare_table(lab, f"{seed}/{number}", form, folder / str(number), per_table, tally)
        number += 1
        if number % 25 == 0:
            sys.stdout.write(f"{tally}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{tally}\n")
    assert tally.refused < number / 2, f"most tables cannot be indexed: {tally}"
    assert tally.asked > 0.5 * tally.pairs, f"few scans asked an index: {tally}"
    assert tally.pruned > 0.2 * tally.pairs, f"few scans skipped a file: {tally}"
    assert tally.skipped > 0.1 * tally.listed, f"few files were skipped: {tally}"
    return tally


@pytest.mark.parametrize(("pairs", "per_table"), PAIRS)
def test_foreign_files_give_the_same_rows_with_the_index(
    lab: Lab, tmp_path: Path, pairs: int, per_table: int
) -> None:
    """Each run draws the same random tables. ``make soak-oracle`` draws different tables."""
    assert run(lab, tmp_path, "j", pairs, per_table).pairs >= pairs


@pytest.mark.soak
def test_many_queries_of_foreign_files(lab: Lab, tmp_path: Path) -> None:
    """The number of random tables is so large that rare combinations occur."""
    seed = os.environ.get("SIEVE_SEED", str(random.SystemRandom().getrandbits(32)))
    sys.stdout.write(f"SIEVE_SEED={seed} draws these tables again\n")
    pairs = int(os.environ.get("SIEVE_PAIRS", SOAK_PAIRS))
    assert run(lab, tmp_path, seed, pairs, SOAK_PAIRS_PER_TABLE).pairs >= pairs
