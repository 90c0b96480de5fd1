"""The columns that executors' tasks get of the indexed column ``v``, computed by the JVM."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf

from sieve.encoding.encoder import Encoder


def encoded_bytes(encoder: Encoder) -> Column:
    """The part of a value that its code depends on: of strings and binary the leading bytes.

    These have a bound, so that a batch of them needs none (`reading_conf`).

    Args:
        encoder: the column's; its `of_bytes` takes them.
    """
    most = encoder.leading_bytes
    return sf.col("v") if most is None else leading_bytes(most)


def leading_bytes(most: int) -> Column:
    """The first bytes of a string or binary, as binary.

    Of binary, since Spark's `substring` of a string goes by characters, and reads past the end of
    one whose last character is cut short.
    """
    return sf.substring(sf.col("v").cast("binary"), 1, most)


def hash_of_value() -> Column:
    """The hash of the whole value; NULL for NULL."""
    value = sf.col("v")
    return sf.when(value.isNotNull(), sf.xxhash64(value))
