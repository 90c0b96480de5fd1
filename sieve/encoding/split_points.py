"""Split points: a small dictionary of prefixes with which an encoder distinguishes strings.

A value belongs to the last point that is not greater than the value. Most values of a point begin
with the same bytes, the point's *shared* bytes. A key code therefore consists of the number of the
point and the bytes that follow the shared bytes. The column's *alphabet* contains the bytes that
occur after the shared bytes; these bytes serve as digits.

Related work: Zhang et al., "Order-Preserving Key Compression for In-Memory Search Trees".
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from sieve.errors import InvalidInputError

MOST_POINTS = 1 << 12
MOST_BYTES = 1 << 14
"""Bytes of all points on disk; every manifest contains them."""
LONGEST_POINT = 128
MOST_DIGITS = 24
WIDEST_ALPHABET = 127
"""With a larger alphabet, each digit is a whole byte, because the alphabet would save less than a
bit per byte."""

_HEADS = 3


@dataclass(frozen=True, slots=True)
class Point:
    """The least value of a stretch, and how many bytes most values of the stretch share."""

    start: bytes
    shared: int


@dataclass(frozen=True, slots=True)
class Splits:
    """Points in ascending order, and the alphabet of the bytes that follow the shared bytes.

    Attributes:
        points: 1 to `MOST_POINTS` points. Points do not end in a zero byte, so zero padding does
            not change the order of values and points.
        alphabet: ascending, without the zero byte; empty means all bytes.

    Raises:
        InvalidInputError: the points or the alphabet break one of these rules or a limit.
    """

    points: tuple[Point, ...]
    alphabet: bytes = b""

    def __post_init__(self) -> None:
        if not 1 <= len(self.points) <= MOST_POINTS:
            raise _wrong(f"there are {len(self.points)} points, not 1 to {MOST_POINTS}")
        for point in self.points:
            if len(point.start) > LONGEST_POINT or point.start.endswith(b"\0"):
                raise _wrong("a point is too long or ends in a zero byte")
            if not 0 <= point.shared <= len(point.start):
                raise _wrong("a point shares more bytes than it has")
        if any(a.start >= b.start for a, b in itertools.pairwise(self.points)):
            raise _wrong("the points do not ascend")
        ascending = sorted(set(self.alphabet) - {0})
        if len(ascending) > WIDEST_ALPHABET or bytes(ascending) != self.alphabet:
            raise _wrong("the alphabet does not ascend, or has a zero, or too many bytes")
        if packed_size(self.points) > MOST_BYTES:
            raise _wrong(f"the points take more than {MOST_BYTES} bytes")

    @property
    def radix(self) -> int:
        """Number of digits; digit 0 stands for a zero byte and for the end of a value."""
        return len(self.alphabet) + 1 if self.alphabet else 256

    @property
    def digits(self) -> int:
        """The number of digits that fit in 64 bits together with the number of a point."""
        room = ((1 << 64) - 1) // len(self.points)
        count = 0
        while count < MOST_DIGITS and self.radix ** (count + 1) <= room:
            count += 1
        return count

    def to_bytes(self) -> bytes:
        """Returns the points on disk, each without the bytes shared with the point before.

        Source: Bayer and Unterauer, "Prefix B-Trees".
        """
        parts, before = [], b""
        for point in self.points:
            kept = common(before, point.start)
            rest = point.start[kept:]
            parts.append(bytes((kept, len(rest))) + rest + bytes((point.shared,)))
            before = point.start
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, data: bytes, alphabet: bytes) -> Splits:
        """Inverse of `to_bytes`; InvalidInputError for bytes that `to_bytes` cannot have made."""
        points: list[Point] = []
        at, before = 0, b""
        while at < len(data):
            if len(points) == MOST_POINTS or at + _HEADS > len(data):
                raise _wrong("there are too many points, or the last is cut off")
            kept, size = data[at], data[at + 1]
            stop = at + 2 + size
            if kept > len(before) or stop >= len(data):
                raise _wrong("a point is cut off, or goes on from bytes that are not there")
            before = before[:kept] + data[at + 2 : stop]
            points.append(Point(before, data[stop]))
            at = stop + 1
        return cls(tuple(points), alphabet)


def packed_size(points: Sequence[Point]) -> int:
    """Number of bytes that the given points take on disk."""
    starts = (b"", *(point.start for point in points))
    return sum(len(b) - common(a, b) + _HEADS for a, b in itertools.pairwise(starts))


def common(one: bytes, other: bytes) -> int:
    """Length of the longest common prefix of two values."""
    size = min(len(one), len(other))
    if one[:size] == other[:size]:
        return size
    apart = int.from_bytes(one[:size], "big") ^ int.from_bytes(other[:size], "big")
    return size - (apart.bit_length() + 7) // 8


def _wrong(what: str) -> InvalidInputError:
    return InvalidInputError("SIEVE_BAD_ENCODER", f"split points cannot be: {what}")
