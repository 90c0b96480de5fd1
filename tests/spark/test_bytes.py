"""If file sizes differ widely, an index uses a small budget mainly to skip large files.

Statements show how many bytes a query reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_session import Lab

FILES, STRETCHES, ROWS = 60, 20, 20
"""Three counts: files per table, key intervals per file, and rows per key interval."""
OPTIONS = "OPTIONS (shape = 'intervals', budget = '3500B')"
"""A budget of less than two bytes per key interval, in addition to the overhead of a run file."""


@pytest.fixture(scope="module")
def keys() -> list[np.ndarray]:
    """The keys of each file. The key ranges of different files do not overlap."""
    rng = np.random.default_rng(22)
    starts = [rng.choice(4000, STRETCHES, replace=False) * 1_000_000 for _ in range(FILES)]
    return [np.repeat(some, ROWS) + rng.integers(0, 1_000_000, STRETCHES * ROWS) for some in starts]


@pytest.fixture(scope="module")
def tables(
    lab: Lab, tmp_path_factory: pytest.TempPathFactory, keys: list[np.ndarray]
) -> Iterator[Lab]:
    """Two tables: in `t`, one file in ten is large; in `equal`, all files have the same size.

    Both tables have the same keys.
    """
    rng = np.random.default_rng(1)
    with lab.database("bytes"):
        for name in ("t", "equal"):
            folder = tmp_path_factory.mktemp("bytes") / name
            folder.mkdir()
            for number, some in enumerate(keys):
                width = 2000 if name == "t" and number % 10 == 0 else 1
                pad = [rng.bytes(width) for _ in some]
                table = pa.table({"k": some, "pad": pad})
                pq.write_table(table, folder / f"part-{number:02}.parquet")
            lab.sql(f"CREATE TABLE {name} (k BIGINT, pad BINARY) USING parquet LOCATION '{folder}'")
            lab.sql(f"CREATE SIEVE INDEX ON {name} (k) {OPTIONS}")
        yield lab


def files_read_for_keys(lab: Lab, table: str, keys: Sequence[int]) -> list[set[str]]:
    """For each key, the names of the files that a query for this key reads."""
    files = (
        f"SELECT {k} AS k, file FROM sieve_files('{table}', 'k = {key}') WHERE kept"
        for k, key in enumerate(keys)
    )
    names: list[set[str]] = [set() for _ in keys]
    for k, file in lab.sql(" UNION ALL ".join(files)):
        names[k].add(Path(file).name)
    return names


@pytest.mark.long
def test_a_tight_budget_saves_bytes_and_no_rows(tables: Lab, keys: list[np.ndarray]) -> None:
    """An index that weighs files by size makes queries read at least a quarter fewer bytes.

    The indexes of `t` and `equal` have equal budgets, but only the files of `t` differ in size. For
    both tables, the test counts bytes with the file sizes of `t`.
    """
    sizes = {path.name: path.stat().st_size for path in tables.files()}
    drawn = np.random.default_rng(3).choice(np.concatenate(keys), 40).tolist()
    weighted, alike = (files_read_for_keys(tables, table, drawn) for table in ("t", "equal"))
    holding = [
        {f"part-{number:02}.parquet" for number, some in enumerate(keys) if key in some}
        for key in drawn
    ]
    assert all(least <= read for least, read in zip(holding, weighted, strict=True))
    assert all(least <= read for least, read in zip(holding, alike, strict=True))
    read, other = (
        mean(sum(sizes[name] for name in names) for names in found) for found in (weighted, alike)
    )
    assert read < 0.75 * other
    # The index of `t` weighs files by size. In `equal`, all files have the same weight. With the
    # index of `t`, queries read more files, but fewer bytes.
    assert mean(map(len, weighted)) > mean(map(len, alike))
    told = tables.facts("k_sieve")
    size, total = told["bytes read for a key that occurs"].split(" expected")[0].split(" of ")
    assert int(total) == sum(sizes.values())
    assert int(size) == pytest.approx(read, rel=0.4)
    # With a predicate, ESTIMATE reads every file, so its numbers are exact.
    (estimated,) = tables.spark.sql(
        f"ESTIMATE SIEVE INDEX EXTENDED ON t (k) {OPTIONS} WHERE k = 1"
    ).collect()
    assert estimated.bytes_present == pytest.approx(int(size), abs=1)
    for key in drawn[:3]:
        tables.check(f"SELECT k, length(pad) FROM t WHERE k = {key}")
    low = drawn[0] // 1_000_000 * 1_000_000
    tables.check(f"SELECT count(*), sum(k) FROM t WHERE k BETWEEN {low} AND {low + 999_999}")
