"""Tests Hudi's services on indexed tables: compaction, clustering, cleaning and rollback."""

from __future__ import annotations

import pytest
import tables
from spark_session import Lab

pytestmark = pytest.mark.hudi


def probe(lab: Lab) -> None:
    """Runs queries; asserts that each query returns the same rows with and without the index."""
    for value in (5000, 5001, 250 * 7919 % 1000, 100 * 7919 % 1000):
        lab.check(f"SELECT * FROM t WHERE amount = {value}")
    lab.check("SELECT count(*), sum(amount) FROM t WHERE id BETWEEN 190 AND 310")


def indexed(lab: Lab, kind: str, **properties: str) -> None:
    """Makes four slices of a hundred keys each, updates one slice, and then creates an index."""
    tables.create(lab, kind, parts=True, **properties)
    tables.fill(lab, 0, 400)
    lab.sql("UPDATE t SET amount = 5000 WHERE id = 250")
    lab.sql("CREATE SIEVE INDEX ON t (amount)")


def test_a_compaction_scheduled_and_run(lab: Lab) -> None:
    """A scheduled compaction changes no slice. A completed compaction replaces the slice."""
    with lab.database("hudi_compaction"):
        indexed(lab, "mor")
        lab.check("SELECT * FROM t WHERE amount = 5000", exactly=1)
        with lab.setting("hoodie.compact.inline.max.delta.commits", "1"):
            assert lab.sql("CALL run_compaction(op => 'schedule', table => 't')")
        lab.check("SELECT * FROM t WHERE amount = 5000", exactly=1)
        lab.check("SELECT * FROM t WHERE amount = 250 * 7919 % 1000", exactly=0)
        lab.sql("UPDATE t SET amount = 5001 WHERE id = 251")
        lab.check("SELECT * FROM t WHERE amount = 5001", exactly=1)
        lab.sql("REFRESH SIEVE INDEX ON t")
        probe(lab)
        lab.sql("CALL run_compaction(op => 'run', table => 't')")
        probe(lab)
        lab.check("SELECT * FROM t WHERE amount = 5000", exactly=1)
        lab.sql("REFRESH SIEVE INDEX ON t")
        probe(lab)
        lab.check("SELECT * FROM t WHERE amount = 5000 OR amount = 5001", exactly=1)
        assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}


def test_compaction_with_each_commit(lab: Lab) -> None:
    """With inline compaction, each update makes a new base file, but queries are right."""
    with lab.database("hudi_inline"):
        indexed(
            lab, "mor", hoodie__compact__inline="true",
            hoodie__compact__inline__max__delta__commits="1",
        )  # fmt: skip
        probe(lab)
        lab.sql("UPDATE t SET amount = 5001 WHERE id = 251")
        probe(lab)
        lab.sql("REFRESH SIEVE INDEX ON t")
        probe(lab)
        lab.check("SELECT * FROM t WHERE amount = 5001", exactly=1)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_clustering(lab: Lab, kind: str) -> None:
    """Clustering rewrites all rows into other files, so queries skip no file until REFRESH."""
    with lab.database("hudi_clustering"):
        indexed(lab, kind)
        lab.sql("CALL run_clustering(table => 't', order => 'amount')")
        probe(lab)
        lab.sql("REFRESH SIEVE INDEX ON t")
        probe(lab)
        lab.check("SELECT * FROM t WHERE amount = 5000", exactly=1)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_cleaning(lab: Lab, kind: str) -> None:
    """After Hudi has cleaned slices, queries are right, and REFRESH removes the cleaned slices."""
    with lab.database("hudi_cleaning"):
        indexed(lab, kind)
        for value in (5001, 5002, 5003):
            lab.sql(f"UPDATE t SET amount = {value} WHERE id = 250")
        lab.sql("CALL run_clean(table => 't', retain_commits => 1)")
        probe(lab)
        lab.sql("REFRESH SIEVE INDEX ON t")
        probe(lab)
        lab.check("SELECT * FROM t WHERE amount = 5003", exactly=1)
        lab.check("SELECT * FROM t WHERE amount = 5002", exactly=0)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_rollback_and_restore(lab: Lab, kind: str) -> None:
    """After a rollback or a restore, queries return the restored rows, even before REFRESH."""
    with lab.database("hudi_restore"):
        indexed(lab, kind)
        saved = tables.instants(lab)[-1]
        lab.sql(f"CALL create_savepoint(table => 't', commit_time => '{saved}')")
        lab.sql("UPDATE t SET amount = 5001 WHERE id = 250")
        lab.sql("REFRESH SIEVE INDEX ON t")
        lab.sql(
            f"CALL rollback_to_instant(table => 't', instant_time => '{tables.instants(lab)[-1]}')"
        )
        probe(lab)
        assert lab.check("SELECT * FROM t WHERE amount = 5000", exactly=1).rows
        lab.sql("UPDATE t SET amount = 5001 WHERE id = 251")
        lab.sql("REFRESH SIEVE INDEX ON t")
        lab.sql(f"CALL rollback_to_savepoint(table => 't', instant_time => '{saved}')")
        probe(lab)
        assert lab.check("SELECT * FROM t WHERE amount = 5000", exactly=1).rows
        lab.sql("UPDATE t SET amount = 5001 WHERE id = 252")
        probe(lab)
        lab.sql("REFRESH SIEVE INDEX ON t")
        probe(lab)
        assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}
