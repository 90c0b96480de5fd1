"""The columns that tasks get for the indexed column ``v``, computed by the JVM."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf

from sieve.encoding.encoder import Encoder


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
