"""Queries of earlier instants use several index versions, but do not affect later queries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import tables
from spark_session import Lab

pytestmark = pytest.mark.hudi

WAS = 250 * 7919 % 1000
"""The original `amount` of key 250."""


def at(instant: str, condition: str) -> str:
    """A query of the table as of one instant."""
    return f"SELECT id, amount, word FROM t TIMESTAMP AS OF '{instant}' WHERE {condition}"


def made(lab: Lab, *columns: str) -> None:
    """Makes a slice in each of four partitions, and the given indexes."""
    tables.create(lab, "mor", parts=True)
    tables.fill(lab, 0, 400)
    for column in columns:
        lab.sql(f"CREATE SIEVE INDEX {column} ON t ({column})")


def logged(lab: Lab, *bases: int, refreshed: str = "") -> None:
    """Updates a row in each slice several times.

    After each update, refreshes the given index, or all indexes if ``refreshed`` is empty.
    """
    for base in bases:
        lab.sql(f"UPDATE t SET amount = {base} + part WHERE id % 100 = 50")
        lab.sql(f"REFRESH SIEVE INDEX {refreshed} ON t")


def schedule(lab: Lab) -> None:
    """Schedules a compaction, but does not run it."""
    with lab.setting("hoodie.compact.inline.max.delta.commits", "1"):
        lab.sql("CALL run_compaction(op => 'schedule', table => 't')")


def right(lab: Lab, instants: Sequence[str]) -> None:
    """Checks the rows at each instant; a query for an absent value must read no slice."""
    for instant in instants:
        for amount in (WAS, 5002, 6002, 7002):
            lab.check(at(instant, f"amount = {amount}"), at_most=1)
        lab.check(at(instant, "amount = -1"), exactly=0)


def test_later_index_does_not_affect_earlier_instants(lab: Lab) -> None:
    """A later index version lacks hidden rows, but does not affect queries of earlier instants.

    Queries of earlier instants still skip slices by an older index version with the hidden rows.
    """
    with lab.database("hudi_say"):
        made(lab, "amount")
        logged(lab, 5000, 6000)
        first = tables.instants(lab)[0]
        lab.sql("CREATE SIEVE INDEX word ON t (word)")
        lab.check("SELECT * FROM t WHERE word = 'w3'")
        lab.check(at(first, "amount = -1"), exactly=0)
        lab.check(at(first, "amount = -1 AND word = 'w3'"), exactly=0)
        lab.check(at(first, "word = 'none'"), exactly=4)


def test_or_is_pruned_by_indexes_refreshed_separately(lab: Lab) -> None:
    """An OR of two columns skips slices, even if each column's index was refreshed separately."""
    with lab.database("hudi_or"):
        made(lab, "amount", "word")
        logged(lab, 5000, 6000, 7000, refreshed="amount")
        lab.sql("REFRESH SIEVE INDEX word ON t")
        first = tables.instants(lab)[0]
        lab.check(at(first, "amount = -1 OR word = 'none'"), exactly=0)
        lab.check(at(first, f"amount = {WAS} OR word = 'none'"), exactly=1)


def test_queries_stay_right_after_a_rollback(lab: Lab) -> None:
    """Queries stay right if REFRESH after a rollback makes a version of an earlier instant."""
    with lab.database("hudi_undone"):
        made(lab, "amount")
        logged(lab, 5000, 6000)
        last = tables.instants(lab)[-1]
        lab.sql(f"CALL rollback_to_instant(table => 't', instant_time => '{last}')")
        lab.sql("REFRESH TABLE t")
        lab.sql("REFRESH SIEVE INDEX ON t")
        now = "SELECT * FROM t WHERE amount = 5002"
        for _ in range(2):
            lab.check(now, exactly=1)
            right(lab, tables.instants(lab))


def test_log_files_during_a_pending_compaction_are_read(lab: Lab) -> None:
    """If slices get log files while a compaction is pending, queries return the right rows.

    Log files that are written during a pending compaction belong to the new slices.
    """
    with lab.database("hudi_pending"):
        made(lab, "amount")
        logged(lab, 5000)
        schedule(lab)
        logged(lab, 6000, 7000)
        first, second, third, last = tables.instants(lab)
        right(lab, [first, second, third, last])
        lab.sql("CALL run_compaction(op => 'run', table => 't')")
        lab.sql("REFRESH TABLE t")
        lab.sql("REFRESH SIEVE INDEX ON t")
        right(lab, [first, second, last])
        # The refresh read each new slice with all of its log files. At the instant `third`, only
        # the first log file of each slice counts.
        assert lab.check(at(third, "amount = 6002"), exactly=4).rows


def test_other_versions_are_used_if_one_is_broken(lab: Lab) -> None:
    """If files of an index version are missing, queries of earlier instants use other versions."""
    with lab.database("hudi_broken"), lab.setting("spark.sieve.cache.bytes", "0"):
        made(lab, "amount")
        logged(lab, 5000, 6000)
        first = tables.instants(lab)[0]
        lab.check(at(first, "amount = -1"), exactly=0)
        folder = Path(lab.facts("amount")["path"].removeprefix("file:"))

        def parts(version: int) -> set[str]:
            told = json.loads((folder / "versions" / f"{version}.json").read_text())
            return {part["name"] for part in told["locations"]["parts"]}

        gone = parts(2) - parts(1) - parts(3)
        files = [path for path in folder.rglob("*") if any(name in path.name for name in gone)]
        assert files
        for path in files:
            path.unlink()
        lab.check(at(first, "amount = -1"), exactly=0)


def test_earlier_instants_work_after_vacuum(lab: Lab) -> None:
    """After VACUUM has deleted index versions, queries of earlier instants are still right."""
    with lab.database("hudi_vacuumed"), lab.setting("spark.sieve.cache.bytes", "0"):
        made(lab, "amount")
        logged(lab, 5000, 6000, 7000)
        lab.sql("REFRESH SIEVE INDEX ON t FULL")
        for instant in reversed(tables.instants(lab)):
            lab.check(at(instant, "amount = -1"), exactly=0)
        with lab.setting("spark.sieve.versions.retain", "1, 0h"):
            lab.sql("VACUUM SIEVE INDEX ON t")
        lab.check("SELECT * FROM t WHERE amount = -1", exactly=0)
        for instant in tables.instants(lab):
            lab.check(at(instant, f"amount = {WAS}"))
