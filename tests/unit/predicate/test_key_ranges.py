"""Tests how the key ranges of a predicate's leaves are united and intersected."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sieve.encoding.encoder import Encoder
from sieve.errors import InvalidInputError
from sieve.predicate.key_ranges import KeyRanges, intersect, key_ranges, unite
from sieve.predicate.parse_predicate import Signature, parse


def ranges_with(*intervals: tuple[int, int], hashes: list[int] | None = None) -> KeyRanges:
    """Key ranges with these intervals, and with hashes if any are given."""
    wanted = np.array(intervals, np.int64).reshape(-1, 2)
    return KeyRanges(wanted, hashes=None if hashes is None else np.array(hashes, np.uint64))


def hashes_of(key_ranges: KeyRanges) -> list[int] | None:
    """Returns the hashes as integers."""
    return None if key_ranges.hashes is None else key_ranges.hashes.tolist()


POINTS = ranges_with((1, 1), (5, 5), hashes=[10, 50])
RANGE = ranges_with((2, 9))
NULL = KeyRanges(np.empty((0, 2), np.int64), null=True)


@pytest.mark.parametrize("parts", [(POINTS, RANGE), (RANGE, POINTS), (POINTS, NULL, RANGE)])
def test_union_with_a_range_has_no_hashes(parts: tuple[KeyRanges, ...]) -> None:
    """The union of points and a range has no hashes, as values in the range can have any hash."""
    both = unite(parts)
    assert both.intervals.tolist() == [[1, 9]]
    assert hashes_of(both) is None


def test_union_of_points_has_the_hashes_of_all() -> None:
    """The union of points has all hashes of the points; IS NULL adds no hash."""
    both = unite([ranges_with((7, 7), hashes=[70]), NULL, POINTS])
    assert both.intervals.tolist() == [[1, 1], [5, 5], [7, 7]]
    assert (hashes_of(both), both.null) == ([10, 50, 70], True)
    assert hashes_of(unite([NULL])) is None


def test_intersection_has_hashes_of_one_side_or_shared_ones() -> None:
    """An intersection has the hashes that both of its sides share.

    If only one side of an intersection has hashes, the intersection has all these hashes.
    """
    assert hashes_of(intersect(POINTS, RANGE)) == hashes_of(intersect(RANGE, POINTS)) == [10, 50]
    assert intersect(POINTS, RANGE).intervals.tolist() == [[5, 5]]
    assert hashes_of(intersect(POINTS, ranges_with((5, 7), hashes=[50, 70]))) == [50]
    assert hashes_of(intersect(RANGE, RANGE)) is None


@pytest.mark.parametrize("name", ["null", "nan"])
def test_intersection_includes_null_and_nan_if_both_sides_do(name: str) -> None:
    """An intersection includes NULL or NaN if both sides include it.

    A union includes NULL or NaN if one side includes it.
    """
    none = np.empty((0, 2), np.int64)
    sides = {asked: KeyRanges(none, **{name: asked}) for asked in (False, True)}
    for one, other in itertools.product(sides, repeat=2):
        both, either = intersect(sides[one], sides[other]), unite([sides[one], sides[other]])
        assert (getattr(both, name), getattr(either, name)) == (one and other, one or other)


def test_signature_in_an_and() -> None:
    """An intersection has the signature hashes of both sides; a union has none."""
    one, other = (parse_ranges(*hashes) for hashes in ((1, 7), (7, 9)))
    for left, right, hashes in (
        (one, other, [1, 7, 9]),
        (one, RANGE, [1, 7]),
        (RANGE, one, [1, 7]),
    ):
        both = intersect(left, right)
        assert both.signature is not None
        assert both.signature.tolist() == hashes
    assert unite([one, other]).signature is None
    assert unite([one, RANGE]).signature is None


def parse_ranges(*hashes: int) -> KeyRanges:
    """The key ranges of a leaf `signature` with these hashes."""
    leaf = parse({"op": "signature", "col": ["", "c", "substring"], "values": [*hashes]})
    assert isinstance(leaf, Signature)
    return key_ranges(leaf, Encoder("int"))


@pytest.mark.parametrize("values", [None, [], [1.5], [True], [-1], [1 << 32], ["1"]])
def test_signature_without_hashes_is_refused(values: object) -> None:
    """The values of a signature are one or more numbers of 32 bits."""
    with pytest.raises(InvalidInputError, match="signature"):
        parse({"op": "signature", "col": ["", "c", "substring"], "values": values})
