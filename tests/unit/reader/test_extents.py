"""Extents: the least code of a location, and how many rows it surely has up to a code."""

from __future__ import annotations

import numpy as np
import pytest

from sieve.encoding.encoder import GREATEST, LEAST
from sieve.reader.extents import Extents, Steps, bounds, extents, falling


def made(entries: list[tuple[int, int, int, bool]], keyed: list[int]) -> Extents:
    """Extents of entries (low, high, location, occupied) and the keyed rows of locations."""
    low, high, location = (np.array([e[k] for e in entries], np.int64) for k in range(3))
    occupied = np.array([e[3] for e in entries], np.bool_)
    return extents(low, high, location, occupied, np.array(keyed, np.int64))


def steps_of(found: Extents) -> list[tuple[int, int, int]]:
    """Its steps as (code, location, rows)."""
    steps = found.steps
    return list(
        zip(steps.codes.tolist(), steps.locations.tolist(), steps.rows.tolist(), strict=True)
    )


def test_a_location_grows_by_a_row_an_entry_and_by_the_rest_at_its_last() -> None:
    """The example of the module."""
    found = made([(1, 3, 0, True), (900, 901, 0, True)], [5])
    assert steps_of(found) == [(3, 0, 1), (901, 0, 4)]
    assert (found.least.tolist(), found.has_keys.tolist()) == ([1], [True])


def test_entries_that_may_be_empty_are_no_steps() -> None:
    """But for the last one of a location, which has its other rows whatever lies in it."""
    entries = [(0, 9, 1, False), (10, 19, 1, True), (20, 29, 1, False), (0, 29, 0, False)]
    found = made(entries, [7, 3, 0])
    assert steps_of(found) == [(19, 1, 1), (29, 1, 2), (29, 0, 7)]
    assert found.least.tolist() == [0, 0, GREATEST]
    assert found.has_keys.tolist() == [True, True, False]


def test_the_last_entry_is_the_one_that_ends_last() -> None:
    """In whatever order entries come, and where several end at the same code."""
    found = made([(5, 20, 0, True), (1, 7, 0, True), (8, 20, 0, True)], [10])
    assert steps_of(found) == [(7, 0, 1), (20, 0, 1), (20, 0, 8)]


def test_there_may_be_no_entries() -> None:
    """All rows are NULL, or there are none."""
    found = made([], [0, 0])
    assert steps_of(found) == []
    assert found.least.tolist() == [GREATEST, GREATEST]
    assert not found.has_keys.any()
    assert found.nbytes == 2 * 8 + 2
    assert made([(1, 3, 0, True)], [5]).nbytes == 8 + 1 + 3 * 8


def test_falling_codes_are_in_the_opposite_order() -> None:
    """At the ends of the codes, too."""
    codes = np.array([LEAST, -1, 0, 7, GREATEST])
    assert falling(codes).tolist() == [GREATEST, 0, -1, -8, LEAST]


STEPS = Steps(np.array([1, 2, 2, 5, 9]), np.array([0, 1, 2, 0, 1]), np.array([1, 1, 3, 4, 2]))


@pytest.mark.parametrize(
    ("wanted", "code", "location"),
    [
        (1, 1, 0), (2, 2, 1), (3, 2, 2), (5, 2, 2), (6, 5, 0), (9, 5, 0), (10, 9, 1), (11, 9, 1),
        (12, GREATEST, -1),
    ],
)  # fmt: skip
def test_a_bound_is_the_first_step_that_reaches_the_rows(
    wanted: int, code: int, location: int
) -> None:
    """Of all locations together; more rows than there are have none."""
    codes, locations = bounds(STEPS, np.zeros(3, np.int64), np.array([wanted]))
    assert (codes.tolist(), locations.tolist()) == ([code], [location])


def test_each_group_has_a_bound_of_its_own() -> None:
    """Groups in any order, one without locations, and locations of none."""
    codes, locations = bounds(STEPS, np.array([2, 0, -1]), np.array([2, 1, 5]))
    assert (codes.tolist(), locations.tolist()) == ([9, GREATEST, 5], [1, -1, 0])
    codes, locations = bounds(STEPS, np.array([0, 1, 1]), np.array([6, 5]))
    assert (codes.tolist(), locations.tolist()) == ([GREATEST, 9], [-1, 1])
    codes, _ = bounds(STEPS, np.full(3, -1, np.int64), np.empty(0, np.int64))
    assert codes.tolist() == []
