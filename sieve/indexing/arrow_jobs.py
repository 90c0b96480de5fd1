"""Steps over Arrow record batches as Spark runs them, and what a task leaves to the next one.

Spark's Python workers live on from task to task. Before each, Spark drops all import caches: every
importer of an archive on the path (PySpark's own, once for each of its packages, and Spark's jar)
then reads the archive's list of files anew. After each, it collects garbage among all that was ever
imported. Together that was 0.1 s a task, most of what a small build took.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING
from zipimport import zipimporter

from sieve.indexing.batches import Batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def map_batches(frame: DataFrame, step: Callable[[Batches], Batches], schema: str) -> DataFrame:
    """A data frame through a step, task by task.

    Args:
        frame: its columns are the batches' columns.
        step: what a task does with its batches.
        schema: of what it yields, as Spark writes it.
    """

    def run(batches: Batches) -> Batches:
        try:
            yield from step(batches)
        finally:
            spare_next_task()

    return frame.mapInArrow(run, schema)


class _Unchanging(zipimporter):
    """Keeps the list of files that it has read."""

    def invalidate_caches(self) -> None:
        """Do nothing: the archive is as it was."""


@functools.cache
def _freeze_imports() -> None:
    # Once a worker; to ask how much is frozen would take a look at each of these objects.
    gc.collect()
    gc.freeze()


def spare_next_task() -> None:
    """Make what Spark does between two tasks of this worker cheap (`python -m bench worker`)."""
    _freeze_imports()
    loaders = (getattr(sys.modules.get(name), "__loader__", None) for name in ("pyspark", "sieve"))
    archives = {loader.archive for loader in loaders if isinstance(loader, zipimporter)}
    for path, importer in list(sys.path_importer_cache.items()):
        # No task changes these; archives that users add are left alone.
        if type(importer) is zipimporter and (
            importer.archive in archives or importer.archive.endswith(".jar")
        ):
            sys.path_importer_cache[path] = _Unchanging(path)
