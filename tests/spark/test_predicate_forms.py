"""If a predicate is equivalent to a comparison of a column, queries skip files and lose no row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from spark_session import Lab

DAY = [
    "substr(s, 1, 10) = '2026-03-02'",
    "left(s, 10) = '2026-03-02'",
    "left(s, 10) <=> '2026-03-02'",
    "substring(s FROM 1 FOR 10) IN ('2026-03-02', '2025-01-01')",
    "left(s, 12) LIKE '2026-03-02%'",
    "left(s, 10) >= '2026-03-02' AND left(s, 10) < '2026-03-03'",
    "left(s, 10) > '2026-03-01' AND left(s, 10) <= '2026-03-02'",
    "s RLIKE '^2026-03-02 ?'",
    "CAST(ts AS STRING) LIKE '2026-03-02%'",
    "startswith(CAST(ts AS STRING), '2026-03-02')",
    "CAST(ts AS STRING) >= '2026-03-02' AND CAST(ts AS STRING) < '2026-03-03'",
    "left(CAST(ts AS STRING), 10) = '2026-03-02'",
    "CAST(day AS STRING) = '2026-03-02'",
    "date_format(ts, 'yyyy-MM-dd') = '2026-03-02'",
    "date_format(day, 'yyyyMMdd') IN ('20260302', '20260401')",
    "CAST(date_format(ts, 'yyyyMMdd') AS INT) = 20260302",
    "to_date(date_format(ts, 'yyyy-MM-dd HH:mm')) = DATE '2026-03-02'",
    "from_unixtime(unix, 'yyyy-MM-dd') = '2026-03-02'",
    "to_date(from_unixtime(unix)) = DATE '2026-03-02'",
    "timestamp_seconds(unix) >= '2026-03-02' AND timestamp_seconds(unix) < '2026-03-03'",
    "to_date(timestamp_millis(unix * 1000)) = '2026-03-02'",
    "to_date(timestamp_micros(unix * 1000000)) = '2026-03-02'",
    "unix_timestamp(ts) BETWEEN 1772409600 AND 1772495999",
    "to_unix_timestamp(ts) BETWEEN 1772409600 AND 1772495999",
    "unix_seconds(ts) BETWEEN 1772409600 AND 1772495999",
    "unix_millis(ts) BETWEEN 1772409600000 AND 1772495999999",
    "unix_micros(ts) BETWEEN 1772409600000000 AND 1772495999999999",
    "unix_date(day) = 20514",
    "date_from_unix_date(unix_date(day)) = '2026-03-02'",
    "ts + INTERVAL 1 DAY >= '2026-03-03' AND ts + INTERVAL 1 DAY < '2026-03-04'",
    "ts - INTERVAL 2 HOURS >= '2026-03-01 22:00:00' AND ts - INTERVAL 1 DAY < '2026-03-02'",
    "day + INTERVAL 1 MONTH = '2026-04-02'",
    "add_months(day, -1) = '2026-02-02'",
    "datediff(ts, DATE '2026-03-01') = 1",
    "datediff(DATE '2026-03-01', ts) = -1",
    "timestampdiff(DAY, TIMESTAMP '2026-03-01 00:00:00', ts) = 1",
    "DATE '2026-03-05' - day = INTERVAL 3 DAYS",
    "TIMESTAMP '2026-03-03 00:00:00' - ts BETWEEN INTERVAL 1 SECOND AND INTERVAL 1 DAY",
    "to_date(from_utc_timestamp(ts, 'UTC')) = '2026-03-02'",
    "floor(id / 24) = 1",
    "id DIV 24 = 1",
    "ceil((id + 1) / 24) = 2",
    "coalesce(day, DATE '1970-01-01') = DATE '2026-03-02'",
    "CASE WHEN day = '2026-03-02' THEN 'a' WHEN day < '2026-03-02' THEN 'b' ELSE 'c' END = 'a'",
    "if(day = '2026-03-02', 1, 0) > 0",
]
"""Predicates that select the 24 rows of the second of March."""

ONE = [
    "id + 1 = 43",
    "1 + id = 43",
    "id - 2 = 40",
    "100 - id = 58",
    "-id = -42",
    "~id = -43",
    "id * 2 = 84",
    "id * -2 = -84",
    "id * 1.5 = 63",
    "id / 2 = 21",
    "id / -2.0 = -21",
    "CAST(id AS INT) = 42",
    "CAST(id AS STRING) = '42'",
    "CAST(id AS STRING) IN ('42', '042', ' 42', '1000')",
    "CAST(CAST(id AS DECIMAL(9,2)) AS STRING) = '42.00'",
    "array_contains(array(42L, NULL, 1000L), id)",
    "coalesce(id, -1) = 42",
    "nvl(code, '') = 'C0042'",
    "ifnull(id, 0L) + 1 = 43",
    "nvl2(code, code, 'x') = 'C0042'",
    "(id = 42) IS TRUE",
    "(id != 42) IS FALSE",
    "NOT ((id = 42) IS NOT TRUE)",
    "CASE WHEN id = 42 THEN 1 ELSE 0 END = 1",
    "CASE WHEN id < 42 THEN 1 WHEN id = 42 THEN 2 WHEN id > 42 THEN 3 END = 2",
    "if(id > 42, 0, id) = 42",
    "code LIKE ANY ('C0042%', 'x_%')",
    "code RLIKE '^C0042$'",
    "left(code, 9) = 'C0042'",
]
"""Predicates that select the row with id 42."""

OTHER = [
    ("id IS NULL OR id < 10", 2),
    ("(id >= 10) IS NOT TRUE", 2),
    ("(id < 10) IS NOT FALSE", 2),
    ("(id >= 10 AND id < 90) IS NOT TRUE", 2),
    ("coalesce(id, 5) < 10", 2),
    ("coalesce(id, 50) < 10", 1),
    ("coalesce(nullif(id, 42L), 5L) = 5", 8),
    ("NOT coalesce(id >= 10, false)", 2),
    ("CASE WHEN id >= 10 THEN 'a' ELSE 'b' END = 'b'", 2),
    ("CASE WHEN id >= 10 THEN 'a' WHEN id < 10 THEN 'b' END = 'b'", 1),
    ("CASE WHEN id >= 10 THEN 'a' WHEN id < 10 THEN 'b' END IS NULL", 1),
    ("(id = 42) IS UNKNOWN", 1),
    ("(id IN (42, NULL)) IS NOT TRUE", 8),
    ("(id = 42 OR id = nullif(1L, 1L)) IS NOT TRUE", 8),
    ("(id > 10 AND id > nullif(1L, 1L)) IS NOT FALSE", 8),
    ("CAST(id AS STRING) = '042'", 0),
    ("CAST(id AS STRING) = ' 42'", 0),
    ("left(code, 3) = 'C0042'", 0),
    ("left(code, 0) = ''", 8),
    ("left(code, 3) = ''", 0),
    ("left(code, 9) IN ('C004', 'C0')", 0),
    ("left(code, 3) < 'C0042'", 8),
    ("left(code, 3) <= 'C0042'", 8),
    ("left(code, 3) > 'C0042'", 0),
    ("left(code, 3) < 'C0042'", 8),
    ("left(code, 3) <= 'C0042'", 8),
    ("left(code, 3) > 'C0042'", 0),
    ("substr(CAST(day AS STRING), 9, 2) = '02'", 8),
    ("substr(CAST(ts AS STRING), 12, 2) = '07'", 8),
    ("right(CAST(day AS STRING), 2) = '02'", 8),
    ("CAST(substr(CAST(ts AS STRING), 9, 2) AS INT) = 2", 8),
    ("substr(date_format(ts, 'yyyy-MM-dd'), 9) >= '02'", 8),
    ("substr(from_unixtime(unix), 9, 2) IN ('01', '02')", 8),
    ("code RLIKE '^C0042|^C0077'", 8),
    ("code RLIKE '^C0070?'", 1),
    ("code RLIKE '^C007?'", 8),
    ("code RLIKE '^C007{0,1}'", 8),
]
"""Each predicate with the number of files that a query may read."""


@pytest.fixture(scope="module")
def table(lab: Lab) -> Iterator[str]:
    """A table with one row per hour, ten rows per file, and one row of NULLs in the last file."""
    with lab.database("said"):
        lab.sql(
            "CREATE TABLE t USING parquet AS SELECT id, ts, CAST(ts AS DATE) AS day, "
            "CAST(ts AS STRING) AS s, unix_seconds(ts) AS unix, "
            "concat('C', lpad(CAST(id AS STRING), 4, '0')) AS code "
            "FROM (SELECT id, timestamp_seconds(1772323200 + id * 3600) AS ts "
            "FROM (SELECT nullif(id, 79L) AS id FROM range(0, 80, 1, 8)))"
        )
        lab.sql("CREATE SIEVE INDEX ON t (id, ts, day, s, unix, code)")
        yield "t"


@pytest.mark.long
def test_a_day_reads_the_files_of_the_day(lab: Lab, table: str) -> None:
    """Each predicate that selects one day reads the three files of this day."""
    for predicate in DAY:
        found = lab.check(f"SELECT id FROM {table} WHERE {predicate}", at_most=3)
        assert found.rows.total() == 24, predicate


@pytest.mark.parametrize("ansi", ["true", pytest.param("false", marks=pytest.mark.long)])
def test_a_key_reads_one_file(lab: Lab, table: str, ansi: str) -> None:
    """Each predicate that selects one key reads one file, with and without ANSI mode."""
    with lab.setting("spark.sql.ansi.enabled", ansi):
        for predicate in ONE:
            found = lab.check(f"SELECT id FROM {table} WHERE {predicate}", at_most=1)
            assert found.rows == {"(42,)": 1}, predicate


def test_null_and_missing_texts_read_their_files(lab: Lab, table: str) -> None:
    """For IS NOT TRUE, queries read files with NULL; for an absent text, queries read no file."""
    for predicate, files in OTHER:
        lab.check(f"SELECT id FROM {table} WHERE {predicate}", exactly=files)


def test_the_reason_names_the_function(lab: Lab, table: str) -> None:
    """EXPLAIN, the counters and the error of `spark.sieve.require` name unsupported functions."""
    for predicate, name in (
        ("upper(code) = 'C0042'", "upper"),
        ("lower(left(code, 3)) LIKE 'c0%'", "lower"),
        ("trim(code) IN ('a', 'b')", "trim"),
        ("month(ts) = 3", "month"),
        ("sin(id + 1) > 0.5", "sin"),
        ("coalesce(id, 0) % 2 = 0", "%"),
        ("code LIKE '%42'", "endswith"),
        ("id < unix", "<"),
    ):
        (told,) = lab.explain(f"SELECT id FROM {table} WHERE {predicate}")
        assert f"unsupported-predicate ({name}): " in told["reasons"], predicate
        with (
            lab.setting("spark.sieve.require", "true"),
            pytest.raises(Exception, match=rf"SIEVE_REQUIRED.*predicate \({name}\)"),
        ):
            lab.run(f"SELECT id FROM {table} WHERE {predicate}")
        lab.run(f"SELECT id FROM {table} WHERE {predicate}")
        ((times,),) = lab.sql(
            "SELECT value FROM sieve_status() "
            f"WHERE counter = 'unsupported_function' AND reason = '{name}'"
        )
        assert times >= 1


def test_sum_of_the_greatest_bigint_fails_or_wraps(lab: Lab) -> None:
    """A sum with the greatest BIGINT fails in ANSI mode, and wraps around without ANSI mode."""
    with lab.database("overflows"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 80, 1, 8)")
        lab.sql("INSERT INTO t VALUES (9223372036854775807)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        with (
            lab.setting("spark.sql.ansi.enabled", "true"),
            pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"),
        ):
            lab.run("SELECT id FROM t WHERE id + 1 = 43")
        with lab.setting("spark.sql.ansi.enabled", "false"):
            lab.check("SELECT id FROM t WHERE id + 1 = 43", exactly=2)
            found = lab.check("SELECT id FROM t WHERE id + 1 < 0", at_most=2)
            assert found.rows == {"(9223372036854775807,)": 1}
            found = lab.check("SELECT id FROM t WHERE -id - 10 > 0", at_most=1)
            assert found.rows == {"(9223372036854775807,)": 1}
