"""Tests queries for the changes between two instants, and queries after partial or late updates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
import tables
from spark_session import Lab

pytestmark = pytest.mark.hudi

KINDS = ["cow", "mor"]
WAS = 250 * 7919 % 1000


def in_full(lab: Lab, query: str) -> Counter[str]:
    """Returns a query's rows.

    Asserts that a query returns the same rows, and reads as many slices, without the index.
    """
    answers = []
    for on in ("false", "true"):
        # With incremental settings, Hudi returns rows only to the first query after REFRESH TABLE.
        lab.sql("REFRESH TABLE t")
        with lab.setting("spark.sieve.enabled", on), lab.setting("spark.sieve.strict", "true"):
            answers.append(lab.run(query))
    without, found = answers
    assert found == without
    assert found.files
    return found.rows


@contextmanager
def changed(lab: Lab, kind: str, **properties: str) -> Iterator[str]:
    """Makes four indexed slices; then updates a row, deletes a row and inserts a row.

    Yields the name of the database.
    """
    with lab.database("hudi_changes_between") as database:
        tables.create(lab, kind, parts=True, **properties)
        tables.fill(lab, 0, 400)
        lab.sql("CREATE SIEVE INDEX ON t (amount)")
        lab.sql("UPDATE t SET amount = 5000, ts = 2 WHERE id = 250")
        lab.sql("DELETE FROM t WHERE id = 123")
        tables.fill(lab, 400, 401)
        yield database


@pytest.mark.parametrize("kind", KINDS)
def test_change_data(lab: Lab, kind: str) -> None:
    """Both before and after REFRESH, a CDC query returns the old and new values of each change."""
    with changed(lab, kind, hoodie__table__cdc__enabled="true") as database:
        first = tables.instants(lab)[0]
        query = (
            "SELECT op, get_json_object(before, '$.amount'), get_json_object(after, '$.amount') "
            f"FROM hudi_table_changes('{database}.t', 'cdc', '{first}')"
        )
        updated, deleted, inserted = (
            repr(("u", str(WAS), "5000")),
            repr(("d", str(123 * 7919 % 1000), None)),
            repr(("i", None, str(400 * 7919 % 1000))),
        )
        for _ in ("stale", "refreshed"):
            assert in_full(lab, query) == {updated: 1, deleted: 1, inserted: 1}
            of_one = f"{query} WHERE get_json_object(after, '$.amount') = 5000"
            assert in_full(lab, of_one) == {updated: 1}
            lab.sql("REFRESH SIEVE INDEX ON t")


@pytest.mark.parametrize("kind", KINDS)
def test_incremental_reads(lab: Lab, kind: str) -> None:
    """Incremental reads by table function, reader options or session settings use no index."""
    with changed(lab, kind) as database:
        options = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": tables.instants(lab)[0],
        }
        reader = lab.spark.read.format("hudi").options(**options)
        reader.table("t").createOrReplaceTempView("by_name")
        reader.load(str(tables.folder(lab))).createOrReplaceTempView("by_path")
        (*_, first) = options.values()
        function = f"hudi_table_changes('{database}.t', 'latest_state', '{first}')"
        where = f"WHERE amount IN (5000, {WAS}, {400 * 7919 % 1000})"
        rows = {repr((250, 5000)): 1, repr((400, 400 * 7919 % 1000)): 1}
        for _ in ("stale", "refreshed"):
            for source in (function, "by_name", "by_path"):
                assert in_full(lab, f"SELECT id, amount FROM {source} {where}") == rows
            with ExitStack() as stack:
                for key, value in options.items():
                    stack.enter_context(lab.setting(key, value))
                assert in_full(lab, f"SELECT id, amount FROM t {where}") == rows
            lab.sql("REFRESH TABLE t")
            lab.sql("REFRESH SIEVE INDEX ON t")
        assert lab.check(f"SELECT id, amount FROM t {where}", exactly=2).rows == rows


def test_partial_updates(lab: Lab) -> None:
    """If a MERGE logs only the assigned columns, queries on all other columns still find rows."""
    with (
        lab.database("hudi_partial"),
        lab.setting("hoodie.spark.sql.merge.into.partial.updates", "true"),
    ):
        tables.create(lab, "mor", parts=True)
        tables.fill(lab, 0, 400)
        lab.sql("CREATE SIEVE INDEX ON t (amount, word)")
        lab.sql(
            "MERGE INTO t USING (SELECT 250L AS id, 5000L AS amount, 2L AS ts, 2 AS part) s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET amount = s.amount, ts = s.ts"
        )
        (log,) = tables.folder(lab).glob("part=2/.*.log.*[!c]")
        assert b'"amount"' in log.read_bytes()
        assert b'"word"' not in log.read_bytes()
        row = {repr((250, 5000, "w250")): 1}
        for stale in (True, False):
            for condition in ("amount = 5000", "word = 'w250'"):
                query = f"SELECT id, amount, word FROM t WHERE {condition}"
                assert lab.check(query, exactly=1).rows == row
            lab.check(f"SELECT * FROM t WHERE amount = {WAS}", exactly=int(stale))
            # Until the refresh, the query reads the row's slice and the slice that the MERGE
            # changed.
            assert lab.check("SELECT * FROM t WHERE word = 'w251'", exactly=1 + stale).rows
            lab.sql("REFRESH SIEVE INDEX ON t")
        assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"])
def test_update_with_a_lower_ordering_value_has_an_effect(lab: Lab, kind: str, mode: str) -> None:
    """An update with a lower ordering value takes effect only with commit-time merging.

    Until OPTIMIZE, queries for the old or the new value read the slice of a logged update.
    """
    with lab.database("hudi_ordering"):
        tables.create(lab, kind, parts=True, hoodie__record__merge__mode=mode)
        tables.fill(lab, 0, 400)
        lab.sql("CREATE SIEVE INDEX ON t (amount)")
        tables.upsert(lab, "SELECT 345, 7777, 'late', 0, 3")
        before, late = 345 * 7919 % 1000, 7777
        seen, unseen = (late, before) if mode == "COMMIT_TIME_ORDERING" else (before, late)
        logged = int(kind == "mor")
        for statement, read in (("", 1), ("REFRESH", logged), ("OPTIMIZE", 0)):
            if statement:
                lab.sql(f"{statement} SIEVE INDEX ON t")
            query = "SELECT id, amount FROM t WHERE amount ="
            assert lab.check(f"{query} {seen}", exactly=1).rows == {repr((345, seen)): 1}
            assert not lab.check(f"{query} {unseen}", exactly=read).rows
