"""Table resolution: resolves the table name of a statement in the user's Spark session."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql import SparkSession

from sieve.errors import InvalidInputError
from sieve.storage.java_errors import conditions, first_line
from sieve.tables import hudi
from sieve.tables.column import Column
from sieve.tables.formats import INDEXED, refuse_kind
from sieve.tables.jvm_failures import FAILURES
from sieve.tables.names import quoted
from sieve.tables.registered_info import registered_info_from
from sieve.tables.registered_table import RegisteredTable
from sieve.tables.table import CatalogTable

_UNKNOWN: Final = frozenset({"TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "NO_SUCH_DATABASE"})
"""Spark's error conditions for a missing table or database."""


def open_table(
    driver: Any, spark: SparkSession, session: Any, parts: Sequence[str]
) -> CatalogTable:
    """Resolves a table that Sieve can index.

    Args:
        driver: the entry point of the gateway.
        spark: PySpark's view of ``session``.
        session: the session that resolves and reads the table, a py4j object.
        parts: the parts of the name as typed.

    Raises:
        InvalidInputError: Spark finds no table of that name; the error suggests similar names.
        UnsupportedError: Sieve does not support the kind of table; the message contains a remedy.
        Py4JError, PySparkException: the user is not allowed to see the table.
    """
    _forget_listing(session, parts)
    try:
        access = driver.tables().resolve(session, list(parts))
    except FAILURES as error:
        _refuse_unknown(error, driver, session, parts)
        raise
    name = ".".join(parts)
    if (kind := str(access.kind())) != "files":
        raise refuse_kind(name, kind)
    table = CatalogTable(access, spark)
    if table.info.format_name not in INDEXED:
        raise refuse_kind(name, f"format {table.info.format_name}")
    if table.info.format_name == "hudi":
        why = hudi.refusal(table.info.fingerprint_parts)
        if why is not None:
            raise refuse_kind(name, why)
    return table


def open_registered(
    driver: Any, spark: SparkSession, session: Any, parts: Sequence[str]
) -> RegisteredTable:
    """Opens a table through its properties in the catalog, without listing its files.

    Args:
        driver: the entry point of the gateway.
        spark: PySpark's view of ``session``.
        session: the session that resolves the table, a py4j object.
        parts: the parts of the name as typed.

    Raises:
        InvalidInputError, UnsupportedError, Py4JError, PySparkException: as in `open_table`.
    """
    try:
        access = driver.tables().registered(session, list(parts))
    except FAILURES as error:
        _refuse_unknown(error, driver, session, parts)
        raise
    if access is None:
        # The name denotes a view, or a table of another catalog.
        return open_table(driver, spark, session, parts)
    return RegisteredTable(access, registered_info_from(json.loads(access.registration())))


def _forget_listing(session: Any, parts: Sequence[str]) -> None:
    """Invalidates the session's cached listing of the table, so a build sees the current files."""
    if len(parts) == 3 and parts[0] == "spark_catalog":
        parts = parts[1:]
    if len(parts) > 2:
        return
    state = session.sessionState()
    catalog, name = state.catalog(), state.sqlParser().parseTableIdentifier(quoted(parts))
    if not catalog.isTempView(name) and catalog.tableExists(name):
        catalog.invalidateCachedTable(name)


def plan_column(spark: SparkSession, parts: Sequence[str], column: Column) -> None:
    """Plans a query of a column. Raises an error if the user lacks a permission."""
    frame = spark.table(quoted(parts)).selectExpr(column.sql)
    frame._jdf.queryExecution().executedPlan()  # noqa: SLF001 - no other door


def _refuse_unknown(error: Exception, driver: Any, session: Any, parts: Sequence[str]) -> None:
    """Raises InvalidInputError if Spark's error means that the table or database does not exist."""
    found = conditions(error)
    database = parts[-2] if len(parts) > 1 else str(session.catalog().currentDatabase())
    if not found & _UNKNOWN:
        return
    names = json.loads(driver.tables().names(session, database))
    if parts[-1].lower() in (name.lower() for name in names):
        raise InvalidInputError(
            "SIEVE_UNKNOWN_TABLE",
            f"{database}.{parts[-1]} is a view, and a table that it reads does not exist: "
            f"{first_line(error)}",
        ) from error
    near = difflib.get_close_matches(parts[-1], names, n=3)
    hint = f"did you mean {', '.join(near)}?" if near else "check its name and database"
    raise InvalidInputError(
        "SIEVE_UNKNOWN_TABLE", f"there is no table {database}.{parts[-1]}; {hint}"
    ) from error
