"""An index follows its table if the table is dropped, renamed, moved, written or replaced."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from spark_session import Lab


def wait_until(what: Callable[[], bool], seconds: float = 30) -> None:
    """Waits until a background task makes a condition true, or fails after the given time."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.2)


def create(lab: Lab, table: str = "t") -> Path:
    """Creates a table of four files with ten keys each, with an index.

    Returns the index's folder.
    """
    lab.sql(f"CREATE TABLE {table} USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
    lab.sql(f"CREATE SIEVE INDEX ON {table} (id)")
    return folder(lab, table)


def folder(lab: Lab, table: str = "t") -> Path:
    """The folder of a table's index."""
    told = lab.facts(table=table)
    return Path(told["path"].removeprefix("file:"))


def reads(lab: Lab, query: str) -> int:
    """The number of files that a query would read."""
    return int(lab.explain(query)[0]["files_read"])


def version(lab: Lab, table: str = "t") -> int:
    """The version number of the index, or 0 if the index has no version."""
    shown = lab.sql(f"SHOW SIEVE INDEXES ON {table}")
    return int(shown[0][7] or 0) if shown else 0


def test_drop_table_deletes_its_indexes(lab: Lab) -> None:
    """DROP TABLE and DROP DATABASE delete the indexes of dropped tables, and no other index."""
    with lab.database("dropping"):
        gone, stays = create(lab), create(lab, "u")
        lab.sql("DROP TABLE t")
        wait_until(lambda: not gone.exists())
        assert stays.exists()
        lab.check("SELECT * FROM u WHERE id = 5", exactly=1)
        root = stays.parent
    wait_until(lambda: not root.exists())


def test_drop_database_deletes_indexes_in_another_folder(lab: Lab, tmp_path: Path) -> None:
    """If spark.sieve.path is set, one folder can contain the indexes of many databases.

    DROP DATABASE deletes only the indexes of the dropped tables, even in a shared folder.
    """
    root = f"file:{tmp_path}"
    with (
        lab.setting("spark.sieve.path", root),
        lab.setting("spark.sieve.roots", root),
        lab.database("elsewhere_kept"),
    ):
        stays = create(lab)
        with lab.database("elsewhere"):
            gone = create(lab)
            assert gone.parent == stays.parent == tmp_path
        lab.sql("USE elsewhere_kept")
        wait_until(lambda: not gone.exists())
        assert stays.exists()


def test_an_index_follows_a_renamed_table(lab: Lab) -> None:
    """If a managed table is renamed and its files move, the index works without a rebuild."""
    with lab.database("renaming"):
        at = create(lab, "old_name")
        lab.check("SELECT * FROM old_name WHERE id = 5", exactly=1)
        lab.sql("ALTER TABLE old_name RENAME TO t")
        wait_until(lambda: version(lab) == 2)
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)
        assert folder(lab) == at
        told = lab.sql("SHOW SIEVE VERSIONS ON t")
        assert [row[2] for row in told] == ["followed its table", "created"]
        lab.sql("INSERT INTO t SELECT id FROM range(40, 50, 1, 1)")
        assert lab.sql("REFRESH SIEVE INDEX ON t")[0][1:3] == (3, 5)
        lab.check("SELECT * FROM t WHERE id = 45", exactly=1)
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)
        lab.sql("CREATE TABLE old_name USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
        lab.check("SELECT * FROM old_name WHERE id = 5", exactly=4)
        lab.sql("DROP TABLE old_name")
        time.sleep(1)
        assert at.exists()


@pytest.mark.long
def test_indexes_follow_tables_that_swap_names(lab: Lab) -> None:
    """If two tables swap names, each index follows its own table, even during a REFRESH."""
    with lab.database("swapping"):
        one, two = create(lab, "a"), create(lab, "b")
        for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
            lab.sql(f"ALTER TABLE {old} RENAME TO {new}")
        for table, at in (("a", two), ("b", one)):
            assert lab.sql(f"REFRESH SIEVE INDEX ON {table}")[0][2] == 4
            lab.check(f"SELECT * FROM {table} WHERE id = 5", exactly=1)
            assert folder(lab, table) == at


@pytest.mark.long
def test_moved_files_are_new_until_refresh(lab: Lab, tmp_path: Path) -> None:
    """If a table gets a new location, the index counts the table's files as new until REFRESH."""
    with lab.database("moving"):
        at = create(lab)
        lab.sql(
            f"CREATE TABLE u USING parquet LOCATION '{tmp_path}/there' "
            "AS SELECT id + 100 AS id FROM range(0, 40, 1, 4)"
        )
        lab.sql(f"ALTER TABLE t SET LOCATION '{tmp_path}/there'")
        wait_until(lambda: version(lab) == 2)
        lab.check("SELECT * FROM t WHERE id = 105", exactly=4)
        assert lab.explain("SELECT * FROM t WHERE id = 105")[0]["reasons"] == "new-file: 4"
        lab.sql("REFRESH SIEVE INDEX ON t")
        lab.check("SELECT * FROM t WHERE id = 105", exactly=1)
        assert folder(lab) == at


def test_an_index_without_its_property_is_not_used(lab: Lab) -> None:
    """UNSET TBLPROPERTIES also unregisters an index in all open sessions.

    A property that registers an index has no effect in a copy on another table.
    """
    with lab.database("properties"):
        create(lab)
        ((_, value),) = [
            row for row in lab.sql("SHOW TBLPROPERTIES t") if row[0] == "sieve.index.id_sieve"
        ]
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)
        lab.sql("ALTER TABLE t UNSET TBLPROPERTIES ('sieve.index.id_sieve')")
        wait_until(lambda: reads(lab, "SELECT * FROM t WHERE id = 5") == 4)
        lab.sql("CREATE TABLE u USING parquet AS SELECT id + 100 AS id FROM range(0, 40, 1, 4)")
        lab.sql(f"ALTER TABLE u SET TBLPROPERTIES ('sieve.index.id_sieve' = '{value}')")
        lab.check("SELECT * FROM u WHERE id = 105", exactly=4)
        lab.sql("CREATE TABLE v LIKE t")
        assert lab.sql("SHOW SIEVE INDEXES ON v") == []
        lab.sql(f"ALTER TABLE t SET TBLPROPERTIES ('sieve.index.id_sieve' = '{value}')")
        wait_until(lambda: reads(lab, "SELECT * FROM t WHERE id = 5") == 1)
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)


def test_each_kind_of_write_causes_a_refresh(lab: Lab) -> None:
    """With spark.sieve.refresh.auto, INSERT, OVERWRITE, insertInto and TRUNCATE cause refreshes."""
    with lab.database("written"), lab.setting("spark.sieve.refresh.auto", "true"):
        create(lab)
        for first in (40, 50, 60):
            lab.sql(f"INSERT INTO t SELECT id FROM range({first}, {first + 10}, 1, 1)")
        wait_until(lambda: reads(lab, "SELECT * FROM t WHERE id = 65 OR id = 45") == 2)
        # Sessions write rows while a refresh runs. A few more refreshes index all of these rows.
        assert version(lab) <= 4
        lab.spark.range(70, 80, 1, 1).write.insertInto("t")
        wait_until(lambda: reads(lab, "SELECT * FROM t WHERE id = 75") == 1)
        lab.sql("INSERT OVERWRITE t SELECT id FROM range(100, 140, 1, 4)")
        wait_until(lambda: reads(lab, "SELECT * FROM t WHERE id = 105") == 1)
        lab.check("SELECT * FROM t WHERE id = 105", exactly=1)
        with lab.setting("spark.sieve.refresh.auto", "false"):
            before = version(lab)
            lab.sql("INSERT INTO t SELECT id FROM range(140, 150, 1, 1)")
            time.sleep(2)
            assert version(lab) == before


def test_option_refresh_auto_needs_no_session_setting(lab: Lab) -> None:
    """The option refresh = 'auto' of an index has priority over the session's setting."""
    with lab.database("asked"), lab.setting("spark.sieve.refresh.auto", "false"):
        create(lab)
        create(lab, "u")
        before = folder(lab).stat().st_ino
        lab.sql("ALTER SIEVE INDEX id_sieve ON t SET OPTIONS (refresh = 'auto')")
        for table in ("t", "u"):
            lab.sql(f"INSERT INTO {table} SELECT id FROM range(40, 50, 1, 1)")
        wait_until(lambda: reads(lab, "SELECT * FROM t WHERE id = 45") == 1)
        lab.check("SELECT * FROM t WHERE id = 45", exactly=1)
        assert lab.facts(table="u")["files new"] == "1"
        assert "refresh = auto" in lab.facts()["options"]
        lab.spark.sql("SELECT id + 100 AS id FROM t").write.mode("overwrite").saveAsTable("v")
        lab.sql("CREATE SIEVE INDEX ON v (id) OPTIONS (refresh = 'auto')")
        lab.spark.range(200, 240, 1, 4).write.mode("overwrite").saveAsTable("v")
        wait_until(
            lambda: version(lab, "v") > 0 and reads(lab, "SELECT * FROM v WHERE id = 205") == 1
        )
        lab.check("SELECT * FROM v WHERE id = 205", exactly=1)
        lab.sql(
            "CREATE TABLE d USING parquet TBLPROPERTIES ('sieve.columns' = 'id', "
            "'sieve.options' = 'refresh = auto') AS SELECT id FROM range(0, 40, 1, 4)"
        )
        wait_until(lambda: indexed(lab, "d") == {"id_sieve"})
        lab.check("SELECT * FROM d WHERE id = 5", exactly=1)
        lab.sql("ALTER SIEVE INDEX id_sieve ON t SET OPTIONS (refresh = 'manual')")
        lab.sql("INSERT INTO t SELECT id FROM range(50, 60, 1, 1)")
        # Spark reports writes in order: if the second write is indexed, Spark has reported the
        # first.
        lab.sql("INSERT INTO d SELECT id FROM range(50, 60, 1, 1)")
        wait_until(lambda: reads(lab, "SELECT * FROM d WHERE id = 55") == 1)
        assert lab.facts()["files new"] == "1"
        assert folder(lab).stat().st_ino == before


@pytest.mark.long
def test_rows_written_before_a_rename_are_indexed(lab: Lab) -> None:
    """If a user renames a table right after a write, a refresh still indexes the written rows."""
    with lab.database("written_renamed"), lab.setting("spark.sieve.refresh.auto", "true"):
        create(lab, "name_0")
        for k in range(3):
            low = 40 + 10 * k
            lab.sql(f"INSERT INTO name_{k} SELECT id FROM range({low}, {low + 10}, 1, 1)")
            time.sleep(0.4 * k)
            lab.sql(f"ALTER TABLE name_{k} RENAME TO name_{k + 1}")
            wait_until(lambda k=k: lab.facts(table=f"name_{k + 1}")["freshness"] == "current")
            lab.check(f"SELECT * FROM name_{k + 1} WHERE id = {low + 5}", exactly=1)
            assert lab.explain(f"SELECT * FROM name_{k + 1} WHERE id = 5")[0]["reasons"] is None


@pytest.mark.long
def test_partitions_and_loaded_files_are_refreshed(lab: Lab, tmp_path: Path) -> None:
    """ADD and DROP PARTITION, partitions in other locations, and LOAD DATA cause refreshes."""
    for first in (40, 50):
        lab.spark.range(first, first + 10, 1, 1).write.parquet(f"{tmp_path}/{first}")
    with lab.database("partitions_written"), lab.setting("spark.sieve.refresh.auto", "true"):
        lab.sql(
            "CREATE TABLE t USING parquet PARTITIONED BY (p) AS "
            "SELECT id, id DIV 20 AS p FROM range(0, 40, 1, 4)"
        )
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.sql(f"ALTER TABLE t ADD PARTITION (p = 2) LOCATION '{tmp_path}/40'")
        wait_until(lambda: reads(lab, "SELECT * FROM t WHERE id = 45 OR id = 5") == 2)
        lab.check("SELECT * FROM t WHERE id = 45", exactly=1)
        lab.sql("ALTER TABLE t DROP PARTITION (p = 0)")
        wait_until(lambda: lab.sql("SHOW SIEVE INDEXES ON t")[0][9] == 3)
        lab.check("SELECT * FROM t WHERE id = 5", exactly=0)
        lab.sql("CREATE TABLE h (id BIGINT) STORED AS PARQUET")
        lab.sql("INSERT INTO h SELECT id FROM range(0, 20, 1, 2)")
        lab.sql("CREATE SIEVE INDEX ON h (id)")
        loaded = next(Path(f"{tmp_path}/50").glob("*.parquet"))
        lab.sql(f"LOAD DATA LOCAL INPATH '{loaded}' INTO TABLE h")
        wait_until(lambda: reads(lab, "SELECT * FROM h WHERE id = 55 OR id = 5") == 2)
        lab.check("SELECT * FROM h WHERE id = 55", exactly=1)


@pytest.mark.long
def test_overwritten_table_gets_its_index_back(lab: Lab) -> None:
    """In overwrite mode, saveAsTable drops the table; Sieve then builds the index again."""
    with lab.database("saved"), lab.setting("spark.sieve.refresh.auto", "true"):
        create(lab)
        lab.sql("ALTER SIEVE INDEX id_sieve ON t SET OPTIONS (budget = '2%')")
        time.sleep(1.1)
        lab.spark.range(100, 140, 1, 4).write.mode("overwrite").saveAsTable("t")
        wait_until(lambda: version(lab) > 0 and reads(lab, "SELECT * FROM t WHERE id = 105") == 1)
        lab.check("SELECT * FROM t WHERE id = 105", exactly=1)
        assert "budget = 2%" in dict(lab.sql("DESCRIBE SIEVE INDEX id_sieve ON t"))["options"]


@pytest.mark.long
def test_table_of_another_catalog_is_ignored(lab: Lab) -> None:
    """Sieve ignores another catalog's table with the database and name of an indexed table."""
    catalog, kind = "spark.sql.catalog.other", "org.apache.spark.sql.execution.datasources.v2.jdbc"
    other = {
        catalog: f"{kind}.JDBCTableCatalog",
        f"{catalog}.url": "jdbc:derby:memory:other;create=true",
        f"{catalog}.driver": "org.apache.derby.jdbc.EmbeddedDriver",
    }
    with lab.database("following"), lab.settings(other):
        create(lab)
        create(lab, "u")
        lab.sql("INSERT INTO t VALUES (40)")
        with lab.setting("spark.sieve.refresh.auto", "true"):
            lab.sql("CREATE NAMESPACE other.following")
            lab.sql("CREATE TABLE other.following.t AS SELECT 1L AS id")
            # Spark reports writes in order: if the second write is indexed, Spark has reported the
            # first.
            lab.sql("INSERT INTO u VALUES (40)")
            wait_until(lambda: version(lab, "u") == 2)
        assert version(lab) == 1
        assert lab.facts()["files new"] == "1"


@pytest.mark.long
def test_state_has_the_error_of_a_failed_refresh(lab: Lab) -> None:
    """If a refresh fails, the index's state shows the error until a later refresh succeeds."""
    with lab.database("failing"), lab.setting("spark.sieve.refresh.auto", "true"):
        at = create(lab)
        (at / "intents").rename(at / "hidden")
        lab.sql("INSERT INTO t SELECT id FROM range(40, 50, 1, 1)")

        def freshness() -> str:
            return lab.facts()["freshness"]

        wait_until(lambda: freshness().startswith("failed: "))
        lab.check("SELECT * FROM t WHERE id = 45", exactly=1)
        lab.check("SELECT * FROM t WHERE id = 5", exactly=2)
        (at / "hidden").rename(at / "intents")
        lab.sql("INSERT INTO t SELECT id FROM range(50, 60, 1, 1)")
        wait_until(lambda: freshness() == "current")
        lab.check("SELECT * FROM t WHERE id = 55", exactly=1)


DECLARES = "TBLPROPERTIES ('sieve.columns' = 'ID, s.`a b`', 'sieve.options' = 'error = 1')"
SELECT = "SELECT id, named_struct('a b', id) AS s FROM range(0, 40, 1, 4)"


def indexed(lab: Lab, table: str = "t") -> set[str]:
    """The names of a table's indexes whose state is `ready`."""
    return {row[2] for row in lab.sql(f"SHOW SIEVE INDEXES ON {table}") if row[6] == "ready"}


def test_a_table_declares_its_indexes(lab: Lab) -> None:
    """After DROP and CREATE TABLE, Sieve rebuilds declared indexes, even if a build is running."""
    both = {"id_sieve", "s_a b_sieve"}
    with lab.database("declared"), lab.setting("spark.sieve.refresh.auto", "true"):
        for run in range(2):
            lab.sql("DROP TABLE IF EXISTS t")
            lab.sql(f"CREATE TABLE t USING parquet {DECLARES} AS {SELECT}")
            if run:
                wait_until(lambda: indexed(lab) == both)
                lab.check("SELECT * FROM t WHERE id = 5", exactly=1)
                lab.check("SELECT * FROM t WHERE s.`a b` = 5", exactly=1)
        root = folder(lab).parent
        wait_until(lambda: len(list(root.iterdir())) == 2)
        lab.sql("INSERT INTO t SELECT id, named_struct('a b', id) FROM range(40, 50, 1, 1)")
        more = lab.spark.sql("SELECT id, named_struct('a b', id) AS s FROM range(50, 60, 1, 1)")
        more.write.mode("append").saveAsTable("t")
        wait_until(lambda: reads(lab, "SELECT * FROM t WHERE id = 55") == 1)
        lab.check("SELECT * FROM t WHERE id = 55", exactly=1)
        # saveAsTable creates the table again without its properties. Sieve still builds the
        # declared indexes.
        wait_until(lambda: indexed(lab) == both)
        lab.spark.sql(SELECT).write.mode("overwrite").saveAsTable("t")
        wait_until(lambda: indexed(lab) == both)
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)


@pytest.mark.long
def test_tables_of_all_kinds_declare_their_indexes(lab: Lab) -> None:
    """Empty tables can declare indexes, and so can tables of LIKE, Hive or a DataFrame writer.

    If a declaration names a column that does not exist, writes still succeed.
    """
    with lab.database("declared_kinds"), lab.setting("spark.sieve.refresh.auto", "true"):
        lab.sql(
            "CREATE TABLE t (id BIGINT) USING parquet TBLPROPERTIES ('sieve.columns' = 'id, idd')"
        )
        lab.sql("CREATE TABLE a LIKE t")
        lab.sql("CREATE TABLE b LIKE t USING orc")
        lab.sql("CREATE TABLE c LIKE t TBLPROPERTIES ('sieve.columns' = '')")
        lab.sql(
            "CREATE TABLE h (id BIGINT) STORED AS PARQUET TBLPROPERTIES ('sieve.columns' = 'id')"
        )
        for table in "tabch":
            lab.sql(f"INSERT INTO {table} SELECT id FROM range(0, 40, 1, 4)")
        frame = lab.spark.range(0, 40, 1, 4)
        frame.writeTo("d").using("parquet").tableProperty("sieve.columns", "id").create()
        for table in "tabhd":
            wait_until(lambda table=table: indexed(lab, table) == {"id_sieve"})
            lab.check(f"SELECT * FROM {table} WHERE id = 5", exactly=1)
        assert lab.sql("SHOW SIEVE INDEXES ON c") == []
        built, wrong = lab.spark.sql("REFRESH SIEVE INDEX ON t").collect()
        assert (built["index"], built["change"]) == ("id_sieve", "unchanged")
        assert (wrong["index"], wrong["version"], wrong["change"]) == ("idd_sieve", None, None)
        assert "did you mean id?" in wrong["advice"]


@pytest.mark.long
def test_declared_indexes_wait_for_a_refresh(lab: Lab) -> None:
    """Without spark.sieve.refresh.auto, one REFRESH builds all indexes that a table declares.

    DROP of an index also removes the index's declaration from the table.
    """
    with lab.database("declared_waiting"):
        lab.sql(f"CREATE TABLE t USING parquet {DECLARES} AS {SELECT}")
        lab.check("SELECT * FROM t WHERE id = 5", exactly=4)
        assert lab.sql("SHOW SIEVE INDEXES ON t") == []
        told = lab.spark.sql("REFRESH SIEVE INDEX ON t").collect()
        assert [(row["index"], row["version"], row["change"], row["advice"]) for row in told] == [
            ("id_sieve", 1, "created", None),
            ("s_a b_sieve", 1, "created", None),
        ]
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)
        lab.check("SELECT * FROM t WHERE s.`a b` = 5", exactly=1)
        lab.sql("DROP SIEVE INDEX id_sieve ON t")
        assert [row[0] for row in lab.sql("REFRESH SIEVE INDEX ON t")] == ["s_a b_sieve"]
        assert dict(lab.sql("SHOW TBLPROPERTIES t"))["sieve.columns"] == "`s`.`a b`"
        lab.check("SELECT * FROM t WHERE id = 5", exactly=4)
