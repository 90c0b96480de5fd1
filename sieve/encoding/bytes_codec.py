"""Key codes of strings and binary: the eight bytes after the common prefix of all values.

Many columns, such as URLs, have the same first eight bytes in most values. Therefore the encoder
first strips the longest prefix that all values of the column share. Example with the prefix
``user-``: the code of ``user-00000042x`` consists of the bytes ``00000042``.
"""

# ruff: noqa: D102 - the protocol `Codec` or `SuffixCodec` documents the methods that codecs share

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
"""If an encoder has no split points, a code consists of this number of bytes after the prefix."""
_SIGN = np.uint64(1 << 63)


class SuffixCodec(Protocol):
    """Encodes the bytes after a column's common prefix, so that codes sort like the bytes."""

    def codes(self, values: pa.Array, start: int) -> Codes:
        """Returns int64[n]: the codes of the values' bytes from `start` on; undefined for nulls."""

    def code(self, value: bytes) -> int:
        """Returns the code of one value."""

    def greatest(self, start: bytes) -> int:
        """Returns the greatest code of the values that begin with the bytes `start`."""

    def least_value(self, code: int) -> bytes:
        """Returns the least value with the code `code`."""


@dataclass(frozen=True, slots=True)
class LeadingBytes:
    """Encodes a value as its first eight bytes, padded with zeros, read as a big-endian number."""

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
    """The codec of strings and binary; Spark orders both types by unsigned bytes.

    A value without the common prefix gets an extreme code. A value below the prefix gets the least
    code, and a value above the prefix gets the greatest code. So codes sort like values.
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
        """Returns the least and the greatest code of the values that begin with `start`."""
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
