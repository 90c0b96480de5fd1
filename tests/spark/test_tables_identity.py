"""An index belongs to one table, not to a copy, a later table, or another table of that name."""

from __future__ import annotations

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from spark_session import Lab


def index_folders(lab: Lab, database: str) -> list[Path]:
    """The folders of indexes in the root of a database."""
    location = lab.spark.catalog.getDatabase(database).locationUri
    root = Path(location.removeprefix("file:")) / ".sieve"
    return sorted(root.iterdir()) if root.exists() else []


def properties(lab: Lab, table: str) -> dict[str, str]:
    """The properties with which a table registers its indexes."""
    rows = lab.sql(f"SHOW TBLPROPERTIES {table}")
    return {key: value for key, value in rows if key.startswith("sieve.index.")}


def test_create_registers_no_index_on_a_replaced_table(lab: Lab) -> None:
    """If a table moves or is replaced while a CREATE is running, the CREATE registers no index."""
    resolve = lab.spark._jvm.org.apache.spark.sql.sieve.statements.Tables.resolve
    with lab.database("replaced") as database:
        for change in ("DROP TABLE t", "ALTER TABLE t SET LOCATION '/elsewhere'"):
            lab.sql("CREATE TABLE t USING parquet AS SELECT 1 AS id")
            before = resolve(lab.spark._jsparkSession, [database, "t"])
            time.sleep(1.1)  # the metastore stores creation times in whole seconds
            lab.sql(change)
            if change.startswith("DROP"):
                lab.sql("CREATE TABLE t USING parquet AS SELECT 2 AS id")
            with pytest.raises(AnalysisException, match="SIEVE_TABLE_MOVED"):
                before.setProperty("sieve.index.id_sieve", "x")
            assert properties(lab, "t") == {}
            lab.sql("DROP TABLE t")


def test_create_and_drop_leave_no_trace(lab: Lab) -> None:
    """DROP removes the index's property and files; queries then work without the index."""
    with lab.database("trace") as database:
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        assert list(properties(lab, "t")) == ["sieve.index.id_sieve"]
        assert len(index_folders(lab, database)) == 1
        assert lab.sql("DROP SIEVE INDEX ON t (id)") == [("id_sieve",)]
        assert properties(lab, "t") == {}
        assert index_folders(lab, database) == []
        lab.check("SELECT * FROM t WHERE id = 5", exactly=4)
        assert lab.sql("SHOW SIEVE INDEXES ON t") == []
        assert lab.explain("SELECT * FROM t WHERE id = 5")[0]["reasons"] == "no-index: 4"


def test_create_table_like_does_not_copy_the_index(lab: Lab) -> None:
    """A table that is created LIKE an indexed table has no index, so queries read all files."""
    with lab.database("likes") as database:
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.sql("CREATE TABLE copy LIKE t")
        lab.sql("INSERT INTO copy SELECT id + 100 FROM range(0, 40, 1, 4)")
        lab.check("SELECT * FROM copy WHERE id = 105", exactly=4)
        lab.sql("CREATE SIEVE INDEX ON copy (id)")
        lab.check("SELECT * FROM copy WHERE id = 105", exactly=1)
        assert len(index_folders(lab, database)) == 2
        lab.sql("DROP SIEVE INDEX id_sieve ON copy")
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)


def test_a_copied_property_is_not_an_index(lab: Lab) -> None:
    """Queries ignore a registration copied from another table; DROP removes only the property."""
    with lab.database("copied") as database:
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
        lab.sql("CREATE TABLE u USING parquet AS SELECT id + 20 AS id FROM range(0, 40, 1, 4)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        ((key, value),) = properties(lab, "t").items()
        lab.sql(f"ALTER TABLE u SET TBLPROPERTIES ('{key}' = '{value}')")
        session = Lab(lab.spark.newSession())
        session.sql(f"USE {database}")
        session.check("SELECT * FROM u WHERE id = 25", exactly=4)
        (row,) = lab.sql("SHOW SIEVE INDEXES ON u")
        assert row[6] == "gone"
        assert (
            "belongs to table copied.t"
            in dict(lab.sql("DESCRIBE SIEVE INDEX id_sieve ON u"))["problem"]
        )
        assert lab.sql("DROP SIEVE INDEX id_sieve ON u") == [("id_sieve",)]
        assert properties(lab, "u") == {}
        assert len(index_folders(lab, database)) == 1
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)


def test_recreated_table_does_not_use_the_old_index(lab: Lab) -> None:
    """If a table is dropped and created again in its folder, queries ignore the old index."""
    with lab.database("anew"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)
        ((key, value),) = properties(lab, "t").items()
        lab.sql("DROP TABLE t")
        lab.sql("CREATE TABLE t USING parquet AS SELECT id + 7 AS id FROM range(0, 40, 1, 4)")
        lab.check("SELECT * FROM t WHERE id = 5", exactly=4)
        assert lab.sql("SHOW SIEVE INDEXES ON t") == []
        lab.sql(f"ALTER TABLE t SET TBLPROPERTIES ('{key}' = '{value}')")
        session = Lab(lab.spark.newSession())
        session.sql("USE anew")
        answer = session.run("SELECT * FROM t WHERE id = 8")
        assert (answer.rows, answer.files) == ({"(8,)": 1}, 4)
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.check("SELECT * FROM t WHERE id = 8", exactly=1)


@pytest.mark.long
def test_tables_of_one_name_have_separate_indexes(lab: Lab) -> None:
    """If two databases have tables of the same name, the tables have separate indexes."""
    with lab.database("apart_a"), lab.database("apart_b"):
        for k, name in enumerate(("apart_a", "apart_b")):
            lab.sql(
                f"CREATE TABLE {name}.t USING parquet AS "
                f"SELECT id + {k * 5} AS id FROM range(0, 40, 1, 4)"
            )
        lab.sql("CREATE SIEVE INDEX ON apart_a.t (id)")
        lab.check("SELECT * FROM apart_a.t WHERE id = 12", exactly=1)
        lab.check("SELECT * FROM apart_b.t WHERE id = 12", exactly=4)
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        assert lab.check("SELECT * FROM t WHERE id = 12", exactly=1).rows == {"(12,)": 1}
        assert [row[:3] for row in lab.sql("SHOW SIEVE INDEXES")] == [("apart_b", "t", "id_sieve")]
        assert [row[0] for row in lab.sql("SHOW SIEVE INDEXES IN apart_a")] == ["apart_a"]


def test_renamed_table_loses_no_rows(lab: Lab) -> None:
    """After RENAME, queries return all rows, even before the index has followed the table."""
    with lab.database("renamed"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.sql("ALTER TABLE t RENAME TO u")
        lab.check("SELECT * FROM u WHERE id = 5")
        lab.sql("CREATE TABLE t USING parquet AS SELECT id + 1 AS id FROM range(0, 40, 1, 4)")
        lab.check("SELECT * FROM t WHERE id = 5", exactly=4)


@pytest.mark.long
def test_disable_and_enable_reach_open_sessions(lab: Lab) -> None:
    """DISABLE in another session stops pruning in an open session; ENABLE resumes pruning."""
    with lab.database("switched"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
        other = Lab(lab.spark.newSession())
        other.sql("USE switched")
        other.check("SELECT * FROM t WHERE id = 5", exactly=4)
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        other.check("SELECT * FROM t WHERE id = 5", exactly=1)
        assert lab.sql("ALTER SIEVE INDEX id_sieve ON t DISABLE") == [("id_sieve", "disabled")]
        other.check("SELECT * FROM t WHERE id = 5", exactly=4)
        assert other.explain("SELECT * FROM t WHERE id = 5")[0]["reasons"] == "disabled: 4"
        assert lab.sql("SHOW SIEVE INDEXES ON t")[0][6] == "disabled"
        assert lab.sql("ALTER SIEVE INDEX id_sieve ON t ENABLE") == [("id_sieve", "ready")]
        other.check("SELECT * FROM t WHERE id = 5", exactly=1)
        lab.sql("DROP SIEVE INDEX id_sieve ON t")
        other.check("SELECT * FROM t WHERE id = 5", exactly=4)


def test_options_set_take_effect_with_refresh(lab: Lab) -> None:
    """SET OPTIONS stores options, which the next REFRESH applies.

    After SET OPTIONS, SHOW lists the old and the new options until REFRESH.
    """
    with lab.database("options_set"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
        lab.sql("CREATE SIEVE INDEX ON t (id) OPTIONS (error = 50) COMMENT 'why'")
        lab.sql("ALTER SIEVE INDEX id_sieve ON t SET OPTIONS (error = 3)")
        told = dict(lab.sql("DESCRIBE SIEVE INDEX id_sieve ON t"))
        assert "error = 50" in told["options"]
        assert "error = 3" in told["options after next refresh"]
        assert told["comment"] == "why"
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)
        assert lab.sql("REFRESH SIEVE INDEX ON t")[0][1] == 3
        told = dict(lab.sql("DESCRIBE SIEVE INDEX id_sieve ON t"))
        assert "error = 3" in told["options"]
        assert "options after next refresh" not in told


def test_drop_database_cascade_removes_its_indexes(lab: Lab) -> None:
    """DROP DATABASE CASCADE removes indexes, so a table that is created again has no old index."""
    with lab.database("cascade"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)
    with lab.database("cascade"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
        lab.check("SELECT * FROM t WHERE id = 5", exactly=4)
        (scan,) = lab.explain("SELECT * FROM t WHERE id = 5")
        assert scan["reasons"] == "no-index: 4"


def test_two_sessions_cannot_create_the_same_index(lab: Lab) -> None:
    """If two sessions create the same index, one of them fails and leaves nothing behind."""
    with lab.database("taken") as database:
        lab.sql("CREATE TABLE t USING parquet AS SELECT id, id % 7 AS r FROM range(0, 40, 1, 4)")

        def create(column: str) -> str:
            session = Lab(lab.spark.newSession())
            session.sql(f"USE {database}")
            try:
                session.sql(f"CREATE SIEVE INDEX both ON t ({column})")
            except AnalysisException as error:
                return str(error)
            return ""

        with ThreadPoolExecutor(2) as pool:
            told = sorted(pool.map(create, ["id", "r"]))
        assert told[0] == ""
        assert "[SIEVE_INDEX_EXISTS]" in told[1]
        assert len(properties(lab, "t")) == 1
        assert len(index_folders(lab, database)) == 1


def test_lost_index_does_not_stop_the_refresh_of_others(lab: Lab) -> None:
    """If an index is lost, REFRESH refreshes all others, then fails and names the lost index."""
    with lab.database("lost") as database:
        lab.sql("CREATE TABLE t USING parquet AS SELECT id, id % 7 AS r FROM range(0, 40, 1, 4)")
        lab.sql("CREATE SIEVE INDEX ON t (r)")
        (lost,) = index_folders(lab, database)
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        shutil.rmtree(lost)
        lab.sql("INSERT INTO t SELECT id, id % 7 AS r FROM range(40, 50, 1, 1)")
        with pytest.raises(AnalysisException, match=r"SIEVE_INDEX_NOT_USABLE.*r_sieve"):
            lab.sql("REFRESH SIEVE INDEX ON t")
        assert lab.sql("REFRESH SIEVE INDEX id_sieve ON t")[0][:3] == ("id_sieve", 2, 5)
