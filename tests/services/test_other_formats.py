"""Sieve works together with Delta, Iceberg and Avro, and indexes Delta and Iceberg tables."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "fault"))

from driver import Driver, DriverError, driver

from sieve.client.spark_conf import EXTENSIONS
from sieve.client.spark_home import find_spark, shim_jar
from tests.services.jars import jar

pytestmark = pytest.mark.services

JARS = (
    *("delta-spark_4.1_2.13", "delta-storage", "iceberg-spark-runtime-4.1_2.13"),
    "spark-avro_2.13",
)
EXTENSION_LIST = (
    "io.delta.sql.DeltaSparkSessionExtension",
    EXTENSIONS,
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
)
DELTA = "is read by its path alone; save it as a table first .*LOCATION"
ROWS = "SELECT /*+ REPARTITION_BY_RANGE(4, id) */ id FROM range(100)"


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """A driver with Sieve and all formats, and one table of each format with the same rows."""
    folder = tmp_path_factory.mktemp("mixed")
    conf = {
        "spark.jars": ",".join([str(shim_jar(find_spark(os.environ))), *map(str, map(jar, JARS))]),
        "spark.sql.extensions": ",".join(EXTENSION_LIST),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(folder / "ice"),
        "spark.sieve.prune.timeout": "30s",
    }
    with driver(folder / "driver", **conf) as it:
        it.sql(f"CREATE TABLE p USING parquet AS {ROWS}")
        it.sql(f"CREATE TABLE d USING delta AS {ROWS}")
        it.sql(f"CREATE TABLE a USING avro AS {ROWS}")
        it.sql(f"CREATE TABLE ice.db.t USING iceberg AS {ROWS}")
        yield it


def test_create_is_refused(mixed: Driver) -> None:
    """CREATE's error names the kind of table and a remedy. Queries of the table still work."""
    words = "a is stored as avro; Sieve indexes Parquet.* copy it into one .CREATE TABLE"
    for statement in ("CREATE SIEVE INDEX ON a (id)", "SHOW SIEVE INDEXES ON a"):
        with pytest.raises(DriverError, match=rf"(?s)SIEVE_UNSUPPORTED_TABLE.*{words}"):
            mixed.sql(statement)
    assert mixed.sql("SELECT count(*) FROM a WHERE id > 89") == [[10]]
    assert mixed.sql("SHOW SIEVE INDEXES") == []


def test_a_folder_of_delta_is_refused(mixed: Driver) -> None:
    """CREATE refuses the folder of a Delta table, because a folder has no table properties."""
    facts = dict(row[:2] for row in mixed.sql("DESCRIBE EXTENDED d"))
    folder = facts["Location"].removeprefix("file:")
    with pytest.raises(DriverError, match=DELTA):
        mixed.sql(f"CREATE SIEVE INDEX ON delta.`{folder}` (id)")


def test_another_catalog_shows_no_indexes(mixed: Driver) -> None:
    """Sieve distinguishes databases of the same name in another catalog and the session catalog."""
    mixed.sql("CREATE DATABASE db")
    mixed.sql(f"CREATE TABLE db.p USING parquet AS {ROWS}")
    mixed.sql("CREATE SIEVE INDEX ON db.p (id)")
    assert len(mixed.sql("SHOW SIEVE INDEXES IN spark_catalog.db")) == 1
    assert mixed.sql("SHOW SIEVE INDEXES IN ice.db") == []
    mixed.sql("USE ice.db")
    try:
        assert mixed.sql("SHOW SIEVE INDEXES") == []
    finally:
        mixed.sql("USE spark_catalog.default")
    mixed.sql("DROP SIEVE INDEX ON db.p (id)")


def test_parquet_table_is_indexed_next_to_other_catalogs(mixed: Driver) -> None:
    """Next to other catalogs, a Parquet table can have an index, and joins with the table work."""
    mixed.sql("CREATE SIEVE INDEX ON p (id) OPTIONS (error = 1)")
    assert mixed.files("SELECT * FROM p WHERE id = 7") == 1
    query = "SELECT id FROM p JOIN d USING (id) JOIN a USING (id) JOIN ice.db.t USING (id)"
    assert mixed.sql(f"{query} WHERE id = 7") == [[7]]
    mixed.sql("DROP SIEVE INDEX ON p (id)")


def test_delta_tables_are_indexed(mixed: Driver) -> None:
    """Delta tables can be indexed if Delta's extension comes first, and Iceberg's comes last."""
    mixed.sql("CREATE SIEVE INDEX ON d (id) OPTIONS (error = 1)")
    assert mixed.files("SELECT * FROM d WHERE id IN (7, 93)") == 2
    mixed.sql("DROP SIEVE INDEX ON d (id)")


def test_iceberg_tables_are_indexed(mixed: Driver) -> None:
    """Tables of an Iceberg catalog can be indexed while Delta provides the session catalog."""
    mixed.sql("CREATE SIEVE INDEX ON ice.db.t (id) OPTIONS (error = 1)")
    assert [row[:3] for row in mixed.sql("SHOW SIEVE INDEXES IN ice.db")] == [
        ["ice.db", "t", "id_sieve"]
    ]
    (scan,) = mixed.sql("EXPLAIN SIEVE SELECT * FROM ice.db.t WHERE id = 7")
    assert scan[2] == "id_sieve@1"
    assert mixed.sql("SELECT * FROM ice.db.t WHERE id = 7") == [[7]]
    mixed.sql("DROP SIEVE INDEX ON ice.db.t (id)")
