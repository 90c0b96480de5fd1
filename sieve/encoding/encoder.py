"""Encoder: maps one column's values, and constants of queries, to order-preserving key codes.

The encoder's prefix, split points and window depend on the column's data, so a build stores its
encoder with each run that it writes. All runs of a version have the same encoder as the version's
base run. A look-up encodes the query's constants with the encoder of the base run.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from sieve.arrays.dtypes import Codes, Flags
from sieve.encoding.bytes_codec import BYTES_OF_A_CODE, BytesCodec
from sieve.encoding.codec import (
    GREATEST,
    LEAST,
    Codec,
    DateCodec,
    FloatCodec,
    IntegerCodec,
    Literal,
    TimestampCodec,
    refuse_literal,
    wire_bytes,
)
from sieve.encoding.codec_of_type import codec_of
from sieve.encoding.decimal_codec import DecimalCodec, Window
from sieve.encoding.split_codec import SplitCodec
from sieve.encoding.split_points import LONGEST_POINT, MOST_DIGITS, Splits
from sieve.errors import CorruptError, InvalidInputError, UnsupportedError

__all__ = ["GREATEST", "LEAST", "Encoded", "Encoder", "Literal", "Splits", "Window"]

# The maximum length of the prefix in bytes. Every manifest contains the prefix, so the encoder
# truncates a longer common prefix. All values begin with the truncated prefix, too.
MAX_PREFIX = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """The key codes of a column of n values.

    Attributes:
        codes: int64[n], the code of each value; undefined if the value is NULL or NaN.
        valid: bool[n], whether each value is not NULL.
        nan: bool[n], whether each value is NaN; a NaN is also valid.
    """

    codes: Codes
    valid: Flags
    nan: Flags


@dataclass(frozen=True, slots=True)
class Encoder:
    """Encodes one column's values, and the constants with which queries compare the values.

    Attributes:
        type: Spark's simple name of the column's type, such as ``decimal(10,2)``.
        prefix: for strings and binary, the common prefix that is stripped from every value.
        splits: for strings and binary, the split points of the bytes after the prefix. None means
            an encoder without split points.
        window: for decimals of more than 18 digits, the range of values that codes distinguish.
            None means the range of all decimals of the type.

    Raises:
        UnsupportedError: Sieve cannot index columns of this type.
        InvalidInputError: prefix, splits or window is set, but encoders of the type do not use it.
    """

    type: str
    prefix: bytes = b""
    splits: Splits | None = None
    window: Window | None = None
    _codec: Codec = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        codec = codec_of(self.type)
        if isinstance(codec, BytesCodec) and self.window is None:
            suffix = codec.suffix if self.splits is None else SplitCodec(self.splits)
            codec = replace(codec, prefix=self.prefix, suffix=suffix)
        elif isinstance(codec, DecimalCodec) and not codec.exact and not self._cut:
            codec = replace(codec, window=self.window)
        elif self._cut or self.window is not None:
            raise InvalidInputError(
                "SIEVE_BAD_ENCODER",
                f"keys of type {self.type} have no such prefix, splits or window; leave them out",
            )
        object.__setattr__(self, "_codec", codec)

    @property
    def _cut(self) -> bool:
        return bool(self.prefix) or self.splits is not None

    @classmethod
    def for_type(
        cls,
        type: str,  # noqa: A002 - the word that Spark's catalog and the field use
        low: bytes | None = None,
        high: bytes | None = None,
    ) -> Encoder:
        """Returns the encoder for a column whose values are expected between `low` and `high`.

        The bounds are used only for strings and binary: the encoder's prefix is the common prefix
        of both bounds. A value outside the bounds is encoded correctly, but perhaps less precisely.
        """
        if low is None or high is None or not isinstance(codec_of(type), BytesCodec):
            return cls(type)
        limit = min(len(low), len(high), MAX_PREFIX)
        shared = next((i for i in range(limit) if low[i] != high[i]), limit)
        return cls(type, low[:shared])

    @property
    def exact(self) -> bool:
        """Returns whether different values always have different codes."""
        return self._codec.exact

    @property
    def has_integer_codes(self) -> bool:
        """Returns whether the code of a value equals the value's wire form, an integer."""
        return isinstance(self._codec, IntegerCodec | DateCodec | TimestampCodec)

    @property
    def leading_bytes(self) -> int | None:
        """The number of leading bytes of a string or binary that can affect the value's code.

        The result is None for types other than strings and binary.
        """
        if not isinstance(self._codec, BytesCodec):
            return None
        suffix = BYTES_OF_A_CODE if self.splits is None else LONGEST_POINT + MOST_DIGITS
        return len(self.prefix) + suffix

    @property
    def of_bytes(self) -> Encoder:
        """The encoder for the same column read as binary.

        A string has the same code in the encoder for strings and in the encoder for binary.
        """
        if not isinstance(self._codec, BytesCodec):
            return self
        return Encoder("binary", self.prefix, self.splits)

    def encode(self, array: pa.Array | pa.ChunkedArray) -> Encoded:
        """Returns the key codes of an Arrow column.

        Raises:
            UnsupportedError: the Arrow type of `array` differs from the Arrow type that Spark uses
                for `type`.
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
        """Returns the code of a constant, given in the wire form of the column's type.

        Raises InvalidInputError if the constant does not have the wire form of the column's type.
        """
        return self._codec.literal(value)

    def starting_with(self, value: object) -> tuple[int, int]:
        """Returns the least and greatest code of values that begin with a constant (wire form)."""
        codec = self._codec
        if not isinstance(codec, BytesCodec):
            raise refuse_literal(value, f"no prefix of a {self.type} value")
        return codec.span(wire_bytes(value))

    def decode(self, code: int) -> str:
        """Returns the least value with the code `code`, as text for people."""
        return self._codec.decode(code)

    def to_json(self) -> dict[str, object]:
        """Returns the encoder's JSON form in manifests: type and settings, with bytes in base64."""
        form: dict[str, object] = {"type": self.type}
        if self.prefix:
            form["prefix"] = _text(self.prefix)
        if self.splits is not None:
            form["splits"] = _text(self.splits.to_bytes())
            form["alphabet"] = _text(self.splits.alphabet)
        if self.window is not None:
            form["low"], form["shift"] = str(self.window.low), self.window.shift
        return form

    @classmethod
    def from_json(cls, form: object) -> Encoder:
        """Returns the encoder with the JSON form `form`; the inverse of `to_json`.

        Raises:
            CorruptError: the form is not the JSON form of any encoder.
        """
        try:
            return cls._of_members(form)
        except (InvalidInputError, UnsupportedError) as error:
            problem = error.message
        except (LookupError, TypeError, ValueError):
            problem = "a member is missing, unknown or of another kind"
        raise CorruptError("SIEVE_BAD_ENCODER", f"the key encoder cannot be read: {problem}")

    @classmethod
    def _of_members(cls, form: object) -> Encoder:
        if not isinstance(form, dict) or not isinstance(form.get("type"), str):
            raise TypeError
        splits = window = None
        prefix = _bytes(form.get("prefix", ""))
        if "splits" in form:
            splits = Splits.from_bytes(_bytes(form["splits"]), _bytes(form["alphabet"]))
        if "low" in form:
            if not isinstance(form["low"], str) or type(form["shift"]) is not int:
                raise TypeError
            window = Window(int(form["low"]), form["shift"])
        encoder = cls(form["type"], prefix, splits, window)
        # The reader refuses a JSON member that this release does not know, because the member could
        # change the codes.
        if encoder.to_json() != form:
            raise ValueError
        return encoder


def _encode_chunk(codec: Codec, array: pa.Array) -> Encoded:
    valid: Flags = array.is_valid().to_numpy(zero_copy_only=False)
    nan = codec.nans(array) if isinstance(codec, FloatCodec) else np.zeros(len(array), np.bool_)
    return Encoded(codec.codes(array), valid, nan)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
