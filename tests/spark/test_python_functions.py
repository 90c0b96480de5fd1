"""Tests the module `sieve`: the functions that run statements, and the function `configure`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from spark_session import FRUGAL, INTERPRETED, Lab

import sieve

HOME = Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_functions_act_like_their_statements(lab: Lab) -> None:
    """Each function has the effect of its SIEVE statement, and returns the same rows."""
    with lab.database("functions"):
        spark = lab.spark
        rows = "SELECT /*+ REPARTITION_BY_RANGE(10, id) */ id, 'k' || id AS `my s` FROM range(1000)"
        lab.sql(f"CREATE TABLE t USING parquet AS {rows}")
        tried = sieve.estimate(spark, "t", "id", predicate="id = 5", budget="3%")
        assert [(row.column, row.files_read) for row in tried] == [("id", 1.0)]
        (more,) = sieve.estimate(spark, "t", "id", predicate="id = 5", extended=True, budget="3%")
        assert (more.column, more.budget, more.files_predicate) == ("id", "3%", 1)
        built = sieve.create(spark, "t", ["id", "`my s`"], budget="50%")
        assert [(row.index, row.change) for row in built] == [
            ("id_sieve", "created"),
            ("my s_sieve", "created"),
        ]
        lab.check("SELECT * FROM t WHERE id = 500", exactly=1)
        (scan,) = sieve.explain(spark, "SELECT * FROM t WHERE id = 500")
        assert (scan.files_total, scan.files_read) == (10, 1)
        assert "width:10.0%" in sieve.explain(spark, "SELECT * FROM t WHERE id = 500")._repr_html_()
        facts = {row.property: row.value for row in sieve.describe(spark, "t", "id_sieve")}
        assert facts == dict(lab.sql("DESCRIBE SIEVE INDEX id_sieve ON t"))
        lab.sql("INSERT INTO t VALUES (5000, 'k')")
        assert [row.state for row in sieve.indexes(spark)] == ["stale: 1 files"] * 2
        assert [row.change for row in sieve.refresh(spark, "t")] == ["refreshed"] * 2
        assert {row.status for row in sieve.check(spark, "functions.t", "id_sieve")} == {"ok"}
        assert [row.index for row in sieve.drop(spark, "t", column="`my s`")] == ["my s_sieve"]
        left = sieve.indexes(spark, "functions")
        assert list(pd.DataFrame(list(left))["index"]) == ["id_sieve"]
        assert sieve.configure(SparkSession.builder).getOrCreate().version == spark.version


@pytest.mark.long
def test_code_of_the_python_page_works(tmp_path: Path) -> None:
    """The code of docs/python.md works in a new process, in which only `configure` loads Sieve."""
    page = (HOME / "docs" / "python.md").read_text(encoding="utf-8")
    code = "".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    printed = "".join(re.findall(r"```\n```\n(.*?)```", page, re.DOTALL))
    # The test sets options on the command line instead of a configuration folder. If a
    # configuration folder were on the class path, Java would ignore the class archive.
    quick = [word for k, v in (FRUGAL | INTERPRETED).items() for word in ("--conf", f"{k}={v}")]
    environ = {**os.environ, "PYTHONPATH": str(HOME)}
    environ.pop("SPARK_CONF_DIR", None)
    environ["PYSPARK_SUBMIT_ARGS"] = " ".join([*quick, "pyspark-shell"])
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == printed
