"""The program of `sieve inspect` in the run's own driver: what it says where it cannot draw."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from spark_session import Lab

from sql_ext.launcher.inspection import __main__ as inspection


@pytest.mark.parametrize(
    ("table", "index", "problem"),
    [
        ("t", "nope", "Error: [SIEVE_UNKNOWN_INDEX]"),
        ("nowhere", "id_sieve", "Error: [SIEVE_UNKNOWN_TABLE]"),
        ("t", "id_sieve", "no file of inspected.t holds a key"),
    ],
)
def test_what_cannot_be_drawn_is_told(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, index: str, problem: str
) -> None:
    """An unknown table or index, or one without keys, ends the program in one line."""
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
