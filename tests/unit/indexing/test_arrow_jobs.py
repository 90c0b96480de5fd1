"""Caches that a Python worker keeps after a task, for its next task."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZipFile
from zipimport import zipimporter

import pyarrow as pa
import pytest

from sieve.indexing import arrow_jobs
from sieve.indexing.arrow_jobs import map_batches, spare_next_task
from tests.fake_frames import Frame

ROWS = pa.schema([("rows", pa.int64())])


class Own(zipimporter):
    """An importer that a user has installed."""


@pytest.fixture
def importers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Replaces this process's cached importers with importers of one folder and five archives.

    One archive is Sieve's, two archives are Spark's, and two are the user's.
    """
    names = ("sieve.zip", "pyspark.zip", "spark.jar", "user.zip", "own.zip")
    found: dict[str, object] = {str(tmp_path): "a folder"}
    for name in names:
        with ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("some.py", "")
        path = str(tmp_path / name)
        found[path] = Own(path) if name == "own.zip" else zipimporter(path)
    monkeypatch.setattr(sys, "path_importer_cache", found)
    for module in ("sieve", "pyspark"):
        loader = zipimporter(str(tmp_path / f"{module}.zip"))
        monkeypatch.setitem(sys.modules, module, SimpleNamespace(__loader__=loader))
    return found


def test_archives_of_spark_and_sieve_are_listed_once(importers: dict[str, object]) -> None:
    """After a task, a worker keeps only the import caches of Sieve's and Spark's archives.

    The user's archives and folders can change between tasks.
    """
    spare_next_task()
    lasting = {
        path.rpartition("/")[2]
        for path, importer in importers.items()
        if isinstance(importer, arrow_jobs._Unchanging)
    }
    assert lasting == {"sieve.zip", "pyspark.zip", "spark.jar"}
    before = dict(importers)
    for importer in importers.values():
        if isinstance(importer, zipimporter):
            importer.invalidate_caches()
            assert importer.find_spec("some") is not None
    spare_next_task()
    assert importers == before


def test_modules_are_frozen_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process calls `gc.freeze` once, so that later garbage collections skip imported modules."""
    calls: list[str] = []
    monkeypatch.setattr(gc, "collect", lambda: calls.append("collect"))
    monkeypatch.setattr(gc, "freeze", lambda: calls.append("freeze"))
    monkeypatch.setattr(sys, "path_importer_cache", {})
    arrow_jobs._freeze_imports.cache_clear()
    spare_next_task()
    spare_next_task()
    assert calls == ["collect", "freeze"]


def test_spare_next_task_runs_after_every_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """`spare_next_task` runs after every task, even if the task's step fails."""
    spared: list[str] = []
    monkeypatch.setattr(arrow_jobs, "spare_next_task", lambda: spared.append("spared"))
    frame = Frame({"n": pa.int64()}, [[{"n": 1}, {"n": 2}], [{"n": 3}]])

    def rows(batches):
        for batch in batches:
            yield pa.RecordBatch.from_arrays([pa.array([batch.num_rows])], names=["rows"])

    assert [row["rows"] for row in map_batches(frame, rows, ROWS).collect()] == [2, 1]
    assert spared == ["spared"] * 2

    def fails(_):
        yield from ()
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        map_batches(frame, fails, ROWS)
    assert spared == ["spared"] * 3
