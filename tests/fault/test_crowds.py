"""Many writers and readers in separate processes use one table at once."""

from __future__ import annotations

import itertools
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_scenarios import age, looked_at

from sieve.errors import SieveError
from sieve.metadata.history import history
from sieve.metadata.paths import REGISTERED
from sieve.storage.local import LocalStore
from tests.fake_spark import Session, Warehouse, without_spark
from tests.plain_writers import busy, started, watching

EXPECTED = {
    "done", "SIEVE_INDEX_EXISTS", "SIEVE_UNKNOWN_INDEX", "SIEVE_INDEX_DROPPED",
    "SIEVE_INDEX_NOT_USABLE", "SIEVE_INDEX_GONE", "SIEVE_FILE_GONE",
    "SIEVE_STORE_UNAVAILABLE", "SIEVE_REFRESH_CONFLICT", "SIEVE_PUBLISH_CONFLICT",
}  # fmt: skip
"""The allowed outcomes of a statement that runs at the same time as other statements."""


@pytest.fixture(autouse=True)
def plain() -> Iterator[None]:
    """Runs each test with `tests.fake_spark` instead of Spark."""
    with without_spark():
        yield


def crowd(folder: Path, writers: int, statements: int, readers: int, reads: int) -> str:
    """Runs writers and readers, checks the result, and returns a line with event counts."""
    warehouse = Warehouse(folder / "shop")
    warehouse.create_table("t", [range(10 * k, 10 * k + 10) for k in range(6)])
    for name in ("one", "two"):
        Session(warehouse).sql(f"CREATE SIEVE INDEX {name} ON t (id) OPTIONS (error = 1)")
    stop = folder / "stop"
    watchers = [
        started(watching, warehouse.folder, n, reads // readers, stop, folder / f"read{n}")
        for n in range(readers)
    ]
    crew = [
        started(busy, warehouse.folder, n, statements, folder / f"wrote{n}") for n in range(writers)
    ]
    for process in crew:
        process.join(600)
    stop.touch()
    for process in watchers:
        process.join(600)
    assert [process.exitcode for process in (*crew, *watchers)] == [0] * (writers + readers)
    ends: Counter[str] = Counter()
    for n in range(writers):
        for line in (folder / f"wrote{n}").read_text().splitlines():
            number, _, end = line.partition(" ")
            ends[end] += int(number)
    seen = [(folder / f"read{n}").read_text().split() for n in range(readers)]
    versions = chains(warehouse)
    cleaned(warehouse)
    done, used = (sum(int(one[k]) for one in seen) for k in (0, 1))
    assert set(ends) <= EXPECTED, ends
    assert ends["done"] > statements * writers // 4, ends
    assert used > done // 10
    return (
        f"{sum(ends.values())} statements of {writers} writers ({dict(ends)}), {versions} versions "
        f"left; {done} reads of {readers} readers, {used} by an index, 0 wrong"
    )


def chains(warehouse: Warehouse) -> int:
    """Checks that the version numbers of each index have no gap; returns the number of versions.

    A version that a writer publishes during a deletion of the index belongs to no index. The check
    ignores versions published during a deletion, because a later VACUUM deletes them.
    """
    versions = 0
    for index in warehouse.root.iterdir():
        if not (index / REGISTERED).exists():
            continue
        told = [past.manifest for past in reversed(history(LocalStore(), f"file:{index}"))]
        versions += len(told)
        assert all(version.state != "dropped" for version in told[:-1])
        for before, after in itertools.pairwise(told):
            assert (after.version, after.parent) == (before.version + 1, before.id)
    return versions


def cleaned(warehouse: Warehouse) -> None:
    """Checks that VACUUM keeps only the table's indexes when all files are two days old."""
    looked_at(warehouse)
    age(warehouse)
    session = Session(warehouse)
    session.sql("VACUUM SIEVE INDEXES RETAIN 0 HOURS")
    states = [row[6].partition(":")[0] for row in session.sql("SHOW SIEVE INDEXES ON t")]
    # The table property of a dropped index can still exist. SHOW then reports the state "gone", and
    # DROP removes the registration.
    assert set(states) <= {"ready", "stale", "gone"}
    folders = list(warehouse.root.iterdir())
    left = [str(path.relative_to(warehouse.root)) for path in warehouse.root.rglob("*")]
    told = json.dumps(
        [sorted(left), session.sql("SHOW SIEVE INDEXES ON t"), warehouse.properties("t")]
    )
    assert len(folders) == len(states) - states.count("gone"), told
    looked_at(warehouse)
    for name in ("one", "two"):
        session.sql(f"DROP SIEVE INDEX IF EXISTS {name} ON t")
    with pytest.raises(SieveError, match="SIEVE_UNKNOWN_INDEX"):
        session.sql("REFRESH SIEVE INDEX one ON t")
    assert list(warehouse.root.iterdir()) == []


def test_writers_and_readers_at_once(tmp_path: Path) -> None:
    """Four concurrent writers and two readers leave no version gap, wrong row or extra file."""
    crowd(tmp_path, writers=4, statements=20, readers=2, reads=40)


@pytest.mark.soak
def test_a_crowd(tmp_path: Path) -> None:
    """Eight writers run fifty statements each, while four readers check the rows of queries."""
    sys.stdout.write(crowd(tmp_path, writers=8, statements=50, readers=4, reads=3200) + "\n")
