"""Key codes of strings and binary: the eight bytes after the common prefix of all values.

Values that begin alike, such as URLs, often have the same first eight bytes. Therefore the encoder
first strips the longest common prefix of the column. Example with the prefix ``user-``: the code of
``user-00000042x`` consists of the bytes ``00000042``.
"""

# ruff: noqa: D102 - the protocol documents the methods of a codec once

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sieve.arrays.dtypes import Codes
from sieve.encoding.codec import GREATEST, LEAST, Literal, filled, wire_bytes
from sieve.encoding.word_reader import WordReader

BYTES_OF_A_CODE = 8
"""The number of bytes after the prefix that form a code if there are no split points."""
_SIGN = np.uint64(1 << 63)


class SuffixCodec(Protocol):
    """Encodes the bytes after the prefix; codes sort like unsigned bytes."""

    def codes(self, values: pa.Array, start: int) -> Codes:
        """Encodes large binaries from byte `start` on, int64[n]; undefined for nulls."""

    def code(self, value: bytes) -> int:
        """The code of one value."""

    def greatest(self, start: bytes) -> int:
        """The greatest code of the values that begin with `start`."""

    def least_value(self, code: int) -> bytes:
        """The least value with this code."""


@dataclass(frozen=True, slots=True)
class LeadingBytes:
    """The next eight bytes, big-endian and zero padded."""

    def codes(self, values: pa.Array, start: int) -> Codes:
        reader = WordReader(values)
        image = reader.at(reader.begins + start, reader.ends).byteswap()
        return (image ^ _SIGN).view(np.int64)

    def code(self, value: bytes) -> int:
        return int.from_bytes(value[:8].ljust(8, b"\0"), "big") + LEAST

    def greatest(self, start: bytes) -> int:
        return int.from_bytes(start[:8].ljust(8, b"\xff"), "big") + LEAST

    def least_value(self, code: int) -> bytes:
        return (code - LEAST).to_bytes(8, "big").rstrip(b"\0")


@dataclass(frozen=True, slots=True)
class BytesCodec:
    """Strings and binary in Spark's order, by unsigned bytes.

    A value without the prefix gets the least or the greatest code, so that codes and values have
    the same order.
    """

    prefix: bytes
    text: bool
    suffix: SuffixCodec = LeadingBytes()
    exact: bool = False

    def accepts(self, arrow_type: pa.DataType) -> bool:
        kind = "string" if self.text else "binary"
        return str(arrow_type) in (kind, f"large_{kind}", f"{kind}_view")

    def codes(self, array: pa.Array) -> Codes:
        values = array.cast(pa.large_binary())
        codes = self.suffix.codes(values, len(self.prefix))
        if self.prefix:
            begins = pc.starts_with(values, pattern=self.prefix)
            if not pc.all(begins).as_py():
                below = pc.less(values, pa.scalar(self.prefix, pa.large_binary()))
                ends = np.where(filled(below), LEAST, GREATEST)
                codes = np.where(filled(begins), codes, ends)
        return codes

    def literal(self, value: object) -> Literal:
        image = wire_bytes(value)
        return Literal(self._code(image), image=image)

    def span(self, start: bytes) -> tuple[int, int]:
        """Least and greatest code of the values that begin with `start`."""
        if self.prefix.startswith(start):
            return LEAST, GREATEST
        if not start.startswith(self.prefix):
            return self._code(start), self._code(start)
        return self._code(start), self.suffix.greatest(start[len(self.prefix) :])

    def decode(self, code: int) -> str:
        if self.prefix and code in (LEAST, GREATEST):
            value = b"" if code == LEAST else self.prefix
        else:
            value = self.prefix + self.suffix.least_value(code)
        return value.decode("utf-8", "backslashreplace") if self.text else value.hex().upper()

    def _code(self, value: bytes) -> int:
        if value.startswith(self.prefix):
            return self.suffix.code(value[len(self.prefix) :])
        return LEAST if value < self.prefix else GREATEST
