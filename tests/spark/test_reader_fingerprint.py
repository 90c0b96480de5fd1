"""If a session's reader settings differ from the build's settings, queries read all files.

For queries under other reader settings, EXPLAIN shows the reason reader-changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from edited_schema import with_ids
from reader_settings import (
    ANYWHERE,
    CHANGED,
    COLUMNS,
    FILES,
    FIVE,
    FLIPS,
    HARMLESS,
    HOUR,
    INFERENCE,
    LITERALS,
    READ,
    WITHOUT_EFFECT,
)
from spark_session import Lab


@pytest.fixture(scope="module")
def tables(lab: Lab) -> Iterator[Lab]:
    """A database with one indexed table of each format."""
    with lab.database("fingerprints"):
        for kind in ("parquet", "orc", "csv", "json"):
            lab.sql(
                f"CREATE TABLE {kind}_t USING {kind} AS SELECT CAST(id AS INT) id, "
                "timestamp_seconds(id * 3600) ts, date_from_unix_date(CAST(id AS INT)) d, "
                f"concat('text ', id) s FROM range(0, 40, 1, {FILES})"
            )
            lab.sql(f"CREATE SIEVE INDEX ON {kind}_t (id, ts, d, s)")
        lab.sql(f"CREATE TABLE plain_t AS SELECT id, 'x' s FROM range(0, 40, 1, {FILES})")
        lab.sql("CREATE TABLE ids_t (id INT) USING parquet")
        with_ids(lab, "ids_t", {"id": 1})
        lab.sql(f"INSERT INTO ids_t SELECT id FROM range(0, 40, 1, {FILES})")
        lab.sql("CREATE SIEVE INDEX ON ids_t (id)")
        lab.sql("CREATE TABLE default_t (x INT DEFAULT 7) USING parquet")
        lab.sql(f"INSERT INTO default_t SELECT id FROM range(0, 40, 1, {FILES})")
        lab.sql("CREATE SIEVE INDEX ON default_t (x)")
        yield lab


@contextmanager
def other_database(lab: Lab, name: str) -> Iterator[None]:
    """Uses a new database within the block, and the module's database after the block."""
    try:
        with lab.database(name):
            yield
    finally:
        lab.sql("USE fingerprints")


@contextmanager
def flipped(lab: Lab, key: str, value: str) -> Iterator[None]:
    """Changes a setting within the block."""
    if value == "flip":
        value = str(lab.spark.conf.get(key) != "true").lower()
    with lab.setting(key, value):
        yield


@contextmanager
def hadoop_setting(lab: Lab, key: str, value: str) -> Iterator[None]:
    """Sets a Hadoop setting for the whole driver within the block."""
    conf = lab.spark._jsc.hadoopConfiguration()
    conf.set(key, value)
    try:
        yield
    finally:
        # If a user sets an old name of a Hadoop key, Hadoop also sets the new name.
        for name in (key, "mapreduce.input.linerecordreader.line.maxlength"):
            conf.unset(name)


def parts(lab: Lab, table: str) -> dict[str, str]:
    """The parts of a table's reader fingerprint, by name."""
    resolve = lab.spark._jvm.org.apache.spark.sql.sieve.statements.Tables.resolve
    database = lab.spark.catalog.currentDatabase()
    info = json.loads(resolve(lab.spark._jsparkSession, [database, table]).info())
    found: dict[str, str] = info["fingerprint_parts"]
    return found


def reasons(lab: Lab, query: str) -> Any:
    """The reasons for which a query with one scan reads files."""
    (scan,) = lab.explain(query)
    return scan["reasons"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("table", "column", "key", "value"), FLIPS)
def test_a_changed_reader_setting_switches_the_index_off(
    tables: Lab, table: str, column: str, key: str, value: str
) -> None:
    """If a session changes a setting that affects a column's values, queries read every file."""
    query = f"SELECT * FROM {table} WHERE {column} = {FIVE[column]}"
    with flipped(tables, key, value):
        tables.check(query, exactly=FILES)
        assert reasons(tables, query) == CHANGED


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_settings_of_other_columns_keep_the_index_in_use(
    tables: Lab, table: str, column: str
) -> None:
    """If a session changes settings that a column's reader never uses, the index stays in use."""
    own = dict(READ[table][column])
    others = {k: v for k, v in (ANYWHERE | INFERENCE).items() if k not in own}
    if table not in ("csv_t", "json_t"):
        others |= WITHOUT_EFFECT
    with ExitStack() as changed:
        for key, value in others.items():
            changed.enter_context(flipped(tables, key, value))
        tables.check(f"SELECT * FROM {table} WHERE {column} = {FIVE[column]}", exactly=1)


@pytest.mark.parametrize(("table", "key", "value"), HARMLESS)
def test_harmless_setting_keeps_the_index_in_use(
    tables: Lab, table: str, key: str, value: str
) -> None:
    """An index stays in use if a session changes settings of writers or sizes, or sets defaults."""
    with flipped(tables, key, value):
        tables.check(f"SELECT * FROM {table} WHERE id = 5", exactly=1)


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        ("orc_t", "orc.force.positional.evolution", "true"),
        ("orc_t", "hive.exec.orc.skip.corrupt.data", "true"),
        ("csv_t", "mapred.linerecordreader.maxlength", "9"),
        ("parquet_t", "parquet.nobody.knows.this.key", "1"),
    ],
)
def test_a_changed_setting_of_hadoop_counts_too(
    tables: Lab, table: str, key: str, value: str
) -> None:
    """Queries ignore the index if the driver or a session changes a Hadoop setting of the reader.

    Before each tested scan, another scan runs under another value of the setting. A wrong cache
    would apply the answer for the earlier scan to the tested scan.
    """
    query = f"SELECT * FROM {table} WHERE id = 5"
    tables.check(query, exactly=1)
    with hadoop_setting(tables, key, value):
        tables.check(query, exactly=FILES)
        assert reasons(tables, query) == CHANGED
    tables.check(query, exactly=1)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.executor.extraJavaOptions", "-Xmx1g -Duser.timezone=Asia/Tokyo"),
        ("spark.executor.defaultJavaOptions", "-Duser.language=tr"),
        ("spark.executorEnv.TZ", "Asia/Tokyo"),
    ],
)
def test_a_changed_zone_of_executors_counts_too(tables: Lab, key: str, value: str) -> None:
    """If the executors' time zone or language has changed, queries do not use the index."""
    conf = tables.spark._jsc.sc().conf()
    before = {name: set(parts(tables, f"{name}_t")) for name in ("orc", "csv")}
    try:
        conf.set(key, value)
        for name, columns in before.items():
            assert set(parts(tables, f"{name}_t")) - columns == {f"conf.{key}"}
        assert parts(tables, "orc_t")[f"conf.{key}"] == value.removeprefix("-Xmx1g ")
        tables.check(f"SELECT * FROM orc_t WHERE ts = {HOUR}", exactly=FILES)
        conf.set(key, "-Xmx1g" if "Java" in key else "")
        tables.check(f"SELECT * FROM orc_t WHERE ts = {HOUR}", exactly=1)
    finally:
        conf.remove(key)


@pytest.mark.parametrize(
    "key", ["parquet.encryption.key.list", "parquet.encryption.key.access.token"]
)
def test_manifest_has_only_a_digest_of_a_secret(tables: Lab, key: str) -> None:
    """A manifest has only a digest of a secret setting, because other users can read manifests."""
    with tables.setting(key, "AAECAwQFBgcICQoLDA0ODw"):
        first = parts(tables, "parquet_t")
    with tables.setting(key, "AgECAwQFBgcICQoLDA0ODw"):
        second = parts(tables, "parquet_t")
    named = f"hadoop.{key}"
    assert first[named].startswith("SHA-256 ")
    assert first[named] != second[named]
    assert not any("CAwQFBgcICQoLDA0ODw" in value for value in (*first.values(), *second.values()))


def test_a_row_that_moves_with_the_time_zone_is_found(tables: Lab) -> None:
    """From one CSV time without a zone, sessions in different time zones read different instants.

    A session in another time zone than the build's finds the rows at its own instants.
    """
    with other_database(tables, "zones"):
        tables.sql("CREATE TABLE t (id INT, at STRING) USING csv")
        tables.sql(
            "INSERT INTO t SELECT id, date_format(timestamp_seconds(id * 3600), "
            "'yyyy-MM-dd HH:mm:ss') FROM range(0, 40, 1, 4)"
        )
        (where,) = {path.rpartition("/")[0] for path in tables.spark.table("t").inputFiles()}
        tables.sql(f"CREATE TABLE z (id INT, at TIMESTAMP) USING csv LOCATION '{where}'")
        tables.sql("CREATE SIEVE INDEX ON z (at)")
        query = "SELECT id FROM z WHERE at = timestamp_seconds(3600 * 20)"
        assert tables.check(query, exactly=1).rows == {"(20,)": 1}
        with tables.setting("spark.sql.session.timeZone", "Asia/Tokyo"):
            assert tables.check(query, exactly=FILES).rows == {"(29,)": 1}
            assert reasons(tables, query) == CHANGED


def make_swapped(tables: Lab) -> None:
    """Makes an indexed table over ORC files that store the columns in another order."""
    tables.sql(
        "CREATE TABLE t USING orc AS SELECT CAST(id AS INT) a, CAST(39 - id AS INT) b "
        "FROM range(0, 40, 1, 4)"
    )
    (where,) = {path.rpartition("/")[0] for path in tables.spark.table("t").inputFiles()}
    tables.sql(f"CREATE TABLE swapped (b INT, a INT) USING orc LOCATION '{where}'")
    tables.sql("CREATE SIEVE INDEX ON swapped (a)")


def test_a_column_that_moves_with_positional_reading_is_found(tables: Lab) -> None:
    """With positional reading, ORC matches a table's columns and a file's columns by position.

    With positional reading, queries find rows by the values of the file column in the same
    position.
    """
    with other_database(tables, "positions"):
        make_swapped(tables)
        query = "SELECT a, b FROM swapped WHERE a = 3"
        assert tables.check(query, exactly=1).rows == {"(3, 36)": 1}
        with tables.setting("orc.force.positional.evolution", "true"):
            assert tables.check(query, exactly=FILES).rows == {"(3, 36)": 1}
            positions = "SELECT a, b FROM swapped WHERE a = 3 AND b = 36"
            assert reasons(tables, positions) == CHANGED


def test_session_value_overrides_the_value_of_the_driver(tables: Lab) -> None:
    """For a Hadoop key, a session's value has priority over the driver's value."""
    key = "orc.force.positional.evolution"
    with other_database(tables, "own"), hadoop_setting(tables, key, "false"):
        make_swapped(tables)
        query = "SELECT a, b FROM swapped WHERE a = 3 AND b > 0"
        tables.check(query, exactly=1)
        with tables.setting(key, "true"):
            tables.check(query, exactly=FILES)
            assert reasons(tables, query) == CHANGED
        tables.check(query, exactly=1)


def test_a_field_that_moves_with_positional_reading_is_found(tables: Lab) -> None:
    """ORC can read fields by position, so the fields that a scan reads affect its fingerprint."""
    with other_database(tables, "fields"), tables.setting("orc.force.positional.evolution", "true"):
        tables.sql(
            "CREATE TABLE t USING orc AS SELECT CAST(id AS INT) a, named_struct("
            "'x', CAST(id AS INT), 'y', CAST(39 - id AS INT)) s FROM range(0, 40, 1, 4)"
        )
        tables.sql("CREATE SIEVE INDEX ON t (a, s.y)")
        for columns in ("a, s.y", "*", "a", "a, s.x"):
            tables.check(f"SELECT {columns} FROM t WHERE a = 3")
            for value in (3, 36):
                tables.check(f"SELECT {columns} FROM t WHERE s.y = {value}")
        tables.check("SELECT a, s.x FROM t WHERE a = 3", exactly=1)
        tables.check("SELECT * FROM t WHERE s.y = 3", exactly=1)
        assert reasons(tables, "SELECT a, s.y FROM t WHERE s.y = 3") == CHANGED


def test_dates_as_text_depend_on_the_time_zone(tables: Lab) -> None:
    """The time zone is part of a date's fingerprint in text formats, but not in binary ones."""
    with other_database(tables, "days"):
        for kind in ("csv", "json", "parquet"):
            tables.sql(f"CREATE TABLE {kind}_d (id INT, d DATE) USING {kind}")
            tables.sql(f"INSERT INTO {kind}_d VALUES (1, DATE '2024-01-01')")
            tables.sql(f"CREATE SIEVE INDEX ON {kind}_d (id)")
            assert ("zone.session" in parts(tables, f"{kind}_d")) is (kind != "parquet")


def test_other_table_options_switch_the_index_off(tables: Lab) -> None:
    """If table options change, queries ignore the index, because options can change values."""
    with other_database(tables, "options"):
        tables.sql(f"CREATE TABLE t USING csv AS SELECT id, 7 x FROM range(0, 40, 1, {FILES})")
        tables.sql("CREATE SIEVE INDEX ON t (id)")
        tables.check("SELECT * FROM t WHERE id = 5", exactly=1)
        tables.sql("ALTER TABLE t SET SERDEPROPERTIES ('nullValue' = '5')")
        assert tables.check("SELECT * FROM t WHERE id = 5", exactly=FILES).rows == {}
        assert reasons(tables, "SELECT * FROM t WHERE id = 5") == CHANGED
        tables.sql("REFRESH SIEVE INDEX ON t")
        # No row has the key 5, which lies between keys of one file. An index with the default
        # budget does not exclude a key between two other keys.
        assert tables.check("SELECT * FROM t WHERE id = 5", exactly=1).rows == {}


def test_properties_of_sieve_are_no_reader_options(tables: Lab) -> None:
    """A Hive table passes all properties to the reader as options, except Sieve's properties."""
    with other_database(tables, "names"):
        tables.sql("CREATE TABLE t (id INT) STORED AS PARQUET")
        tables.sql(f"INSERT INTO t SELECT id FROM range(0, 40, 1, {FILES})")
        tables.sql("CREATE SIEVE INDEX `a.parquet.b` ON t (id)")
        tables.check("SELECT * FROM t WHERE id = 5", exactly=1)


@pytest.mark.parametrize("changed", ["maker", "reader"])
def test_view_is_pruned_only_if_settings_of_both_sessions_fit(tables: Lab, changed: str) -> None:
    """Queries of a global temporary view skip files if the settings of both sessions fit the index.

    One session created the view, and the other session runs the query.
    """
    maker, reader = Lab(tables.spark.newSession()), Lab(tables.spark.newSession())
    maker.sql("USE fingerprints")
    maker.spark.table("csv_t").createOrReplaceGlobalTempView("both")
    query = "SELECT id FROM global_temp.both WHERE ts = timestamp_seconds(3600 * 5)"
    try:
        reader.check(query, exactly=1)
        session = maker if changed == "maker" else reader
        with session.setting("spark.sql.session.timeZone", "Asia/Tokyo"):
            reader.check(query, exactly=FILES)
            assert reasons(reader, query) == CHANGED
        reader.check(query, exactly=1)
    finally:
        maker.sql("DROP VIEW global_temp.both")


def test_fingerprint_has_exactly_these_parts(tables: Lab) -> None:
    """With default settings, the fingerprint of a table has exactly these parts."""
    columns = {"format", "schema", "partitions", "spark", "case"}
    zones = {"zone.session", "zone.jvm"}
    text = columns | zones | {"ansi", "corrupt", "java", "records"}
    expected = {
        "plain_t": columns,
        "parquet_t": columns | zones,
        "orc_t": columns | zones,
        "csv_t": text,
        "json_t": text,
    }
    assert {table: set(parts(tables, table)) for table in expected} == expected


PREFIXES = ("parquet", "orc", "hive.exec.orc", "mapreduce.input", "io", "hadoop.security.key")
"""Hadoop settings of file readers begin with one of these words."""
KINDS = ("parquet", "orc", "csv", "json", "avro", "files", "legacy", "variant", "defaultColumn")
"""SQL settings of file readers have one of these words after ``spark.sql``."""


def test_each_prefix_of_reader_keys_counts(tables: Lab) -> None:
    """The fingerprint contains unknown keys with a reader's prefix.

    The driver or a session can set a Hadoop key. A session can omit the prefix `spark.hadoop.`.
    """
    session = Lab(tables.spark.newSession())
    session.sql("USE fingerprints")
    before = set(parts(session, "parquet_t"))
    for kind in KINDS:
        session.spark.conf.set(f"spark.sql.{kind}.nobody.knows", "1")
    for prefix in PREFIXES:
        session.spark.conf.set(f"{prefix}.nobody.knows", "1")
        session.spark.conf.set(f"spark.hadoop.{prefix}.nobody.knows", "1")
    own = {f"conf.spark.sql.{kind}.nobody.knows" for kind in KINDS}
    own |= {f"conf.spark.hadoop.{prefix}.nobody.knows" for prefix in PREFIXES}
    own |= {f"hadoop.{prefix}.nobody.knows" for prefix in PREFIXES}
    with ExitStack() as changed:
        for prefix in PREFIXES:
            changed.enter_context(hadoop_setting(tables, f"{prefix}.of.the.driver", "1"))
        own |= {f"hadoop.{prefix}.of.the.driver" for prefix in PREFIXES}
        assert set(parts(session, "parquet_t")) - before == own


def test_each_option_of_executors_that_changes_text_counts(tables: Lab) -> None:
    """The fingerprint contains each Java option for the zone, the language and the encoding.

    Four keys pass Java options to executors. Other options do not count.
    """
    conf = tables.spark._jsc.sc().conf()
    names = (
        "user.timezone user.language user.country user.variant user.region java.locale.providers"
    )
    options = " ".join(f"-D{name}=x" for name in (*names.split(), "file.encoding"))
    for key in (
        "spark.executor.extraJavaOptions",
        "spark.executor.defaultJavaOptions",
        "spark.executorEnv.JAVA_TOOL_OPTIONS",
        "spark.executorEnv.JDK_JAVA_OPTIONS",
    ):
        before = conf.get(key, None)
        try:
            conf.set(key, f"-Xmx1g -Dmy.user.name=y {options} -Duser.name=z")
            assert parts(tables, "orc_t").get(f"conf.{key}") == options
        finally:
            conf.remove(key)
            if before is not None:
                conf.set(key, before)


def test_fingerprint_has_the_zone_of_the_driver(tables: Lab) -> None:
    """The parts for zones contain the zone of the session and the zone of the driver's JVM."""
    zones = tables.spark._jvm.java.util.TimeZone
    own = zones.getDefault()
    try:
        zones.setDefault(zones.getTimeZone("Asia/Tokyo"))
        with tables.setting("spark.sql.session.timeZone", "Europe/Warsaw"):
            for table in ("parquet_t", "orc_t", "csv_t", "json_t"):
                found = parts(tables, table)
                assert (found["zone.session"], found["zone.jvm"]) == ("Europe/Warsaw", "Asia/Tokyo")
    finally:
        zones.setDefault(own)


def test_fingerprint_of_text_has_the_version_of_spark(tables: Lab) -> None:
    """In a text format, the fingerprint contains Spark's full version.

    For formats other than text, a fingerprint contains only Spark's release line.
    """
    full = str(tables.spark.version)
    line = ".".join(full.split(".")[:2])
    versions = {table: parts(tables, f"{table}_t")["spark"] for table in ("csv", "json", "parquet")}
    assert versions == {"csv": full, "json": full, "parquet": line}
    assert full != line


def test_fingerprint_has_the_settings_that_affect_values(tables: Lab) -> None:
    """A fingerprint contains only settings that affect values, and settings unknown to Sieve."""
    session = Lab(tables.spark.newSession())
    session.sql("USE fingerprints")
    before = set(parts(session, "csv_t"))
    settings = ANYWHERE | INFERENCE
    for key, value in [*settings.items(), *((k, v) for _, k, v in HARMLESS)]:
        session.spark.conf.set(key, "false" if value == "flip" else value)
    own = set(settings)
    fixed = {
        "spark.sql.caseSensitive",
        "spark.sql.session.timeZone",
        "spark.sql.ansi.enabled",
        "spark.sql.columnNameOfCorruptRecord",
        *dict(LITERALS),
    }
    harmless = "spark.sql.legacy.hive.thriftServer."
    own |= {
        key
        for _, key, _ in HARMLESS
        if key.startswith("spark.sql.legacy.") and not key.startswith(harmless)
    }
    # In the list of harmless settings, the last value of enableVectorizedReader is the default.
    own -= {*fixed, "spark.sql.parquet.enableVectorizedReader"}
    expected = {
        f"conf.{key}" if key.startswith("spark.") else f"hadoop.{key}"
        for key in own - {"mapred.linerecordreader.maxlength"}
    }
    assert set(parts(session, "csv_t")) - before == expected
