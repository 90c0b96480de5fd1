"""Tests what the tasks of a build leave behind in a Python worker, and how large batches are."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Iterator
from zipimport import zipimporter

import pyarrow as pa
import pytest
from spark_session import Lab

from sieve.indexing.arrow_jobs import map_batches
from sieve.tables.column import Column
from sieve.tables.table import CatalogTable

SCHEMA = pa.schema([("rereading", pa.int32()), ("frozen", pa.int32()), ("module", pa.string())])


@pytest.mark.long
def test_worker_reads_archives_once(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks import modules from Spark's zip archives; later tasks do not read an archive again."""
    monkeypatch.setattr(lab.spark.sparkContext, "pythonExec", sys.executable)

    # Python workers lack this test module, so the function is local, and Spark sends its code.
    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        list(batches)
        kinds = [type(importer) for importer in sys.path_importer_cache.values()]
        # One of Spark's archives contains `pyspark.ml.linalg`. Before the first task, no code
        # imports this module.
        sys.modules.pop("pyspark.ml.linalg", None)
        module = importlib.import_module("pyspark.ml.linalg")
        yield pa.RecordBatch.from_pydict(
            {
                "rereading": pa.array([kinds.count(zipimporter)], pa.int32()),
                "frozen": pa.array([gc.get_freeze_count()], pa.int32()),
                "module": [module.__loader__.archive if module.__loader__ else ""],
            }
        )

    tasks = [map_batches(lab.spark.range(0, 1, 1, 1), look, SCHEMA).collect()[0] for _ in range(8)]
    # Three paths remain: archives of Python's library or of builds' code, or absent files.
    assert tasks[-1].rereading <= 3
    assert tasks[-1].frozen > 0
    assert tasks[-1].module.endswith("pyspark.zip")


def test_batches_of_bounded_values_have_no_limit_of_bytes(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only batches with strings of unlimited length have a byte limit.

    The byte limit in the settings of the user's session does not change.
    """
    monkeypatch.setattr(lab.spark.sparkContext, "pythonExec", sys.executable)
    limit = "spark.sql.execution.arrow.maxBytesPerBatch"

    def sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows]})

    with lab.database("unmeasured"), lab.setting(limit, "4096"):
        lab.sql("CREATE TABLE t USING parquet AS SELECT id FROM range(0, 2000, 1, 1)")
        resolve = lab.spark._jvm.org.apache.spark.sql.sieve.statements.Tables.resolve
        table = CatalogTable(resolve(lab.spark._jsparkSession, ["t"]), lab.spark)
        assert len(table.files()) == 1
        seen = {}
        for type_name, whole in (("bigint", True), ("string", False), ("string", True)):
            rows = table.frame([0], Column(("id",), type_name), whole_texts=whole)
            batches = map_batches(rows, sizes, pa.schema([("rows", pa.int64())])).collect()
            seen[type_name, whole] = [row[0] for row in batches]
        assert seen["bigint", True] == seen["string", False] == [2000]
        assert sum(seen["string", True]) == 2000
        assert max(seen["string", True]) < 1000
        lab.sql("CREATE SIEVE INDEX ON t (id)")
        assert lab.spark.conf.get(limit) == "4096"
        lab.check("SELECT * FROM t WHERE id = 2001", exactly=0)
