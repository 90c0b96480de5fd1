"""Order-preserving 64-bit images of column values: one codec for each family of types.

A codec maps values to signed 64-bit codes so that ``x < y`` implies ``code(x) <= code(y)``. An
*exact* codec also keeps different values apart, so comparing codes is comparing values.
"""

# ruff: noqa: D102 - what the methods of a codec do stands once, in the protocol

from __future__ import annotations

import base64
import binascii
import datetime as dt
import re
import struct
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sieve.errors import InvalidInputError
from sieve.map.hashing import decimal_bytes
from sieve.packing import bit_lengths

LEAST = -(1 << 63)
GREATEST = (1 << 63) - 1

Codes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_DAY_MICROS = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant of a query as a key code; `code` means nothing when `nan` is set.

    `image` is the whole value as bytes where codes are not exact: what maps hash.
    """

    code: int
    nan: bool = False
    image: bytes | None = None


class Codec(Protocol):
    """What a family of types must offer; arrays come without chunks and are not empty."""

    @property
    def exact(self) -> bool:
        """Whether different values always have different codes."""

    def accepts(self, arrow_type: pa.DataType) -> bool:
        """Whether columns of this Arrow type hold the values this codec is for."""

    def codes(self, array: pa.Array) -> Codes:
        """Code of each element, int64[n]; undefined for nulls and NaN."""

    def literal(self, value: object) -> Literal:
        """Code of a constant in its wire form; InvalidInputError when it has another form."""

    def decode(self, code: int) -> str:
        """Least value with this code, in words for people."""


def refuse_literal(value: object, wanted: str) -> InvalidInputError:
    """The error for a constant that is not in the wire form of its column's type."""
    return InvalidInputError(
        "SIEVE_BAD_LITERAL",
        f"a constant of the predicate is {value!r:.80}, but {wanted} was expected; "
        "the query must be read without the index",
    )


def wire_integer(value: object, low: int, high: int, wanted: str) -> int:
    """`value` if it is an integer in [low, high]; booleans are not integers."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise refuse_literal(value, wanted)
    return value


def wire_bytes(value: object) -> bytes:
    """The bytes of a string or binary constant, which travel as base64."""
    if not isinstance(value, str):
        raise refuse_literal(value, "base64 text")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise refuse_literal(value, "base64 text") from None


@dataclass(frozen=True, slots=True)
class BooleanCodec:
    """false is 0, true is 1."""

    exact: bool = True

    def accepts(self, arrow_type: pa.DataType) -> bool:
        return bool(pa.types.is_boolean(arrow_type))

    def codes(self, array: pa.Array) -> Codes:
        return _filled(array, False).astype(np.int64)

    def literal(self, value: object) -> Literal:
        if not isinstance(value, bool):
            raise refuse_literal(value, "true or false")
        return Literal(int(value))

    def decode(self, code: int) -> str:
        return "true" if code > 0 else "false"


@dataclass(frozen=True, slots=True)
class IntegerCodec:
    """Integers of `bits` bits are their own codes."""

    bits: int
    exact: bool = True

    def accepts(self, arrow_type: pa.DataType) -> bool:
        return bool(pa.types.is_signed_integer(arrow_type)) and arrow_type.bit_width == self.bits

    def codes(self, array: pa.Array) -> Codes:
        return _filled(array, 0).astype(np.int64)

    def literal(self, value: object) -> Literal:
        half = 1 << (self.bits - 1)
        return Literal(wire_integer(value, -half, half - 1, f"an integer of {self.bits} bits"))

    def decode(self, code: int) -> str:
        return str(code)


@dataclass(frozen=True, slots=True)
class DateCodec:
    """Days since 1970-01-01 in the proleptic Gregorian calendar."""

    exact: bool = True

    def accepts(self, arrow_type: pa.DataType) -> bool:
        return bool(pa.types.is_date32(arrow_type))

    def codes(self, array: pa.Array) -> Codes:
        return _filled(array.view(pa.int32()), 0).astype(np.int64)

    def literal(self, value: object) -> Literal:
        return Literal(wire_integer(value, -(1 << 31), (1 << 31) - 1, "a number of days"))

    def decode(self, code: int) -> str:
        return str(np.datetime64(code, "D"))


@dataclass(frozen=True, slots=True)
class TimestampCodec:
    """Microseconds since 1970-01-01 00:00, in UTC when `zoned`."""

    zoned: bool
    exact: bool = True

    def accepts(self, arrow_type: pa.DataType) -> bool:
        return bool(pa.types.is_timestamp(arrow_type)) and arrow_type.unit == "us"

    def codes(self, array: pa.Array) -> Codes:
        return _filled(array.view(pa.int64()), 0)

    def literal(self, value: object) -> Literal:
        return Literal(wire_integer(value, LEAST, GREATEST, "a number of microseconds"))

    def decode(self, code: int) -> str:
        # numpy has no instant for -2^63 and datetime none before year 1: date and time go apart.
        days, micros = divmod(code, _DAY_MICROS)
        midnight = dt.datetime(1, 1, 1, tzinfo=dt.UTC)
        time = (midnight + dt.timedelta(microseconds=micros)).time()
        return f"{np.datetime64(days, 'D')} {time.isoformat()}{'Z' if self.zoned else ''}"


@dataclass(frozen=True, slots=True)
class FloatCodec:
    """The IEEE 754 bits read as sign and magnitude: -0.0 and 0.0 are both 0, NaN is kept apart."""

    bits: int
    exact: bool = True

    def accepts(self, arrow_type: pa.DataType) -> bool:
        return bool(pa.types.is_floating(arrow_type)) and arrow_type.bit_width == self.bits

    def codes(self, array: pa.Array) -> Codes:
        values = _filled(array.view(pa.int32() if self.bits == 32 else pa.int64()), 0)
        image = values.astype(np.int64)
        return np.where(image < 0, np.int64(self._sign) - image, image)

    def nans(self, array: pa.Array) -> Flags:
        """Which elements are NaN, bool[n]; nulls are not."""
        result: Flags = np.isnan(_filled(array, 0.0))
        return result

    def literal(self, value: object) -> Literal:
        image = wire_integer(value, self._sign, -self._sign - 1, f"{self.bits} raw bits")
        if np.isnan(self._value(image)):
            return Literal(0, nan=True)
        return Literal(self._sign - image if image < 0 else image)

    def decode(self, code: int) -> str:
        # Borders between keys may lie past the infinities: show the nearest value.
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


@dataclass(frozen=True, slots=True)
class DecimalCodec:
    """The unscaled integer u itself up to 18 digits; from 19 digits on, 57 significant bits of it.

    The wide form reads like a floating-point number: |u| < 2^57 is its own code, a longer |u| of L
    bits becomes exponent L - 56 over the 56 bits below its leading one. Then the sign is put back.
    """

    precision: int
    scale: int

    @property
    def exact(self) -> bool:
        return self.precision <= 18

    def accepts(self, arrow_type: pa.DataType) -> bool:
        return (
            bool(pa.types.is_decimal128(arrow_type))
            and arrow_type.precision == self.precision
            and arrow_type.scale == self.scale
        )

    def codes(self, array: pa.Array) -> Codes:
        words = np.frombuffer(array.buffers()[1], "<i8")
        low, high = words[2 * array.offset : 2 * (array.offset + len(array))].reshape(-1, 2).T
        return low.copy() if self.exact else _wide_codes(low.view(np.uint64), high)

    def literal(self, value: object) -> Literal:
        if not isinstance(value, str) or not re.fullmatch(r"-?[0-9]{1,38}", value):
            raise refuse_literal(value, "the digits of an unscaled decimal")
        unscaled = int(value)
        if abs(unscaled) >= 10**self.precision:
            raise refuse_literal(value, f"at most {self.precision} digits")
        if self.exact:
            return Literal(unscaled)
        magnitude = abs(unscaled)
        spare = max(0, magnitude.bit_length() - 57)
        code = (spare << 56) + (magnitude >> spare)
        return Literal(-code if unscaled < 0 else code, image=decimal_bytes(unscaled))

    def decode(self, code: int) -> str:
        unscaled = code if self.exact else self._least_unscaled(code)
        digits = str(abs(unscaled)).rjust(self.scale + 1, "0")
        point = len(digits) - self.scale
        text = f"{digits[:point]}.{digits[point:]}" if self.scale else digits
        return f"-{text}" if unscaled < 0 else text

    def _least_unscaled(self, code: int) -> int:
        spare = max(0, (abs(code) >> 56) - 1)
        leading = abs(code) - (spare << 56)
        return leading << spare if code >= 0 else -(((leading + 1) << spare) - 1)


@dataclass(frozen=True, slots=True)
class BytesCodec:
    """Eight bytes after `prefix`, big-endian and zero padded; bytes compare unsigned, as in Spark.

    Values that do not begin with the prefix get the least or the greatest code, so order holds for
    them too.
    """

    prefix: bytes
    text: bool
    exact: bool = False

    def accepts(self, arrow_type: pa.DataType) -> bool:
        kind = "string" if self.text else "binary"
        return str(arrow_type) in (kind, f"large_{kind}", f"{kind}_view")

    def codes(self, array: pa.Array) -> Codes:
        values = array.cast(pa.large_binary())
        start = len(self.prefix)
        codes = _leading_codes(pc.binary_slice(values, start, start + 8))
        if self.prefix:
            begins = _filled(pc.starts_with(values, pattern=self.prefix), True)
            below = _filled(pc.less(values, pa.scalar(self.prefix, pa.large_binary())), False)
            codes = np.where(begins, codes, np.where(below, LEAST, GREATEST))
        return codes

    def literal(self, value: object) -> Literal:
        image = wire_bytes(value)
        return Literal(self._code(image, b"\0"), image=image)

    def span(self, start: bytes) -> tuple[int, int]:
        """Least and greatest code of the values that begin with `start`."""
        if self.prefix.startswith(start):
            return LEAST, GREATEST
        return self._code(start, b"\0"), self._code(start, b"\xff")

    def decode(self, code: int) -> str:
        if self.prefix and code in (LEAST, GREATEST):
            value = b"" if code == LEAST else self.prefix
        else:
            value = self.prefix + (code - LEAST).to_bytes(8, "big").rstrip(b"\0")
        return value.decode("utf-8", "backslashreplace") if self.text else value.hex().upper()

    def _code(self, value: bytes, padding: bytes) -> int:
        if value.startswith(self.prefix):
            rest = value[len(self.prefix) :][:8]
            return int.from_bytes(rest.ljust(8, padding), "big") + LEAST
        return LEAST if value < self.prefix else GREATEST


def _filled(array: pa.Array, value: Any) -> npt.NDArray[Any]:
    """The elements as a numpy array, `value` where null."""
    result: npt.NDArray[Any] = array.fill_null(value).to_numpy(zero_copy_only=False)
    return result


def _wide_codes(low: npt.NDArray[np.uint64], high: npt.NDArray[np.int64]) -> Codes:
    """Codes of 128-bit two's complement integers given as two words."""
    negative = high < 0
    low = np.where(negative, ~low + np.uint64(1), low)
    carry = negative & (low == 0)
    top = np.where(negative, ~high + carry, high).view(np.uint64)
    length = np.where(top > 0, 64 + bit_lengths(top), bit_lengths(low))
    spare = np.maximum(length - 57, 0).astype(np.uint64)
    # numpy leaves shifts by 64 or more undefined, so each word moves in a range of its own.
    within = np.minimum(spare, np.uint64(63))
    lifted = np.where(within > 0, top << ((np.uint64(64) - within) & np.uint64(63)), np.uint64(0))
    near = (low >> within) | lifted
    beyond = top >> (np.maximum(spare, np.uint64(64)) - np.uint64(64))
    leading = np.where(spare >= 64, beyond, near)
    codes: Codes = ((spare << np.uint64(56)) + leading).view(np.int64)
    codes[negative] *= -1
    return codes


def _leading_codes(values: pa.Array) -> Codes:
    """Codes of values of at most 8 bytes: each read as one word, bytes past its end cleared."""
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    content = b"" if data is None else data
    padded = np.concatenate([np.frombuffer(content, np.uint8), np.zeros(8, np.uint8)])
    words = np.ndarray((len(padded) - 7,), ">u8", padded, strides=(1,))
    spare = 8 * (8 - np.diff(ends).astype(np.uint64))
    spare_in_word = np.minimum(spare, np.uint64(63))
    found = words[ends[:-1]].astype(np.uint64)
    image = (found >> spare_in_word) << spare_in_word
    image[spare == 64] = 0
    codes: Codes = (image ^ np.uint64(1 << 63)).view(np.int64)
    return codes
