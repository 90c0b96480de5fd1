"""Tests the choice of split points: where to split, and each part's prefix and digits."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sieve.encoding.split_points import Point, Splits, packed_size
from sieve.indexing import choose_split_points
from sieve.indexing.choose_split_points import Fronts, _alphabet, split

PAGES = [b"a.com/x1", b"a.com/x2", b"a.com/y1", b"b.org/1", b"b.org/2", b"c"]
HOSTS = [b"h%02d/" % host + b"q" * 30 + b"%04d" % k for host in range(3) for k in range(20)]
MOST = 1 << 14


def made(
    values: Sequence[bytes], count: int, spare: float, most: int = MOST, start: int = 0
) -> Splits | None:
    """Chooses split points for values that share their first `start` bytes."""
    return split(Fronts(values, start), count, spare, most)


def test_fronts_are_the_bytes_after_the_shared_prefix() -> None:
    """A "front" consists of the 152 bytes after the shared prefix, padded with zeros."""
    fronts = Fronts(PAGES, 0)
    assert fronts.bytes.shape == (6, 152)
    assert (fronts.shared.tolist(), fronts.radix) == ([7, 6, 0, 6, 0], 14)
    later = Fronts([b"xx" + page for page in PAGES], 2)
    assert np.array_equal(later.bytes, fronts.bytes)
    alike = Fronts([b"p" * 152 + b"1", b"p" * 152 + b"2"], 0)
    assert (alike.shared.tolist(), alike.radix) == ([152], 2)
    # If the alphabet would have more than 127 bytes, each digit is a whole byte.
    assert Fronts([bytes([k]) for k in range(1, 128)], 0).radix == 128
    assert Fronts([bytes([k]) for k in range(1, 129)], 0).radix == 256


@pytest.mark.parametrize(
    ("count", "points", "alphabet"),
    [
        (1, [(b"", 0)], b"./12abcgmorxy"),
        (2, [(b"a.com/", 6), (b"b", 0)], b"./12bcgorxy"),
        (3, [(b"a.com/x", 7), (b"a.com/y", 0), (b"b", 0)], b"./12abcgmory"),
        (
            4,
            [(b"a.com/x", 7), (b"a.com/y", 0), (b"b.org/", 6), (b"c", 0)],
            b"./12acmoy",
        ),
    ],
)
def test_values_are_split_where_neighbours_differ_most(
    count: int, points: list[tuple[bytes, int]], alphabet: bytes
) -> None:
    """A split is where neighbours share the fewest bytes. Each split point is as short as possible.

    The digits of a code come from the bytes after the shared bytes.
    """
    found = Splits(tuple(Point(*point) for point in points), alphabet)
    assert made(PAGES, count, 60) == found
    # When all values have different codes, more split points change nothing.
    if count == 4:
        assert made(PAGES, 8, 60) == found
    assert made(PAGES, count, 0) == made(PAGES, 1, 60)


@pytest.mark.parametrize("count", [3, 4, 16])
def test_digits_distinguish_the_values_of_each_host(count: int) -> None:
    """If each host has one split point, the digits distinguish all values of the host."""
    starts = [b"h%02d/" % host + b"q" * 30 + b"00" for host in range(3)]
    assert made(HOSTS, count, 20) == Splits(tuple(Point(s, 36) for s in starts), b"0123456789")


def test_one_more_point_splits_the_group_of_most_equal_codes() -> None:
    """One more split point divides the group that has the most equal codes.

    Without the second split point, two hosts with the same first two bytes share one point.
    """
    first = b"h00/" + b"q" * 30 + b"00"
    assert made(HOSTS, 1, 20) == Splits((Point(b"h0", 2),), b"/012q")
    assert made(HOSTS, 2, 20) == Splits((Point(first, 36), Point(b"h01", 2)), b"/0123456789q")


def test_too_many_bytes_give_no_split_points() -> None:
    """The split points of a column may have exactly the allowed number of bytes.

    If the split points need one byte more than allowed, the column gets no split points.
    """
    three = made(HOSTS, 3, 20)
    assert three is not None
    size = packed_size(three.points)
    assert made(HOSTS, 3, 20, size) == three
    assert made(HOSTS, 3, 20, size - 1) is None


def test_a_point_is_128_bytes_long_at_most() -> None:
    """A split point has at most 128 bytes. Values that differ only after 128 bytes share a code."""
    found = made([b"p" * 200 + b"%03d" % k for k in range(50)], 4, 0)
    assert found == Splits((Point(b"p" * 128, 128),), b"p")


@pytest.mark.parametrize(
    ("text", "strays", "alphabet"),
    [
        (b"aaab", 1, b"a"),
        (b"aaab", 0.9, b"ab"),
        (b"aaabbc", 3, b"a"),
        (b"aaabbc", 2.9, b"ab"),
        (b"\0\0a", 0, b"a"),
        (bytes(range(1, 128)), 0, bytes(range(1, 128))),
        (bytes(range(1, 129)), 0, b""),
        (bytes(range(1, 129)), 1, bytes(range(2, 129))),
    ],
)
def test_the_rarest_bytes_are_no_digits(text: bytes, strays: float, alphabet: bytes) -> None:
    """The alphabet omits the rarest bytes, as long as they occur less often than a limit.

    The digit 0 stands for the zero byte.
    """
    counts = np.bincount(np.frombuffer(text, np.uint8), minlength=256)
    assert _alphabet(counts, strays) == alphabet


@pytest.mark.parametrize(("odd", "alphabet"), [(1, b"ab"), (2, b"ab~")])
def test_one_value_in_two_hundred_may_have_an_odd_byte(odd: int, alphabet: bytes) -> None:
    """The alphabet omits a byte that only one of 200 values has.

    If two of 200 values have a byte, the alphabet contains this byte.
    """
    plain = [bytes(b"ab"[k >> bit & 1] for bit in range(8)) for k in range(200 - odd)]
    found = made(sorted([*plain, b"~aaaaaaa", b"~bbbbbbb"][:200]), 1, 0)
    assert found is not None
    assert found.alphabet == alphabet


def test_group_is_split_amid_its_most_similar_values() -> None:
    """Of several equally good positions, the split is at the one nearest to the group's middle."""
    steps = [9, 9, 2, 9, 2, 9, 9, 9, 2]
    for first in (0, 3):
        fronts: Any = SimpleNamespace(shared=np.array([0] * first + steps))
        group = choose_split_points._Group(0, first, first + 10, 2)
        assert choose_split_points._middle(fronts, group, 5) == first + 5


@pytest.mark.parametrize(("second", "points"), [(b"a\1", [b"", b"a\1"]), (b"a\0", [b""])])
def test_group_joins_the_previous_one_at_a_zero_byte(second: bytes, points: list[bytes]) -> None:
    """A group joins the previous group if its split point would end in a zero byte."""
    rows = [list(value.ljust(4, b"\0")) for value in (b"", second)]
    fronts: Any = SimpleNamespace(shared=np.array([1]), bytes=np.array(rows, np.uint8))
    groups = [choose_split_points._Group(0, 0, 1, 0), choose_split_points._Group(0, 1, 2, 2)]
    found = choose_split_points._points(fronts, groups)
    assert [point.start for point in found] == points
