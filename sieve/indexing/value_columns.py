"""Value columns: the columns that the JVM computes from indexed values, as input of build steps."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from sieve.encoding.encoder import Encoder
from sieve.index_key import SUBSTRING
from sieve.indexing.local_rows import LocalRows, Rows
from sieve.tables import column as tables
from sieve.tables.table import LOCATION


def column_values(frame: DataFrame, column: tables.Column) -> DataFrame:
    """Returns the indexed values as the column ``v``, and their `LOCATION`.

    Args:
        frame: the rows that `CatalogTable.frame` returns.
    """
    value = sf.col(column.in_frame)
    if column.kind == SUBSTRING:
        value = sf.explode_outer(value)
    return frame.select(value.alias("v"), LOCATION)


@contextlib.contextmanager
def persisted_values(frame: DataFrame, column: tables.Column) -> Iterator[DataFrame]:
    """Yields `column_values`; until the block ends, Spark persists the substrings of texts.

    The distinct substrings of a location are slow to compute, and much smaller than its texts.
    """
    if column.kind != SUBSTRING:
        yield column_values(frame, column)
        return
    frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield column_values(frame, column)
    finally:
        frame.unpersist()


def value_columns(values: Rows, encoder: Encoder, *names: str) -> Rows:
    """Returns the columns that a step needs, in the given order.

    Args:
        values: rows with the column as ``v``. If the rows are `LocalRows`, they already contain
            each value's leading bytes and hash.
        encoder: the encoder of the column.
        names: ``v`` (see `encoded_bytes`), ``hash`` (see `hash_of_value`), or names of other
            columns.
    """
    if isinstance(values, LocalRows):
        return values.select(*names)

    def made(name: str) -> Column | str:
        if name == "v":
            return encoded_bytes(encoder).alias(name)
        return hash_of_value().alias(name) if name == "hash" else name

    return values.select(*map(made, names))


def encoded_bytes(encoder: Encoder) -> Column:
    """The part of a value that determines its code: for strings and binary, its leading bytes.

    The leading bytes have a maximum length, so Spark need not limit the bytes of a batch
    (`reading_conf`).

    Args:
        encoder: the encoder of the column, whose `of_bytes` encodes the result.
    """
    most = encoder.leading_bytes
    return sf.col("v") if most is None else leading_bytes(most)


def leading_bytes(most: int) -> Column:
    """The first bytes of a string or binary value, as binary.

    The expression casts the string to binary first, because Spark's `substring` counts the
    characters of a string. If the last character of a string is incomplete, `substring` would even
    read bytes beyond the string.
    """
    return sf.substring(sf.col("v").cast("binary"), 1, most)


def hash_of_value() -> Column:
    """The hash of the whole value; the hash of NULL is NULL."""
    value = sf.col("v")
    return sf.when(value.isNotNull(), sf.xxhash64(value))
