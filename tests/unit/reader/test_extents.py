"""Tests extents: a location's least code, and how many rows it surely has up to a code."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sieve.encoding.encoder import GREATEST, LEAST
from sieve.reader.extents import Extents, LocationEnds, Steps, bounds, concat_ends, extents
from sieve.segments.entries import Ends

Entry = tuple[int, int, int, int, int, str]
"""An entry of a location, as a tuple.

The parts of the tuple are: the first and last code of the first cell, the first and last code of
the last cell, the location, and flags. The flag `b` means that the first cell has a key; the flag
`f` means that the last cell has a key.
"""


def ends_of(entries: list[Entry]) -> LocationEnds:
    """Converts the entries of several segments to `LocationEnds`."""
    columns = np.array([entry[:5] for entry in entries], np.int64).reshape(-1, 5).T
    flags = [np.array([flag in entry[5] for entry in entries], np.bool_) for flag in "bf"]
    segments = [
        Ends(*columns[:4, part], columns[4, part], *(flag[part] for flag in flags), apart[part])
        for apart in [columns[1] < columns[2]]
        for part in (slice(0, 1), slice(1, None))
    ]
    return concat_ends(segments, [segment.location for segment in segments])


def made(entries: list[Entry], keyed: list[int], *, falls: bool = False) -> Extents:
    """Makes the extents of entries; `keyed` counts each location's rows with a key."""
    ends = ends_of(entries)
    return extents(ends.falling() if falls else ends, np.array(keyed, np.int64))


def steps_of(found: Extents) -> list[tuple[int, int, int]]:
    """Returns the steps of extents as tuples (code, location, rows)."""
    steps = found.steps
    columns = (steps.codes.tolist(), steps.locations.tolist(), steps.rows.tolist())
    return list(zip(*columns, strict=True))


EXAMPLE: list[Entry] = [(1, 1, 3, 3, 0, "bf"), (900, 900, 901, 901, 0, "bf")]


def test_last_cell_counts_the_remaining_rows() -> None:
    """Each cell that certainly has a key counts one row. The last cell counts all other rows.

    The test uses the example of the module's docstring, in both directions.
    """
    found = made(EXAMPLE, [5])
    assert steps_of(found) == [(1, 0, 1), (3, 0, 1), (900, 0, 1), (901, 0, 2)]
    assert (found.least.tolist(), found.has_keys.tolist()) == ([1], [True])
    found = made(EXAMPLE, [5], falls=True)
    assert steps_of(found) == [(~901, 0, 1), (~900, 0, 1), (~3, 0, 1), (~1, 0, 2)]
    assert found.least.tolist() == [~901]


def test_key_of_a_wide_cell_counts_at_its_end() -> None:
    """If a cell has several codes, the cell's key counts at the last code.

    In an entry with only one cell, only one key is certain.
    """
    found = made(
        [(0, 7, 24, 31, 0, "bf"), (40, 47, 40, 47, 0, "bf"), (50, 57, 50, 57, 0, "bf")], [9]
    )
    assert steps_of(found) == [(7, 0, 1), (31, 0, 1), (47, 0, 1), (57, 0, 1), (57, 0, 5)]
    found = made([(0, 7, 0, 7, 0, "bf")], [1])
    assert steps_of(found) == [(7, 0, 1)]


def test_cell_without_a_certain_key_counts_no_row() -> None:
    """If a segment ends within an entry, the cell at this end counts no row.

    The location's last entry counts the remaining rows.
    """
    found = made(
        [
            (0, 3, 6, 9, 1, ""),
            (10, 12, 17, 19, 1, "b"),
            (20, 21, 28, 29, 1, "f"),
            (30, 31, 30, 31, 1, "f"),
            (32, 33, 38, 39, 1, ""),
            (0, 1, 28, 29, 0, ""),
        ],
        [7, 5, 0],
    )
    assert steps_of(found) == [(12, 1, 1), (29, 1, 1), (29, 0, 7), (31, 1, 1), (39, 1, 2)]
    assert found.least.tolist() == [0, 0, GREATEST]
    assert found.has_keys.tolist() == [True, True, False]


def test_entry_that_ends_last_counts_the_remaining_rows() -> None:
    """For any order of entries, the entry that ends last counts the remaining rows."""
    found = made([(9, 9, 20, 20, 0, "bf"), (1, 1, 7, 7, 0, "bf")], [10])
    assert steps_of(found) == [(1, 0, 1), (7, 0, 1), (9, 0, 1), (20, 0, 7)]


def test_entries_of_removed_locations_are_ignored() -> None:
    """If a version no longer contains a location, the location's entries are ignored."""
    found = made([(1, 1, 3, 3, -1, "bf"), (4, 4, 5, 5, 0, "bf")], [2])
    assert (steps_of(found), found.least.tolist()) == ([(4, 0, 1), (5, 0, 1)], [4])


def test_column_without_entries_has_no_steps() -> None:
    """Without entries, as for a column of NULLs, no location has keys or steps."""
    found = made([], [0, 0])
    assert steps_of(found) == []
    assert found.least.tolist() == [GREATEST, GREATEST]
    assert not found.has_keys.any()
    assert found.nbytes == 2 * 8 + 2
    assert made(EXAMPLE, [5]).nbytes == 8 + 1 + 4 * 3 * 8
    assert steps_of(Extents(found.least, found.has_keys, found.steps)) == []


def test_descending_order_swaps_the_ends_without_overflow() -> None:
    """Descending order inverts codes. The least and the greatest code do not overflow."""
    found = made([(LEAST, LEAST, GREATEST, GREATEST, 0, "bf")], [2], falls=True)
    assert steps_of(found) == [(LEAST, 0, 1), (GREATEST, 0, 1)]


FLAGS = ("", "b", "f", "bf")


def at_the_latest(entries: list[Entry], keyed: int, *, falls: bool) -> list[int]:
    """Returns the codes of a location's rows. Each row gets the last code that its entry permits.

    The row of a cell gets the last code of the cell. All remaining rows get the last code of the
    location. In descending order, all codes are inverted.
    """
    rows = []
    for low, first_by, last_from, high, _, known in entries:
        first, last = (low, last_from) if falls else (first_by, high)
        rows += [first] * ("b" in known) + [last] * ("f" in known)
        if known == "bf" and first_by == high:
            rows.pop()
    end = min(entry[0] for entry in entries) if falls else max(entry[3] for entry in entries)
    rows += [end] * (keyed - len(rows))
    return sorted(~code if falls else code for code in rows)


@pytest.mark.parametrize("falls", [False, True])
@pytest.mark.parametrize("others", [0, 3])
def test_row_is_counted_at_its_latest_position(others: int, *, falls: bool) -> None:
    """Each step counts a row at the last code that the row can have, in both directions."""
    for known, more, wide, wider in itertools.product(FLAGS, FLAGS, (0, 10), (0, 10)):
        entries = [
            (2, 5, 2 + wide, 5 + wide, 0, known),
            (20, 25, 20 + wider, 25 + wider, 0, more),
        ]
        sure = sum(
            len(flags) - (flags == "bf" and not width)
            for flags, width in ((known, wide), (more, wider))
        )
        keyed = max(sure + others, 1)
        steps = made(entries, [keyed], falls=falls).steps
        found = np.repeat(steps.codes, steps.rows).tolist()
        assert found == at_the_latest(entries, keyed, falls=falls), entries


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
    """A bound is the smallest code up to which the rows of all locations are certainly enough."""
    codes, locations = bounds(STEPS, np.zeros(3, np.int64), np.array([wanted]))
    assert (codes.tolist(), locations.tolist()) == ([code], [location])


def test_each_group_has_a_separate_bound() -> None:
    """Each group of locations has its own bound, if the group has enough rows."""
    codes, locations = bounds(STEPS, np.array([2, 0, -1]), np.array([2, 1, 5]))
    assert (codes.tolist(), locations.tolist()) == ([9, GREATEST, 5], [1, -1, 0])
    codes, locations = bounds(STEPS, np.array([0, 1, 1]), np.array([6, 5]))
    assert (codes.tolist(), locations.tolist()) == ([GREATEST, 9], [-1, 1])
    codes, _ = bounds(STEPS, np.full(3, -1, np.int64), np.empty(0, np.int64))
    assert codes.tolist() == []
