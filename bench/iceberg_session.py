"""Settings of a session with Iceberg, and Iceberg tables of existing Parquet files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from sieve.client.spark_home import find_spark
from sql_ext.launcher.launch import ICEBERG_EXTENSION, iceberg_settings, shipped_settings

FETCHED = Path(__file__).resolve().parent.parent / "build" / "peers"
"""The folder of the jars that `make bench-peers` downloads."""


def iceberg_conf(*, indexed: bool) -> Mapping[str, str]:
    """Settings like those of `sieve sql --iceberg`, with the downloaded jar.

    Args:
        indexed: true if Spark also loads Sieve.

    Raises:
        SystemExit: the jar is missing.
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
    """Makes an Iceberg table of Parquet files.

    Args:
        spark: the session.
        name: name of the new table: catalog, namespace, table.
        columns: the columns with their types, in parentheses.
        files: the folder of the files.
        folder: the folder of the table's own links to the files; the folder does not exist.
        more: clauses of CREATE TABLE.
    """
    shutil.copytree(files, folder, copy_function=os.link)
    spark.sql(f"CREATE TABLE {name} {columns} USING iceberg {more}")
    catalog, _, table = name.partition(".")
    source = f"`parquet`.`{folder}`"
    call = f"CALL {catalog}.system.add_files(table => '{table}', source_table => '{source}')"
    spark.sql(call).collect()
