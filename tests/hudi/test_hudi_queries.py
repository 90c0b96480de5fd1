"""Queries of indexed Hudi tables return the same rows as Hudi alone, and read fewer slices."""

from __future__ import annotations

import pytest
import tables
from spark_session import Lab

pytestmark = pytest.mark.hudi

LAYOUTS = [(kind, parts) for kind in ("cow", "mor") for parts in (False, True)]


def filled(lab: Lab, kind: str, parts: bool) -> None:
    """Makes eight slices of a hundred keys each, and indexes on the key and on `amount`."""
    tables.create(lab, kind, parts=parts)
    (tables.fill if parts else tables.fill_sorted)(lab, 0, 800)
    assert lab.sql("CREATE SIEVE INDEX ON t (id, amount)")[0][:3] == ("id_sieve", 1, 8)


@pytest.mark.parametrize(("kind", "parts"), LAYOUTS)
def test_keys_and_other_columns_read_few_slices(lab: Lab, kind: str, parts: bool) -> None:
    """Point, range, IN and IS NULL queries on the key and on `amount` read few slices."""
    with lab.database("hudi_queries"):
        filled(lab, kind, parts)
        lab.check("SELECT * FROM t WHERE id = 345", exactly=1)
        lab.check("SELECT * FROM t WHERE id = 4000", exactly=0)
        lab.check("SELECT count(*) FROM t WHERE id BETWEEN 190 AND 210", at_most=2)
        lab.check("SELECT * FROM t WHERE amount = 345 * 7919 % 1000", exactly=1)
        lab.check("SELECT word FROM t WHERE amount IN (0, 919) AND id > 0", at_most=2)
        lab.check("SELECT id FROM t WHERE amount IS NULL", exactly=0)
        lab.check("SELECT sum(amount) FROM t", exactly=8)
        told = lab.explain("SELECT * FROM t WHERE id = 345")[0]
        assert (told["files_read"], told["indexes"], told["reasons"]) == (1, "id_sieve@1", None)


@pytest.mark.parametrize(("kind", "parts"), LAYOUTS)
def test_changed_slices_are_read_until_refreshed(lab: Lab, kind: str, parts: bool) -> None:
    """After UPDATE, DELETE and MERGE, queries return the right rows at once.

    After REFRESH, queries skip slices again.
    """
    with lab.database("hudi_changes"):
        filled(lab, kind, parts)
        lab.sql("UPDATE t SET amount = 5000, ts = 2 WHERE id = 345")
        lab.check("SELECT * FROM t WHERE amount = 5000", exactly=1)
        lab.check("SELECT * FROM t WHERE id = 45", at_most=2)
        lab.sql("DELETE FROM t WHERE id = 123")
        lab.check("SELECT * FROM t WHERE id = 123", at_most=2)
        lab.sql(
            "MERGE INTO t USING (SELECT id, 6000L AS amount, 'm' AS word, 3L AS ts, "
            "CAST(id div 100 AS INT) AS part FROM range(798, 802)) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        assert len(lab.check("SELECT * FROM t WHERE amount = 6000").rows) == 4
        slices = lab.sql("REFRESH SIEVE INDEX ON t")[0][2]
        assert slices == (9 if parts else 8)
        # In a table without partitions, Hudi can write new keys into the slices of updated keys.
        places = {"exactly": 2} if parts else {"at_most": 2}
        assert len(lab.check("SELECT * FROM t WHERE amount = 6000", **places).rows) == 4
        lab.check("SELECT * FROM t WHERE amount = 5000", exactly=1)
        lab.check("SELECT * FROM t WHERE id = 123", exactly=0)
        # A log file hides the old value. In a merge-on-read table, the index keeps this value until
        # a refresh reads the whole slice.
        lab.check("SELECT * FROM t WHERE amount = 345 * 7919 % 1000", exactly=int(kind == "mor"))
        states = lab.sql("CHECK SIEVE INDEX ON t")
        assert {row[2] for row in states} == {"ok"}
        assert lab.sql("REFRESH SIEVE INDEX ON t")[0][1:3] == (2, slices)


def test_refresh_reads_only_changed_slices(lab: Lab) -> None:
    """REFRESH reads only the changed slice into a new run, and keeps the other slices' run."""
    with lab.database("hudi_refresh"):
        filled(lab, "mor", True)
        lab.sql("UPDATE t SET amount = 5000 WHERE id = 345")
        lab.sql("REFRESH SIEVE INDEX amount_sieve ON t")
        facts = dict(lab.sql("DESCRIBE SIEVE INDEX EXTENDED amount_sieve ON t"))
        # The index counts two rows with this key in the slice: the logged row and the hidden row.
        assert (facts["runs"], facts["freshness"], facts["rows"]) == ("2", "current", "801")
        newest = lab.sql("SHOW SIEVE VERSIONS amount_sieve ON t")[0]
        assert newest[1:3] == (2, "refreshed")
        lab.sql("OPTIMIZE SIEVE INDEX amount_sieve ON t")
        facts = dict(lab.sql("DESCRIBE SIEVE INDEX EXTENDED amount_sieve ON t"))
        assert (facts["runs"], facts["freshness"], facts["rows"]) == ("1", "current", "800")
        lab.check("SELECT * FROM t WHERE amount = 345 * 7919 % 1000", exactly=0)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_an_overwrite_leaves_no_old_slice(lab: Lab, kind: str) -> None:
    """After INSERT OVERWRITE replaces the file groups, the index contains no old slice."""
    with lab.database("hudi_overwrite"):
        filled(lab, kind, True)
        lab.sql(f"INSERT OVERWRITE t {tables.rows(1000, 1300)}")
        lab.check("SELECT * FROM t WHERE id = 1234", exactly=3)
        lab.check("SELECT * FROM t WHERE id = 345", exactly=3)
        lab.sql("REFRESH SIEVE INDEX ON t")
        lab.check("SELECT * FROM t WHERE id = 1234", exactly=1)
        lab.check("SELECT * FROM t WHERE id = 345", exactly=0)


def test_queries_are_right_for_slices_without_a_base_file(lab: Lab) -> None:
    """Queries return the right rows from slices without a base file.

    With a bucket index, Hudi writes new keys to log files. Only a compaction makes a base file.
    """
    with lab.database("hudi_logs"):
        tables.create(lab, "mor", **tables.BUCKETS)
        tables.fill(lab, 0, 1)
        tables.fill(lab, 1, 200)
        lab.sql("CREATE SIEVE INDEX ON t (id, amount)")
        kinds = {path.name[0] for path in tables.folder(lab).glob("*") if "_0" in path.name}
        assert "." in kinds
        assert lab.explain("SELECT * FROM t")[0]["files_total"] == 4
        lab.check("SELECT * FROM t WHERE id = 100", exactly=1)
        lab.check("SELECT * FROM t WHERE amount = 919", exactly=1)
        tables.fill(lab, 200, 300)
        lab.check("SELECT * FROM t WHERE id = 250", exactly=4)
        lab.sql("UPDATE t SET amount = -1 WHERE id = 100")
        lab.sql("REFRESH SIEVE INDEX ON t")
        lab.check("SELECT * FROM t WHERE id = 250", exactly=1)
        lab.check("SELECT * FROM t WHERE amount < 0", exactly=1)
        assert {row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")} == {"ok"}
