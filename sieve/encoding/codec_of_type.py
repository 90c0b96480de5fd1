"""The column types that Sieve can index, and the codec of each type."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Final

from sieve.encoding.bytes_codec import BytesCodec
from sieve.encoding.codec import (
    BooleanCodec,
    Codec,
    DateCodec,
    FloatCodec,
    IntegerCodec,
    TimestampCodec,
)
from sieve.encoding.decimal_codec import DecimalCodec
from sieve.errors import UnsupportedError

_INDEXABLE: Final = (
    "boolean, tinyint, smallint, int, bigint, float, double, decimal, date, timestamp, "
    "timestamp_ntz, string, varchar and binary"
)
_FIXED: Final[Mapping[str, Codec]] = {
    "boolean": BooleanCodec(),
    "tinyint": IntegerCodec(8),
    "smallint": IntegerCodec(16),
    "int": IntegerCodec(32),
    "bigint": IntegerCodec(64),
    "float": FloatCodec(32),
    "double": FloatCodec(64),
    "date": DateCodec(),
    "timestamp": TimestampCodec(zoned=True),
    "timestamp_ntz": TimestampCodec(zoned=False),
}


@functools.lru_cache(maxsize=256)
def codec_of(spark_type: str) -> Codec:
    """Returns the codec of a type; raises UnsupportedError if Sieve cannot index the type."""
    if spark_type in _FIXED:
        return _FIXED[spark_type]
    if spark_type == "binary":
        return BytesCodec(b"", text=False)
    if spark_type == "string" or re.fullmatch(r"varchar\([0-9]{1,10}\)", spark_type):
        return BytesCodec(b"", text=True)
    if sizes := re.fullmatch(r"decimal\(([0-9]{1,2}),\s?([0-9]{1,2})\)", spark_type):
        precision, scale = int(sizes[1]), int(sizes[2])
        if 1 <= precision <= 38 and scale <= precision:
            return DecimalCodec(precision, scale)
    raise UnsupportedError(
        "SIEVE_UNSUPPORTED_TYPE",
        f"a column of type {spark_type[:200]} cannot be indexed; indexable types are {_INDEXABLE}",
    )
