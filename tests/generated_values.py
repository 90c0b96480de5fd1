"""Values of every indexable type, including the type's least and greatest value."""

from __future__ import annotations

import base64
import math
import struct
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa

FLOATS = [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan, 2.0**53, 2.0**53 + 2, 0.5, 5e-324]
TEXTS = [
    "",
    "a",
    "a\0",
    "ab",
    "user-",
    "user-1",
    "user-10",
    "user-1\uffff",
    "user-12345678a",
    "user-12345678b",
    "user-12345679",
    "\uffff",
    "z",
]


@dataclass(frozen=True)
class Kind:
    """A column type: its Arrow name, and values that include the least and the greatest value."""

    name: str
    arrow: pa.DataType
    values: list

    @property
    def of_bytes(self):
        """Whether the values are strings or binary."""
        return self.name.startswith(("string", "varchar", "binary"))

    def column(self, values):
        """The values as an Arrow array."""
        if self.name.startswith(("date", "timestamp")):
            width = pa.int32() if self.name == "date" else pa.int64()
            return pa.array(values, width).cast(self.arrow)
        if self.name.startswith("decimal"):
            # Arithmetic would round the value to the 28 digits of the decimal context, so the value
            # is made from text.
            scale = self.arrow.scale
            values = [None if v is None else Decimal(f"{v}E-{scale}") for v in values]
        return pa.array(values, self.arrow)

    def wire(self, value):
        """A constant in the JSON form in which the driver sends it."""
        if self.name == "float":
            return struct.unpack("<i", struct.pack("<f", value))[0]
        if self.name == "double":
            return struct.unpack("<q", struct.pack("<d", value))[0]
        if self.of_bytes:
            return base64.b64encode(image(value)).decode()
        return str(value) if self.name.startswith("decimal") else value


def image(value):
    """The bytes of a text or binary value."""
    return value.encode() if isinstance(value, str) else value


def ends(bits, *more):
    """The least and greatest value of an integer type, their neighbours, and values around 0."""
    half = 1 << (bits - 1)
    return [-half, -half + 1, -2, -1, 0, 1, 2, half - 2, half - 1, *more]


KINDS = [
    Kind("boolean", pa.bool_(), [False, True]),
    Kind("tinyint", pa.int8(), ends(8)),
    Kind("smallint", pa.int16(), ends(16)),
    Kind("int", pa.int32(), ends(32, *range(5, 20))),
    Kind("bigint", pa.int64(), ends(64, 1 << 53, (1 << 53) + 1, (1 << 53) + 2, *range(5, 20))),
    Kind("float", pa.float32(), [float(v) for v in np.array(FLOATS, np.float32)] + [2.0**-149]),
    Kind("double", pa.float64(), FLOATS),
    Kind("decimal(9,2)", pa.decimal128(9, 2), [0, 1, -1, 999999999, -999999999, 150, 151]),
    Kind(
        "decimal(38,3)",
        pa.decimal128(38, 3),
        [
            0,
            1,
            -1,
            10**38 - 1,
            10**38 - 2,
            1 - 10**38,
            1 << 57,
            (1 << 57) + 1,
            (1 << 90) + 1,
            1 << 90,
            -(1 << 90),
            -(1 << 90) - 1,
        ],
    ),
    Kind("date", pa.date32(), ends(32, 18000, 18001)),
    Kind("timestamp", pa.timestamp("us", "UTC"), ends(64, 10**15, 10**15 + 1)),
    Kind("timestamp_ntz", pa.timestamp("us"), ends(64, -(10**15))),
    Kind("string", pa.string(), TEXTS),
    Kind("varchar(20)", pa.string(), TEXTS),
    Kind("binary", pa.binary(), [b"", b"\0", b"\xff" * 9, b"\xff" * 8, b"m", b"m\0", b"m\xff\xff"]),
]


def ordered(value):
    """A sort key for Spark's order.

    In Spark's order, NaN is the greatest value, bytes are unsigned, and -0.0 equals 0.0.
    """
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return image(value) if isinstance(value, str) else value
