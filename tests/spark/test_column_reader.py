"""Tests which settings, options and other columns affect a column's values."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from edited_schema import edit_schema, with_ids
from pyspark.errors import PySparkException
from spark_session import Lab

from sieve.metadata.text_formats import is_unread_option

FILES = 4
CHANGED = f"reader-changed: {FILES}"


def shown(lab: Lab, index: str) -> tuple[str, str, str]:
    """The state of `t`'s index in SHOW and in DESCRIBE, and DESCRIBE's text on the reader."""
    states = {
        row["index"]: row["state"] for row in lab.spark.sql("SHOW SIEVE INDEXES ON t").collect()
    }
    facts = lab.facts(index)
    return states[index], facts["state"], facts["reader"]


def reasons(lab: Lab, query: str) -> Any:
    """The reasons that EXPLAIN SIEVE shows for a query with one scan."""
    (scan,) = lab.explain(query)
    return scan["reasons"]


@pytest.mark.parametrize(
    "kind",
    [
        "USING parquet",
        pytest.param("STORED AS ORC", marks=pytest.mark.long),
        pytest.param("USING orc", marks=pytest.mark.long),
        pytest.param("STORED AS PARQUET", marks=pytest.mark.long),
    ],
)
def test_change_of_another_column_keeps_the_index_in_use(lab: Lab, kind: str) -> None:
    """If another column, a comment or an option is added or changed, an index stays in use."""
    with lab.database("added"):
        lab.sql(f"CREATE TABLE t (id BIGINT, s STRUCT<a: BIGINT, b: INT>, x INT) {kind}")
        lab.sql(f"INSERT INTO t SELECT id, struct(id, 1), 1 FROM range(0, 40, 1, {FILES})")
        lab.sql("CREATE SIEVE INDEX ON t (id, s.a)")
        changes = [
            "ALTER TABLE t ADD COLUMNS (z STRUCT<q: TIMESTAMP>)",
            "ALTER TABLE t CHANGE COLUMN x x INT COMMENT 'a remark'",
            "ALTER TABLE t CHANGE COLUMN id id BIGINT COMMENT 'a remark'",
            "ALTER TABLE t SET TBLPROPERTIES ('some' = 'thing')",
            "ALTER TABLE t SET SERDEPROPERTIES ('some' = 'thing')",
            "ALTER TABLE t SET SERDEPROPERTIES ('nullValue' = '5')",
            "ALTER TABLE t SET SERDEPROPERTIES ('mergeSchema' = 'true')",
        ]
        if "USING" in kind:
            changes += [
                "ALTER TABLE t ADD COLUMNS (y INT DEFAULT 3)",
                "ALTER TABLE t ALTER COLUMN x SET DEFAULT 9",
            ]
        for change in changes:
            lab.sql(change)
            for query in ("id = 5", "s.a = 5"):
                lab.check(f"SELECT * FROM t WHERE {query}", exactly=1)
        refreshed = lab.spark.sql("REFRESH SIEVE INDEX ON t").collect()
        assert {row.change for row in refreshed} == {"unchanged"}
        lab.sql("INSERT INTO t (id) VALUES (5)")
        refreshed = lab.spark.sql("REFRESH SIEVE INDEX ON t").collect()
        assert {row.change for row in refreshed} == {"refreshed"}
        assert lab.check("SELECT id FROM t WHERE id = 5", exactly=2).rows == {"(5,)": 2}
        lab.sql("CREATE SIEVE INDEX ON t (x)")
        default = 9 if "USING" in kind else None
        rows = lab.check("SELECT x FROM t WHERE x IS NULL OR x = 9", exactly=1).rows
        assert rows == {f"({default},)": 1}


def test_column_appended_to_text_disables_the_index(lab: Lab, tmp_path: Path) -> None:
    """A new column can change other columns' values in JSON and CSV, so it disables their indexes.

    For example, a CSV record that lacks the new column counts as damaged. After REFRESH, queries
    use the disabled index again.
    """
    record = {"json": '{"b":{"k":"x","a":7},"a":1}', "csv": "1"}
    for kind, new in (("json", "b MAP<STRING, INT>"), ("csv", "b INT")):
        (tmp_path / kind).mkdir()
        file = tmp_path / kind / f"x.{kind}"
        file.write_text(f"{record[kind]}\n")
        os.utime(file, (1_600_000_000, 1_600_000_000))
        partial = ("spark.sql.json.enablePartialResults", "false")
        with lab.database("appended"), lab.setting(*partial):
            lab.sql(f"CREATE TABLE t (a INT) USING {kind} LOCATION '{tmp_path / kind}'")
            lab.sql("CREATE SIEVE INDEX ON t (a)")
            assert lab.check("SELECT * FROM t WHERE a = 7", exactly=0).rows == {}
            lab.sql(f"ALTER TABLE t ADD COLUMNS ({new})")
            assert reasons(lab, "SELECT * FROM t WHERE a = 7") == "reader-changed: 1"
            found = lab.check("SELECT * FROM t WHERE a = 7", exactly=1).rows
            assert len(found) == {"json": 1, "csv": 0}[kind]
            (row,) = lab.spark.sql("REFRESH SIEVE INDEX ON t").collect()
            lab.check("SELECT * FROM t WHERE a = 7", exactly=1)
            if kind == "csv":
                assert row.advice.startswith("1 of 1 files have a damaged record")
                assert reasons(lab, "SELECT * FROM t WHERE a = 7") == "unproven-file: 1"
                assert lab.facts("a_sieve")["files unproven"] == "1"


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_every_option_of_a_text_reader_counts(lab: Lab, kind: str) -> None:
    """A table option counts if Spark's text reader registers it, or if it is a Hadoop setting."""
    jvm = lab.spark._jvm
    name = f"org.apache.spark.sql.catalyst.{kind}.{kind.upper()}Options$"
    reader = jvm.java.lang.Class.forName(name).getField("MODULE$").get(None)
    (registered,) = (
        method
        for method in reader.getClass().getMethods()
        if method.getName().endswith("validOptions") and method.getParameterCount() == 0
    )
    options = registered.invoke(reader, lab.spark._sc._gateway.new_array(jvm.Object, 0))
    names, each = {"io.compression.codecs", "ignoreCorruptFiles"}, options.keysIterator()
    while each.hasNext():
        names.add(each.next())
    names -= {"compression", "codec"}  # The name of a written file contains its codec.
    assert len(names) > 25
    assert [one for one in names if is_unread_option(kind, one.lower(), "4.1")] == []
    assert is_unread_option(kind, "some", "4.1")
    assert not is_unread_option(kind, "some", "4.2")


@pytest.mark.parametrize("kind", ["csv", pytest.param("json", marks=pytest.mark.long)])
def test_writer_settings_of_text_keep_the_index_in_use(lab: Lab, kind: str) -> None:
    """If a text table gets a new comment, default value or codec, its index stays in use."""
    with lab.database("written"):
        lab.sql(f"CREATE TABLE t (id BIGINT, x INT) USING {kind}")
        lab.sql(f"INSERT INTO t SELECT id, 1 FROM range(0, 40, 1, {FILES})")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        for change in (
            "ALTER COLUMN x COMMENT 'a remark'",
            "ALTER COLUMN x SET DEFAULT 9",
            "ALTER COLUMN id SET DEFAULT 7",
            "ALTER COLUMN id DROP DEFAULT",
            "SET TBLPROPERTIES ('some' = 'thing')",
            "SET SERDEPROPERTIES ('compression' = 'gzip')",
            "SET SERDEPROPERTIES ('mergeSchema' = 'true')",
            "SET SERDEPROPERTIES ('noReader' = 'asks')",
        ):
            lab.sql(f"ALTER TABLE t {change}")
            lab.check("SELECT * FROM t WHERE id = 5", exactly=1)
        assert {row.change for row in lab.spark.sql("REFRESH SIEVE INDEX ON t").collect()} == {
            "unchanged"
        }


def test_changed_default_of_a_missing_column_disables_index(lab: Lab) -> None:
    """If a column's default changes and files lack the column, queries ignore its index."""
    with lab.database("lacking"):
        lab.sql(f"CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, {FILES})")
        for column, default in (("x", 3), ("y", 4)):
            lab.sql(f"ALTER TABLE t ADD COLUMNS ({column} INT DEFAULT {default})")
            lab.sql(f"CREATE SIEVE INDEX ON t ({column})")
        assert lab.check("SELECT count(*) FROM t WHERE x = 3").rows == {"(40,)": 1}
        lab.check("SELECT count(*) FROM t WHERE x = 4", exactly=0)
        edit_schema(lab, "t", lambda t: t.replace('"EXISTS_DEFAULT":"3"', '"EXISTS_DEFAULT":"4"'))
        assert lab.check("SELECT count(*) FROM t WHERE x = 4").rows == {"(40,)": 1}
        assert reasons(lab, "SELECT * FROM t WHERE x = 4") == CHANGED
        lab.check("SELECT count(*) FROM t WHERE y = 3", exactly=0)


def test_changed_field_id_makes_queries_read_all_files(lab: Lab) -> None:
    """If a column gets another Parquet field id, its values change, so queries read all files."""
    with lab.database("ids"):
        lab.sql("CREATE TABLE t (a INT, b INT) USING parquet")
        with_ids(lab, "t", {"a": 1, "b": 2})
        lab.sql(f"INSERT INTO t SELECT id, 39 - id FROM range(0, 40, 1, {FILES})")
        # With filter pushdown, Spark would skip rows by the statistics under the column's name.
        own = {"fieldId.read.enabled": "true", "filterPushdown": "false"}
        with lab.settings({f"spark.sql.parquet.{key}": value for key, value in own.items()}):
            lab.sql("CREATE SIEVE INDEX ON t (a)")
            assert lab.check("SELECT b FROM t WHERE a = 3", exactly=1).rows == {"(36,)": 1}
            with_ids(lab, "t", {"a": 2, "b": 1})
            assert lab.check("SELECT b FROM t WHERE a = 3", exactly=FILES).rows == {"(36,)": 1}
            assert reasons(lab, "SELECT b FROM t WHERE a = 3") == CHANGED


@pytest.mark.parametrize("vectorized", ["true", pytest.param("false", marks=pytest.mark.long)])
def test_types_in_files_keep_the_index_in_use(lab: Lab, tmp_path: Path, vectorized: str) -> None:
    """Settings of type inference disable no index on texts without annotation or INT96 times."""
    for k in range(FILES):
        ids = range(10 * k, 10 * k + 10)
        texts = pa.array([f"text {i}".encode() for i in ids], pa.binary())
        hours = pa.array([datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=i) for i in ids])
        table = pa.table({"s": texts, "ts": hours})
        pq.write_table(table, tmp_path / f"{k}.parquet", use_deprecated_int96_timestamps=True)
    inference = {"binaryAsString": "true", "int96AsTimestamp": "false", "mergeSchema": "true"}
    with (
        lab.database("found"),
        lab.setting("spark.sql.parquet.enableVectorizedReader", vectorized),
    ):
        lab.sql(f"CREATE TABLE t (s STRING, ts TIMESTAMP) USING parquet LOCATION '{tmp_path}'")
        lab.sql("CREATE SIEVE INDEX ON t (s, ts)")
        for settings in ({}, inference):
            with lab.settings({f"spark.sql.parquet.{key}": v for key, v in settings.items()}):
                for query in ("s = 'text 5'", "ts = TIMESTAMP '2024-01-01 05:00:00'"):
                    found = lab.check(f"SELECT s, hour(ts) FROM t WHERE {query}", exactly=1)
                    assert found.rows == {"('text 5', 5)": 1}


@pytest.mark.sampled(2)
@pytest.mark.skipif("__import__('pyspark').__version__ < '4'", reason="VARIANT came with Spark 4")
@pytest.mark.parametrize(
    "how",
    [
        pytest.param("v", marks=pytest.mark.long),
        "struct(id n, v) s",
        "map('k', v) m",
        pytest.param("array(v) l", marks=pytest.mark.long),
    ],
)
def test_index_stays_in_use_next_to_a_variant(lab: Lab, how: str) -> None:
    """If Spark reads only parts of a VARIANT, an index on another column stays in use."""
    with lab.database("variants"):
        lab.sql(
            f"CREATE TABLE t USING parquet AS SELECT id, {how} FROM (SELECT id, "
            f"parse_json(concat('{{\"a\": ', id, '}}')) v FROM range(0, 40, 1, {FILES}))"
        )
        column = "s.n" if "struct" in how else "id"
        lab.sql(f"CREATE SIEVE INDEX i ON t ({column})")
        wanted = {"v": "v:a::INT", "struct(id n, v) s": "s.v:a::INT"}.get(how, "id")
        for rule in ("true", "false"):
            with lab.setting("spark.sql.variant.pushVariantIntoScan", rule):
                query = f"SELECT id, {wanted} FROM t WHERE {column} = 5"
                lab.check(query, exactly=1)
                lab.check(f"SELECT * FROM t WHERE {column} = 5", exactly=1)


def test_a_widened_column_switches_the_index_off_until_refresh(lab: Lab) -> None:
    """After ALTER changes a column from INT to BIGINT, queries ignore the index until REFRESH."""
    with lab.database("widened"):
        lab.sql(
            "CREATE TABLE t USING parquet AS SELECT CAST(id AS INT) id "
            f"FROM range(0, 40, 1, {FILES})"
        )
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        edit_schema(lab, "t", lambda text: text.replace('"integer"', '"long"'))
        assert lab.check("SELECT * FROM t WHERE id = 5", exactly=FILES).rows == {"(5,)": 1}
        assert reasons(lab, "SELECT * FROM t WHERE id = 5") == CHANGED
        lab.sql("REFRESH SIEVE INDEX ON t")
        lab.check("SELECT * FROM t WHERE id = 5", exactly=1)


@pytest.mark.parametrize("kind", ["parquet", pytest.param("orc", marks=pytest.mark.long)])
def test_sessions_of_other_time_zones_share_an_index_of_times(lab: Lab, kind: str) -> None:
    """Parquet and ORC store instants, so sessions of all time zones use the same index of times."""
    with lab.database("zones"):
        lab.sql(
            f"CREATE TABLE t USING {kind} AS SELECT timestamp_seconds(id * 3600) ts, "
            f"CAST(timestamp_seconds(id * 3600) AS TIMESTAMP_NTZ) n "
            f"FROM range(0, 40, 1, {FILES})"
        )
        lab.sql("CREATE SIEVE INDEX ON t (ts, n)")
        for zone, hour in (("Asia/Tokyo", 14), ("America/New_York", 0), ("UTC", 5)):
            with lab.setting("spark.sql.session.timeZone", zone):
                for where, shown_hour in (
                    (f"ts = TIMESTAMP '1970-01-01 {hour:02}:00:00'", hour),
                    ("n = TIMESTAMP_NTZ '1970-01-01 05:00:00'", hour),
                    (f"date_trunc('HOUR', ts) = TIMESTAMP '1970-01-01 {hour:02}:00:00'", hour),
                ):
                    found = lab.check(f"SELECT hour(ts) FROM t WHERE {where}", exactly=1)
                    assert found.rows == {f"({shown_hour},)": 1}


@pytest.mark.long
def test_show_and_describe_report_only_the_affected_index(lab: Lab) -> None:
    """If a setting affects one of two indexes, SHOW and DESCRIBE report only the affected index."""
    with lab.database("told"):
        lab.sql(
            "CREATE TABLE t USING parquet AS SELECT id, timestamp_seconds(id) ts "
            f"FROM range(0, 40, 1, {FILES})"
        )
        lab.sql("CREATE SIEVE INDEX ON t (id, ts)")
        ready = ("ready", "ready", "unchanged")
        assert shown(lab, "id_sieve") == shown(lab, "ts_sieve") == ready
        rebase = "spark.sql.parquet.datetimeRebaseModeInRead"
        with lab.setting(rebase, "LEGACY"):
            assert shown(lab, "id_sieve") == ready
            told, state, reader = shown(lab, "ts_sieve")
            assert (told, state) == (reader, "reader changed")
            assert reader.startswith(f"reader changed: conf.{rebase} = LEGACY, at the build ")
            assert reader.endswith(
                "; set it back, or REFRESH SIEVE INDEX ts_sieve ON told.t in such a session"
            )


@pytest.mark.skipif("__import__('pyspark').__version__ < '4'", reason="collations came with 4")
def test_collated_column_makes_queries_ignore_the_index(lab: Lab) -> None:
    """If a column gets a collation, queries no longer use the column's index.

    After a column gets a collation, statements advise users to drop the index.
    """
    with lab.database("collated"):
        lab.sql(f"CREATE TABLE t USING parquet AS SELECT id, 'x' s FROM range(0, 40, 1, {FILES})")
        lab.sql("CREATE SIEVE INDEX ON t (id, s)")
        lab.sql("ALTER TABLE t ALTER COLUMN s TYPE STRING COLLATE UTF8_LCASE")
        lab.check("SELECT id FROM t WHERE s = 'X'", exactly=FILES)
        assert reasons(lab, "SELECT id FROM t WHERE s = 'X'") == CHANGED
        lab.check("SELECT id FROM t WHERE id = 5", exactly=1)
        drop = "DROP SIEVE INDEX s_sieve ON collated.t"
        told, state, reader = shown(lab, "s_sieve")
        assert (told, state) == (reader, "reader changed")
        assert reader.endswith(f"type string collate UTF8_LCASE cannot be indexed; {drop}")
        refused = f"index s_sieve .* column s of collated.t was string, .*; run {drop}"
        with pytest.raises(PySparkException, match=refused):
            lab.sql("REFRESH SIEVE INDEX s_sieve ON t")
        lab.sql(drop)
