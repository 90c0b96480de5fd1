"""Starts a Spark session with Hudi and Sieve, and writes Hudi tables for benchmarks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from bench.session import start_session
from sieve.client.spark_home import find_spark
from sql_ext.launcher.launch import hudi_settings, shipped_settings

HOME = Path(__file__).resolve().parent.parent
KINDS = {"cow": "copy-on-write", "mor": "merge-on-read"}
QUIET = {
    "hoodie.compact.inline": "false",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.index.partition.stats.enable": "false",
}
"""Table properties that turn off Hudi's statistics and its automatic compaction."""


def start_hudi_session(folder: Path) -> SparkSession:
    """Starts a session with the settings of `sieve sql --hudi`, and the downloaded Hudi bundle."""
    spark = find_spark(os.environ)
    bundles = sorted((HOME / "build" / "hudi").glob(f"hudi-spark{spark.line}-bundle_*.jar"))
    if not bundles:
        raise SystemExit(
            f"build/hudi has no bundle of Hudi for Spark {spark.line}: run `make bench-hudi` or "
            "`make demo-hudi`, which fetch it"
        )
    shipped = shipped_settings(spark, os.environ)
    jars = [shipped["spark.jars"], str(bundles[-1])]
    named = {"spark.jars": ",".join(jars), "spark.driver.extraClassPath": ":".join(jars)}
    quiet = {"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "4"}
    session = start_session(folder, hudi_settings(spark, named) | named | quiet)
    session.sparkContext.setLogLevel("ERROR")
    return session


@contextmanager
def passing_session(folder: Path) -> Iterator[SparkSession]:
    """Within the block, runs a Hudi session in a new folder. Afterwards deletes the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    session = start_hudi_session(folder)
    try:
        yield session
    finally:
        session.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def settings(spark: SparkSession, **values: str) -> Iterator[None]:
    """Changes settings within the block. In a setting's name, two underscores stand for a dot."""
    keys = {key.replace("__", "."): value for key, value in values.items()}
    before = {key: spark.conf.get(key, None) for key in keys}
    for key, value in keys.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def fill(spark: SparkSession, table: str, query: str) -> None:
    """Inserts a query's rows in one commit, with one slice per partition of the query's result."""
    with settings(
        spark,
        hoodie__spark__sql__insert__into__operation="bulk_insert",
        hoodie__bulkinsert__sort__mode="NONE",
    ):
        spark.sql(f"INSERT INTO {table} {query}")


def compact(spark: SparkSession, table: str) -> None:
    """Compacts all file slices that have log files."""
    with settings(spark, hoodie__compact__inline__max__delta__commits="1"):
        spark.sql(f"CALL run_compaction(op => 'schedule', table => '{table}')").collect()
    spark.sql(f"CALL run_compaction(op => 'run', table => '{table}')").collect()
    # Hudi's compaction does not invalidate the session's cached list of slices. So this statement
    # makes the session list the new slices.
    spark.sql(f"REFRESH TABLE {table}")


def folder_of(spark: SparkSession, table: str) -> Path:
    """Folder that contains a table's files."""
    facts = {row[0]: row[1] for row in spark.sql(f"DESCRIBE EXTENDED {table}").collect()}
    return Path(facts["Location"].removeprefix("file:"))


def instants(spark: SparkSession, table: str) -> list[str]:
    """Instants of a table's completed commits, in order, as text for TIMESTAMP AS OF."""
    timeline = folder_of(spark, table) / ".hoodie" / "timeline"
    kinds = (".commit", ".deltacommit", ".replacecommit")
    done = (path.stem for path in timeline.iterdir() if path.name.endswith(kinds))
    return sorted(stem.split("_")[0] for stem in done if "_" in stem)
