"""Shared storage: checks that executors write to the driver's storage, not to their own disks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from sieve.errors import UnavailableError
from sieve.indexing.arrow_jobs import map_batches
from sieve.indexing.segment_tasks import only_if_seen
from sieve.reader.run_file import SCHEMA
from sieve.storage.interface import split
from sieve.storage.java_errors import worker_conditions

_CONDITION: Final = "SIEVE_ROOT_NOT_SHARED"


def seen_by_all(rows: DataFrame, witness: str) -> DataFrame:
    """Adds a check to a run's rows: a task fails if it does not see a file of the driver.

    Listing the folder after the job would not be enough. If the storage is not shared, the list
    contains only files of executors on the driver's machine. The driver would not notice that other
    files are missing.

    Args:
        rows: the rows of the run, which the caller then writes.
        witness: URI of a file that the driver has just created.
    """
    if surely_shared(witness, rows.sparkSession.sparkContext):
        return rows
    return map_batches(rows, only_if_seen(witness, _CONDITION), SCHEMA)


def surely_shared(path: str, context: SparkContext) -> bool:
    """Returns whether executors certainly see the driver's files at a path."""
    # A path names different files on different machines only in a local file system.
    return split(path)[0] != "file" or on_this_machine(context)


def on_this_machine(context: SparkContext) -> bool:
    """Returns whether the executors run in the driver's process."""
    return context.master.startswith("local") and not context.master.startswith("local-cluster")


@contextmanager
def named_if_unseen(folder: str) -> Iterator[None]:
    """If tasks of the block did not see the driver's file, raises a short error about the folder.

    Raises the UnavailableError that `not_shared` returns.
    """
    try:
        yield
    except (Py4JError, PySparkException) as error:
        if _CONDITION in worker_conditions(error):
            raise not_shared(folder) from error
        raise


def not_shared(folder: str) -> UnavailableError:
    """The error for a folder that executors and driver do not share."""
    return UnavailableError(
        _CONDITION,
        f"the driver cannot see all files that the executors write to {folder}; set "
        "spark.sieve.path to a folder on a file system that the driver and the executors share",
    )
