"""Locations of data files that Hadoop's paths do not distinguish, or cannot express."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from iceberg_tables import AUDITED, create, namespace
from spark_session import Lab

pytestmark = pytest.mark.iceberg

MAPPING = '[{"field-id": 1, "names": ["id"]}]'


@pytest.fixture(autouse=True)
def in_memory(lab: Lab) -> Iterator[None]:
    """Adds a catalog whose files are in memory, where each location is a name without meaning."""
    name = "spark.sql.catalog.memory"
    lab.spark.conf.set(name, "org.apache.iceberg.spark.SparkCatalog")
    lab.spark.conf.set(f"{name}.type", "hive")
    lab.spark.conf.set(f"{name}.io-impl", "org.apache.iceberg.inmemory.InMemoryFileIO")
    with namespace(lab, "memory.names"), lab.settings(AUDITED):
        create(lab, columns="id BIGINT")
        yield


def append(lab: Lab, location: str, folder: Path, first: int) -> None:
    """Adds a file with ten ids from `first` on to the table, at a location in memory."""
    frame = lab.spark.range(first, first + 10, 1, 1)
    frame.write.option("compression", "none").parquet(str(folder / str(first)))
    (file,) = (folder / str(first)).glob("*.parquet")
    jvm = lab.spark._jvm
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
        lab.spark._jsparkSession, "memory.names.t"
    )
    table.updateProperties().set("schema.name-mapping.default", MAPPING).commit()
    stream = table.io().newOutputFile(location).createOrOverwrite()
    stream.write(file.read_bytes())
    stream.close()
    data_file = jvm.org.apache.iceberg.DataFiles.builder(table.spec()).withPath(location)
    data_file = data_file.withFileSizeInBytes(file.stat().st_size).withRecordCount(10)
    table.newAppend().appendFile(data_file.withFormat("parquet").build()).commit()
    lab.sql("REFRESH TABLE memory.names.t")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("mem:/x/b", "mem:/x/y/../b"),
        ("mem:/x/b", "mem:/x/./b"),
        ("mem:/x/b", "mem:/x/b/"),
        ("mem:/x/b", "mem:/x//b"),
        ("mem:/x/b", "mem:///x/b"),
        ("file:/x/b", "/x/b"),
    ],
)
def test_two_locations_with_the_same_path(lab: Lab, tmp_path: Path, one: str, other: str) -> None:
    """Of two files of the same size and the same path, only one has the plain name of the path.

    Queries always read the other file.
    """
    append(lab, one, tmp_path, 1000)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    lab.check("SELECT id FROM t WHERE id = 1013", exactly=0)
    append(lab, other, tmp_path, 1010)
    assert lab.check("SELECT id FROM t WHERE id = 1013", exactly=1).rows == {"(1013,)": 1}
    assert lab.check("SELECT id FROM t WHERE id = 1003", exactly=2).rows == {"(1003,)": 1}
    lab.sql("REFRESH SIEVE INDEX ON t")
    assert lab.check("SELECT id FROM t WHERE id = 1013", at_most=2).rows == {"(1013,)": 1}
    assert lab.check("SELECT id FROM t WHERE id = 1003", at_most=2).rows == {"(1003,)": 1}


@pytest.mark.parametrize("odd", ["mem:x", "a:b/c", "1s3:/x"])
def test_location_that_is_no_path(lab: Lab, tmp_path: Path, odd: str) -> None:
    """A file whose location is no path of Hadoop is always read, and fails no statement."""
    append(lab, odd, tmp_path, 1000)
    append(lab, "mem:/x/b", tmp_path, 1010)
    lab.sql("CREATE SIEVE INDEX ON t (id)")
    assert lab.check("SELECT id FROM t WHERE id = 1003", exactly=1).rows == {"(1003,)": 1}
    assert lab.check("SELECT id FROM t WHERE id = 1013", exactly=2).rows == {"(1013,)": 1}
    lab.sql("REFRESH SIEVE INDEX ON t")
    lab.check("SELECT id FROM t WHERE id = 7", exactly=1)
