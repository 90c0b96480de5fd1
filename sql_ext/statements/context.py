"""Statement context: the session, settings, stores and callbacks with which a statement runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark import SparkContext
from pyspark.sql import SparkSession

from sieve.environment import Environment
from sieve.errors import InvalidInputError, UnsupportedError
from sieve.index_key import KINDS
from sieve.metadata.index_options import IndexOptions, parse_options
from sieve.metadata.records import SESSION
from sieve.operations.registered_index import RegisteredIndex, list_indexes
from sieve.reader.lru_cache import FileCache
from sieve.tables.column import Column
from sieve.tables.registered_table import RegisteredTable
from sieve.tables.resolve import open_registered, open_table, plan_column
from sieve.tables.table import CatalogTable
from sieve.workload.suggest import ColumnTest, TableColumn
from sql_ext.driver import attach, executor_setup
from sql_ext.driver.settings import Settings
from sql_ext.statements import commands

Row = Sequence[Any]

_LISTED_BY_A_JOB = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_BUILD_CONF = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "131072",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.adaptive.enabled": "false",
}
_MOST = 2**31 - 1


class Background(Protocol):
    """The automatic refreshes of tables, which run in the background."""

    def state(self, database: str, table: str) -> str:
        """The table's state: ``refreshing``, ``failed: why``, ``stale: why``, or else ""."""
        ...

    def clear(self, database: str, table: str) -> None:
        """Removes the error of a table's last refresh, after a successful refresh."""
        ...


class Laps:
    """A stopwatch, which starts when the statement starts."""

    def __init__(self) -> None:
        self._from = time.monotonic()

    def lap(self) -> float:
        """Seconds since the previous call of this method, or since the statement's start."""
        before, self._from = self._from, time.monotonic()
        return self._from - before


@dataclass(frozen=True, slots=True)
class StatementContext:
    """The context in which one statement runs.

    Attributes:
        driver: entry point of the driver's gateway, a py4j object.
        spark_context: the driver's SparkContext, as a PySpark object.
        session: the user's session, as a py4j object.
        environment: stores, checks and callbacks that operations on indexes use.
        settings: Sieve's settings in the user's session.
        send_code: at its first call, sends Sieve's code to the executors.
        invalidate: makes scans reload the index in a given folder.
        background: automatic refreshes of tables.
        cache: the front end's cache of index files.
        tests: results of ADVISE's tests of columns. The page in Spark's web UI shows these results.
        watch: measures the time that the statement spends on each index.
    """

    driver: Any
    spark_context: SparkContext
    session: Any
    environment: Environment
    settings: Settings
    send_code: Callable[[], None]
    invalidate: Callable[[str], None]
    background: Background
    cache: FileCache
    tests: dict[TableColumn, ColumnTest] = field(default_factory=dict)
    watch: Laps = field(default_factory=Laps)

    def table(self, name: commands.TableName, *, jobs: bool = True) -> CatalogTable:
        """The table that a statement names, as a copy of the user's session sees it.

        The copy has additional settings for builds. The user's own session stays unchanged.

        Args:
            name: the table's name as typed.
            jobs: whether the statement may run Spark jobs. Builds need jobs. Spark's listing of a
                table with many partitions also needs a job.
        """
        return open_table(self.driver, *self._sessions(jobs=jobs), name.parts)

    def registered(self, name: commands.TableName) -> RegisteredTable:
        """The table as the catalog describes it. The table's files may be missing or unreadable."""
        return open_registered(self.driver, *self._sessions(jobs=False), name.parts)

    def _sessions(self, *, jobs: bool) -> tuple[SparkSession, Any]:
        """A copy of the user's session with settings for builds, as a PySpark and a py4j object."""
        session = self.session.cloneSession()
        # In a new copy of a session, the current catalog is always the session catalog. So this
        # code sets the catalog and database of the user's session.
        if (holder := self.session.catalog().currentCatalog()) != SESSION:
            session.catalog().setCurrentCatalog(holder)
            session.catalog().setCurrentDatabase(self.session.catalog().currentDatabase())
        # A build shuffles only a few rows per task. So a build needs at most one shuffle partition
        # per slot.
        slots = session.sparkContext().defaultParallelism()
        conf = {**_BUILD_CONF, "spark.sql.shuffle.partitions": str(slots)}
        if jobs:
            self.send_code()
        else:
            conf[_LISTED_BY_A_JOB] = str(_MOST)
        for key, value in conf.items():
            session.conf().set(key, value)
        return attach.wrap_session(self.spark_context, session), session

    def plan_column(self, table: Sequence[str], column: Column) -> None:
        """Plans a query of a column with the user's rights.

        Spark raises an error if the user may not query the column.
        """
        plan_column(attach.wrap_session(self.spark_context, self.session), table, column)

    def check_executors(self, table: CatalogTable, types: Sequence[str]) -> None:
        """Raises UnavailableError if executors cannot build indexes on columns of these types."""
        self.environment.describe_job("asking the executors")
        executor_setup.check_executors(self.spark_context)
        if any(
            executor_setup.zone_matters(table.info.format_name, type_name) for type_name in types
        ):
            executor_setup.check_zones(
                self.spark_context, attach.wrap_session(self.spark_context, self.session)
            )

    def indexes(self, table: RegisteredTable) -> dict[str, RegisteredIndex]:
        """The indexes of a table, by name."""
        info = table.info
        return list_indexes(info.registrations, info.malformed, info.identity, self.environment)


def kind_option(
    raw: Mapping[str, commands.OptionValue],
) -> tuple[str | None, dict[str, commands.OptionValue]]:
    """Splits a statement's options into the value of ``kind`` and all other options.

    Raises:
        InvalidInputError: the value of ``kind`` is unknown.
    """
    kind = raw.get("kind")
    if kind is not None and str(kind).lower() not in KINDS:
        raise InvalidInputError(
            "SIEVE_INVALID_OPTION",
            f"kind {str(kind)!r} is unknown; it is {' or '.join(sorted(KINDS))}, or left out",
        )
    others = {key: value for key, value in raw.items() if key != "kind"}
    return None if kind is None else str(kind).lower(), others


def options_of(raw: Mapping[str, commands.OptionValue], base: IndexOptions) -> IndexOptions:
    """Parses a statement's options. Options that the statement omits keep their values in ``base``.

    Raises InvalidInputError if an option or its value is invalid.
    """
    return parse_options({key: str(value) for key, value in raw.items()}, base)


def database_of(namespace: commands.Namespace | None, context: StatementContext) -> str:
    """The database that ``namespace`` names, in the form of `TableIdentity.namespace`."""
    catalog = context.session.catalog()
    parts = (str(catalog.currentDatabase()),) if namespace is None else namespace.parts
    holder = str(catalog.currentCatalog()) if len(parts) == 1 else parts[0]
    if holder.lower() == SESSION:
        return parts[-1]
    if not context.driver.tables().ownsCatalog(context.session, holder):
        raise UnsupportedError(
            "SIEVE_UNSUPPORTED_CATALOG",
            f"{holder} is neither the session catalog nor a catalog of Iceberg, whose tables alone "
            "have indexes; name one of their databases: SHOW SIEVE INDEXES IN "
            f"{SESSION}.<database>",
        )
    return f"{holder}.{parts[-1]}"
