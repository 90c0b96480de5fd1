"""Tests several writers under Hudi's optimistic concurrency control, and unfinished commits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import tables
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from spark_session import Lab

pytestmark = pytest.mark.hudi

SETUPS = [
    ("cow", tables.LOCK),
    ("mor", "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"),
]
CONFLICT = "HoodieWriteConflictException"
ROUNDS = 2
WAIT_S = 60


@contextmanager
def shared(lab: Lab, kind: str, lock: str) -> Iterator[list[SparkSession]]:
    """Makes four indexed slices for several writers; yields two new sessions of the driver."""
    with lab.database("hudi_shared") as database:
        tables.create(
            lab, kind, parts=True,
            hoodie__write__concurrency__mode="optimistic_concurrency_control",
            hoodie__write__lock__provider=lock, hoodie__clean__failed__writes__policy="LAZY",
        )  # fmt: skip
        tables.fill(lab, 0, 400)
        lab.sql("CREATE SIEVE INDEX ON t (amount)")
        sessions = [lab.spark.newSession() for _ in range(2)]
        for session in sessions:
            session.sql(f"USE {database}")
        yield sessions


def timeline(lab: Lab) -> Path:
    """The folder with the instants of a table's commits."""
    return tables.folder(lab) / ".hoodie" / "timeline"


def updates(session: SparkSession, number: int) -> dict[int, bool]:
    """Updates rows in a writer's own slice and in a slice that both writers update.

    Returns, for each written value, whether its commit succeeded.
    """
    done = {}
    for k in range(ROUNDS):
        value = 5000 + 100 * number + k
        keys = f"{100 * number + k}, {200 + 10 * number + k}"
        try:
            session.sql(f"UPDATE t SET amount = {value}, ts = ts + 1 WHERE id IN ({keys})")
            done[value] = True
        except Py4JJavaError as error:
            if CONFLICT not in str(error):
                raise
            done[value] = False
    return done


@pytest.mark.parametrize(("kind", "lock"), SETUPS)
def test_refresh_loses_no_row_while_two_sessions_write(lab: Lab, kind: str, lock: str) -> None:
    """While two sessions write, a third session refreshes, and queries return each committed row.

    Queries return no uncommitted row.
    """
    changed = "SELECT id, amount FROM t WHERE amount >= 5000"
    with shared(lab, kind, lock) as sessions, ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(updates, session, k) for k, session in enumerate(sessions)]
        while not all(writer.done() for writer in writers):
            lab.sql("REFRESH SIEVE INDEX ON t")
            # After REFRESH TABLE, the queries with and without the index use the same list of
            # slices.
            lab.sql("REFRESH TABLE t")
            lab.check(changed)
        outcomes = {k: v for writer in writers for k, v in writer.result().items()}
        assert any(outcomes.values())
        lab.sql("REFRESH TABLE t")
        lab.check(changed)
        lab.sql("REFRESH SIEVE INDEX ON t")
        for value, committed in outcomes.items():
            found = lab.check(f"SELECT id FROM t WHERE amount = {value}", exactly=2 * committed)
            assert found.rows.total() == 2 * committed
        assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}


@pytest.mark.parametrize(("kind", "lock"), SETUPS)
def test_commit_that_loses_a_conflict_is_never_indexed(
    lab: Lab, kind: str, lock: str, tmp_path: Path
) -> None:
    """REFRESH never indexes the files of a commit that loses a conflict.

    While the losing commit waits, another commit changes the same slice.
    """
    gate = str(tmp_path / "gate")

    def held(value: int) -> int:
        while not Path(gate).exists():
            time.sleep(0.05)
        return value

    def refreshed_version() -> int:
        """Refreshes the index; returns its version, which must contain only the winning commit."""
        lab.sql("REFRESH TABLE t")
        refreshed: int = lab.sql("REFRESH SIEVE INDEX ON t")[0][1]
        assert lab.check("SELECT id FROM t WHERE amount = 5000", exactly=1).rows
        assert not lab.check("SELECT id FROM t WHERE amount = 7000", exactly=0).rows
        return refreshed

    with shared(lab, kind, lock) as (session, _), ThreadPoolExecutor(1) as pool:
        session.udf.register("held", held, "bigint")
        slow = pool.submit(session.sql, "UPDATE t SET amount = held(7000), ts = 2 WHERE id = 250")
        try:
            end = time.monotonic() + WAIT_S
            while len(list(timeline(lab).glob("*.requested"))) < 2:
                assert time.monotonic() < end, "the update did not begin"
                time.sleep(0.05)
            lab.sql("UPDATE t SET amount = 5000, ts = 2 WHERE id = 251")
            version = refreshed_version()
        finally:
            Path(gate).touch()
        with pytest.raises(Py4JJavaError, match=CONFLICT):
            slow.result()
        (lost,) = (path.name.split(".")[0] for path in timeline(lab).glob("*.requested")
                   if path.name.split(".")[0] not in tables.instants(lab))  # fmt: skip
        assert list(tables.folder(lab).glob(f"part=2/*{lost}*"))
        assert refreshed_version() == version


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_unfinished_commit_is_not_indexed(lab: Lab, kind: str) -> None:
    """REFRESH ignores the files of an unfinished commit until the commit is complete."""
    new, old = (f"SELECT id FROM t WHERE amount = {v}" for v in (5000, 250 * 7919 % 1000))
    with lab.database("hudi_inflight"):
        tables.create(lab, kind, parts=True)
        tables.fill(lab, 0, 400)
        lab.sql("CREATE SIEVE INDEX ON t (amount)")
        lab.sql("UPDATE t SET amount = 5000, ts = 2 WHERE id = 250")
        completed = max(timeline(lab).glob("*_*commit"))
        # A commit without its last file is unfinished, for example because the writer died.
        aside = completed.rename(timeline(lab).parent / "aside")
        lab.sql("REFRESH TABLE t")
        assert lab.sql("REFRESH SIEVE INDEX ON t")[0][1] == 1
        assert not lab.check(new, exactly=0).rows
        assert lab.check(old, exactly=1).rows
        aside.rename(completed)
        lab.sql("REFRESH TABLE t")
        assert lab.check(new, exactly=1).rows
        lab.sql("REFRESH SIEVE INDEX ON t")
        assert lab.check(new, exactly=1).rows
        # In a merge-on-read table, the index keeps a hidden value until a refresh reads the whole
        # slice.
        assert not lab.check(old, exactly=int(kind == "mor")).rows
