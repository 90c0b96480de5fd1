"""Refused statements leave nothing behind, and each error tells users what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from spark_session import Lab


@pytest.fixture(scope="module")
def refusing(lab: Lab) -> Iterator[Lab]:
    """A database with a table of each kind that CREATE refuses."""
    with lab.database("refusals"):
        lab.sql(
            "CREATE TABLE t USING parquet PARTITIONED BY (p) AS "
            "SELECT id, CAST(id AS STRING) AS s, "
            "array(array(id)) AS arr, map(id, id) AS m, named_struct('a', id) AS st, "
            "INTERVAL '1' DAY AS gap, 1 AS p FROM range(10)"
        )
        lab.sql("CREATE TABLE padded (id INT, c CHAR(5), v VARCHAR(5)) USING parquet")
        lab.sql("CREATE VIEW v AS SELECT * FROM t")
        lab.sql("CREATE TEMPORARY VIEW tv AS SELECT * FROM t")
        lab.sql("CREATE GLOBAL TEMPORARY VIEW gtv AS SELECT * FROM t")
        lab.sql("CREATE TABLE words (s STRING) USING text")
        lab.sql("CREATE TABLE hp STORED AS PARQUET AS SELECT id FROM range(3)")
        lab.sql("CREATE TABLE ho STORED AS ORC AS SELECT id FROM range(3)")
        lab.sql("CREATE TABLE ht STORED AS TEXTFILE AS SELECT id FROM range(3)")
        lab.sql("CREATE TABLE ha STORED AS AVRO AS SELECT id FROM range(3)")
        lab.sql("CREATE TABLE bad (id INT, _corrupt_record STRING) USING json")
        lab.sql("CREATE SIEVE INDEX taken ON t (id)")
        yield lab
        lab.sql("DROP VIEW tv")
        lab.sql("DROP VIEW global_temp.gtv")


REFUSED = [
    ("ON v (id)", "UNSUPPORTED_TABLE", "v is a view; create the index on the table it reads"),
    ("ON tv (id)", "UNSUPPORTED_TABLE", "tv is a temporary view; create the index on the table"),
    ("ON global_temp.gtv (id)", "UNSUPPORTED_TABLE", "gtv is a temporary view"),
    ("ON words (s)", "UNSUPPORTED_TABLE", "words is stored as text; Sieve indexes Parquet"),
    ("ON ht (id)", "UNSUPPORTED_TABLE", "ht is a Hive table with SerDe .*; store it as Parquet"),
    ("ON ha (id)", "UNSUPPORTED_TABLE", "ha is a Hive table with SerDe .*avro.*; store it as"),
    ("ON t (arr)", "UNSUPPORTED_TYPE",
     r"arr of refusals.t: .* array<bigint> cannot be indexed; indexable types are boolean"),
    ("ON t (m)", "UNSUPPORTED_TYPE", r"type map<bigint,bigint> cannot be indexed"),
    ("ON t (st)", "UNSUPPORTED_TYPE", r"st of refusals.t is a struct; .* such as st.a"),
    ("ON t (gap)", "UNSUPPORTED_TYPE", "type interval day cannot be indexed"),
    ("ON t (p)", "PARTITION_COLUMN", "p is a partition column of refusals.t"),
    ("ON padded (c)", "UNSUPPORTED_TYPE", r"type char\(5\) cannot be indexed"),
    ("ON bad (_corrupt_record)", "UNSUPPORTED_COLUMN", "_corrupt_record of refusals.bad contains"),
    ("ON t (idd)", "UNKNOWN_COLUMN", "table refusals.t has no column idd; did you mean id"),
    ("ON t (st.b)", "UNKNOWN_COLUMN", r"has no column st.b; did you mean st.a"),
    ("ON t (zzzzzz)", "UNKNOWN_COLUMN", "has no column zzzzzz; it has id, s, arr"),
    ("taken ON t (s)", "INDEX_EXISTS", r"t already has an index taken, on id; use"),
    ("TAKEN ON t (s)", "INDEX_EXISTS", "refusals.t already has an index taken"),
    ("ON t (id, ID)", "INDEX_EXISTS", "the statement names index id_sieve twice"),
    ("ON t (id) OPTIONS (eror = 1)", "UNKNOWN_OPTION",
     "unknown option 'eror' .did you mean 'error'..; options are: budget, error, gran"),
    ("ON t (id) OPTIONS (error = 0)", "INVALID_OPTION",
     "option 'error' cannot be '0'; it is an integer from 1 to"),
    ("ON t (id) OPTIONS (shape = 'cube')", "INVALID_OPTION", "option 'shape' cannot be 'cube'"),
    ("ON t id", "SYNTAX_ERROR", r'line 1, column \d+: found "id", expected'),
]  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("rest", "condition", "words"), REFUSED, ids=[r[0] for r in REFUSED])
def test_create_is_refused(refusing: Lab, rest: str, condition: str, words: str) -> None:
    """For each of these tables, CREATE raises an error that has a condition and a reason.

    CREATE leaves nothing behind.
    """
    folders = root_folders(refusing)
    refuse(refusing, f"CREATE SIEVE INDEX {rest}", f"SIEVE_{condition}", words)
    assert root_folders(refusing) == folders
    assert [row[2] for row in refusing.sql("SHOW SIEVE INDEXES ON t")] == ["taken"]


@pytest.mark.parametrize(("table", "word"), [("hp", "Parquet"), ("ho", "Orc")])
def test_hive_table_with_a_serde_is_refused_with_the_setting(
    refusing: Lab, table: str, word: str
) -> None:
    """If Spark does not convert a Hive table, CREATE refuses the table, and names the setting."""
    setting = f"spark.sql.hive.convertMetastore{word}"
    with refusing.setting(setting, "false"):
        refuse(refusing, f"CREATE SIEVE INDEX ON {table} (id)", "SIEVE_UNSUPPORTED_TABLE",
               f"set {setting} = true")  # fmt: skip
    refusing.sql(f"CREATE SIEVE INDEX ON {table} (id)")
    refusing.sql(f"DROP SIEVE INDEX id_sieve ON {table}")


def test_a_collated_column_is_refused(refusing: Lab) -> None:
    """CREATE refuses a column with a collation other than UTF8_BINARY.

    Under a collation other than UTF8_BINARY, strings with different codes can be equal.
    """
    if refusing.spark.version < "4":
        pytest.skip("Spark 3.5 has no collations")
    refusing.sql("CREATE TABLE collated (s STRING COLLATE UTF8_LCASE, x STRING) USING parquet")
    refuse(refusing, "CREATE SIEVE INDEX ON collated (s)", "SIEVE_UNSUPPORTED_TYPE",
           "type string collate UTF8_LCASE cannot be indexed")  # fmt: skip
    refusing.sql("CREATE SIEVE INDEX ON collated (x)")
    refusing.check("SELECT * FROM collated WHERE x COLLATE UTF8_LCASE = 'A'")


def test_a_read_by_path_is_refused(refusing: Lab) -> None:
    """CREATE refuses `parquet`.`path`, and advises users to save the files as a table."""
    file = refusing.spark.table("t").inputFiles()[0].removeprefix("file:")
    folder = Path(file).parent
    refuse(refusing, f"CREATE SIEVE INDEX ON parquet.`{folder}` (id)", "SIEVE_UNSUPPORTED_TABLE",
           r"is read by its path alone; save it as a table first")  # fmt: skip


def test_a_stream_is_refused(refusing: Lab, tmp_path: Path) -> None:
    """A streaming view has no files, so CREATE refuses the view even if the stream reads files."""
    refusing.spark.range(3).write.parquet(str(tmp_path / "in"))
    files = refusing.spark.readStream.schema("id LONG").parquet(str(tmp_path / "in"))
    files.createTempView("flow")
    refusing.spark.readStream.format("rate").load().createTempView("rate")
    try:
        files.where("id = 1").createTempView("trickle")
        for statement in ("flow (id)", "rate (value)", "trickle (id)"):
            refuse(refusing, f"CREATE SIEVE INDEX ON {statement}", "SIEVE_UNSUPPORTED_TABLE",
                   r"is a streaming source; write it to a table and create the index")  # fmt: skip
    finally:
        for view in ("flow", "rate", "trickle"):
            refusing.sql(f"DROP VIEW IF EXISTS {view}")


def test_an_unknown_table_suggests_near_ones(refusing: Lab) -> None:
    """The error for an unknown table names the table, and suggests a similar table name."""
    refuse(refusing, "CREATE SIEVE INDEX ON pedded (id)", "SIEVE_UNKNOWN_TABLE",
           "there is no table refusals.pedded; did you mean padded")  # fmt: skip
    refuse(refusing, "SHOW SIEVE INDEXES ON nowhere.t", "SIEVE_UNKNOWN_TABLE",
           "there is no table nowhere.t; check its name and database")  # fmt: skip


STATES = [
    ("CREATE SIEVE INDEX ON nowhere (id)", "42P01"),
    ("SHOW SIEVE INDEXES IN nowhere", "42704"),
    ("CREATE SIEVE INDEX taken ON t (s)", "42710"),
    ("DROP SIEVE INDEX takn ON t", "42704"),
    ("CREATE SIEVE INDEX ON t (idd)", "42703"),
    ("CREATE SIEVE INDEX ON t (arr)", "0A000"),
    ("CREATE SIEVE INDEX ON v (id)", "0A000"),
    ("CREATE SIEVE INDEX ON t (id) OPTIONS (eror = 1)", "42K06"),
    ("CREATE SIEVE INDEX ON t (id) OPTIONS (error = 0)", "22023"),
    ("CREATE SIEVE INDX ON t (id)", "42601"),
    ("EXPLAIN SIEVE SELEC id FROM t", "42601"),
    ("EXPLAIN SIEVE SELECT id FROM nowhere", "42P01"),
    ("ESTIMATE SIEVE INDEX ON t (id) WHERE nope = 1", "42703"),
    ("SELECT * FROM sieve_files('t', 1)", "22023"),
    ("SELECT * FROM sieve_files('t', 'nope = 1')", "42703"),
]


@pytest.mark.parametrize(("statement", "state"), STATES, ids=[s[0] for s in STATES])
def test_sql_states_are_sparks(refusing: Lab, statement: str, state: str) -> None:
    """Sieve's errors have the SQLSTATE that Spark uses for similar errors."""
    with pytest.raises(PySparkException) as refused:
        refusing.sql(statement)
    assert refused.value.getSqlState() == state
    assert (refused.value.getErrorClass() or "").startswith("SIEVE_")


@pytest.mark.parametrize(
    ("statement", "position"),
    [
        ("\n-- why\n\n  CREATE SIEVE INDX ON t (id)", "line 4, column 16"),
        ("-- why\nEXPLAIN SIEVE\n  SELEC id FROM t", "(line 3, pos 2)"),
        ("EXPLAIN SIEVE SELECT id\nFROM t WHERE nope = 1", "line 2 pos 13"),
        ("/* a\nb */ ESTIMATE SIEVE INDEX ON t (id)\nWHERE id = = 1", "(line 3, pos 11)"),
        ("ESTIMATE SIEVE INDEX ON t (id) WHERE nope = 1", "line 1 pos 37"),
    ],
)
def test_positions_count_from_the_start(refusing: Lab, statement: str, position: str) -> None:
    """Positions in errors count from the start of the text, including comments and blank lines."""
    with pytest.raises(PySparkException) as refused:
        refusing.sql(statement)
    assert position in str(refused.value)


def test_other_columns_of_a_table_with_char_are_indexed(refusing: Lab) -> None:
    """CREATE refuses a column of type CHAR(n), but accepts other columns of its table."""
    refusing.sql(
        "INSERT INTO padded SELECT id, 'c' || id, 'v' || LPAD(id, 3, '0') FROM range(0, 40, 1, 4)"
    )
    refusing.sql("CREATE SIEVE INDEX ON padded (id, v)")
    refusing.check("SELECT * FROM padded WHERE id = 15", exactly=1)
    refusing.check("SELECT id FROM padded WHERE c = 'c15' AND id > 12", at_most=3)
    refusing.check("SELECT * FROM padded WHERE v = 'v015'", at_most=2)
    refusing.sql("DROP SIEVE INDEX id_sieve ON padded")


@pytest.mark.parametrize(
    "statement",
    ["DROP SIEVE INDEX takn ON t", "REFRESH SIEVE INDEX takn ON t",
     "ALTER SIEVE INDEX takn ON t DISABLE", "DESCRIBE SIEVE INDEX takn ON t"],
)  # fmt: skip
def test_an_unknown_index_suggests_near_ones(refusing: Lab, statement: str) -> None:
    """The error for an unknown index suggests an index of the table with a similar name."""
    refuse(refusing, statement, "SIEVE_UNKNOWN_INDEX",
           "table refusals.t has no index takn; did you mean taken")  # fmt: skip


def test_if_exists_and_if_not_exists(refusing: Lab) -> None:
    """IF EXISTS ignores a missing index; IF NOT EXISTS leaves an existing index unchanged."""
    assert refusing.sql("DROP SIEVE INDEX IF EXISTS nothing ON t") == []
    assert refusing.sql("DROP SIEVE INDEX IF EXISTS ON t (s)") == []
    (row,) = refusing.sql("CREATE SIEVE INDEX IF NOT EXISTS taken ON t (id)")
    assert row[:2] == ("taken", 1)


def test_several_columns_make_all_indexes_or_none(refusing: Lab) -> None:
    """If CREATE cannot index one of several columns, CREATE creates no index."""
    folders = root_folders(refusing)
    refuse(
        refusing, "CREATE SIEVE INDEX ON t (s, arr)", "SIEVE_UNSUPPORTED_TYPE", "arr of refusals.t"
    )
    assert root_folders(refusing) == folders
    assert "s_sieve" not in str(refusing.sql("SHOW TBLPROPERTIES t"))


def test_a_corrupt_file_is_named_and_nothing_left(lab: Lab) -> None:
    """If a data file is not Parquet, CREATE fails, names this file, and leaves nothing behind."""
    with lab.database("corrupt"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 20, 1, 2)")
        file = Path(lab.spark.table("t").inputFiles()[0].removeprefix("file:"))
        file.write_bytes(b"PAR1 this is no parquet file PAR1")
        with pytest.raises(Exception, match=re.escape(file.name)):
            lab.sql("CREATE SIEVE INDEX ON t (id)")
        assert root_folders(lab) == []
        assert "sieve.index" not in str(lab.sql("SHOW TBLPROPERTIES t"))
        with (
            lab.setting("spark.sql.files.ignoreCorruptFiles", "true"),
            pytest.raises(Exception, match=re.escape(file.name)),
        ):
            lab.sql("CREATE SIEVE INDEX ON t (id)")
        file.unlink()
        lab.sql("REFRESH TABLE t")
        lab.sql("CREATE SIEVE INDEX ON t (id)")


def test_a_root_that_cannot_be_written_is_named(lab: Lab, tmp_path: Path) -> None:
    """If the root is a file, or its URL scheme is unknown, the error of CREATE names the root."""
    (tmp_path / "file").write_text("")
    with lab.database("rootless"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(3)")
        for root in (f"file:{tmp_path}/file", f"file:{tmp_path}/file/below"):
            with lab.setting("spark.sieve.path", root), lab.setting("spark.sieve.roots", root):
                refuse(lab, "CREATE SIEVE INDEX ON t (id)", "SIEVE_[A-Z_]+", "file")
        assert "sieve.index" not in str(lab.sql("SHOW TBLPROPERTIES t"))
        lab.sql("CREATE SIEVE INDEX ON t (id)")


def refuse(lab: Lab, statement: str, condition: str, words: str) -> None:
    """Asserts that a statement fails with this error class and a text that fits the pattern."""
    with pytest.raises(Exception, match=rf"\[{condition}\]") as refusal:
        lab.sql(statement)
    message = str(refusal.value)
    assert re.search(words, message, re.DOTALL), message


def root_folders(lab: Lab) -> list[str]:
    """The names of all entries in the root folder of the current database's indexes."""
    database = lab.spark.catalog.currentDatabase()
    root = (
        Path(lab.spark.catalog.getDatabase(database).locationUri.removeprefix("file:")) / ".sieve"
    )
    return sorted(p.name for p in root.iterdir()) if root.exists() else []
