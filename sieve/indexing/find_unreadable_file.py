"""Which data file failed a build, where Spark's own error does not say (Spark 3.5 on Parquet)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from sieve.environment import Environment
from sieve.errors import UnavailableError
from sieve.storage.java_errors import raised_in
from sieve.tables.table import LOCATION, CatalogTable, Column, DataFile

_FAILURES = (Py4JJavaError, PySparkException)
_READER: Final = "FileScanRDD"
"""The class at work in a task that fails to read a file, but not where a job was cancelled."""


@contextmanager
def named_if_unreadable(
    table: CatalogTable,
    column: Column,
    files: Sequence[DataFile],
    numbers: Sequence[int],
    environment: Environment,
) -> Iterator[None]:
    """Raise an error that names the file when the block fails because one cannot be read.

    The files are read again by halves, which takes as long as to read them all once or twice.

    Args:
        table: the table.
        column: what is read of it.
        files: those that the block reads.
        numbers: of each, in the table's last listing.
        environment: the means.

    Raises:
        UnavailableError: a file cannot be read; the cause is Spark's error.
        Py4JJavaError, PySparkException: the reading was cancelled.
    """
    try:
        yield
    except _FAILURES as error:
        environment.check_cancelled()
        if not raised_in(error, _READER) or _names_one(error, files):
            raise
        suspects = list(zip(files, numbers, strict=True))
        while len(suspects) > 1:
            half = suspects[: len(suspects) // 2]
            suspects = half if _fails(table, column, half) else suspects[len(half) :]
        if not _fails(table, column, suspects):
            # It was something else, or has passed.
            raise
        raise UnavailableError(
            "SIEVE_FILE_UNREADABLE",
            f"{suspects[0][0].path} of table {table.info.label} cannot be read; restore it, or "
            "take it out of the table",
        ) from error


def _names_one(error: Exception, files: Sequence[DataFile]) -> bool:
    """Whether those who read Spark's message learn which file it is; nothing else is made of it."""
    words = str(error)
    return any(file.path.rpartition("/")[2] in words for file in files)


def _fails(table: CatalogTable, column: Column, suspects: Sequence[tuple[DataFile, int]]) -> bool:
    frame = table.frame([number for _, number in suspects], column)
    try:
        values = frame.select(sf.col(column.expression).alias("v"), LOCATION)
        values.write.format("noop").mode("overwrite").save()
    except _FAILURES as error:
        if not raised_in(error, _READER):
            raise
        return True
    return False
