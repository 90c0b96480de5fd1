"""If a session creates, disables or drops an index, all sessions of the driver see the change."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from setting_values import INVALID, VALID
from spark_session import Lab, scans

POINT = "SELECT r, s FROM sessions.t WHERE id = 123"
ROWS = [(4, "k123")]


@pytest.fixture
def table(lab: Lab) -> Iterator[str]:
    """Ten files in the order of ``id``, without an index."""
    with lab.database("sessions"):
        lab.spark.range(0, 1000, 1, 10).selectExpr(
            "id", "cast(id % 7 AS int) AS r", "concat('k', id) AS s"
        ).write.saveAsTable("t")
        yield "sessions.t"


@pytest.fixture
def index(lab: Lab, table: str) -> str:
    """The name of a new index on ``id``."""
    lab.sql(f"CREATE SIEVE INDEX ON {table} (id) OPTIONS (error = 1)")
    return "id_sieve"


def opened(lab: Lab, number: int) -> list[Lab]:
    """New sessions, each of which has read the table."""
    sessions = [Lab(lab.spark.newSession()) for _ in range(number)]
    for session in sessions:
        assert session.sql(POINT) == ROWS
    return sessions


@pytest.mark.usefixtures("index")
def test_a_thread_without_a_session_gets_the_rows_of_an_rdd(lab: Lab) -> None:
    """In a thread without a session, the jobs of an RDD return the right rows."""
    frame = lab.spark.sql(POINT)

    def rows() -> list[Any]:
        return frame.rdd.collect()

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(rows).result() == ROWS
    (scan,) = scans(frame._jdf.queryExecution().executedPlan())
    assert scan.metrics().apply("numFiles").value() == 1


def test_open_sessions_see_create_disable_enable_and_drop(lab: Lab, table: str) -> None:
    """After a SIEVE statement in one session, the next query of each session uses the new state."""
    first, second = opened(lab, 2)
    everyone = (lab, first, second)
    for session in everyone:
        session.check(POINT, exactly=10)
    first.sql(f"CREATE SIEVE INDEX ON {table} (id) OPTIONS (error = 1)")
    for session in everyone:
        session.check(POINT, exactly=1)
        assert [row[2] for row in session.sql(f"SHOW SIEVE INDEXES ON {table}")] == ["id_sieve"]
    second.sql(f"ALTER SIEVE INDEX id_sieve ON {table} DISABLE")
    for session in everyone:
        session.check(POINT, exactly=10)
        (scan,) = session.explain(POINT)
        assert scan["reasons"] == "disabled: 10"
    lab.sql(f"ALTER SIEVE INDEX id_sieve ON {table} ENABLE")
    for session in everyone:
        session.check(POINT, exactly=1)
    first.sql(f"DROP SIEVE INDEX id_sieve ON {table}")
    for session in everyone:
        session.check(POINT, exactly=10)
        assert session.sql(f"SHOW SIEVE INDEXES ON {table}") == []
        (scan,) = session.explain(POINT)
        assert scan["reasons"] == "no-index: 10"


@pytest.mark.usefixtures("index")
def test_session_can_disable_sieve(lab: Lab) -> None:
    """``spark.sieve.enabled = false`` affects only queries of the session with this setting."""
    without, other = opened(lab, 2)
    without.sql("SET spark.sieve.enabled = false")
    assert without.run(POINT).files == 10
    (scan,) = without.explain(POINT)
    assert scan["reasons"] == "disabled: 10"
    other.check(POINT, exactly=1)
    assert lab.run(POINT).files == 1
    without.sql("RESET spark.sieve.enabled")
    assert without.run(POINT).files == 1


def test_create_refuses_a_folder_that_no_list_allows(lab: Lab, table: str, tmp_path: Path) -> None:
    """If ``spark.sieve.roots`` does not allow a folder, CREATE refuses this folder.

    If a session does not allow an index's folder, the session's queries report root-refused.
    """
    one, other = opened(lab, 2)
    create = f"CREATE SIEVE INDEX ON {table} (id) OPTIONS (error = 1)"
    one.sql(f"SET spark.sieve.path = {tmp_path}")
    with pytest.raises(Exception, match=r"SIEVE_ROOT_REFUSED\].* list .* in spark\.sieve\.roots"):
        one.sql(create)
    assert list(tmp_path.iterdir()) == []
    one.sql(f"SET spark.sieve.roots = /elsewhere, {tmp_path.as_uri()}/")
    one.sql(create)
    one.check(POINT, exactly=1)
    assert one.facts(table=table)["path"].startswith(f"file:{tmp_path}/")
    assert other.run(POINT).files == 10
    (scan,) = other.explain(POINT)
    assert scan["reasons"] == "root-refused: 10"
    assert other.sql(f"SHOW SIEVE INDEXES ON {table}")[0][6] == "root-refused"
    described = dict(other.sql(f"DESCRIBE SIEVE INDEX id_sieve ON {table}"))
    assert (described["state"], "spark.sieve.roots" in described["problem"]) == (
        "root-refused",
        True,
    )
    with pytest.raises(Exception, match=r"root-refused.*spark\.sieve\.roots"):
        other.sql(f"REFRESH SIEVE INDEX ON {table}")
    for root in (f"{tmp_path}", f"file://{tmp_path}//"):
        other.sql(f"SET spark.sieve.roots = {root}")
        other.check(POINT, exactly=1)
    other.sql(f"DROP SIEVE INDEX id_sieve ON {table}")
    assert list(tmp_path.iterdir()) == []


def test_wrong_setting_value_is_refused(lab: Lab) -> None:
    """SET and ``conf.set`` refuse a wrong value; the error shows key, value and allowed values."""
    session = Lab(lab.spark.newSession())
    for key, values in INVALID.items():
        for value in values:
            words = (
                rf"\[SIEVE_INVALID_SETTING\] {re.escape(key)} = '{value}' is not valid; allowed: "
            )
            with pytest.raises(Exception, match=words) as refusal:
                session.spark.conf.set(key, value)
            assert refusal.value.getSqlState() == "22022"
        with pytest.raises(
            Exception, match=r"\[SIEVE_INVALID_SETTING\].* = '.*' is .*allowed: \w+"
        ):
            session.sql(f"SET {key} = {values[0]}")
    for key, values in VALID.items():
        for value in values:
            session.spark.conf.set(key, value)
            assert session.spark.conf.get(key) == value
    assert session.sql("SET spark.sieve.enabled = False") == [("spark.sieve.enabled", "False")]
    assert session.sql("SET spark.sieve.registry.ttl")[0][1] == "7d"
    for key in VALID:
        session.sql(f"RESET {key}")
    assert session.sql("SET spark.sieve.registry.ttl")[0][1] == "30s"
    listed = {row[0] for row in session.sql("SET -v")}
    assert {key for key in listed if key.startswith("spark.sieve.")} >= set(VALID)
    for key in ("spark.sieve.python", "spark.sieve.single.writer"):
        with pytest.raises(Exception, match=f"(?i)cannot.modify.*{re.escape(key)}"):
            session.sql(f"SET {key} = true")


@pytest.mark.usefixtures("index")
def test_wrong_driver_setting_lets_queries_read_all_rows(lab: Lab) -> None:
    """If the driver's configuration has a wrong value, queries read all files.

    Until a SET replaces the wrong setting, statements fail and name the setting.
    """
    defaults = lab.spark._jsc.sc().conf()
    wrong = {"spark.sieve.enabled": "maybe", "spark.sieve.cache.bytes": "much"}
    for key, value in wrong.items():
        defaults.set(key, value)
    try:
        session = Lab(lab.spark.newSession())
        assert session.spark.conf.get("spark.sieve.enabled") == "maybe"
        answer = session.run(POINT)
        assert (list(answer.rows), answer.files) == ([repr(ROWS[0])], 10)
        session.spark._jsparkSession.cloneSession().conf().get("spark.sieve.enabled")
        with pytest.raises(Exception, match=r"SIEVE_INVALID_SETTING\] spark\.sieve\.\w+.* = 'm"):
            session.explain(POINT)
        session.sql("SET spark.sieve.enabled = true")
        assert session.run(POINT) == replace(answer, files=1)
        # The driver's configuration accepted this wrong value, but SET refuses it.
        for key, value in wrong.items():
            with pytest.raises(Exception, match=rf"SIEVE_INVALID_SETTING\] {re.escape(key)} = 'm"):
                session.sql(f"SET {key} = {value}")
        assert session.run(POINT).files == 1
        for statement in (f"EXPLAIN SIEVE {POINT}", "SELECT * FROM sieve_status()"):
            with pytest.raises(Exception, match=r"\] spark\.sieve\.cache\.bytes = 'much'"):
                session.sql(statement)
        session.sql("SET spark.sieve.cache.bytes = 256MB")
        assert session.explain(POINT)[0]["files_read"] == 1
    finally:
        for key in wrong:
            defaults.remove(key)


@pytest.mark.usefixtures("index")
def test_tables_of_one_name_in_two_databases(lab: Lab) -> None:
    """An index of a table is not used for a table of the same name in another database."""
    with lab.database("sessions_b"):
        lab.spark.range(0, 2000, 1, 4).write.saveAsTable("t")
        (other,) = opened(lab, 1)
        other.sql("USE sessions")
        other.check("SELECT * FROM t WHERE id = 123", exactly=1)
        lab.check("SELECT * FROM t WHERE id = 123", exactly=4)
        lab.sql("CREATE SIEVE INDEX ON t (id) OPTIONS (error = 1)")
        lab.check("SELECT * FROM t WHERE id = 1999", exactly=1)
        other.check("SELECT * FROM t WHERE id = 1999", exactly=0)
        lab.sql("DROP SIEVE INDEX ON t (id)")
        other.check("SELECT * FROM t WHERE id = 123", exactly=1)
        assert [row[0] for row in other.sql("SHOW SIEVE INDEXES")] == ["sessions"]
        assert lab.sql("SHOW SIEVE INDEXES") == []
    lab.sql("USE sessions")


@pytest.mark.long
@pytest.mark.usefixtures("index")
def test_a_replanned_query_keeps_its_pruning(lab: Lab, table: str) -> None:
    """If adaptive execution plans a stage again, rows stay right and scans still read one file."""
    lab.sql("CREATE TABLE few USING parquet AS SELECT CAST(id AS int) AS k FROM range(0, 3)")
    query = (
        f"SELECT a.s, count(*) FROM {table} a JOIN few ON a.r - 4 = few.k "
        "WHERE a.id = 123 GROUP BY a.s"
    )
    for adaptive in ("true", "false"):
        with lab.setting("spark.sql.adaptive.enabled", adaptive):
            lab.check(query, at_most=1 + lab.run("SELECT * FROM few").files)


@pytest.mark.long
@pytest.mark.usefixtures("index")
def test_equal_scans_are_still_shared(lab: Lab, table: str) -> None:
    """Equal scans of a self join still share an exchange, so Spark scans the table once."""
    side = f"(SELECT r, max(s) AS s FROM {table} WHERE id BETWEEN 120 AND 129 GROUP BY r)"
    query = f"SELECT a.s, b.s FROM {side} a JOIN {side} b ON a.r = b.r"
    with lab.setting("spark.sql.autoBroadcastJoinThreshold", "-1"):
        lab.check(query, exactly=1)
        with lab.setting("spark.sql.adaptive.enabled", "false"):
            plan = lab.spark.sql(query)._jdf.queryExecution().executedPlan()
            assert "ReusedExchange" in plan.toString()


@pytest.mark.long
@pytest.mark.usefixtures("index")
def test_cached_table_has_all_rows(lab: Lab, table: str) -> None:
    """Other queries do not use the cached rows of a filtered query; a cached table has all rows."""
    (other,) = opened(lab, 1)
    try:
        lab.sql(f"CACHE TABLE part AS SELECT * FROM {table} WHERE id = 123")
        assert other.sql(f"SELECT count(*), sum(id) FROM {table}") == [(1000, 499500)]
        lab.sql(f"CACHE TABLE {table}")
        assert other.sql(POINT) == ROWS
        assert other.sql(f"SELECT count(*), sum(id) FROM {table}") == [(1000, 499500)]
    finally:
        lab.sql("UNCACHE TABLE IF EXISTS part")
        lab.sql(f"UNCACHE TABLE IF EXISTS {table}")


@pytest.mark.parametrize("turns", [1, pytest.param(2, marks=pytest.mark.long)])
def test_queries_are_right_during_create_and_drop(lab: Lab, table: str, turns: int) -> None:
    """While one session creates and drops indexes, other sessions' queries return right rows."""
    finished = threading.Event()
    wrong: list[object] = []

    def ask(session: Lab, start: int) -> int:
        key, asked = start, 0
        while not finished.is_set():
            key, asked = (key + 97) % 1000, asked + 1
            found = session.sql(f"SELECT id, s FROM {table} WHERE id = {key} OR s = 'k{key + 1}'")
            expected = {(k, f"k{k}") for k in (key, key + 1) if k < 1000}
            if set(found) != expected:
                wrong.append((key, found))
        return asked

    sessions = opened(lab, 4)
    with ThreadPoolExecutor(len(sessions)) as pool:
        asking = [pool.submit(ask, session, 31 * k) for k, session in enumerate(sessions)]
        try:
            for _ in range(turns):
                lab.sql(f"CREATE SIEVE INDEX ON {table} (id, s) OPTIONS (error = 1)")
                lab.sql(f"ALTER SIEVE INDEX s_sieve ON {table} DISABLE")
                lab.sql(f"DROP SIEVE INDEX s_sieve ON {table}")
                lab.sql(f"DROP SIEVE INDEX id_sieve ON {table}")
        finally:
            finished.set()
        asked = [future.result(timeout=120) for future in asking]
    assert not wrong
    assert all(asked)


def entries(lab: Lab) -> Any:
    """The registry's map of tables (a private field)."""
    found = lab.spark._jvm.java.lang.Class.forName("org.apache.spark.sql.sieve.catalog.Registry$")
    field = found.getDeclaredField("entries")
    field.setAccessible(True)
    return field.get(found.getField("MODULE$").get(None))


@pytest.mark.long
def test_the_registry_forgets_the_least_used(lab: Lab, index: str, table: str) -> None:
    """The registry keeps 10,000 tables, and reads a forgotten table from the metastore again."""
    registry = lab.spark._jvm.org.apache.spark.sql.sieve.catalog.Registry
    key = lab.spark._jvm.org.apache.spark.sql.sieve.catalog.TableKey
    none = lab.spark._jvm.PythonUtils.toScalaMap({})
    lab.check(POINT, exactly=1)
    application = lab.spark.sparkContext.applicationId
    for k in range(10_050):
        registry.put(key(application, "spark_catalog", "elsewhere", f"t{k}"), none)
    assert entries(lab).size() == 10_000
    lab.sql(f"REFRESH TABLE {table}")
    lab.check(POINT, exactly=1)
    assert index == "id_sieve"


def the_scan(session: SparkSession, query: str) -> Any:
    """The only scan in a query's plan."""
    (scan,) = scans(session.sql(query)._jdf.queryExecution().executedPlan())
    return scan


def the_listing(session: SparkSession, query: str) -> str:
    """The class of the file listing that a query's only scan has."""
    return str(the_scan(session, query).relation().location().getClass().getSimpleName())


@pytest.mark.usefixtures("index")
@pytest.mark.parametrize(
    "change", ["CREATE SIEVE INDEX ON {} (r)", "CREATE OR REPLACE SIEVE INDEX ON {} (id)"]
)
def test_scans_before_and_after_create_are_not_equal(lab: Lab, table: str, change: str) -> None:
    """Two scans of a query are equal, unless an index is created or replaced between the scans."""
    first, same = (the_scan(lab.spark, POINT).relation().location() for _ in range(2))
    assert first.equals(same)
    assert first.hashCode() == same.hashCode()
    lab.sql(change.format(table))
    assert not first.equals(the_scan(lab.spark, POINT).relation().location())


@pytest.mark.usefixtures("index")
def test_a_prefetched_answer_serves_one_listing(lab: Lab) -> None:
    """A prefetched answer serves one use of a file listing. A second use sends a new request.

    Between two runs of a query, the table can change.
    """
    scan = the_scan(lab.spark, POINT)
    listing = scan.relation().location()
    listing.prefetch(scan.dataFilters())
    assert listing.takePrefetched().isDefined()
    assert listing.takePrefetched().isEmpty()


def test_table_without_an_index_uses_the_listing_of_spark(lab: Lab, table: str) -> None:
    """Scans of a table without an index use Spark's own file listing."""
    assert the_listing(lab.spark, POINT) == "InMemoryFileIndex"
    lab.sql(f"CREATE SIEVE INDEX ON {table} (id)")
    assert the_listing(lab.spark, POINT) == "SieveFileIndex"
    with lab.setting("spark.sieve.enabled", "false"):
        assert the_listing(lab.spark, POINT) == "InMemoryFileIndex"
