"""Key codes of strings with split points: a code consists of a point's number and digits.

Example: the points are ``customer-`` and ``supplier-``, each value begins with one of these points,
and the alphabet is ``0123456789``. The key code of ``supplier-17`` consists of the point number 1
and the digits of ``17``. The bytes of the point itself are not in the code.
"""

# ruff: noqa: D102 - the protocol `SuffixCodec` documents the methods that codecs share

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from sieve.arrays.dtypes import Codes, Offsets, Words
from sieve.encoding.codec import LEAST
from sieve.encoding.point_search import PointSearch
from sieve.encoding.split_points import Point, Splits
from sieve.encoding.word_reader import WordReader

_OFF: Final = 0x80
"""The flag for bytes outside the alphabet, in the table that translates bytes to digits."""
_ANY_OFF: Final = np.uint64(0x8080808080808080)
_SIGN: Final = np.uint64(1 << 63)
# For each step of `_joined`, the shift in bits and a mask. The masks select every other byte, every
# other pair of bytes, and every other four bytes.
_LANES: Final = ((8, np.uint64(0x00FF00FF00FF00FF)), (16, np.uint64(0x0000FFFF0000FFFF)),
                 (32, np.uint64(0x00000000FFFFFFFF)))  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class _Stretches:
    """The stretches (ranges of values) between borders; stretch 0 is below all borders.

    Attributes:
        search: finds the number of the stretch that contains a value.
        codes: uint64[s], the code of each stretch, counted from the least code. The digits of a
            value are added to the stretch's code.
        skips: int64[s], the number of leading bytes that all values of the stretch have in common.
        digits: uint64[s], 1 if codes of the stretch contain digits; 0 if all values of the stretch
            have the same code.
    """

    search: PointSearch
    codes: Words
    skips: Offsets
    digits: Words


class SplitCodec:
    """The codec for strings and binary with the split points of a `Splits`.

    The least code is for values below the first point. The greater codes are divided among the
    points in ascending order: each point has ``radix ** digits`` codes. The digits of a code stand
    for the bytes after the point's shared bytes. A value of a point can be greater than all values
    with the shared bytes; it gets the point's last code. A byte outside the alphabet gets the digit
    of the next lower byte in the alphabet. All digits after this digit are the greatest digit.
    """

    def __init__(self, splits: Splits) -> None:
        self._splits = splits
        self._starts = [point.start for point in splits.points]
        self._symbols = b"\0" + splits.alphabet if splits.alphabet else bytes(range(256))
        self._ranks = [bisect_right(self._symbols, byte) - 1 for byte in range(256)]
        self._radix, self._digits = splits.radix, splits.digits
        self._size: int = self._radix**self._digits

    def codes(self, values: pa.Array, start: int) -> Codes:
        stretches, reader = self._stretches, WordReader(values)
        places = reader.begins + start
        found = stretches.search.count(reader, places)
        places = places + stretches.skips[found]
        numbers = self._numbers(reader, places) * stretches.digits[found]
        numbers += stretches.codes[found]
        return (numbers ^ _SIGN).view(np.int64)

    def code(self, value: bytes) -> int:
        number = bisect_right(self._starts, value) - 1
        if number < 0:
            return LEAST
        point = self._splits.points[number]
        if not value.startswith(point.start[: point.shared]):
            return self._last(number)
        return self._first(number) + self._number(value[point.shared :], 0)

    def greatest(self, start: bytes) -> int:
        reach = len(start)
        number = bisect_right(self._starts, start, key=lambda point: point[:reach]) - 1
        if number < 0:
            return LEAST
        point = self._splits.points[number]
        if not start.startswith(point.start[: point.shared]):
            return self._last(number)
        return self._first(number) + self._number(start[point.shared :], self._radix - 1)

    def least_value(self, code: int) -> bytes:
        if code == LEAST:
            return b""
        number, rest = divmod(code - LEAST - 1, self._size)
        if number >= len(self._starts):
            return self._starts[-1]
        digits = bytearray()
        for _ in range(self._digits):
            rest, digit = divmod(rest, self._radix)
            digits.append(self._symbols[digit])
        point = self._splits.points[number]
        return max(point.start, point.start[: point.shared] + digits[::-1].rstrip(b"\0"))

    def _first(self, number: int) -> int:
        return LEAST + 1 + number * self._size

    def _last(self, number: int) -> int:
        return self._first(number) + self._size - 1

    def _number(self, value: bytes, padding: int) -> int:
        """Returns a value's first digits as a number; `padding` replaces each missing digit."""
        radix, number, beyond = self._radix, 0, -1
        for at in range(self._digits):
            digit = padding if at >= len(value) else self._ranks[value[at]]
            number = number * radix + (digit if beyond < 0 else beyond)
            if at < len(value) and self._symbols[digit] != value[at]:
                beyond = radix - 1
        return number

    @cached_property
    def _stretches(self) -> _Stretches:
        """Each point's stretch, and the stretch above its values with the shared bytes, if any."""
        borders, codes, skips, digits = [], [0], [0], [0]
        following = [*self._starts[1:], None]
        for number, (point, after) in enumerate(zip(self._splits.points, following, strict=True)):
            borders.append(point.start)
            codes.append(self._first(number) - LEAST)
            skips.append(point.shared)
            digits.append(1)
            end = _end(point)
            if end is not None and (after is None or end < after):
                borders.append(end)
                codes.append(self._last(number) - LEAST)
                skips.append(0)
                digits.append(0)
        return _Stretches(
            PointSearch(borders),
            np.array(codes, np.uint64),
            np.array(skips, np.int64),
            np.array(digits, np.uint64),
        )

    @cached_property
    def _table(self) -> bytes:
        marks = (
            _OFF if self._symbols[rank] != byte else 0 for byte, rank in enumerate(self._ranks)
        )
        return bytes(rank | mark for rank, mark in zip(self._ranks, marks, strict=True))

    def _numbers(self, reader: WordReader, places: Offsets) -> Words:
        """Computes `_number` with padding 0 for each value; returns uint64[n]."""
        radix, count = self._radix, self._digits
        numbers = np.zeros(len(places), np.uint64)
        off = np.zeros(len(places), np.uint64)
        for first in range(0, count, 8):
            taken = min(8, count - first)
            words = reader.at(places + first, reader.ends)
            if self._splits.alphabet:
                words = np.frombuffer(words.tobytes().translate(self._table), np.uint64)
            words = words.byteswap() >> np.uint64(8 * (8 - taken))
            numbers = numbers * np.uint64(radix**taken) + _joined(words, radix)
            if self._splits.alphabet:
                off |= words
        odd = np.flatnonzero(off & _ANY_OFF)
        if len(odd):
            numbers[odd] = self._odd_numbers(reader, places[odd], reader.ends[odd])
        return numbers

    def _odd_numbers(self, reader: WordReader, places: Offsets, ends: Offsets) -> Words:
        """Does the work of `_numbers` for values with bytes outside the alphabet."""
        radix, count = self._radix, self._digits
        words = [reader.at(places + first, ends) for first in range(0, count, 8)]
        content = np.stack(words, axis=1).tobytes().translate(self._table)
        ranks = np.frombuffer(content, np.uint8).reshape(len(places), -1)[:, :count]
        after = np.zeros(len(places), np.bool_)
        numbers = np.zeros(len(places), np.uint64)
        for column in ranks.T:
            digit = np.where(after, np.uint8(radix - 1), column & (_OFF - 1))
            numbers = numbers * np.uint64(radix) + digit
            after |= column >= _OFF
        return numbers


def _end(point: Point) -> bytes | None:
    """Returns the least value above all values that begin with a point's shared bytes.

    The result is None if the shared bytes are empty or all 0xFF.
    """
    shared = point.start[: point.shared].rstrip(b"\xff")
    return shared[:-1] + bytes((shared[-1] + 1,)) if shared else None


def _joined(digits: Words, radix: int) -> Words:
    """Combines the eight digits of a word to a number.

    Each byte of the word is a digit; the highest byte is the first digit.

    The function works in three steps: it combines digits to pairs, pairs to fours, and fours to
    eights. An intermediate number of n digits is less than 256^n, so it fits into its n bytes of
    the word.
    """
    for bits, lanes in _LANES:
        digits = ((digits >> np.uint64(bits)) & lanes) * np.uint64(radix) + (digits & lanes)
        radix *= radix
    return digits
