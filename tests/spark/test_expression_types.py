"""Expressions whose values depend on a time zone or on padding, and very long filters."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from spark_session import Lab

NESTED = {
    "CAST(times AS STRING)": "[2023-11-19 06:43:20]",
    "CAST(by_key AS STRING)": "{k -> 2023-11-19 06:43:20}",
    "CAST(array(at) AS STRING)": "[2023-11-19 06:43:20]",
    "CAST(array(named_struct('x', array(at))) AS STRING)": "[{[2023-11-19 06:43:20]}]",
    "CAST(at AS STRING)": "2023-11-19 06:43:20",
}
"""Each cast's result for the last row, in the time zone of Kolkata."""


@pytest.fixture(scope="module")
def times(lab: Lab) -> Lab:
    """A table of 100 times, each also in an array and in a map."""
    lab.sql("DROP TABLE IF EXISTS times")
    lab.sql(
        "CREATE TABLE times USING parquet AS SELECT *, array(at) times, map('k', at) by_key "
        "FROM (SELECT id, "
        "timestamp_seconds(1700000000 + id * 3600) at FROM range(0, 100, 1, 4))"
    )
    return lab


@pytest.mark.sampled(2)
@pytest.mark.parametrize("cast", NESTED)
def test_text_of_times_depends_on_the_zone(times: Lab, cast: str) -> None:
    """In another time zone, queries do not use an index on the text of times, and lose no row."""
    times.sql(f"CREATE SIEVE INDEX text ON times ({cast})")
    try:
        with times.setting("spark.sql.session.timeZone", "Asia/Kolkata"):
            query = f"SELECT id FROM times WHERE {cast} = '{NESTED[cast]}'"
            assert times.check(query, exactly=4).rows.total() == 1
            (scan,) = times.explain(query)
            assert scan["reasons"] == "reader-changed: 4"
        ((own,),) = times.sql(f"SELECT {cast} FROM times WHERE id = 99")
        times.check(f"SELECT id FROM times WHERE {cast} = '{own}'", exactly=1)
    finally:
        times.sql("DROP SIEVE INDEX text ON times")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("typed", "options"),
    [
        ("upper(c)", ""),
        ("length(s.f)", ""),
        ("(c, id)", ""),
        ("(s.f, id)", ""),
        ("concat(v, s.f)", ""),
        ("many", ""),
        ("s.some", ""),
        ("by_key['k']", ""),
        ("map_values(by_key)", ""),
        ("c", "OPTIONS (kind = 'substring')"),
        ("s.f", "OPTIONS (kind = 'substring')"),
    ],
)
@pytest.mark.parametrize("padding", ["true", "false"])
def test_char_is_refused_in_every_expression(
    lab: Lab, typed: str, options: str, padding: str
) -> None:
    """CREATE refuses an expression with a CHAR, whose value depends on a setting of the query."""
    lab.sql("DROP TABLE IF EXISTS padded")
    lab.sql(
        "CREATE TABLE padded (id BIGINT, c CHAR(8), v VARCHAR(8), s STRUCT<f: CHAR(8), g: STRING, "
        "some: ARRAY<CHAR(8)>>, many ARRAY<CHAR(8)>, by_key MAP<STRING, CHAR(8)>) USING parquet"
    )
    with (
        lab.setting("spark.sql.readSideCharPadding", padding),
        pytest.raises(PySparkException, match="is a CHAR, which Spark pads with blanks"),
    ):
        lab.sql(f"CREATE SIEVE INDEX ON padded ({typed}) {options}")
    lab.sql("DROP TABLE padded")


def test_columns_beside_a_char_can_be_indexed(lab: Lab) -> None:
    """An expression on a VARCHAR can have an index; so can a field next to a CHAR in a struct."""
    with lab.database("beside_char"):
        lab.sql(
            "CREATE TABLE t (id BIGINT, v VARCHAR(8), s STRUCT<f: CHAR(8), g: STRING>) "
            "USING parquet"
        )
        lab.sql(
            "INSERT INTO t SELECT /*+ REPARTITION_BY_RANGE(4, id) */ id, concat('V', id), "
            "named_struct('f', 'x', 'g', concat('G', id)) FROM range(40)"
        )
        lab.sql("CREATE SIEVE INDEX ON t (lower(v), lower(s.g))")
        for padding in ("true", "false"):
            with lab.setting("spark.sql.readSideCharPadding", padding):
                lab.check("SELECT id FROM t WHERE lower(v) = 'v15'", exactly=1)
                lab.check("SELECT id FROM t WHERE lower(s.g) = 'g15'", exactly=1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("switch", ["true", "false"])
def test_a_filter_of_thousands_of_parts_stops_no_driver(lab: Lab, switch: str) -> None:
    """A filter of 6,000 ORs works, also in the record of scans, and the driver stays alive."""
    with lab.database("long_filters"), lab.setting("spark.sieve.enabled", switch):
        lab.sql(
            "CREATE TABLE t USING parquet AS SELECT id, concat('abcd', id DIV 10) m "
            "FROM range(0, 40, 1, 4)"
        )
        if switch == "true":
            lab.sql("CREATE SIEVE INDEX ON t (upper(m))")
        patterns = ", ".join(f"'Z{n}a%'" for n in range(6000))
        for text in ("upper(m)", "m"):
            assert lab.sql(f"SELECT id FROM t WHERE {text} LIKE ANY ({patterns})") == []
        lab.spark._jsparkSession.sparkContext().listenerBus().waitUntilEmpty()
        assert lab.sql("SELECT count(*) FROM t") == [(40,)]
