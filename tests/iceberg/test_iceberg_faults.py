"""After faults of Iceberg tables, queries return the right rows, or raise Iceberg's own error."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from uuid import uuid4

import iceberg_jars
import pytest
from iceberg_tables import AUDITED, create, insert, namespace
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from spark_session import Lab

sys.path.insert(0, str(Path(__file__).parents[1] / "fault"))

from driver import driver
from processes import front_ends, wait_until

pytestmark = pytest.mark.iceberg

GONE = "NotFoundException|NoSuchFile|does not exist"
CONFLICTS = ("ValidationException", "CommitFailedException")


@pytest.fixture(autouse=True)
def database(lab: Lab) -> Iterator[None]:
    """Creates a namespace for each test; an audit checks every skipped file."""
    with namespace(lab, "spark_catalog.faults"), lab.settings(AUDITED):
        yield


def folder(lab: Lab, name: str) -> Path:
    """The folder of a table."""
    rows = lab.sql(f"DESCRIBE TABLE EXTENDED {name}")
    return Path(next(row[1] for row in rows if row[0] == "Location").removeprefix("file:"))


@pytest.mark.parametrize("catalog", ["spark_catalog", "store"])
def test_lost_metadata_of_another_table(lab: Lab, catalog: str) -> None:
    """If a table's metadata is lost, its queries fail as without Sieve; other tables still work."""
    with namespace(lab, f"{catalog}.lost"):
        for name in ("t", "broken"):
            create(lab, name)
            insert(lab, name=name)
            lab.sql(f"CREATE SIEVE INDEX ON {name} (id)")
        metadata = folder(lab, "broken") / "metadata"
        metadata.rename(f"{metadata}.away")
        lab.sql("REFRESH TABLE broken")
        try:
            for enabled in ("true", "false"):
                with (
                    lab.setting("spark.sieve.enabled", enabled),
                    pytest.raises(Py4JJavaError, match="NotFoundException"),
                ):
                    lab.sql("SELECT * FROM broken WHERE id = 42")
            lost = pytest.raises(PySparkException, match=r"metadata.json does not exist")
            with lost:
                lab.sql("REFRESH SIEVE INDEX ON broken")
            shown = {
                row[1]: (row[2], row[6]) for row in lab.sql(f"SHOW SIEVE INDEXES IN {catalog}.lost")
            }
            assert shown["t"] == ("id_sieve", "ready")
            # For tables of the session catalog, the metastore contains a copy of the table's
            # properties.
            assert shown["broken"][0] == (None if catalog == "store" else "id_sieve")
            assert "metadata.json" in shown["broken"][1]
            unknown = pytest.raises(PySparkException, match=r"SIEVE_TABLE_UNREADABLE.*lost\.broken")
            with unknown if catalog == "store" else nullcontext():
                assert lab.sql(f"VACUUM SIEVE INDEXES IN {catalog}.lost RETAIN 0 HOURS") == []
            lab.check("SELECT * FROM t WHERE id = 42", exactly=1)
        finally:
            Path(f"{metadata}.away").rename(metadata)
        lab.sql("REFRESH TABLE broken")
        lab.check("SELECT * FROM broken WHERE id = 42", exactly=1)


def rows_or_gone(frame: DataFrame) -> set[int] | None:
    """The ids that a query returns; None if a file or the snapshot no longer exists."""
    try:
        return {row[0] for row in frame.collect()}
    except (Py4JJavaError, PySparkException) as error:
        if not re.search(GONE, str(error)):
            raise
        return None


def test_files_that_expire_under_a_query(lab: Lab) -> None:
    """A planned query whose snapshot expires returns the right rows or raises Iceberg's error."""
    create(lab, write_delete_mode="copy-on-write")
    insert(lab)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    planned = {}
    for text in ("id = 42", "id = 77", "id BETWEEN 0 AND 99"):
        planned[text] = lab.spark.sql(f"SELECT id FROM t WHERE {text}")
        planned[text]._jdf.queryExecution().executedPlan()
    lab.sql("DELETE FROM t WHERE id = 42")
    lab.sql("CALL spark_catalog.system.expire_snapshots(table => 'faults.t', "
            "older_than => TIMESTAMP '2100-01-01', retain_last => 1)")  # fmt: skip
    # Sieve cannot read an expired snapshot again, so this block turns audits and `strict` off.
    with lab.settings({"spark.sieve.audit.sample": "0", "spark.sieve.strict": "false"}):
        assert rows_or_gone(planned["id = 42"]) in (None, {42})
        assert rows_or_gone(planned["id = 77"]) in (None, {77})
        assert rows_or_gone(planned["id BETWEEN 0 AND 99"]) is None
    assert lab.check("SELECT * FROM t WHERE id IN (42, 43)", exactly=1).rows.total() == 1


def test_files_that_expire_under_a_build(lab: Lab) -> None:
    """If a file of the table no longer exists, REFRESH fails and publishes no version."""
    create(lab)
    insert(lab)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    lab.sql("INSERT INTO t VALUES (42, 'new')")
    ((path,),) = lab.sql("SELECT DISTINCT _file FROM t WHERE v = 'new'")
    file = Path(path.removeprefix("file:"))
    file.rename(f"{file}.away")
    with pytest.raises((Py4JJavaError, PySparkException)):
        lab.sql("REFRESH SIEVE INDEX ON t")
    Path(f"{file}.away").rename(file)
    assert [row[7] for row in lab.sql("SHOW SIEVE INDEXES ON t")] == [1]
    lab.check("SELECT * FROM t WHERE id = 42", exactly=2)


def test_the_front_end_starts_while_a_query_is_planned(tmp_path: Path) -> None:
    """If an index could serve a query, EXPLAIN of the query starts the driver's first front end."""
    registration = json.dumps(
        {"format": 1, "uuid": str(uuid4()), "column": ["id"], "root": "file:/nowhere"}
    )
    with driver(tmp_path / "driver", **iceberg_jars.conf(tmp_path / "own")) as it:
        it.sql(
            "CREATE TABLE t (id BIGINT) USING iceberg "
            f"TBLPROPERTIES ('sieve.index.id_sieve' = '{registration}')"
        )
        it.sql("EXPLAIN SELECT * FROM t")
        assert front_ends(it.jvm) == []
        it.sql("EXPLAIN SELECT * FROM t WHERE id = 1")
        wait_until(lambda: front_ends(it.jvm), "the front end starts", every=0.1)


def test_a_killed_front_end(lab: Lab) -> None:
    """If the front end is killed, queries and writes have the same results as without an index."""
    for name in ("t", "u"):
        create(lab, name, write_delete_mode="merge-on-read")
        insert(lab, name=name)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    jvm = int(lab.spark._jvm.java.lang.ProcessHandle.current().pid())

    def kill() -> None:
        found = front_ends(jvm)
        for pid in found:
            lab.spark._jvm.java.lang.ProcessHandle.of(pid).get().destroyForcibly()
        wait_until(lambda: not set(found) & set(front_ends(jvm)), "the front end ends")

    with lab.setting("spark.sieve.strict", "false"):
        for statement in (
            "DELETE FROM {t} WHERE id IN (3, 42)",
            ("MERGE INTO {t} t USING (SELECT explode(array(44L, 900L)) id) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"),
            "UPDATE {t} SET v = 'u' WHERE id BETWEEN 58 AND 61",
        ):  # fmt: skip
            for name in ("t", "u"):
                kill()
                lab.sql(statement.format(t=name))
            kill()
            found = [sorted(lab.sql(f"SELECT * FROM {name}"), key=repr) for name in ("t", "u")]
            assert found[0] == found[1], statement
        kill()
        wanted = "SELECT * FROM t WHERE id IN (43, 44, 60)"
        assert lab.run(wanted).rows.total() == 3
        lab.sql("REFRESH SIEVE INDEX ON t")
    lab.check(wanted, at_most=5)


def conflicts(lab: Lab, statement: str) -> bool:
    """Runs a statement; returns whether a conflict with another commit made the statement fail."""
    try:
        lab.sql(statement)
    except (Py4JJavaError, PySparkException) as error:
        shown = str(getattr(error, "java_exception", None) or error)
        if not any(word in shown for word in CONFLICTS):
            raise
        return True
    return False


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_commit_conflicts(lab: Lab, mode: str, isolation: str) -> None:
    """An index does not change with which concurrent commits a MERGE conflicts."""

    def slowly(value: int) -> int:
        time.sleep(1.5)
        return value

    lab.spark.udf.register("slowly", slowly, "bigint")
    merge = ("MERGE INTO {t} t USING (SELECT slowly(id) id FROM VALUES (42L) AS x(id)) s "
             "ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'm'")  # fmt: skip
    others = ("DELETE FROM {t} WHERE id = 42", "DELETE FROM {t} WHERE id = 77",
              "INSERT INTO {t} VALUES (42, 'other')")  # fmt: skip
    second = lab.spark.newSession()
    outcomes: dict[str, list[Any]] = {}
    for name in ("t", "u"):
        create(lab, name, write_merge_mode=mode, write_delete_mode=mode,
               write_merge_isolation__level=isolation)  # fmt: skip
        insert(lab, name=name)
        if name == "t":
            lab.sql("CREATE SIEVE INDEX ON t (id)")
        found = outcomes[name] = []
        for other in others:
            for spark in (lab.spark, second):
                spark.sql(f"REFRESH TABLE spark_catalog.faults.{name}")
            ((first,),) = lab.sql(
                f"SELECT snapshot_id FROM spark_catalog.faults.{name}.refs WHERE name = 'main'"
            )
            with ThreadPoolExecutor(1) as pool:
                merged = pool.submit(conflicts, lab, merge.format(t=name))
                time.sleep(0.7)
                second.sql(other.format(t=f"spark_catalog.faults.{name}"))
            lab.sql(f"REFRESH TABLE {name}")
            rows = sorted(lab.sql(f"SELECT * FROM {name}"), key=repr)
            found.append((merged.result(), rows))
            lab.sql("CALL spark_catalog.system.rollback_to_snapshot("
                    f"'faults.{name}', {first})")  # fmt: skip
    assert outcomes["t"] == outcomes["u"]
    assert outcomes["t"][0][0]
