"""Queries of earlier instants ask several versions, and leave queries of now as they were."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import tables
from spark_session import Lab

pytestmark = pytest.mark.hudi

WAS = 250 * 7919 % 1000
"""What key 250 has as `amount` at first."""


def at(instant: str, condition: str) -> str:
    """A query of the table as it was."""
    return f"SELECT id, amount, word FROM t TIMESTAMP AS OF '{instant}' WHERE {condition}"


def made(lab: Lab, *columns: str) -> None:
    """A slice in each of four partitions, and indexes."""
    tables.create(lab, "mor", parts=True)
    tables.fill(lab, 0, 400)
    for column in columns:
        lab.sql(f"CREATE SIEVE INDEX {column} ON t ({column})")


def logged(lab: Lab, *bases: int, refreshed: str = "") -> None:
    """So many updates of a row in each slice, and a refresh, of one index or all, after each."""
    for base in bases:
        lab.sql(f"UPDATE t SET amount = {base} + part WHERE id % 100 = 50")
        lab.sql(f"REFRESH SIEVE INDEX {refreshed} ON t")


def schedule(lab: Lab) -> None:
    """Plan a compaction, which is pending from then on."""
    with lab.setting("hoodie.compact.inline.max.delta.commits", "1"):
        lab.sql("CALL run_compaction(op => 'schedule', table => 't')")


def right(lab: Lab, instants: Sequence[str]) -> None:
    """At each instant the rows of its time; nothing is read for a value that was never there."""
    for instant in instants:
        for amount in (WAS, 5002, 6002, 7002):
            lab.check(at(instant, f"amount = {amount}"), at_most=1)
        lab.check(at(instant, "amount = -1"), exactly=0)


def test_an_index_without_a_say_changes_nothing(lab: Lab) -> None:
    """One that was made later and read merged knows no hidden rows; the other still does."""
    with lab.database("hudi_say"):
        made(lab, "amount")
        logged(lab, 5000, 6000)
        first = tables.instants(lab)[0]
        lab.sql("CREATE SIEVE INDEX word ON t (word)")
        lab.check("SELECT * FROM t WHERE word = 'w3'")
        lab.check(at(first, "amount = -1"), exactly=0)
        lab.check(at(first, "amount = -1 AND word = 'w3'"), exactly=0)
        lab.check(at(first, "word = 'none'"), exactly=4)


def test_indexes_need_not_have_been_refreshed_together(lab: Lab) -> None:
    """Either is asked by all its versions, however many, before both are put together."""
    with lab.database("hudi_or"):
        made(lab, "amount", "word")
        logged(lab, 5000, 6000, 7000, refreshed="amount")
        lab.sql("REFRESH SIEVE INDEX word ON t")
        first = tables.instants(lab)[0]
        lab.check(at(first, "amount = -1 OR word = 'none'"), exactly=0)
        lab.check(at(first, f"amount = {WAS} OR word = 'none'"), exactly=1)


def test_queries_of_now_go_on_after_those_of_then(lab: Lab) -> None:
    """Where a rollback has left the newest version with an earlier instant than one before it."""
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


def test_logged_to_beside_a_pending_compaction(lab: Lab) -> None:
    """Slices are shown with log files that are another slice's once the compaction is done."""
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
        # The new slices had log files when they were read, of which this one is shown the first.
        assert lab.check(at(third, "amount = 6002"), exactly=4).rows


def test_one_version_that_is_broken_leaves_it_to_the_others(lab: Lab) -> None:
    """Whether its list was there when it was opened or not."""
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


def test_versions_that_were_vacuumed_keep_none_from_serving(lab: Lab) -> None:
    """Lists that they had a part in are made anew without them."""
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
