"""Sieve: a data-skipping index for Spark SQL tables.

``import sieve`` provides functions for programs and notebooks (`sieve.client`). `configure` loads
Sieve into a Spark session, and each other function runs a statement.

    import sieve
    from pyspark.sql import SparkSession

    spark = sieve.configure(SparkSession.builder).enableHiveSupport().getOrCreate()
    sieve.create(spark, "orders", "id")
    sieve.explain(spark, "SELECT * FROM orders WHERE id = 123457")
"""

from sieve.client.configure import configure
from sieve.client.statements import (
    advise,
    check,
    create,
    describe,
    drop,
    estimate,
    explain,
    indexes,
    inspect,
    refresh,
)

__version__ = "0.1.0"

__all__ = [
    "advise",
    "check",
    "configure",
    "create",
    "describe",
    "drop",
    "estimate",
    "explain",
    "indexes",
    "inspect",
    "refresh",
]
