"""Tests settings of Hudi tables and sessions that could affect an index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import tables
from spark_session import Lab

pytestmark = pytest.mark.hudi


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_tables_without_meta_columns(lab: Lab, kind: str) -> None:
    """With `hoodie.populate.meta.fields` = false, queries still skip slices."""
    with lab.database("hudi_bare"):
        tables.create(lab, kind, parts=True, hoodie__populate__meta__fields="false")
        tables.fill(lab, 0, 400)
        lab.sql("CREATE SIEVE INDEX ON t (id, amount)")
        assert lab.check("SELECT * FROM t WHERE amount = 250 * 7919 % 1000", exactly=1).rows
        tables.fill(lab, 400, 500)
        assert lab.check("SELECT * FROM t WHERE id = 450", exactly=1).rows
        lab.check("SELECT * FROM t WHERE id = 350", exactly=2)
        lab.sql("REFRESH SIEVE INDEX ON t")
        lab.check("SELECT * FROM t WHERE id = 350", exactly=1)


def test_an_index_of_the_read_optimized_table(lab: Lab) -> None:
    """A query of a read-optimized table reads only base files.

    The read-optimized table has its own indexes.
    """
    with lab.database("hudi_ro") as database:
        tables.create(lab, "mor", parts=True)
        tables.fill(lab, 0, 400)
        for name in ("t_ro", "t_rt"):
            lab.sql(f"CREATE SIEVE INDEX ON {database}.{name} (amount)")
        was = "amount = 250 * 7919 % 1000"
        lab.sql("UPDATE t SET amount = 5000 WHERE id = 250")
        for name in ("t_ro", "t_rt"):
            lab.sql(f"REFRESH TABLE {name}")
        assert lab.check(f"SELECT id FROM t_ro WHERE {was}", exactly=1).rows
        assert not lab.check("SELECT id FROM t_ro WHERE amount = 5000", exactly=0).rows
        assert lab.check("SELECT id FROM t_rt WHERE amount = 5000", exactly=1).rows
        lab.sql("REFRESH SIEVE INDEX ON t_rt")
        assert lab.check("SELECT id FROM t_rt WHERE amount = 5000", exactly=1).rows
        assert not lab.check("SELECT id FROM t_rt WHERE amount = 0 - 1", exactly=0).rows
        with lab.setting("hoodie.datasource.query.type", "read_optimized"):
            lab.check("SELECT id FROM t_rt WHERE amount = 5000")
            lab.check(f"SELECT id FROM t_rt WHERE {was}")


def test_unknown_reader_setting_makes_queries_read_all(lab: Lab) -> None:
    """If a session sets an unknown reader setting, queries read all slices.

    An unknown writer setting does not affect skipping.
    """
    with lab.database("hudi_settings"):
        tables.create(lab, "mor", parts=True)
        tables.fill(lab, 0, 400)
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        query = "SELECT * FROM t WHERE id = 250"
        with lab.setting("hoodie.upsert.shuffle.parallelism", "3"):
            lab.check(query, exactly=1)
        payload = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
        for setting, value in {
            "hoodie.datasource.merge.type": "skip_merge",
            "hoodie.datasource.write.payload.class": payload,
        }.items():
            with lab.setting(setting, value):
                lab.check(query, exactly=4)
                assert lab.explain(query)[0]["reasons"] == "reader-changed: 4"


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_new_column_does_not_disable_other_indexes(lab: Lab, kind: str) -> None:
    """A new column does not disable the indexes of the table's other columns.

    Indexes of other columns also work with log files. In tables with log files, further columns
    decide which record of a key is visible.
    """
    with lab.database("hudi_added"):
        tables.create(lab, kind, parts=True)
        tables.fill(lab, 0, 400)
        lab.sql("UPDATE t SET amount = 5000, ts = 2 WHERE id = 150")
        lab.sql("CREATE SIEVE INDEX ON t (amount)")
        lab.sql("ALTER TABLE t ADD COLUMNS (n TIMESTAMP)")
        query = "SELECT id, n FROM t WHERE amount ="
        assert lab.check(f"{query} 5000", exactly=1).rows == {repr((150, None)): 1}
        assert not lab.check(f"{query} {150 * 7919 % 1000}", exactly=0).rows
        assert lab.facts("amount_sieve")["reader"] == "unchanged"
        lab.sql("UPDATE t SET amount = 6000, ts = 3, n = TIMESTAMP '2026-01-01' WHERE id = 250")
        assert lab.check(f"{query} 6000", exactly=1).rows
        lab.sql("REFRESH SIEVE INDEX ON t")
        assert lab.check(f"{query} 6000", exactly=1).rows
        assert lab.check(f"{query} 5000", exactly=1).rows


@contextmanager
def evolving(lab: Lab) -> Iterator[None]:
    """Allows dropping columns in the block, and makes Hudi identify columns by id."""
    with (
        lab.setting("hoodie.schema.on.read.enable", "true"),
        lab.setting("hoodie.datasource.write.schema.allow.auto.evolution.column.drop", "true"),
    ):
        yield


def test_column_dropped_and_added_again_is_a_new_column(lab: Lab) -> None:
    """If a column is dropped and added again, queries do not use the old column's index.

    The old and the new column have the same name, type and position; only their ids differ.
    """

    def exchange() -> None:
        lab.sql("ALTER TABLE t DROP COLUMN part")
        lab.sql("ALTER TABLE t ADD COLUMNS (part INT)")

    with lab.database("hudi_evolution"):
        tables.create(lab, "cow")
        tables.fill_sorted(lab, 0, 800)
        with evolving(lab):
            # The first column change with ids also changes column comments, so the test makes this
            # change before CREATE.
            exchange()
        # CREATE refuses a table if its last commit has column ids, so this commit is without ids.
        tables.fill(lab, 800, 801)
        with evolving(lab):
            lab.sql("CREATE SIEVE INDEX ON t (part)")
            assert lab.check("SELECT id FROM t WHERE part = 3", at_most=2).rows
            exchange()
            query = "SELECT id FROM t WHERE part IS NULL"
            assert lab.check(query, exactly=8).rows
            assert lab.explain(query)[0]["reasons"] == "reader-changed: 8"
