"""Codecs: order-preserving 64-bit encodings of column values, one for each family of types.

A codec maps values to signed 64-bit key codes so that ``x < y`` implies ``code(x) <= code(y)``. An
*exact* codec also gives different codes to different values, so Sieve can compare codes instead of
values. With an inexact codec, different values can share a code, so a predicate on codes accepts
every matching value and possibly other values.

Examples: the int 7 has the code 7, the date 1970-01-02 has the code 1, and the double -0.0 has the
code 0.
"""

# ruff: noqa: D102 - the protocol `Codec` documents the methods that codecs share

from __future__ import annotations

import base64
import binascii
import datetime as dt
import struct
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sieve.arrays.dtypes import Codes, Flags
from sieve.errors import InvalidInputError

LEAST = -(1 << 63)
GREATEST = (1 << 63) - 1


_DAY_MICROS = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant of a query as a key code; `code` is undefined if `nan` is set.

    If the column's codes are inexact, `image` is the whole constant as bytes. A look-up in a hash
    map then uses the hash of `image`.
    """

    code: int
    nan: bool = False
    image: bytes | None = None


class Codec(Protocol):
    """Encodes the values of a family of types.

    The arrays that a codec encodes are neither chunked nor empty.
    """

    @property
    def exact(self) -> bool:
        """Returns whether different values always have different codes."""

    def accepts(self, arrow_type: pa.DataType) -> bool:
        """Returns whether the codec can encode a column of this Arrow type."""

    def codes(self, array: pa.Array) -> Codes:
        """Returns the code of each element, int64[n]; the codes of nulls and NaN are undefined."""

    def literal(self, value: object) -> Literal:
        """Returns the code of a constant, given in the wire form of the column's type.

        Raises InvalidInputError if the constant does not have the wire form of the column's type.
        """

    def decode(self, code: int) -> str:
        """Returns the least value with the code `code`, as text for people."""


def refuse_literal(value: object, wanted: str) -> InvalidInputError:
    """Returns the error to raise if a constant is not in the wire form of its column's type."""
    return InvalidInputError(
        "SIEVE_BAD_LITERAL",
        f"a constant of the predicate is {value!r:.80}, but {wanted} was expected; "
        "the query must be read without the index",
    )


def wire_integer(value: object, low: int, high: int, wanted: str) -> int:
    """Returns `value` if it is an integer in [low, high]; a boolean is not an integer."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise refuse_literal(value, wanted)
    return value


def wire_bytes(value: object) -> bytes:
    """Decodes a string or binary constant from its wire form, base64."""
    if not isinstance(value, str):
        raise refuse_literal(value, "base64 text")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise refuse_literal(value, "base64 text") from None


@dataclass(frozen=True, slots=True)
class BooleanCodec:
    """The codec of Booleans: the code of false is 0, and the code of true is 1."""

    exact: bool = True

    def accepts(self, arrow_type: pa.DataType) -> bool:
        return bool(pa.types.is_boolean(arrow_type))

    def codes(self, array: pa.Array) -> Codes:
        return filled(array).astype(np.int64)

    def literal(self, value: object) -> Literal:
        if not isinstance(value, bool):
            raise refuse_literal(value, "true or false")
        return Literal(int(value))

    def decode(self, code: int) -> str:
        return "true" if code > 0 else "false"


@dataclass(frozen=True, slots=True)
class IntegerCodec:
    """The codec of integers of `bits` bits: an integer is its own code."""

    bits: int
    exact: bool = True

    def accepts(self, arrow_type: pa.DataType) -> bool:
        return bool(pa.types.is_signed_integer(arrow_type)) and arrow_type.bit_width == self.bits

    def codes(self, array: pa.Array) -> Codes:
        return filled(array).astype(np.int64)

    def literal(self, value: object) -> Literal:
        half = 1 << (self.bits - 1)
        return Literal(wire_integer(value, -half, half - 1, f"an integer of {self.bits} bits"))

    def decode(self, code: int) -> str:
        return str(code)


@dataclass(frozen=True, slots=True)
class DateCodec:
    """The codec of dates: days since 1970-01-01 in the proleptic Gregorian calendar."""

    exact: bool = True

    def accepts(self, arrow_type: pa.DataType) -> bool:
        return bool(pa.types.is_date32(arrow_type))

    def codes(self, array: pa.Array) -> Codes:
        return filled(array.view(pa.int32())).astype(np.int64)

    def literal(self, value: object) -> Literal:
        return Literal(wire_integer(value, -(1 << 31), (1 << 31) - 1, "a number of days"))

    def decode(self, code: int) -> str:
        return str(np.datetime64(code, "D"))


@dataclass(frozen=True, slots=True)
class TimestampCodec:
    """The codec of timestamps: microseconds since 1970-01-01 00:00, in UTC if `zoned`."""

    zoned: bool
    exact: bool = True

    def accepts(self, arrow_type: pa.DataType) -> bool:
        return bool(pa.types.is_timestamp(arrow_type)) and arrow_type.unit == "us"

    def codes(self, array: pa.Array) -> Codes:
        return filled(array.view(pa.int64()))

    def literal(self, value: object) -> Literal:
        return Literal(wire_integer(value, LEAST, GREATEST, "a number of microseconds"))

    def decode(self, code: int) -> str:
        # numpy has no timestamp for -2^63, and datetime has no timestamp before year 1. So `decode`
        # formats the date with numpy and the time of day with datetime.
        days, micros = divmod(code, _DAY_MICROS)
        midnight = dt.datetime(1, 1, 1, tzinfo=dt.UTC)
        time = (midnight + dt.timedelta(microseconds=micros)).time()
        return f"{np.datetime64(days, 'D')} {time.isoformat()}{'Z' if self.zoned else ''}"


@dataclass(frozen=True, slots=True)
class FloatCodec:
    """The codec of IEEE 754 floats: the bits below the sign bit as a number, with the float's sign.

    Both -0.0 and 0.0 have the code 0. NaN has no code; `nans` returns which elements are NaN.
    """

    bits: int
    exact: bool = True

    def accepts(self, arrow_type: pa.DataType) -> bool:
        return bool(pa.types.is_floating(arrow_type)) and arrow_type.bit_width == self.bits

    def codes(self, array: pa.Array) -> Codes:
        values = filled(array.view(pa.int32() if self.bits == 32 else pa.int64()))
        image = values.astype(np.int64)
        return np.where(image < 0, np.int64(self._sign) - image, image)

    def nans(self, array: pa.Array) -> Flags:
        """Returns bool[n]: whether each element is NaN; False for nulls."""
        result: Flags = np.isnan(filled(array))
        return result

    def literal(self, value: object) -> Literal:
        image = wire_integer(value, self._sign, -self._sign - 1, f"{self.bits} raw bits")
        if np.isnan(self._value(image)):
            return Literal(0, nan=True)
        return Literal(self._sign - image if image < 0 else image)

    def decode(self, code: int) -> str:
        # A segment's border can lie beyond the code of an infinity. `decode` shows the border as
        # the infinity.
        infinity = 0x7F800000 if self.bits == 32 else 0x7FF0000000000000
        code = max(-infinity, min(infinity, code))
        value = self._value(self._sign - code if code < 0 else code)
        return str(np.float32(value)) if self.bits == 32 else repr(value)

    @property
    def _sign(self) -> int:
        return -(1 << (self.bits - 1))

    def _value(self, image: int) -> float:
        form, back = ("<i", "<f") if self.bits == 32 else ("<q", "<d")
        return float(struct.unpack(back, struct.pack(form, image))[0])


def filled(array: pa.Array) -> npt.NDArray[Any]:
    """Returns the elements as a numpy array, with 0 or false in place of nulls."""
    zero = pa.scalar(0).cast(array.type)
    result: npt.NDArray[Any] = array.fill_null(zero).to_numpy(zero_copy_only=False)
    return result
