"""Column values as key codes: which types can be indexed, and the encoder that a run carries."""

from __future__ import annotations

import base64
import binascii
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sieve.codecs import (
    GREATEST,
    LEAST,
    BooleanCodec,
    BytesCodec,
    Codec,
    Codes,
    DateCodec,
    DecimalCodec,
    Flags,
    FloatCodec,
    IntegerCodec,
    Literal,
    TimestampCodec,
    refuse_literal,
    wire_bytes,
)
from sieve.errors import CorruptError, InvalidInputError, UnsupportedError

__all__ = ["GREATEST", "LEAST", "Encoded", "Encoder", "Literal"]

# A longer shared prefix is cut: it stands in every manifest, and any part of it is a prefix too.
MAX_PREFIX = 1024

_INDEXABLE = (
    "boolean, tinyint, smallint, int, bigint, float, double, decimal, date, timestamp, "
    "timestamp_ntz, string, varchar and binary"
)
_FIXED: Mapping[str, Codec] = {
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


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """Key codes of a column.

    Attributes:
        codes: int64[n]; means nothing where the value is NULL or NaN.
        valid: bool[n], False where the value is NULL.
        nan: bool[n], True where the value is NaN (which is valid).
    """

    codes: Codes
    valid: Flags
    nan: Flags


@dataclass(frozen=True, slots=True)
class Encoder:
    """How the values of one column become key codes, and constants of queries with them.

    Attributes:
        type: Spark's simple name of the column's type, such as ``decimal(10,2)``.
        prefix: for strings and binary, the bytes left out at the front of every value.

    Raises:
        UnsupportedError: the type cannot be indexed.
        InvalidInputError: a prefix is given for a type that has none.
    """

    type: str
    prefix: bytes = b""

    def __post_init__(self) -> None:
        if not isinstance(_codec(self.type, self.prefix), BytesCodec) and self.prefix:
            raise InvalidInputError(
                "SIEVE_BAD_ENCODER", f"keys of type {self.type} have no prefix; leave it empty"
            )

    @classmethod
    def for_type(
        cls,
        type: str,  # noqa: A002 - the word that Spark's catalog and the field use
        low: bytes | None = None,
        high: bytes | None = None,
    ) -> Encoder:
        """The encoder for a column whose values lie, as far as is known, between `low` and `high`.

        The bounds matter for strings and binary only, and only for how finely codes tell values
        apart: the prefix is the one that both share.
        """
        if low is None or high is None or not isinstance(_codec(type, b""), BytesCodec):
            return cls(type)
        limit = min(len(low), len(high), MAX_PREFIX)
        shared = next((i for i in range(limit) if low[i] != high[i]), limit)
        return cls(type, low[:shared])

    @property
    def exact(self) -> bool:
        """Whether different values always have different codes."""
        return self._codec.exact

    def encode(self, array: pa.Array | pa.ChunkedArray) -> Encoded:
        """Key codes of an Arrow column.

        Raises:
            UnsupportedError: the array's Arrow type is not the one Spark uses for `type`.
        """
        codec = self._codec
        if not codec.accepts(array.type):
            raise UnsupportedError(
                "SIEVE_UNEXPECTED_ARROW_TYPE",
                f"a column of type {self.type} arrived as Arrow {array.type}; "
                "index it again with a Spark version that Sieve supports",
            )
        chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        parts = [_encode_chunk(codec, chunk) for chunk in chunks if len(chunk)]
        if not parts:
            return Encoded(np.empty(0, np.int64), np.empty(0, np.bool_), np.empty(0, np.bool_))
        if len(parts) == 1:
            return parts[0]
        return Encoded(
            np.concatenate([part.codes for part in parts]),
            np.concatenate([part.valid for part in parts]),
            np.concatenate([part.nan for part in parts]),
        )

    def literal(self, value: object) -> Literal:
        """The code of a constant in its wire form; InvalidInputError when it has another form."""
        return self._codec.literal(value)

    def starting_with(self, value: object) -> tuple[int, int]:
        """Least and greatest code of the values that begin with a constant in its wire form."""
        codec = self._codec
        if not isinstance(codec, BytesCodec):
            raise refuse_literal(value, f"no prefix of a {self.type} value")
        return codec.span(wire_bytes(value))

    def decode(self, code: int) -> str:
        """The least value that has this code, in words for people."""
        return self._codec.decode(code)

    def to_json(self) -> dict[str, str]:
        """The form kept in manifests: type, and the prefix in base64 where there is one."""
        form = {"type": self.type}
        if self.prefix:
            form["prefix"] = base64.b64encode(self.prefix).decode("ascii")
        return form

    @classmethod
    def from_json(cls, form: object) -> Encoder:
        """Inverse of `to_json`.

        Raises:
            CorruptError: the form is not one that `to_json` makes.
        """
        problem = "it is not an object with a type"
        if isinstance(form, dict) and isinstance(form.get("type"), str):
            prefix = form.get("prefix", "")
            try:
                return cls(form["type"], base64.b64decode(prefix, validate=True))
            except (binascii.Error, TypeError, ValueError):
                problem = "its prefix is not base64"
            except (InvalidInputError, UnsupportedError) as error:
                problem = error.message
        raise CorruptError("SIEVE_BAD_ENCODER", f"the key encoder cannot be read: {problem}")

    @property
    def _codec(self) -> Codec:
        return _codec(self.type, self.prefix)


@functools.lru_cache(maxsize=256)
def _codec(spark_type: str, prefix: bytes) -> Codec:
    """The codec for a Spark type; UnsupportedError names the type and what can be indexed."""
    if spark_type in _FIXED:
        return _FIXED[spark_type]
    if spark_type == "binary":
        return BytesCodec(prefix, text=False)
    if spark_type == "string" or re.fullmatch(r"varchar\([0-9]{1,10}\)", spark_type):
        return BytesCodec(prefix, text=True)
    if sizes := re.fullmatch(r"decimal\(([0-9]{1,2}),\s?([0-9]{1,2})\)", spark_type):
        precision, scale = int(sizes[1]), int(sizes[2])
        if 1 <= precision <= 38 and scale <= precision:
            return DecimalCodec(precision, scale)
    raise UnsupportedError(
        "SIEVE_UNSUPPORTED_TYPE",
        f"a column of type {spark_type[:200]} cannot be indexed; types that can are {_INDEXABLE}",
    )


def _encode_chunk(codec: Codec, array: pa.Array) -> Encoded:
    valid: Flags = array.is_valid().to_numpy(zero_copy_only=False)
    nan = codec.nans(array) if isinstance(codec, FloatCodec) else np.zeros(len(array), np.bool_)
    return Encoded(codec.codes(array), valid, nan)
