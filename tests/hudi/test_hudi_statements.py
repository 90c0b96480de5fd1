"""EXPLAIN SIEVE predicts which slices UPDATE, DELETE and MERGE read to find rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import tables
from spark_session import Lab

pytestmark = pytest.mark.hudi

Row = tuple[int, str]
Change = Callable[[Row], Row | None]
"""A function that maps a row to the changed row; a deleted row maps to None."""

UPDATE = "UPDATE t SET word = 'u' WHERE id >= 350"
DELETE = "DELETE FROM t WHERE id BETWEEN 190 AND 210"
MERGE = (
    "MERGE INTO t USING s ON t.id = s.id AND t.id >= 300 WHEN MATCHED THEN UPDATE SET word = 'm'"
)
CHANGES: dict[str, tuple[int, Change]] = {
    UPDATE: (1, lambda row: (row[0], "u") if row[0] >= 350 else row),
    DELETE: (2, lambda row: None if 190 <= row[0] <= 210 else row),
    MERGE: (1, lambda row: (row[0], "m") if row[0] in {372, 373} else row),
}
"""For each statement: how many of the four slices the statement reads, and how it changes a row."""


def counted(lab: Lab) -> tuple[int, int]:
    """The numbers of slices that this driver's scans have listed and skipped so far."""
    rows = dict(lab.sql("SELECT counter, value FROM sieve_status() WHERE counter LIKE 'files_%'"))
    return rows["files_listed"], rows["files_skipped"]


def rows(lab: Lab) -> list[Row]:
    """The rows of the table, read without the index."""
    with lab.setting("spark.sieve.enabled", "false"):
        return sorted((row[0], row[1]) for row in lab.sql("SELECT id, word FROM t"))


@pytest.mark.parametrize(
    ("kind", "key", "statements"),
    [
        ("cow", "id", (UPDATE, DELETE)),
        ("mor", "id", (UPDATE, DELETE)),
        # If a table has a record key, Hudi does not join the source of a MERGE with the table.
        ("cow", "", (MERGE, DELETE)),
    ],
    ids=["cow", "mor", "without a key"],
)
def test_explain_predicts_the_slices_that_statements_skip(
    lab: Lab, kind: str, key: str, statements: tuple[str, ...]
) -> None:
    """Statements skip the slices that EXPLAIN SIEVE predicts, and change all matching rows."""
    with lab.database("hudi_statements"), lab.setting("spark.sieve.strict", "true"):
        own = {} if key else {"primaryKey": "", "preCombineField": ""}
        tables.create(lab, kind, parts=True, **own)
        tables.fill(lab, 0, 400)
        lab.sql("CREATE TABLE s USING parquet AS SELECT * FROM VALUES (65L), (372L), (373L) s(id)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        for statement in statements:
            read, change = CHANGES[statement]
            expected = sorted(row for row in map(change, rows(lab)) if row)
            (said,) = (row for row in lab.explain(statement) if row["table"].endswith(".t"))
            listed, skipped = counted(lab)
            lab.sql(statement)
            now = counted(lab)
            assert (said["files_total"], said["files_read"]) == (4, read), statement
            assert (now[0] - listed, now[1] - skipped) == (4, 4 - read), statement
            assert rows(lab) == expected, statement
            lab.sql("REFRESH SIEVE INDEX ON t")


def test_explain_shows_that_a_merge_by_record_key_reads_nothing(lab: Lab) -> None:
    """EXPLAIN SIEVE shows no scan for a MERGE if Hudi finds the rows by the table's record key."""
    with lab.database("hudi_statements"):
        tables.create(lab, "cow", parts=True)
        tables.fill(lab, 0, 4)
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        text = (
            "MERGE INTO t USING (SELECT 3L AS id, 'm' AS word, 2L AS ts) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET word = s.word, ts = s.ts"
        )
        assert lab.explain(text) == []
