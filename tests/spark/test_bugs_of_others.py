"""Sieve returns all rows for queries that lost rows in other systems with data skipping."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from spark_session import Lab

LONG = pytest.mark.long
NAN = "double('NaN')"


@pytest.fixture(scope="module")
def odd(lab: Lab) -> Iterator[Lab]:
    """A table of six files, with doubles, strings and numbers.

    The doubles include NaN, both zeros and NULL.
    """
    with lab.database("odd"):
        lab.sql("CREATE TABLE t (d DOUBLE, s STRING, plain INT) USING parquet")
        for number, values in enumerate(
            [
                f"({NAN}), (1.0D)",
                "(2.0D), (3.0D), (NULL)",
                "(0.0D), (-0.0D)",
                "(CAST(NULL AS DOUBLE))",
                f"({NAN})",
                "(double('Infinity')), (-1e300D)",
            ]
        ):
            lab.sql(
                f"INSERT INTO t SELECT /*+ COALESCE(1) */ d, 's{number}', {number} "
                f"FROM VALUES {values} AS v(d)"
            )
        lab.sql("CREATE SIEVE INDEX ON t (d, s)")
        yield lab


@pytest.mark.parametrize(
    ("predicate", "files"),
    [
        ("d = 2.0", 1), ("d > 2.5", 4), ("d < 0.5", 2), ("d = 0.0", 1),
        pytest.param("d = -0.0", 1, marks=LONG), (f"d = {NAN}", 2),
        pytest.param(f"d >= {NAN}", 2, marks=LONG), pytest.param(f"d < {NAN}", 4, marks=LONG),
        pytest.param("s = 's1'", 1, marks=LONG),
        ("s = 's3' AND d IS NULL", 1), ("s IN ('s0', 's4')", 2),
    ],
)  # fmt: skip
def test_a_nan_among_the_bounds_hides_no_file(odd: Lab, predicate: str, files: int) -> None:
    """In apache/hudi#18754, one NaN set minimum and maximum to 0; here, queries lose no row."""
    odd.check(f"SELECT * FROM t WHERE {predicate}", at_most=files)


@pytest.mark.parametrize(
    "predicate",
    [
        "NOT (d < 2.0)", pytest.param("NOT (d >= 2.0)", marks=LONG),
        pytest.param("d NOT IN (1.0D, 2.0D)", marks=LONG), f"d IN ({NAN}, 3.0D)",
        f"d NOT IN ({NAN})", f"NOT (d = {NAN})", f"NOT (d IN ({NAN}, 2.0D)) OR d IS NULL",
        pytest.param("NOT (d BETWEEN -1 AND 1)", marks=LONG),
        pytest.param("NOT (d != 2.0)", marks=LONG), f"NOT (d < {NAN} AND s = 's1')",
        f"d NOT IN (1.0D, {NAN}) AND s NOT IN ('s2')",
    ],
)  # fmt: skip
def test_nan_under_not_and_in(odd: Lab, predicate: str) -> None:
    """In ClickHouse#107074, #116927 and #121481, negated bounds lost NaN; Sieve finds NaN."""
    odd.check(f"SELECT * FROM t WHERE {predicate}")


@pytest.mark.parametrize(
    ("predicate", "files"),
    [
        ("d = 2.0 AND plain = 1", 1), ("d = 2.0 OR plain = 4", 6), ("plain = 2 AND s = 's2'", 1),
        ("(d = 2.0 OR plain = 4) AND s = 's4'", 1), ("NOT (d = 2.0 AND plain = 1)", 6),
        ("plain = 5", 6),
    ],
)  # fmt: skip
def test_filter_on_a_column_without_index_loses_no_row(
    odd: Lab, predicate: str, files: int
) -> None:
    """In apache/hudi#10389, a filter on an unindexed column returned no rows; Sieve returns all."""
    odd.check(f"SELECT * FROM t WHERE {predicate}", at_most=files)


@pytest.mark.parametrize(
    ("query", "files"),
    [
        # ClickHouse#114812 compared the bound with NULL and NaN as if both were numbers.
        ("SELECT d, s FROM t ORDER BY d NULLS FIRST, s LIMIT 3", 3),
        ("SELECT d, s FROM t ORDER BY d NULLS LAST, s LIMIT 3", 2),
        ("SELECT d, s FROM t ORDER BY d DESC NULLS LAST, s LIMIT 2", 2),
        ("SELECT d, s FROM t ORDER BY d DESC NULLS FIRST, s LIMIT 3", 4),
        # ClickHouse#114073 ignored a filter in the bound, so the query returned no row.
        ("SELECT d, s FROM t WHERE plain > 2 ORDER BY d NULLS LAST, s LIMIT 1", 6),
        ("SELECT d, s FROM t WHERE s > 's2' ORDER BY d NULLS LAST, s LIMIT 1", 3),
        # datafusion#22554 applied the bound before DISTINCT.
        ("SELECT DISTINCT d FROM t ORDER BY d NULLS FIRST LIMIT 1", 6),
        # datafusion#23684 lost the group whose key is NULL.
        ("SELECT s, max(d) FROM t GROUP BY s ORDER BY 2 NULLS FIRST, 1 LIMIT 2", 6),
        # datafusion#16464 compared only the first column of the sort order.
        ("SELECT d, s, plain FROM t ORDER BY s DESC, d, plain LIMIT 2", 1),
    ],
)
def test_first_rows(odd: Lab, query: str, files: int) -> None:
    """For ORDER BY with LIMIT, Sieve derives a bound that excludes no row of the result."""
    odd.check(query, at_most=files)


def test_rows_of_a_deleted_file_give_no_bound(lab: Lab) -> None:
    """In ClickHouse#107309, deleted rows had the greatest key, so a query lost other rows.

    Sieve returns all rows that the deletion leaves.
    """
    with lab.database("deleted"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 40, 1, 4)")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        query = "SELECT id FROM t ORDER BY id DESC LIMIT 1"
        assert lab.check(query, exactly=1).rows == {"(39,)": 1}
        for left in (3, 2):
            ((file,),) = lab.sql("SELECT input_file_name() FROM t ORDER BY id DESC LIMIT 1")
            Path(file.removeprefix("file://")).unlink()
            lab.sql("REFRESH TABLE t")
            assert lab.check(query, exactly=1).rows == {f"({10 * left - 1},)": 1}
            assert lab.check("SELECT max(id) FROM t", exactly=1).rows == {f"({10 * left - 1},)": 1}


def test_files_without_statistics_are_not_all_null(lab: Lab) -> None:
    """Files without statistics do not count as "all NULL", as they did in apache/hudi#18792.

    The table contains files without statistics, and files without a column that was added later.
    """
    with lab.database("no_statistics"):
        lab.sql(
            "CREATE TABLE t USING parquet OPTIONS ('parquet.column.statistics.enabled' = 'false') "
            "AS SELECT id, concat('k', id) AS s FROM range(0, 40, 1, 4)"
        )
        lab.sql("ALTER TABLE t ADD COLUMNS (late INT)")
        lab.sql("INSERT INTO t SELECT /*+ COALESCE(1) */ id, 'n', id FROM range(40, 50)")
        lab.sql("CREATE SIEVE INDEX ON t (id, s, late)")
        lab.check("SELECT * FROM t WHERE id = 15", exactly=1)
        lab.check("SELECT * FROM t WHERE s = 'k35'", exactly=1)
        lab.check("SELECT * FROM t WHERE id IS NOT NULL AND s > 'k38'", at_most=3)
        lab.check("SELECT * FROM t WHERE late = 45", exactly=1)
        lab.check("SELECT * FROM t WHERE late IS NULL", exactly=4)
        lab.check("SELECT * FROM t WHERE late IS NULL AND id = 15", exactly=1)
        lab.check("SELECT * FROM t WHERE NOT (late <=> 45)", exactly=5)


@pytest.mark.long
def test_the_greatest_key_of_many_row_groups(lab: Lab) -> None:
    """Queries find a file's greatest keys, even with small row groups and a partial last block.

    In apache/hudi#7032, the maximum of a column was wrong. Another system's zone map ignored the
    last stripe of a file if the stripe was partial. In this test, strings are long, and the number
    of keys is no multiple of a block size. Parquet truncates the bounds of long strings, and some
    strings here end with the greatest character.
    """
    with lab.database("maximum"):
        lab.sql(
            "CREATE TABLE t USING parquet OPTIONS ('parquet.block.size' = '2048', "
            "'parquet.page.size' = '512') AS SELECT /*+ REPARTITION_BY_RANGE(7, id) */ id, concat("
            "repeat('x', 90), decode(unhex('F48FBFBF'), 'UTF-8'), id) AS s FROM range(1003)"
        )
        lab.sql("CREATE SIEVE INDEX ON t (id, s)")
        ends = lab.sql("SELECT max(id), max(s) FROM t GROUP BY input_file_name()")
        assert len(ends) == 7
        for number, text in ends:
            lab.check(f"SELECT id FROM t WHERE id = {number}", exactly=1)
            assert lab.check(f"SELECT id FROM t WHERE s = '{text}'").rows == {
                f"({lab.sql(f'SELECT id FROM t WHERE s = {text!r}')[0][0]},)": 1
            }
        lab.check("SELECT * FROM t WHERE id >= 1002", exactly=1)
        lab.check("SELECT id FROM t WHERE s >= concat(repeat('x', 90), 'y')")


@pytest.mark.parametrize("kind", ["TIMESTAMP", pytest.param("TIMESTAMP_NTZ", marks=LONG)])
def test_microseconds_above_the_last_whole_millisecond(lab: Lab, kind: str) -> None:
    """In delta-kernel-rs#1003 and delta#7444, truncation to milliseconds made a maximum too low."""
    with lab.database("micros"):
        lab.sql(
            f"CREATE TABLE t USING parquet AS SELECT id, CAST(timestamp_micros(1700000000000000 "
            f"+ id * 1000000 - 1) AS {kind}) AS ts FROM range(0, 40, 1, 4)"
        )
        lab.sql("CREATE SIEVE INDEX ON t (ts)")
        for (text,) in lab.sql("SELECT CAST(max(ts) AS STRING) FROM t GROUP BY input_file_name()"):
            assert text.endswith(".999999")
            lab.check(f"SELECT * FROM t WHERE ts = {kind} '{text}'", exactly=1)
            lab.check(f"SELECT * FROM t WHERE ts > {kind} '{text[:-3]}'")
            lab.check(f"SELECT * FROM t WHERE ts <= {kind} '{text[:-3]}'")
        lab.check(f"SELECT * FROM t WHERE ts < {kind} '2023-11-14 22:13:20'", exactly=1)


@pytest.mark.long
def test_offsets_with_seconds(lab: Lab) -> None:
    """In delta#5568 and #6080, time offsets lost their seconds, so that bounds were wrong."""
    with (
        lab.database("offsets"),
        lab.setting("spark.sql.session.timeZone", "Africa/Monrovia"),
    ):
        # Until 1972, Monrovia's clocks were 44 minutes and 30 seconds behind UTC.
        lab.sql(
            "CREATE TABLE t USING parquet AS SELECT id, TIMESTAMP '1960-01-15 12:00:00' + "
            "make_interval(0, 0, 0, 0, 0, 0, id) AS ts FROM range(0, 40, 1, 4)"
        )
        lab.sql("CREATE SIEVE INDEX ON t (ts)")
        for second in (0, 9, 10, 28, 32, 39):
            text = f"1960-01-15 12:00:{second:02}"
            assert lab.check(f"SELECT * FROM t WHERE ts = TIMESTAMP '{text}'", exactly=1).rows
            lab.check(f"SELECT * FROM t WHERE ts = TIMESTAMP '{text}-00:44:30'", exactly=1)
            lab.check(f"SELECT * FROM t WHERE ts >= TIMESTAMP '{text}'", at_most=4 - second // 10)
        lab.check("SELECT * FROM t WHERE to_date(ts) = DATE '1960-01-15' AND id < 3")


def test_reused_index_name_reads_no_dropped_files(lab: Lab) -> None:
    """In ClickHouse#121171, a new index with an old name read the files of the dropped index.

    This test drops an index, and creates an index of the same name on another column, or on a
    column of another type. Sessions that have used a dropped index must use only the new index of
    the same name.
    """
    with lab.database("reused"):
        lab.sql(
            "CREATE TABLE t USING parquet AS SELECT id AS a, 39 - id AS b FROM range(0, 40, 1, 4)"
        )
        lab.sql("CREATE SIEVE INDEX x ON t (a)")
        session = Lab(lab.spark.newSession())
        session.sql("USE reused")
        session.check("SELECT * FROM t WHERE a = 5", exactly=1)
        lab.sql("DROP SIEVE INDEX x ON t")
        lab.sql("CREATE SIEVE INDEX x ON t (b)")
        for one in (session, lab):
            one.check("SELECT * FROM t WHERE a = 5", exactly=4)
            one.check("SELECT * FROM t WHERE b = 5", exactly=1)
        lab.sql("DROP TABLE t")
        lab.sql(
            "CREATE TABLE t USING parquet AS SELECT concat('5', id) AS b FROM range(0, 40, 1, 4)"
        )
        # Until REFRESH TABLE, Spark in this session uses the cached file list of the old table.
        session.sql("REFRESH TABLE t")
        session.check("SELECT * FROM t WHERE b = '57'", exactly=4)
        lab.sql("CREATE SIEVE INDEX x ON t (b)")
        for one in (session, lab):
            one.check("SELECT * FROM t WHERE b = '57'", exactly=1)
            one.check("SELECT * FROM t WHERE b = 57", at_most=4)
