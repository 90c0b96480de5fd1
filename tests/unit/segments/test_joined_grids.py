"""A joined grid has the cells of several segments, and cells for the gaps between segments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from sieve.encoding.encoder import GREATEST, LEAST
from sieve.segments.intervals.format import IN_CELLS, Cells, decode_cells, encode
from sieve.segments.intervals.grid import Grid, join
from sieve.segments.payload import decode
from tests.drawn_cells import segments_of_cells


def grid(
    first: int, last: int, start: tuple[int, ...] = (0,), shift: tuple[int, ...] = (0,)
) -> Grid:
    """A grid that consists of these pieces."""
    made = Grid.of(first, last, np.array(start, np.uint64), np.array(shift, np.uint8))
    assert made is not None
    return made


def test_a_gap_is_a_cell() -> None:
    """A gap between two grids becomes one cell of the joined grid."""
    joined, pieces = join([grid(10, 20, (0, 4), (1, 2)), grid(21, 25), grid(27, 30)])
    assert joined is not None
    assert (joined.first, joined.last, pieces) == (10, 30, [0, 2, 4])
    assert joined.start.tolist() == [0, 4, 11, 16, 17]
    assert joined.shift.tolist() == [1, 2, 0, 63, 0]
    # The joined grid has two cells of two codes, two of four, and five of one; then the gap, and
    # four cells of one code.
    assert joined.cells == 2 + 2 + 5 + 1 + 4
    assert joined.base[pieces].tolist() == [0, 4, 10]


def test_gap_wider_than_2_to_the_63_becomes_two_cells() -> None:
    """A gap wider than 2^63 codes becomes two cells, since a cell has at most 2^63 codes."""
    joined, _ = join([grid(LEAST, LEAST), grid(GREATEST, GREATEST)])
    assert joined is not None
    assert joined.cells == 4
    joined, _ = join([grid(LEAST, LEAST), grid(1, 1)])
    assert joined is not None
    assert joined.cells == 3


@pytest.mark.parametrize(("second", "fits"), [(3, True), (2, False)])
def test_grid_of_too_many_cells_does_not_exist(second: int, fits: bool) -> None:
    """Two grids have no joined grid if it would have 2^64 or more cells.

    The first grid has 2^64 - 4 codes, and a gap follows before the second grid.
    """
    first = grid(LEAST, GREATEST - 4)
    joined, _ = join([first, grid(GREATEST - 4 + second, GREATEST)])
    assert (joined is not None) == fits
    one = np.zeros(1, np.uint64)
    parts = [
        Cells(of, one, one, np.zeros(1, np.int32))
        for of in (first, grid(GREATEST - 4 + second, GREATEST))
    ]
    payloads = [encode(part, IN_CELLS) for part in parts]
    assert (decode_cells(payloads) is not None) == fits


@given(segments_of_cells())
def test_entries_keep_their_codes(drawn: list[Cells]) -> None:
    """In a joined grid, entries have the same codes and the same order as in their segments."""
    payloads = [encode(cells, IN_CELLS) for cells in drawn]
    cells = decode_cells(payloads)
    assert cells is not None
    plain = [decode(payload) for payload in payloads]
    low, high = cells.grid.first_codes(cells.begin), cells.grid.last_codes(cells.end)
    assert low.tolist() == [code for one in plain for code in one.low.tolist()]
    assert high.tolist() == [code for one in plain for code in one.high.tolist()]
    assert cells.location.tolist() == [at for one in plain for at in one.location.tolist()]
