"""Tests the storage, merging and comparison of bounds: a location's least and greatest key."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sieve.encoding.encoder import GREATEST, LEAST
from sieve.errors import CorruptError
from sieve.metadata.file_list import (
    Locations,
    concat,
    diff,
    merge,
    parse_locations,
    render_locations,
)
from sieve.metadata.file_ranges import FileRanges
from sieve.metadata.key_bounds import KeyBounds
from tests.built_index import ROOT, plain_locations

UNKNOWN = (GREATEST, LEAST)


def of(*pairs: tuple[int, int]) -> KeyBounds:
    """Makes bounds from pairs of least and greatest key."""
    return KeyBounds(*np.array(pairs, np.int64).reshape(-1, 2).T)


def pairs(bounds: KeyBounds) -> list[tuple[int, int]]:
    """Converts bounds to pairs of least and greatest key, as the inverse of `of`."""
    return list(zip(bounds.least.tolist(), bounds.greatest.tolist(), strict=True))


def stored(listed: Locations) -> Locations:
    """Writes the list, and reads it back."""
    return parse_locations(render_locations(listed, [ROOT]), [ROOT], len(listed.paths))


def bounded(*some: tuple[int, int]) -> Locations:
    """Files of one location each, with these bounds."""
    return replace(plain_locations(len(some)), bounds=of(*some))


def cut() -> Locations:
    """Lists a cut file, whose second range has no key, and an uncut file."""
    ten = np.array([5, 5, 10], np.int64)
    ranges = FileRanges(
        np.array([2, 1]), np.zeros(2, np.int64), np.array([0, 1, 0]), ten, ten * 0, ten * 0
    )
    listed = replace(plain_locations(2), lengths=np.array([2, 2]), ranges=ranges)
    return replace(listed, bounds=of((3, 4), UNKNOWN, (LEAST, GREATEST)))


def test_bounds_are_read_as_they_were_written() -> None:
    """Writing and reading leave bounds unchanged.

    A list without known bounds has the same columns as in an earlier release.
    """
    for listed in (bounded((-5, 7), UNKNOWN, (LEAST, LEAST), (GREATEST, GREATEST)), cut()):
        again = stored(listed).bounds
        assert again is not None
        assert pairs(again) == pairs(listed.key_bounds)
    also = replace(bounded((1, 2), (3, 4)), also=np.array([[7], [-1]]))
    assert pairs(stored(also).key_bounds) == [(1, 2), (3, 4)]
    for none in (plain_locations(2), bounded(UNKNOWN, UNKNOWN)):
        assert pq.read_schema(pa.BufferReader(render_locations(none, [ROOT]))).names[-1] == "slot"
        assert stored(none).bounds is None
        assert pairs(none.key_bounds) == [UNKNOWN] * 2


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("least", [[1], [9]]),  # above the second file's greatest key
        ("least", [[1], []]),
        ("least", [[1], [3, 3]]),
        ("greatest", [[2], [None]]),
        ("greatest", [[2], None]),
    ],
)
def test_bounds_of_another_form_are_refused(column: str, value: list[list[int]]) -> None:
    """Readers report malformed bounds as damage, so no reader skips a file because of them."""
    table = pq.read_table(io.BytesIO(render_locations(bounded((1, 2), (3, 4)), [ROOT])))
    place = table.schema.get_field_index(column)
    sink = io.BytesIO()
    pq.write_table(table.set_column(place, column, pa.array(value, pa.list_(pa.int64()))), sink)
    with pytest.raises(CorruptError, match="list of locations"):
        parse_locations(sink.getvalue(), [ROOT], 2)


def test_file_with_changed_bounds_counts_as_changed() -> None:
    """A file with changed bounds, for example after a rebuild with new codes, counts as changed."""
    before, now = bounded((1, 2), (3, 4), (5, 6)), bounded((1, 2), (3, 9), (5, 6))
    part = diff(before, now)
    assert part.paths == now.paths[1:2]
    merged = merge([before, stored(part)])
    assert sorted(pairs(merged.key_bounds)) == sorted(pairs(now.key_bounds))
    assert diff(now, now).paths == ()
    assert len(diff(plain_locations(3), now).paths) == 3
    moved = replace(cut(), bounds=of((3, 4), (5, 5), (LEAST, GREATEST)))
    assert diff(cut(), moved).paths == cut().paths[:1]


def test_lists_with_and_without_bounds_are_joined() -> None:
    """If only one of two joined lists has bounds, the other list's bounds are unknown."""
    both = concat(plain_locations(1), cut(), bounded((1, 2)))
    assert pairs(both.key_bounds) == [UNKNOWN, (3, 4), UNKNOWN, (LEAST, GREATEST), (1, 2)]
    some = both.chosen(np.array([True, False, True, True]))
    assert pairs(some.key_bounds) == [UNKNOWN, (LEAST, GREATEST), (1, 2)]


@pytest.mark.parametrize(
    ("interval", "found"),
    [
        ((0, 9), [False, True, True, False]),
        ((10, 10), [True, True, True, False]),
        ((19, 20), [True, False, True, True]),
        ((21, 29), [False, False, True, True]),
        ((30, GREATEST), [False, False, True, True]),
        ((LEAST, GREATEST), [True] * 4),
        ((5, 4), [False, False, True, False]),
    ],
)
def test_range_meets_bounds_if_they_share_a_key(
    interval: tuple[int, int], found: list[bool]
) -> None:
    """`meet` is true for bounds that have a key in common with a range.

    Unknown bounds count as having a key in common with every range.
    """
    bounds = of((10, 20), (-10, 10), UNKNOWN, (20, GREATEST))
    every = np.arange(4)
    assert bounds.meet(np.array([interval]), every).tolist() == found
    apart = np.array([[0, 0], interval])
    expected = [a or b for a, b in zip(found, [False, True, False, False], strict=True)]
    assert bounds.meet(apart, every).tolist() == expected


def test_rows_in_two_parts_have_the_bounds_of_both() -> None:
    """If two runs have rows of a location, the location's bounds include the keys of both runs.

    If a run has keys of a location but unknown bounds, the location's bounds are unknown.
    """
    first = of((1, 5), UNKNOWN, UNKNOWN, (1, 5), UNKNOWN)
    second = of((3, 9), (3, 9), (3, 9), UNKNOWN, UNKNOWN)
    keyed = np.array([1, 0, 1, 1, 0]), np.array([1, 1, 1, 0, 0])
    assert pairs(first.over(second, keyed)) == [(1, 9), (3, 9), UNKNOWN, (1, 5), UNKNOWN]
    assert pairs(of((1, 5)).falling()) == [(~5, ~1)]
    assert pairs(of((1, 5), UNKNOWN).falling()) == [(~5, ~1), UNKNOWN]
