"""The systems on Spark 3.5: Spark alone, Hudi with its own ways to skip, and Sieve on Hudi."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from bench.hudi_session import QUIET, fill, instants, settings
from bench.peers.data import Dataset
from bench.peers.systems import System, columns_of, declare, file_a_task
from bench.session import SWITCH, with_settings

_SKIPPING: Final = "hoodie.enable.data.skipping"
_OFF: Final = {SWITCH: "false", _SKIPPING: "false"}
_OWN: Final = {SWITCH: "false", _SKIPPING: "true"}
_STATISTICS: Final = QUIET | {"hoodie.metadata.index.column.stats.enable": "true"}
_KEYED: Final = _STATISTICS | {"hoodie.metadata.record.index.enable": "true"}
# Hudi's CREATE INDEX supports concurrent writers. So CREATE INDEX requires a lock provider, even
# with a single writer.
_LOCK: Final = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
_RECORD_KEYS: Final = {
    "lineitem": "l_orderkey,l_linenumber",
    "log": "id",
    "flights": "time_hour,carrier,flight,origin",
    "adversarial": "n",
}


def hudi_systems() -> Sequence[System]:
    """The compared systems, from Spark alone to Sieve on a Hudi table."""
    return (
        System("Spark alone", "{}", declare, as_they_are=True),
        System(
            "Hudi, no index", "{}_hudi", partial(_fill, "hudi", QUIET), settings=_OFF,
            version=_instant,
        ),
        System(
            "Hudi, column statistics", "{}_stats", partial(_fill, "stats", _STATISTICS),
            settings=_OWN, version=_instant,
        ),
        System(
            "Hudi, record and secondary index", "{}_keyed", _fill_keyed, settings=_OWN,
            version=_instant,
        ),
        System(
            "Sieve on Hudi", "{}_hudi", _index, settings={SWITCH: "true", _SKIPPING: "false"},
            refresh="REFRESH SIEVE INDEX ON {}", version=_instant,
        ),
    )  # fmt: skip


def _instant(spark: SparkSession, table: str) -> str:
    return f"TIMESTAMP AS OF '{instants(spark, table)[-1]}'"


def _fill(
    suffix: str, properties: Mapping[str, str], spark: SparkSession, table: Dataset, folder: Path
) -> None:
    name = f"{table.name}_{suffix}"
    own = {"type": "cow", "primaryKey": _RECORD_KEYS[table.name]} | dict(properties)
    told = ", ".join(f"'{key}' = '{value}'" for key, value in own.items())
    spark.sql(
        f"CREATE TABLE {name} ({columns_of(spark, table.name)}) USING hudi TBLPROPERTIES ({told}) "
        f"LOCATION '{folder.as_uri()}'"
    )
    with with_settings(spark, file_a_task(table)):
        fill(spark, name, f"SELECT * FROM {table.name}")


def _fill_keyed(spark: SparkSession, table: Dataset, folder: Path) -> None:
    _fill("keyed", _KEYED, spark, table, folder)
    with settings(spark, hoodie__write__lock__provider=_LOCK):
        for key in table.keys[:2]:
            if key != _RECORD_KEYS[table.name]:
                spark.sql(f"CREATE INDEX by_{key} ON {table.name}_keyed ({key})")


def _index(spark: SparkSession, table: Dataset, _folder: Path) -> None:
    spark.sql(f"CREATE SIEVE INDEX ON {table.name}_hudi ({', '.join(table.keys)})").collect()
