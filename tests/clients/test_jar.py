"""Submits a compiled Scala program as a jar. The user writes no Python code."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from client_smoke import cells, check, tour

from sieve.client.spark_home import find_spark
from sql_ext.launcher.conf_files import find_java

if TYPE_CHECKING:
    from conftest import Site

PROGRAM = """
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.ColumnarRule

object Tour {
  def main(statements: Array[String]): Unit = {
    val spark = SparkSession.builder
      .withExtensions(_.injectColumnar(_ => new ColumnarRule {})).getOrCreate()
    for (statement <- statements) {
      val frame = spark.sql(statement)
      frame.collect().foreach(row => println(row.mkString("\\t")))
      for (leaf <- frame.queryExecution.sparkPlan.collectLeaves())
        println("leaf\\t" + leaf.getClass.getName)
    }
    spark.stop()
  }
}
"""


def compiled(folder: Path) -> Path:
    """Compiles the program with the Scala compiler in Spark's jars; returns the program's jar."""
    source, classes, jar = folder / "Tour.scala", folder / "classes", folder / "tour.jar"
    source.write_text(PROGRAM)
    classes.mkdir()
    jars = str(find_spark(os.environ).path / "jars" / "*")
    compiler = ("scala.tools.nsc.Main", "-usejavacp", "-d", str(classes), str(source))
    subprocess.run([find_java(os.environ), "-Xss8m", "-cp", jars, *compiler], check=True)
    with zipfile.ZipFile(jar, "w") as archive:
        for path in classes.rglob("*.class"):
            archive.write(path, path.relative_to(classes))
    return jar


@pytest.mark.long
def test_spark_submit_of_a_jar(site: Site, tmp_path: Path) -> None:
    """A Scala program creates, uses, explains, shows and drops an index.

    Like a plug-in, the program adds a planner rule. The plan must keep Spark's scan operator.
    """
    output = site.sieve(
        *("submit", *site.metastore_option, "--class", "Tour", str(compiled(tmp_path))),
        *tour("by_jar"),
    )
    lines = output.splitlines(keepends=True)
    leaves = [line for line in lines if line.startswith("leaf\t")]
    check(cells("".join(line for line in lines if line not in leaves)))
    assert any(line.endswith("execution.FileSourceScanExec\n") for line in leaves)
    assert not any("sieve" in line for line in leaves)
