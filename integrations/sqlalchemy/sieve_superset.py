"""An engine spec for Superset and URLs such as ``spark+sieve://host:10000/database``.

Superset's own engine spec for ``hive`` does not fit Spark. It shows a table's first index as the
table's partitions, reads the names of views from the wrong column, and truncates times with
functions that return strings.
"""

from __future__ import annotations

from typing import Any

from superset.db_engine_specs.spark import SparkEngineSpec


class SieveEngineSpec(SparkEngineSpec):  # type: ignore[misc]
    """Superset's engine spec for Spark, changed so that it does not show indexes as partitions."""

    engine = "spark"
    engine_name = "Apache Spark SQL with Sieve"
    drivers = {"sieve": "Spark's Thrift server"}  # noqa: RUF012 - as Superset declares it
    default_driver = "sieve"
    sqlalchemy_uri_placeholder = "spark+sieve://host:10000/database"

    @classmethod
    def get_view_names(cls, database: Any, inspector: Any, schema: str | None) -> set[str]:  # noqa: ARG003
        """Names of a database's permanent views, as the dialect returns them."""
        return set(inspector.get_view_names(schema))

    @classmethod
    def get_extra_table_metadata(cls, database: Any, table: Any) -> dict[str, Any]:  # noqa: ARG003
        """Returns no metadata, so that Superset shows no partitions of a table."""
        return {}

    @classmethod
    def where_latest_partition(cls, *_: Any, **__: Any) -> None:
        """Adds no condition on partitions, so that a preview shows rows of the whole table."""
        return
