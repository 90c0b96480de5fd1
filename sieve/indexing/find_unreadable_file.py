"""Finds the data file that made a build fail, because Spark 3.5 does not name Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from sieve.environment import Environment
from sieve.errors import UnavailableError
from sieve.indexing.value_columns import column_values
from sieve.storage.java_errors import raised_in
from sieve.tables.column import Column
from sieve.tables.data_file import DataFile
from sieve.tables.table import CatalogTable

_FAILURES = (Py4JJavaError, PySparkException)
_READER: Final = "FileScanRDD"
"""A class of Spark. If a task fails to read a file, the stack trace contains the class. If a job is
cancelled, the stack trace does not contain the class."""


@contextmanager
def named_if_unreadable(
    table: CatalogTable,
    column: Column,
    files: Sequence[DataFile],
    numbers: Sequence[int],
    environment: Environment,
) -> Iterator[None]:
    """If the block fails to read a data file, raises an error that names the file.

    The function bisects the files, which takes one to two times as long as reading all files.

    Args:
        files: the files that the block reads.
        numbers: the files' positions in the most recent list of the table's files.

    Raises:
        UnavailableError: Spark cannot read a file; the exception's cause is Spark's error.
        Py4JJavaError, PySparkException: the read was cancelled, the message names the file already,
        or all files can be read.
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
            # The error was temporary or had another cause.
            raise
        raise UnavailableError(
            "SIEVE_FILE_UNREADABLE",
            f"{suspects[0][0].path} of table {table.info.label} cannot be read; restore it, or "
            "take it out of the table",
        ) from error


def _names_one(error: Exception, files: Sequence[DataFile]) -> bool:
    """Returns whether Spark's message names one of the files."""
    words = str(error)
    return any(file.path.rpartition("/")[2] in words for file in files)


def _fails(table: CatalogTable, column: Column, suspects: Sequence[tuple[DataFile, int]]) -> bool:
    frame = table.frame([number for _, number in suspects], column)
    try:
        values = column_values(frame, column)
        values.write.format("noop").mode("overwrite").save()
    except _FAILURES as error:
        if not raised_in(error, _READER):
            raise
        return True
    return False
