"""Value columns: what the JVM computes from the indexed column ``v`` for build steps."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from sieve.encoding.encoder import Encoder
from sieve.index_key import SUBSTRING
from sieve.indexing.arrow_jobs import map_batches
from sieve.indexing.grams import distinct_grams, schema_of
from sieve.indexing.local_rows import LocalRows, Rows
from sieve.tables import column as tables
from sieve.tables.table import LOCATION


def column_values(frame: DataFrame, column: tables.Column) -> DataFrame:
    """Returns the indexed values as ``v``, and their `LOCATION`.

    Args:
        frame: rows of `CatalogTable.frame`.
    """
    values = frame.select(sf.col(column.in_frame).alias("v"), LOCATION)
    if column.kind != SUBSTRING:
        return values
    texts = values.select(sf.col("v").cast("binary"), LOCATION)
    return map_batches(texts, distinct_grams(LOCATION), schema_of(LOCATION))


def value_columns(values: Rows, encoder: Encoder, *names: str) -> Rows:
    """Returns columns for a step, in the given order.

    Args:
        values: the column as ``v``; local rows contain the leading bytes and the hash of each
            value.
        encoder: the encoder of the column.
        names: ``v`` for `encoded_bytes`, ``hash`` for `hash_of_value`, or other columns.
    """
    if isinstance(values, LocalRows):
        return values.select(*names)

    def made(name: str) -> Column | str:
        if name == "v":
            return encoded_bytes(encoder).alias(name)
        return hash_of_value().alias(name) if name == "hash" else name

    return values.select(*map(made, names))


def encoded_bytes(encoder: Encoder) -> Column:
    """The part of a value that determines its code: for strings and binary, the leading bytes.

    Leading bytes have a bounded length, so a batch needs no limit on bytes (`reading_conf`).

    Args:
        encoder: the encoder of the column, whose `of_bytes` takes the result.
    """
    most = encoder.leading_bytes
    return sf.col("v") if most is None else leading_bytes(most)


def leading_bytes(most: int) -> Column:
    """The first bytes of a string or binary, as binary.

    The string is cast to binary first. On a string, Spark's `substring` counts characters. If the
    last character of the string is incomplete, `substring` reads bytes after the end of the string.
    """
    return sf.substring(sf.col("v").cast("binary"), 1, most)


def hash_of_value() -> Column:
    """The hash of the whole value; NULL for NULL."""
    value = sf.col("v")
    return sf.when(value.isNotNull(), sf.xxhash64(value))
