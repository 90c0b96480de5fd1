"""What a build's tasks leave to the next task of their Python worker."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Iterator
from zipimport import zipimporter

import pyarrow as pa
import pytest
from lab import Lab

from sieve.build.arrow_jobs import map_batches

SCHEMA = "rereading INT, frozen INT, module STRING"


def test_archives_are_read_once_a_worker(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of Spark's archives none is read again before a task, and what is in them can be imported."""
    monkeypatch.setattr(lab.spark.sparkContext, "pythonExec", sys.executable)

    # Inside, so that it is sent whole: workers do not have this module.
    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        list(batches)
        kinds = [type(importer) for importer in sys.path_importer_cache.values()]
        # Of an archive, and never imported before the first of these tasks.
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
    # What is left is Python's own library and what builds were sent: small, or not there at all.
    assert tasks[-1].rereading <= 3
    assert tasks[-1].frozen > 0
    assert tasks[-1].module.endswith("pyspark.zip")
