"""Settings of tables, sessions and Hudi's own skipping, beside the index."""

from __future__ import annotations

import pytest
import tables
from lab import Lab

pytestmark = pytest.mark.hudi


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_beside_the_metadata_table_and_its_statistics(lab: Lab, kind: str) -> None:
    """Hudi prunes by its statistics first; the index prunes what they left, on or off."""
    with lab.database("hudi_metadata"):
        tables.create(
            lab, kind, parts=True, hoodie__metadata__enable="true",
            hoodie__metadata__index__column__stats__enable="true",
        )  # fmt: skip
        tables.fill(lab, 0, 400)
        lab.sql("UPDATE t SET amount = 5000 WHERE id = 250")
        lab.sql("CREATE SIEVE INDEX ON t (amount)")
        for skipping in ("true", "false"):
            with lab.setting("hoodie.enable.data.skipping", skipping):
                assert lab.check("SELECT * FROM t WHERE amount = 5000", exactly=1).rows
                lab.check("SELECT * FROM t WHERE amount = 250 * 7919 % 1000")
                lab.check("SELECT * FROM t WHERE amount = 0 - 1", exactly=0)
                lab.check("SELECT * FROM t WHERE amount BETWEEN 100 AND 110")
        with lab.setting("hoodie.metadata.enable", "false"):
            lab.check("SELECT * FROM t WHERE amount = 5000", exactly=1)
        lab.sql("UPDATE t SET amount = 5001 WHERE id = 251")
        lab.check("SELECT * FROM t WHERE amount = 5001")
        with lab.setting("hoodie.metadata.enable", "false"):
            lab.sql("REFRESH SIEVE INDEX ON t")
        lab.check("SELECT * FROM t WHERE amount = 5001", exactly=1)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_tables_without_meta_columns(lab: Lab, kind: str) -> None:
    """populate.meta.fields = false: slices are named all the same."""
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
    """A table that reads base files alone has indexes of its own, and rows of its own."""
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


def test_a_setting_that_readers_may_go_by(lab: Lab) -> None:
    """An unknown one makes queries read all; one of writers does not."""
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


def test_changes_between_instants_are_read_in_full(lab: Lab) -> None:
    """Incremental queries have the same rows with an index; it takes no part in them."""
    with lab.database("hudi_changes_between") as database:
        tables.create(lab, "mor", parts=True)
        tables.fill(lab, 0, 400)
        first = tables.instants(lab)[0]
        lab.sql("UPDATE t SET amount = 5000 WHERE id = 250")
        lab.sql("CREATE SIEVE INDEX ON t (amount)")
        for value in (5000, 250 * 7919 % 1000):
            lab.check(
                f"SELECT id, amount FROM hudi_table_changes('{database}.t', 'latest_state', "
                f"'{first}') WHERE amount = {value}"
            )


def test_a_column_dropped_and_added_again_is_another(lab: Lab) -> None:
    """With evolution of schemas on, names and types may be as they were, and values not."""
    with (
        lab.database("hudi_evolution"),
        lab.setting("hoodie.schema.on.read.enable", "true"),
        lab.setting("hoodie.datasource.write.schema.allow.auto.evolution.column.drop", "true"),
    ):
        tables.create(lab, "cow", parts=True)
        tables.fill(lab, 0, 400)
        lab.sql("CREATE SIEVE INDEX ON t (amount)")
        was = "SELECT id FROM t WHERE amount = 250 * 7919 % 1000"
        assert lab.check(was, exactly=1).rows
        lab.sql("ALTER TABLE t DROP COLUMN amount")
        lab.sql("ALTER TABLE t ADD COLUMNS (amount BIGINT)")
        lab.check(was)
        assert lab.check("SELECT count(*) FROM t WHERE amount IS NULL").rows == {"(400,)": 1}
