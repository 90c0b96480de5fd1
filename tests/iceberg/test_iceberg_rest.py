"""Runs SIEVE statements on a table of an Iceberg REST catalog."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from iceberg_tables import AUDITED, create, insert, namespace, wait_for_state
from rest_server import rest_server
from spark_session import Lab

pytestmark = pytest.mark.iceberg


@pytest.fixture(scope="module")
def rest(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Adds two catalogs to the session. A REST server provides their tables.

    The tables of both catalogs are the same. In the catalog `planned`, the server plans the scans.
    """
    folder = tmp_path_factory.mktemp("rest")
    with rest_server(folder) as uri:
        for catalog, planner in (("remote", "client"), ("planned", "server")):
            name = f"spark.sql.catalog.{catalog}"
            lab.spark.conf.set(name, "org.apache.iceberg.spark.SparkCatalog")
            lab.spark.conf.set(f"{name}.type", "rest")
            lab.spark.conf.set(f"{name}.uri", uri)
            lab.spark.conf.set(f"{name}.scan-planning-mode", planner)
        yield


@pytest.mark.usefixtures("rest")
def test_a_table_of_a_rest_catalog(lab: Lab) -> None:
    """CREATE, queries, writes, REFRESH, a rename and DROP work on a table of a REST catalog."""
    with lab.settings(AUDITED), namespace(lab, "remote.shop"):
        create(lab)
        insert(lab)
        (made,) = lab.sql("CREATE SIEVE INDEX ON remote.shop.t (id)")
        assert made[:3] == ("id_sieve", 1, 10)
        lab.check("SELECT * FROM t WHERE id = 42", exactly=1)
        ((first,),) = lab.sql("SELECT snapshot_id FROM remote.shop.t.snapshots")
        lab.sql("DELETE FROM t WHERE id = 43")
        lab.sql("MERGE INTO t USING (SELECT explode(array(42L, 500L)) id) s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET v = 'm' "
                "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'n')")  # fmt: skip
        assert lab.facts()["freshness"].startswith("stale: ")
        lab.sql("REFRESH SIEVE INDEX ON t")
        assert lab.check("SELECT * FROM t WHERE id IN (42, 43, 500)", at_most=3).rows.total() == 2
        lab.check(f"SELECT * FROM t VERSION AS OF {first} WHERE id = 43", exactly=1)
        lab.check("SELECT max(id) FROM t", at_most=2)
        lab.sql("ALTER TABLE t RENAME TO u")
        wait_for_state(lab, "u")
        assert [row[1] for row in lab.sql("SHOW SIEVE INDEXES IN remote.shop")] == ["u"]
        lab.check("SELECT * FROM u WHERE id = 55", exactly=1)
        lab.sql("DROP SIEVE INDEX id_sieve ON u")
        lab.check("SELECT * FROM u WHERE id = 55", at_most=11)
        assert lab.sql("SHOW SIEVE INDEXES IN remote.shop") == []


@pytest.mark.usefixtures("rest")
def test_scans_that_the_server_plans(lab: Lab) -> None:
    """If the server plans a catalog's scans, statements work and queries skip files.

    The files of a query's answer, not Iceberg's metrics, count here: Iceberg reports no files for
    such a scan.
    """
    with lab.settings(AUDITED), namespace(lab, "planned.shop"):
        create(lab, write__delete__mode="merge-on-read")
        insert(lab)
        (made,) = lab.sql("CREATE SIEVE INDEX ON planned.shop.t (id)")
        assert made[:3] == ("id_sieve", 1, 10)

        def found(query: str, files: int) -> list[tuple[object, ...]]:
            with lab.setting("spark.sieve.enabled", "false"):
                rows = lab.sql(query)
            answer = lab.run(query)
            assert lab.sql(query) == rows
            assert answer.files == files
            return rows

        assert found("SELECT id FROM planned.shop.t WHERE id = 42", 1) == [(42,)]
        assert found("SELECT id FROM planned.shop.t WHERE id = -1", 0) == []
        assert found("SELECT max(id) FROM planned.shop.t", 1) == [(99,)]
        lab.sql("DELETE FROM planned.shop.t WHERE id = 42")
        assert found("SELECT id FROM planned.shop.t WHERE id = 42", 1) == []
        lab.sql("INSERT INTO planned.shop.t SELECT 500L, 'late'")
        lab.sql("REFRESH SIEVE INDEX ON planned.shop.t")
        assert found("SELECT id FROM planned.shop.t WHERE id = 500", 1) == [(500,)]
        (checked,) = lab.sql("CHECK SIEVE INDEX ON planned.shop.t")
        assert checked[2] == "ok"
