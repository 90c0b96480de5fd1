"""Runs SIEVE statements on tables of Iceberg's catalogs."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from iceberg_tables import AUDITED, create, insert, namespace, wait_for_state
from pyspark.errors import PySparkException
from spark_session import Lab

pytestmark = pytest.mark.iceberg


@pytest.mark.parametrize("name", ["spark_catalog.shop", "files.shop", "store.shop"])
def test_all_statements(lab: Lab, name: str) -> None:
    """Each SIEVE statement works on tables of the session catalog and of named catalogs."""
    label = name.removeprefix("spark_catalog.")
    with namespace(lab, name), lab.settings(AUDITED):
        create(lab)
        insert(lab, files=24)
        assert lab.sql("ESTIMATE SIEVE INDEX ON t (id) WHERE id = 42")[0][0] == "id"
        (made,) = lab.sql(f"CREATE SIEVE INDEX ON {name}.t (id)")
        assert made[:3] == ("id_sieve", 1, 24)
        (row,) = lab.sql("SHOW SIEVE INDEXES ON t")
        assert (row[:4], row[6]) == ((label, "t", "id_sieve", "id"), "ready")
        assert lab.sql("SHOW SIEVE INDEXES") == lab.sql(f"SHOW SIEVE INDEXES IN {name}") == [row]
        lab.check("SELECT * FROM t WHERE id = 42", exactly=1)
        lab.check(f"SELECT * FROM {name}.t WHERE id = 42", exactly=1)
        facts = lab.facts()
        assert (facts["table"], facts["freshness"]) == (f"{label}.t", "current")
        lab.sql("INSERT INTO t VALUES (42, 'new')")
        assert lab.facts()["freshness"] == "stale: 1 files"
        (row,) = lab.sql("REFRESH SIEVE INDEX ON t")
        assert row[1:3] == (2, 25)
        lab.check("SELECT * FROM t WHERE id = 42", exactly=2)
        assert [v[1] for v in lab.sql("SHOW SIEVE VERSIONS ON t")] == [2, 1]
        lab.sql("ALTER SIEVE INDEX id_sieve ON t DISABLE")
        lab.check("SELECT * FROM t WHERE id = 42", exactly=25)
        lab.sql("ALTER SIEVE INDEX id_sieve ON t ENABLE")
        (row,) = lab.sql("CHECK SIEVE INDEX ON t")
        assert row[2] == "ok"
        lab.sql("OPTIMIZE SIEVE INDEX ON t")
        lab.sql("VACUUM SIEVE INDEX ON t")
        lab.check("SELECT * FROM t WHERE id = 42", exactly=2)
        lab.sql("DROP SIEVE INDEX id_sieve ON t")
        lab.check("SELECT * FROM t WHERE id = 42", exactly=25)
        assert lab.sql("SHOW SIEVE INDEXES") == []


def test_counters_and_reasons(lab: Lab) -> None:
    """Counters count each scan. If a table has no index, EXPLAIN SIEVE says so."""
    with namespace(lab, "files.counted"):
        create(lab)
        insert(lab)
        (scan,) = lab.explain("SELECT * FROM t WHERE id = 42")
        assert (scan["table"], scan["files_total"], scan["reasons"]) == (
            "files.counted.t", 10, "no-index: 10")  # fmt: skip
        lab.sql("CREATE SIEVE INDEX ON t (id)")

        def counts() -> dict[str, int]:
            return {row[0]: row[2] for row in lab.sql("SELECT * FROM sieve_status()")}

        before = counts()
        lab.explain("SELECT * FROM t WHERE id = 42")
        assert counts()["scans"] == before["scans"]
        lab.sql("SELECT * FROM t WHERE id = 42")
        after = counts()
        changed = {
            key: after[key] - before[key] for key in ("scans", "files_listed", "files_skipped")
        }
        assert changed == {"scans": 1, "files_listed": 10, "files_skipped": 9}
        with (
            lab.setting("spark.sieve.require", "true"),
            pytest.raises(PySparkException, match="SIEVE_REQUIRED"),
        ):
            lab.sql("SELECT * FROM t WHERE id % 3 = 1")


def test_another_table_of_the_name(lab: Lab) -> None:
    """If a new table gets the name and the property of a dropped table, queries read all files."""
    with namespace(lab, "files.names"):
        create(lab)
        insert(lab)
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        ((_, value),) = [
            row for row in lab.sql("SHOW TBLPROPERTIES t") if row[0] == "sieve.index.id_sieve"
        ]
        lab.sql("DROP TABLE t")
        create(lab)
        insert(lab, "id + 5 id, 'x' v")
        lab.sql(f"ALTER TABLE t SET TBLPROPERTIES ('sieve.index.id_sieve' = '{value}')")
        with lab.setting("spark.sieve.registry.ttl", "0s"):
            assert lab.check("SELECT * FROM t WHERE id = 42", exactly=10).rows.total() == 1


@pytest.mark.parametrize("name", ["spark_catalog.renamed", "store.Renamed"])
def test_an_index_follows_a_renamed_table(lab: Lab, name: str) -> None:
    """After RENAME, queries skip files at once. A copied catalog entry cannot use the index."""
    with namespace(lab, name), lab.settings(AUDITED):
        create(lab)
        insert(lab)
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.check("SELECT * FROM t WHERE id = 42", exactly=1)
        lab.sql("ALTER TABLE t RENAME TO u")
        wait_for_state(lab, "u")
        lab.check("SELECT * FROM u WHERE id = 42", exactly=1)
        create(lab)
        insert(lab, "id + 5 id, 'x' v")
        assert lab.check("SELECT * FROM t WHERE id = 42", exactly=10).rows.total() == 1
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.check("SELECT * FROM t WHERE id = 42", exactly=1)
        lab.sql(f"ALTER TABLE u RENAME TO {name.rpartition('.')[2]}.w")
        wait_for_state(lab, "w")
        lab.sql("INSERT INTO w VALUES (42, 'new')")
        assert [row[1:3] for row in lab.sql("REFRESH SIEVE INDEX ON w")] == [(4, 11)]
        lab.check("SELECT * FROM w WHERE id = 42", exactly=2)
        # The copied entry has the same UUID, location and properties as the original entry.
        ((metadata,),) = lab.sql(
            f"SELECT file FROM {name}.w.metadata_log_entries ORDER BY timestamp DESC LIMIT 1"
        )
        catalog, namespace_of = name.split(".")
        lab.sql(f"CALL {catalog}.system.register_table('{namespace_of}.copy', '{metadata}')")
        lab.sql("DELETE FROM copy WHERE id = 42")
        with pytest.raises(PySparkException, match=r"belongs to table .*w at"):
            lab.sql("REFRESH SIEVE INDEX ON copy")
        assert lab.check("SELECT * FROM copy WHERE id = 42").rows.total() == 0
        assert lab.check("SELECT * FROM w WHERE id = 42", exactly=2).rows.total() == 2
        # DROP TABLE with PURGE would also delete the files of the original entry.
        lab.sql("DROP TABLE copy")


@pytest.mark.parametrize("name", ["spark_catalog.followed", "files.followed"])
def test_indexes_follow_writes(lab: Lab, name: str) -> None:
    """Writes of this driver build a declared index, and refresh an index with refresh = 'auto'."""
    with namespace(lab, name):
        create(lab, sieve_columns="id", sieve_options='refresh = "auto"')

        def write(statement: str, version: int) -> int:
            """Runs a statement; returns the number of files in the index version that follows."""
            lab.sql(statement)
            rows = lab.sql("SHOW SIEVE INDEXES ON t")
            deadline = time.monotonic() + 60
            while [row[6:8] for row in rows] != [("ready", version)]:
                assert time.monotonic() < deadline, rows
                time.sleep(0.1)
                rows = lab.sql("SHOW SIEVE INDEXES ON t")
            return int(rows[0][9])

        rows = "INSERT INTO t SELECT /*+ REPARTITION_BY_RANGE({}, id) */ id, 'v' FROM range({}, {})"
        assert write(rows.format(5, 0, 50), 1) == 5
        assert write(rows.format(3, 50, 80), 2) == 8
        lab.check("SELECT * FROM t WHERE id = 55", exactly=1)
        assert write("DELETE FROM t WHERE id < 20 OR id = 55", 3) == 6
        merge = "MERGE INTO t USING (SELECT 56L id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET"
        assert write(f"{merge} v = 'm'", 4) == 6
        lab.check("SELECT * FROM t WHERE id = 56", exactly=1)


def test_a_cached_table_is_refreshed_in_place(lab: Lab) -> None:
    """SIEVE statements do not replace the table object in the session's cache.

    A commit of a concurrent statement changes only the old object. If SIEVE statements replaced the
    object, queries would miss the commit.
    """
    jvm = lab.spark._jvm
    database = lab.spark.sparkContext._gateway.new_array(jvm.java.lang.String, 1)
    database[0] = "places"
    name = jvm.org.apache.spark.sql.connector.catalog.Identifier.of(database, "t")
    catalog = lab.spark._jsparkSession.sessionState().catalogManager().catalog("spark_catalog")

    def cached() -> int:
        found: int = jvm.java.lang.System.identityHashCode(catalog.loadTable(name).table())
        return found

    with namespace(lab, "spark_catalog.places"):
        create(lab)
        insert(lab)
        before = cached()
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.sql("INSERT INTO t VALUES (42, 'new')")
        lab.explain("SELECT * FROM t WHERE id = 42")
        lab.sql("REFRESH SIEVE INDEX ON t")
        lab.check("SELECT * FROM t WHERE id = 42", exactly=2)
        lab.sql("DROP SIEVE INDEX id_sieve ON t")
        assert cached() == before


def test_catalogs_of_one_name_in_two_sessions(lab: Lab, tmp_path: Path) -> None:
    """Two sessions can give different warehouses to a catalog of one name."""
    sessions = []
    for number in range(2):
        own = Lab(lab.spark.newSession())
        own.spark.conf.set("spark.sql.catalog.twice", "org.apache.iceberg.spark.SparkCatalog")
        own.spark.conf.set("spark.sql.catalog.twice.type", "hadoop")
        own.spark.conf.set("spark.sql.catalog.twice.warehouse", f"file:{tmp_path}/{number}")
        own.sql("CREATE NAMESPACE twice.db")
        own.sql("USE twice.db")
        create(own, sieve_options='refresh = "auto"' if number else "")
        insert(own, f"id + {5 * number} id, 'v' v", files=10 - number)
        assert own.check("SELECT * FROM t WHERE id = 42", exactly=10 - number).rows.total() == 1
        sessions.append(own)
    first, second = sessions
    first.sql("CREATE SIEVE INDEX ON t (id)")
    second.sql("CREATE SIEVE INDEX ON t (id) OPTIONS (refresh = 'auto')")
    with first.setting("spark.sieve.registry.ttl", "0s"):
        second.spark.conf.set("spark.sieve.registry.ttl", "0s")
        for _ in range(3):
            for own in sessions:
                assert own.check("SELECT * FROM t WHERE id = 42", exactly=1).rows.total() == 1
                time.sleep(0.2)
    second.sql("INSERT INTO t VALUES (42, 'new')")
    wait_for_state(second, "t")
    assert [len(own.sql("SHOW SIEVE VERSIONS ON t")) for own in sessions] == [1, 2]
    second.sql("DROP SIEVE INDEX id_sieve ON t")
    assert second.check("SELECT * FROM t WHERE id = 42", exactly=10).rows.total() == 2
    first.check("SELECT * FROM t WHERE id = 42", exactly=1)


def test_a_snapshot_with_the_number_of_a_lost_snapshot(lab: Lab) -> None:
    """After a restore of older metadata, a refresh indexes a snapshot with a repeated number."""
    with namespace(lab, "files.restored"):
        create(lab)
        insert(lab)
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        ((file,),) = lab.sql(
            "SELECT file FROM files.restored.t.metadata_log_entries ORDER BY timestamp DESC LIMIT 1"
        )
        metadata = Path(file.removeprefix("file:")).parent
        hint = metadata / "version-hint.text"
        before = hint.read_text()
        insert(lab, start=100)
        assert [row[1:3] for row in lab.sql("REFRESH SIEVE INDEX ON t")] == [(2, 20)]
        newest = hint.read_text()
        for number in range(int(before) + 1, int(newest) + 1):
            (metadata / f"v{number}.metadata.json").unlink()
        for checksum in metadata.glob(".*.crc"):
            checksum.unlink()
        hint.write_text(before)
        lab.sql("REFRESH TABLE t")
        insert(lab, start=200)
        snapshots = json.loads((metadata / f"v{newest}.metadata.json").read_text())["snapshots"]
        assert [own["sequence-number"] for own in snapshots] == [1, 2]
        assert [row[1:3] for row in lab.sql("REFRESH SIEVE INDEX ON t")] == [(3, 20)]
        assert lab.check("SELECT * FROM t WHERE id = 242", exactly=1).rows.total() == 1
