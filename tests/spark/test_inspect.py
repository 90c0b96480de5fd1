"""The pictures that `sieve_inspect` draws of indexes, and the errors of `sieve inspect`."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from spark_session import Lab

import sieve
from sql_ext.launcher.inspection import __main__ as inspection


@pytest.mark.parametrize(
    ("table", "index", "problem"),
    [
        ("t", "nope", "Error: [SIEVE_UNKNOWN_INDEX]"),
        ("nowhere", "id_sieve", "Error: [SIEVE_UNKNOWN_TABLE]"),
        ("t", "id_sieve", "no file of inspected.t holds a key"),
    ],
)
def test_nothing_to_draw_is_an_error_of_one_line(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, index: str, problem: str
) -> None:
    """If the table or index is unknown, or the index has no keys, the error is one line."""
    monkeypatch.setattr(SparkSession, "stop", lambda _: None)
    with lab.database("inspected"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT CAST(NULL AS INT) AS id, 'a' AS s")
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        with pytest.raises(SystemExit) as ended:
            inspection.main(table, index, str(tmp_path / "picture.png"))
    assert str(ended.value).startswith("Error: ")
    assert problem in str(ended.value)
    assert len(str(ended.value).splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_table_name_is_resolved_in_the_session(lab: Lab) -> None:
    """The function resolves a table name as the session does, and returns a PNG of full size."""
    with lab.database("inspected"):
        rows = "SELECT /*+ REPARTITION_BY_RANGE(10, id) */ id FROM range(1000)"
        lab.sql(f"CREATE TABLE late USING parquet AS {rows}")
        lab.sql("CREATE SIEVE INDEX ON late (id)")
        picture = sieve.inspect(lab.spark, "`LATE`", "ID_sieve")
        assert picture.summary.splitlines()[-4] == (
            "of all keys a file spans 10.0% by min and max (median), 10.0% by the index"
        )
        assert picture.png.startswith(b"\x89PNG")
        assert struct.unpack(">II", picture.png[16:24]) == (1320, 990)
        assert sieve.inspect(lab.spark, "inspected.late", "id_sieve") == picture
        with pytest.raises(Exception, match="SIEVE_UNKNOWN_TABLE"):
            sieve.inspect(lab.spark.newSession(), "late", "id_sieve")
