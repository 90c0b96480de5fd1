"""Split points: a small, sorted dictionary of prefixes by which an encoder distinguishes strings.

A value belongs to the greatest point that is at or below the value. Most values that belong to a
point begin with the same bytes, the point's *shared* bytes. A key code therefore consists of the
number of the point and the bytes that follow the shared bytes. The column's *alphabet* contains the
bytes that occur after the shared bytes; these bytes serve as digits.

Related work: Zhang et al., "Order-Preserving Key Compression for In-Memory Search Trees".
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from sieve.errors import InvalidInputError

MOST_POINTS = 1 << 12
MOST_BYTES = 1 << 14
"""Maximum size of all points on disk, in bytes. The size is limited because every manifest contains
the points."""
LONGEST_POINT = 128
MOST_DIGITS = 24
WIDEST_ALPHABET = 127
"""Maximum number of bytes in an alphabet. With a larger alphabet, digits would save less than one
bit per byte, so digits are then whole bytes."""

_HEADS = 3


@dataclass(frozen=True, slots=True)
class Point:
    """A split point: the least value of a stretch of values, and the number of shared bytes.

    The shared bytes are the leading bytes that most values of the stretch have in common.
    """

    start: bytes
    shared: int


@dataclass(frozen=True, slots=True)
class Splits:
    """Split points in ascending order, and the alphabet of the bytes that follow the shared bytes.

    Attributes:
        points: 1 to `MOST_POINTS` points. No point ends in a zero byte. So zeros appended to a
            value do not move the value past a point.
        alphabet: the bytes that serve as digits, ascending and without the zero byte. If the
            alphabet is empty, all bytes serve as digits.

    Raises:
        InvalidInputError: the points or the alphabet break one of these rules, or exceed a limit of
            this module.
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
        """The number of different digits; digit 0 means a zero byte or the end of the value."""
        return len(self.alphabet) + 1 if self.alphabet else 256

    @property
    def digits(self) -> int:
        """The number of digits in a code: as many as fit into 64 bits next to a point's number."""
        room = ((1 << 64) - 1) // len(self.points)
        count = 0
        while count < MOST_DIGITS and self.radix ** (count + 1) <= room:
            count += 1
        return count

    def to_bytes(self) -> bytes:
        """Returns the points in their form on disk.

        On disk, each point omits the leading bytes that it shares with the previous point.

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
        """The inverse of `to_bytes`; raises InvalidInputError for bytes of invalid points."""
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
    """Returns the size of the given points on disk, in bytes."""
    starts = (b"", *(point.start for point in points))
    return sum(len(b) - common(a, b) + _HEADS for a, b in itertools.pairwise(starts))


def common(one: bytes, other: bytes) -> int:
    """Returns the length of the longest common prefix of two values, in bytes."""
    size = min(len(one), len(other))
    if one[:size] == other[:size]:
        return size
    apart = int.from_bytes(one[:size], "big") ^ int.from_bytes(other[:size], "big")
    return size - (apart.bit_length() + 7) // 8


def _wrong(what: str) -> InvalidInputError:
    return InvalidInputError("SIEVE_BAD_ENCODER", f"split points cannot be: {what}")
