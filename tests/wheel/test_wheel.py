"""Tests the built wheel as users install it: with PySpark, or for an existing Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import sieve

pytestmark = pytest.mark.wheel

TOP = Path(__file__).resolve().parent.parent.parent

TOUR = """
CREATE TABLE t USING parquet AS SELECT /*+ REPARTITION_BY_RANGE(8, id) */ id FROM range(1000);
CREATE SIEVE INDEX ON t (id) OPTIONS (error = 1);
SELECT concat('found ', id) AS r FROM t WHERE id = 7;
EXPLAIN SIEVE SELECT * FROM t WHERE id = 7;
"""


FIRST_SESSION = """
import sieve
from pyspark.sql import SparkSession

spark = sieve.configure(SparkSession.builder).enableHiveSupport().getOrCreate()
spark.range(0, 1000, 1, 8).write.saveAsTable("visits")
(built,) = sieve.create(spark, "visits", "id")
(scan,) = sieve.explain(spark, "SELECT * FROM visits WHERE id = 7")
print("reads", scan.files_read, "of", scan.files_total)
print("indexes", [one.index for one in sieve.indexes(spark)])
spark.sql("SELECT * FROM visits WHERE id = 7").collect()
spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
print("advice", [(one.action, one.index) for one in sieve.advise(spark)])
try:
    sieve.inspect(spark, "visits", "id_sieve")
except Exception as error:
    print("inspect", str(error)[:100])
"""
SHELL = """
spark.sql("SHOW SIEVE INDEXES").selectExpr("concat('shown ', index)").show()
"""


@pytest.fixture(scope="module")
def wheel() -> Path:
    """The wheel that `make wheel` has just built."""
    (path,) = (TOP / "dist").glob("sieve_index-*.whl")
    return path


def environment(tmp_path: Path, *packages: str) -> Path:
    """Creates a virtual environment with only the given packages.

    Returns the folder of the new environment's programs.
    """
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    programs = tmp_path / "venv" / "bin"
    pip = [programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *packages], check=True)
    return programs


def run(command: list[str | Path], folder: Path, stdin: str = "", **settings: str) -> str:
    """The standard output of a program that sees neither this checkout nor its Spark."""
    hidden = ("SPARK", "PYSPARK", "PYTHON", "VIRTUAL_ENV")
    environ = {k: v for k, v in os.environ.items() if not k.startswith(hidden)} | settings
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        command, cwd=folder, env=environ, input=stdin, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def check_tour(output: str) -> None:
    """Asserts that the query found its row, and that EXPLAIN shows one of eight files to read."""
    lines = [line.split("\t") for line in output.splitlines()]
    assert ["found 7"] in lines
    (scan,) = [line for line in lines if "id_sieve@1" in line]
    assert scan[4:6] == ["8", "1"]


def test_wheel_has_its_jars_and_configuration(wheel: Path) -> None:
    """The wheel contains the jars of `make wheel`, the configuration, and Sieve's version."""
    names = set(zipfile.ZipFile(wheel).namelist())
    jars = {name for name in names if name.endswith(".jar")}
    assert jars == {
        f"sql_ext/jars/sieve-spark-{line}_{'2.12' if line == '3.5' else '2.13'}.jar"
        for line in os.environ.get("SIEVE_LINES", "3.5 4.1").split()
    }
    for inside in (
        "conf/spark-defaults.conf",
        "conf/log4j2.properties",
        "statements/grammar.lark",
        "settings.json",
        "jars/grammar.tables",
    ):
        assert f"sql_ext/{inside}" in names
    assert "sieve/py.typed" in names
    tops = {name.split("/", 1)[0] for name in names}
    assert tops == {"sql_ext", "sieve", "udfs", f"sieve_index-{sieve.__version__}.dist-info"}


@pytest.mark.parametrize("version", ["4.1.4", "3.5.9"])
def test_wheel_works_with_only_pyspark(wheel: Path, tmp_path: Path, version: str) -> None:
    """With only the wheel and PySpark, `sieve sql` creates an index and skips files."""
    programs = environment(tmp_path, str(wheel), f"pyspark=={version}")
    said = run([programs / "sieve", "--version"], tmp_path / "work")
    assert said.split()[-1] == sieve.__version__
    check_tour(run([programs / "sieve", "sql", "-e", TOUR], tmp_path / "work"))


def test_a_first_session_of_python(wheel: Path, tmp_path: Path) -> None:
    """The documented steps alone make Sieve work in a Python program and the PySpark shell."""
    programs = environment(tmp_path, str(wheel), "pyspark==4.1.4")
    work = tmp_path / "work"
    (tmp_path / "first.py").write_text(FIRST_SESSION)
    said = run([programs / "python", tmp_path / "first.py"], work).splitlines()
    assert "reads 1 of 8" in said
    assert "indexes ['id_sieve']" in said
    assert "advice [('keep', 'id_sieve')]" in said
    # Matplotlib is not installed, so an error says which package to install.
    assert any("SIEVE_NOTHING_TO_DRAW_WITH" in line for line in said)
    (tmp_path / "sieve.conf").write_text(run([programs / "sieve", "conf"], work))
    # Python runs a shell's start-up file only in interactive mode.
    interactive = {
        "PYSPARK_DRIVER_PYTHON": str(programs / "python"),
        "PYSPARK_DRIVER_PYTHON_OPTS": "-i",
    }
    shell = [programs / "pyspark", "--properties-file", tmp_path / "sieve.conf"]
    assert "shown id_sieve" in run(shell, work, SHELL, **interactive)


def test_an_existing_spark(wheel: Path, tmp_path: Path) -> None:
    """An existing Spark needs only the lines of `sieve conf` in its file spark-defaults.conf."""
    programs = environment(tmp_path, str(wheel))
    home = TOP / "build" / "spark-3.5" / "pyspark"
    conf = tmp_path / "conf"
    conf.mkdir()
    lines = run([programs / "sieve", "conf"], tmp_path / "work", SPARK_HOME=str(home))
    (conf / "spark-defaults.conf").write_text(lines)
    output = run(
        [home / "bin" / "spark-sql", "-e", TOUR],
        tmp_path / "work",
        SPARK_HOME=str(home),
        SPARK_CONF_DIR=str(conf),
    )
    check_tour(output)
