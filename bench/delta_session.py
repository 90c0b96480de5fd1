"""Starts a Spark session with Delta and Sieve, and creates Delta tables for benchmarks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from bench.session import start_session, with_settings
from sieve.client.spark_home import find_spark
from sql_ext.launcher.launch import DELTA_PACKAGES, delta_settings, shipped_settings

HOME = Path(__file__).resolve().parent.parent
_SMALL = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    # By default, Delta reads its log in 50 tasks. The tasks take more time than a small commit
    # itself.
    "spark.databricks.delta.snapshotPartitions": "2",
}


@contextmanager
def passing_session(folder: Path) -> Iterator[SparkSession]:
    """Within the block, runs a session with the settings of `sieve sql --delta` in a new folder.

    Afterwards deletes the folder. The session uses the jars that ``make bench-delta`` downloads.
    """
    shutil.rmtree(folder, ignore_errors=True)
    spark = find_spark(os.environ)
    _, name, version = DELTA_PACKAGES[spark.line].split(":")
    own = [HOME / "build" / "delta" / f"{part}-{version}.jar" for part in (name, "delta-storage")]
    if not all(jar.exists() for jar in own):
        raise SystemExit(
            f"build/delta has no Delta for Spark {spark.line}: run `make bench-delta`, which "
            "fetches it"
        )
    jars = [shipped_settings(spark, os.environ)["spark.jars"], *map(str, own)]
    named = {"spark.jars": ",".join(jars), "spark.driver.extraClassPath": ":".join(jars)}
    session = start_session(folder, delta_settings(spark, named) | named | _SMALL)
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
        shutil.rmtree(folder, ignore_errors=True)


def convert(spark: SparkSession, table: str, files: Path, folder: Path) -> None:
    """Creates a Delta table from Parquet files.

    The table's folder contains hard links to the files.
    """
    shutil.copytree(files, folder, copy_function=os.link)
    spark.sql(f"CREATE TABLE {table} USING parquet LOCATION '{folder.as_uri()}'")
    spark.sql(f"CONVERT TO DELTA {table}").collect()


def rewrite(spark: SparkSession, table: str, copy: str, *statements: str) -> None:
    """Creates a shallow clone of a table, and rewrites the clone to about the same number of files.

    Args:
        spark: the session.
        table: name of the table to clone.
        copy: name of the clone.
        statements: statements that rewrite the clone.
    """
    detail = spark.sql(f"DESCRIBE DETAIL {table}").collect()[0]
    size = str(detail["sizeInBytes"] // detail["numFiles"])
    sizes = {f"spark.databricks.delta.optimize.{end}FileSize": size for end in ("min", "max")}
    spark.sql(f"CREATE TABLE {copy} SHALLOW CLONE {table}").collect()
    with with_settings(spark, sizes):
        for statement in statements:
            spark.sql(statement).collect()
