"""The systems on Spark 4.1, all set up as their own documentation recommends.

In one system, Sieve indexes the plain files. In another system, Sieve indexes an Iceberg table of
the same files.

A system uses the table's original files if it can. Every other system gets a copy, rewritten to the
same number of files. If a system sorts or clusters rows, it uses the queried columns as keys. If a
system only adds data to the files, its copy has the original order of rows.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.delta_session import convert, rewrite
from bench.iceberg_session import FETCHED, add_files
from bench.peers.data import Dataset
from bench.session import SWITCH, start_session, with_settings
from sieve.client.spark_home import find_spark
from sql_ext.launcher.launch import delta_settings, shipped_settings

_JARS = ("delta-spark_4.1_2.13-*", "delta-storage-*", "iceberg-spark-runtime-4.1_2.13-*")
_OFF = {SWITCH: "false"}
_REFRESH = "REFRESH SIEVE INDEX ON {}"


@dataclass(frozen=True, slots=True)
class System:
    """A system that can skip data, with its set-up for the comparison.

    Attributes:
        name: the system's name in the printed tables.
        table: SQL name of the system's table, in which `{}` stands for the original table's name.
        make: makes the system's table in a folder to which no other system writes.
        as_they_are: whether the system uses the original files without a change.
        settings: the session's settings while queries of this system run.
        refresh: statement that runs after a write, in which `{}` stands for the table's name. Empty
            if no statement is necessary.
        version: a function that returns SQL text. After a table's name, the text selects the
            table's current rows, even if the table changes later. None for a system without changes
            of rows and without time travel.
    """

    name: str
    table: str
    make: Callable[[SparkSession, Dataset, Path], None]
    as_they_are: bool = False
    settings: Mapping[str, str] = field(default_factory=lambda: _OFF)
    refresh: str = ""
    version: Callable[[SparkSession, str], str] | None = None

    def of(self, table: str) -> str:
        """The SQL name of the system's table for an original table."""
        return self.table.format(table)


def start(folder: Path) -> SparkSession:
    """Starts a session of Spark 4.1 with Delta, Iceberg and Sieve."""
    shutil.rmtree(folder, ignore_errors=True)
    spark = find_spark(os.environ)
    found = [jar for name in _JARS for jar in FETCHED.glob(f"{name}.jar")]
    if len(found) != len(_JARS):
        raise SystemExit(f"{FETCHED} has no peers: run `make bench-peers`, which fetches them")
    jars = [shipped_settings(spark, os.environ)["spark.jars"], *map(str, found)]
    named = {"spark.jars": ",".join(jars), "spark.driver.extraClassPath": ":".join(jars)}
    both = delta_settings(spark, named)
    iceberg = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    settings = {
        **both,
        **named,
        "spark.sql.extensions": f"{both['spark.sql.extensions']},{iceberg}",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(folder / "ice"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.databricks.delta.snapshotPartitions": "2",
    }
    session = start_session(folder, settings)
    session.sparkContext.setLogLevel("ERROR")
    return session


def systems() -> Sequence[System]:
    """The systems: first Spark alone, then the other systems, and at the end Sieve."""
    return (
        System("Spark alone", "{}", declare, as_they_are=True),
        System("Parquet, sorted", "{}_sorted", _sort),
        System("Parquet, Bloom filters", "{}_bloom", _add_blooms),
        System("Delta", "{}_delta", _convert, as_they_are=True, version=_delta_version),
        System("Delta, Z-order", "{}_zorder", _zorder, version=_delta_version),
        System("Delta, liquid", "{}_liquid", _cluster, version=_delta_version),
        System("Iceberg", "ice.db.{}", _add_files, as_they_are=True, version=_snapshot),
        System("Iceberg, Bloom filters", "ice.db.{}_bloom", _add_iceberg_blooms, version=_snapshot),
        System("Iceberg, sorted", "ice.db.{}_sorted", _sort_iceberg, version=_snapshot),
        System("Iceberg, Z-order", "ice.db.{}_zorder", _zorder_iceberg, version=_snapshot),
        System(
            "Sieve on Iceberg", "ice.db.{}", _index_iceberg, as_they_are=True,
            settings={SWITCH: "true"}, refresh=_REFRESH, version=_snapshot,
        ),
        System(
            "Sieve", "{}", _index, as_they_are=True, settings={SWITCH: "true"},
            refresh=_REFRESH,
        ),
    )  # fmt: skip


def _delta_version(spark: SparkSession, table: str) -> str:
    newest = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").collect()[0]
    return f"VERSION AS OF {newest['version']}"


def _snapshot(spark: SparkSession, table: str) -> str:
    newest = f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at DESC LIMIT 1"
    return f"VERSION AS OF {spark.sql(newest).collect()[0][0]}"


# -- each system's table --------------------------------------------------------------------------


def declare(spark: SparkSession, table: Dataset, folder: Path) -> None:
    """Creates a plain table of the original files."""
    shutil.copytree(table.folder, folder, copy_function=os.link)
    spark.sql(f"CREATE TABLE {table.name} USING parquet LOCATION '{folder.as_uri()}'")


def _sort(spark: SparkSession, table: Dataset, folder: Path) -> None:
    key = table.keys[0]
    rows = spark.table(table.name).repartitionByRange(len(table.files), key)
    _save(rows.sortWithinPartitions(key), f"{table.name}_sorted", folder, {})


def _add_blooms(spark: SparkSession, table: Dataset, folder: Path) -> None:
    options = {}
    each = spark.table(table.name).count() // len(table.files)
    for key in table.keys:
        options[f"parquet.bloom.filter.enabled#{key}"] = "true"
        options[f"parquet.bloom.filter.expected.ndv#{key}"] = str(each)
    with with_settings(spark, file_a_task(table)):
        _save(spark.table(table.name), f"{table.name}_bloom", folder, options)


def _save(rows: DataFrame, name: str, folder: Path, options: Mapping[str, str]) -> None:
    writer = rows.write.format("parquet").options(**options)
    writer.option("path", folder.as_uri()).saveAsTable(name)


def file_a_task(table: Dataset) -> Mapping[str, str]:
    """Settings that make each task copy one file; a copy then has as many files as the original."""
    most = str(max(file.stat().st_size for file in table.files) + 1)
    return {
        "spark.sql.files.maxPartitionBytes": most,
        "spark.sql.files.openCostInBytes": most,
        "spark.sql.files.minPartitionNum": "1",
    }


def _convert(spark: SparkSession, table: Dataset, folder: Path) -> None:
    convert(spark, f"{table.name}_delta", table.folder, folder)


def _zorder(spark: SparkSession, table: Dataset, _folder: Path) -> None:
    name, keys = f"{table.name}_zorder", ", ".join(table.keys)
    rewrite(spark, f"{table.name}_delta", name, f"OPTIMIZE {name} ZORDER BY ({keys})")


def _cluster(spark: SparkSession, table: Dataset, _folder: Path) -> None:
    name, keys = f"{table.name}_liquid", ", ".join(table.keys)
    by = f"ALTER TABLE {name} CLUSTER BY ({keys})"
    rewrite(spark, f"{table.name}_delta", name, by, f"OPTIMIZE {name} FULL")


def _add_files(spark: SparkSession, table: Dataset, folder: Path) -> None:
    add_to_iceberg(spark, table, f"ice.db.{table.name}", folder)


def add_to_iceberg(spark: SparkSession, table: Dataset, name: str, folder: Path) -> None:
    """Creates an Iceberg table of the original files."""
    add_files(spark, name, f"({columns_of(spark, table.name)})", table.folder, folder)


def columns_of(spark: SparkSession, table: str) -> str:
    """Names and types of a table's columns, in the syntax of CREATE TABLE."""
    return ", ".join(f"{name} {kind}" for name, kind in spark.table(table).dtypes)


def _add_iceberg_blooms(spark: SparkSession, table: Dataset, _folder: Path) -> None:
    properties = {f"write.parquet.bloom-filter-enabled.column.{key}": "true" for key in table.keys}
    # A Bloom filter has a megabyte by default, too much for these small files. So each filter gets
    # 10 bits per key.
    each = spark.table(table.name).count() // len(table.files)
    properties["write.parquet.bloom-filter-max-bytes"] = str(each * 10 // 8)
    _copy_to_iceberg(spark, table, table.name, f"{table.name}_bloom", properties)


def _sort_iceberg(spark: SparkSession, table: Dataset, _folder: Path) -> None:
    _copy_to_iceberg(spark, table, f"{table.name}_sorted", f"{table.name}_sorted", {})


def _copy_to_iceberg(
    spark: SparkSession, table: Dataset, source: str, copy: str, properties: Mapping[str, str]
) -> None:
    """Copies a plain table to an Iceberg table, file by file."""
    own = {"write.distribution-mode": "none", "write.spark.fanout.enabled": "false", **properties}
    told = ", ".join(f"'{key}' = '{value}'" for key, value in own.items())
    with with_settings(spark, file_a_task(table)):
        spark.sql(
            f"CREATE TABLE ice.db.{copy} USING iceberg TBLPROPERTIES ({told}) "
            f"AS SELECT * FROM {source}"
        )


def _zorder_iceberg(spark: SparkSession, table: Dataset, _folder: Path) -> None:
    name = f"{table.name}_zorder"
    _copy_to_iceberg(spark, table, table.name, name, {})
    options = {
        "rewrite-all": "true",
        "target-file-size-bytes": str(table.nbytes // len(table.files)),
    }
    told = ", ".join(f"'{key}', '{value}'" for key, value in options.items())
    spark.sql(
        f"CALL ice.system.rewrite_data_files(table => 'db.{name}', strategy => 'sort', "
        f"sort_order => 'zorder({', '.join(table.keys)})', options => map({told}))"
    ).collect()


def _index(spark: SparkSession, table: Dataset, _folder: Path) -> None:
    spark.sql(f"CREATE SIEVE INDEX ON {table.name} ({', '.join(table.keys)})").collect()


def _index_iceberg(spark: SparkSession, table: Dataset, _folder: Path) -> None:
    spark.sql(f"CREATE SIEVE INDEX ON ice.db.{table.name} ({', '.join(table.keys)})").collect()
