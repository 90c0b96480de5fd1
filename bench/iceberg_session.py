"""Settings of a session with Iceberg, and a function that makes Iceberg tables of Parquet files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from sieve.client.spark_home import find_spark
from sql_ext.launcher.launch import ICEBERG_EXTENSION, iceberg_settings, shipped_settings

FETCHED = Path(__file__).resolve().parent.parent / "build" / "peers"
"""The folder to which `make bench-peers` downloads jars."""


def iceberg_conf(*, indexed: bool) -> Mapping[str, str]:
    """The settings of `sieve sql --iceberg`, with the downloaded Iceberg jar.

    Args:
        indexed: whether Spark also loads Sieve.

    Raises:
        SystemExit: no Iceberg jar for this Spark has been downloaded.
    """
    spark = find_spark(os.environ)
    jars = [str(jar) for jar in FETCHED.glob(f"iceberg-spark-runtime-{spark.line}_*.jar")]
    if len(jars) != 1:
        raise SystemExit(f"{FETCHED} has no Iceberg: run `make bench-iceberg`, which fetches it")
    if indexed:
        jars.insert(0, shipped_settings(spark, os.environ)["spark.jars"])
    named = {"spark.jars": ",".join(jars), "spark.driver.extraClassPath": ":".join(jars)}
    own = dict(iceberg_settings(spark, os.environ, named)) | named
    return own if indexed else own | {"spark.sql.extensions": ICEBERG_EXTENSION}


def add_files(
    spark: SparkSession, name: str, columns: str, files: Path, folder: Path, more: str = ""
) -> None:
    """Creates an Iceberg table from existing Parquet files.

    Args:
        spark: the session.
        name: the new table's name, with catalog and namespace.
        columns: the table's columns and their types, in parentheses.
        files: folder that contains the Parquet files.
        folder: a new folder for the table's hard links to the files.
        more: further clauses of CREATE TABLE.
    """
    shutil.copytree(files, folder, copy_function=os.link)
    spark.sql(f"CREATE TABLE {name} {columns} USING iceberg {more}")
    catalog, _, table = name.partition(".")
    source = f"`parquet`.`{folder}`"
    call = f"CALL {catalog}.system.add_files(table => '{table}', source_table => '{source}')"
    spark.sql(call).collect()
