from __future__ import annotations

from collections.abc import Iterator

import pytest
from spark_session import Lab

KEYS = {
    "k": ("id", ("0", "199")),
    "d": ("date_add(DATE '1969-12-30', int(id))", ("1969-12-30", "1970-07-17")),
    "ts": (
        "timestamp_micros(id * 86400000000 - 1)",
        ("1969-12-31 23:59:59.999999Z", "1970-07-18 23:59:59.999999Z"),
    ),
    "f": ("id / 2 - 1", ("-1.0", "98.5")),
    "p": ("CAST(id / 4 - 1 AS DECIMAL(10,2))", ("-1.00", "48.75")),
    "b": ("id >= 100", ("false", "true")),
    "s": ("concat('key-', lpad(id, 9, '0'))", ("key-000000000", "key-000000199")),
}


@pytest.fixture(scope="module")
def table(lab: Lab) -> Iterator[str]:
    """Ten files in the order of ``k``; two of the files contain key 0."""
    with lab.database("segments"):
        columns = ", ".join(f"{code} AS {name}" for name, (code, _) in KEYS.items())
        lab.spark.range(0, 200, 1, 10).createOrReplaceTempView("numbers")
        lab.sql(f"CREATE TABLE t USING parquet AS SELECT {columns}, id % 7 AS r FROM numbers")
        lab.sql(f"CREATE SIEVE INDEX ON t ({', '.join(KEYS)}, r)")
        lab.sql("CREATE SIEVE INDEX m ON t (s) OPTIONS (shape = map, budget = '1MB')")
        lab.sql("CREATE SIEVE INDEX e ON t (k) OPTIONS (error = 1)")
        yield "t"


@pytest.mark.long
@pytest.mark.parametrize("column", KEYS)
def test_segments_show_keys_as_values(lab: Lab, table: str, column: str) -> None:
    """A segment's first and last key have the column's type; for text, the function shows codes."""
    rows = lab.sql(f"SELECT * FROM sieve_segments('{table}', '{column}_sieve') ORDER BY segment")
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    assert (rows[0][1], rows[-1][2]) == KEYS[column][1]


def test_expected_files_are_those_of_a_key(lab: Lab, table: str) -> None:
    """The function expects 1 file for keys in one file, and 10 files for keys in all files.

    For a segment of a hash map, the number of expected files is NULL.
    """
    assert lab.sql(f"SELECT expected_files FROM sieve_segments('{table}', 'k_sieve')") == [(1.0,)]
    assert lab.sql(f"SELECT expected_files FROM sieve_segments('{table}', 'r_sieve')") == [(10.0,)]
    assert (
        lab.sql(f"SELECT shape, expected_files FROM sieve_segments('{table}', 'e')")[0][0]
        == "sieve"
    )
    *_, last = lab.sql(f"SELECT * FROM sieve_segments('{table}', 'm') ORDER BY segment")
    assert (last[1], last[2], last[3], last[4], last[6]) == (None, None, "map", None, None)
    assert last[5] > 0


@pytest.mark.usefixtures("table")
def test_data_frame_keeps_the_rows_of_its_analysis(lab: Lab) -> None:
    """A data frame returns the rows that existed when Spark analysed it.

    After a refresh of the index, the same SQL text returns the new rows.
    """
    lab.sql("CREATE TABLE grown USING parquet AS SELECT id AS k FROM range(10)")
    lab.sql("CREATE SIEVE INDEX i ON grown (k)")
    text = "SELECT max(CAST(last_key AS INT)) FROM sieve_segments('grown', 'i')"
    before = lab.spark.sql(text)
    lab.sql("INSERT INTO grown VALUES (77)")
    lab.sql("REFRESH SIEVE INDEX ON grown")
    assert lab.sql(text) == [(77,)]
    assert [tuple(row) for row in before.collect()] == [(9,)]


@pytest.mark.usefixtures("table")
def test_names_are_resolved_as_in_sql(lab: Lab) -> None:
    """Names can be qualified, quoted, in any letter case, or relative to the current database.

    If a view has the same name as a table, the function finds only the view.
    """
    for name in ("T", "segments.t", "`segments`.`t`", "spark_catalog.segments.t"):
        assert lab.sql(f"SELECT count(*) FROM sieve_segments('{name}', 'K_SIEVE')") == [(1,)]
    other = lab.spark.newSession()
    with pytest.raises(Exception, match="SIEVE_UNKNOWN_TABLE"):
        other.sql("SELECT * FROM sieve_segments('t', 'k_sieve')")
    other.sql("USE segments")
    other.sql("CREATE TEMPORARY VIEW t AS SELECT 1 AS k")
    with pytest.raises(Exception, match=r"SIEVE_UNSUPPORTED_TABLE.*t is a temporary view"):
        other.sql("SELECT * FROM sieve_segments('t', 'k_sieve')")
    assert other.sql("SELECT * FROM sieve_segments('segments.t', 'k_sieve')").count() == 1


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("'t', 'k_siev'", "SIEVE_UNKNOWN_INDEX.*did you mean k_sieve"),
        ("'tt', 'k_sieve'", r"SIEVE_UNKNOWN_TABLE.*did you mean t\?"),
        ("'t..t', 'k_sieve'", "SIEVE_INVALID_ARGUMENT.*not the name of a table"),
        ("'t'", "SIEVE_INVALID_ARGUMENT.*takes 2 arguments, not 1"),
        ("'t', 5", "SIEVE_INVALID_ARGUMENT.*constant strings"),
        ("'t', NULL", "SIEVE_INVALID_ARGUMENT.*constant strings"),
        ("'t', CAST(rand() AS STRING)", "SIEVE_INVALID_ARGUMENT.*constant strings"),
    ],
)
def test_wrong_call_raises_an_error_of_sieve(lab: Lab, arguments: str, problem: str) -> None:
    """A call fails if the table or index is unknown, or if an argument is no constant string."""
    with pytest.raises(Exception, match=problem):
        lab.sql(f"SELECT * FROM sieve_segments({arguments})")
