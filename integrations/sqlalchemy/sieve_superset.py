"""Superset's support for ``spark+sieve://host:10000/database``: Spark's SQL, Sieve's indexes.

Superset's own support for ``hive`` databases does not fit Spark. This support shows the first index
of a table as the table's partitions, reads the names of views from the wrong column, and truncates
times with functions that return strings.
"""

from __future__ import annotations

from typing import Any

from superset.db_engine_specs.spark import SparkEngineSpec


class SieveEngineSpec(SparkEngineSpec):  # type: ignore[misc]
    """Superset's support for Spark, where indexes are not reported as partitions."""

    engine = "spark"
    engine_name = "Apache Spark SQL with Sieve"
    drivers = {"sieve": "Spark's Thrift server"}  # noqa: RUF012 - as Superset declares it
    default_driver = "sieve"
    sqlalchemy_uri_placeholder = "spark+sieve://host:10000/database"

    @classmethod
    def get_view_names(cls, database: Any, inspector: Any, schema: str | None) -> set[str]:  # noqa: ARG003
        """The permanent views of a database, as the dialect lists them."""
        return set(inspector.get_view_names(schema))

    @classmethod
    def get_extra_table_metadata(cls, database: Any, table: Any) -> dict[str, Any]:  # noqa: ARG003
        """Returns no metadata, so Superset shows no partitions."""
        return {}

    @classmethod
    def where_latest_partition(cls, *_: Any, **__: Any) -> None:
        """Adds no condition, so a preview reads the whole table."""
        return
