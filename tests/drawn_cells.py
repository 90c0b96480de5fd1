"""Draws random segments of grid entries, as the shapes intervals and runs store them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from sieve.encoding.encoder import GREATEST, LEAST
from sieve.segments.intervals.format import Cells
from sieve.segments.intervals.grid import Grid

N = 12
"""The number of locations."""

_CODES = st.one_of(
    st.integers(-60, 60), st.integers(LEAST, GREATEST), st.sampled_from([LEAST, GREATEST])
)


@st.composite
def segments_of_cells(draw: st.DrawFn, most: int = 4) -> list[Cells]:
    """One or more disjoint segments in ascending order.

    Some neighbouring segments have no gap between them.
    """
    borders = sorted(draw(st.lists(_CODES, min_size=1, max_size=2 * most, unique=True)))
    if len(borders) % 2:
        borders.append(borders.pop())
        borders = sorted({*borders, min(borders[-1] + draw(st.integers(1, 9)), GREATEST)})
    ends = list(zip(borders[::2], borders[1::2], strict=False)) or [(borders[0], borders[0])]
    if len(ends) > 1 and draw(st.booleans()):
        # The second segment begins directly after the first.
        ends[0] = (ends[0][0], ends[1][0] - 1)
    return [draw(_cells(*pair)) for pair in ends]


@st.composite
def _cells(draw: st.DrawFn, first: int, last: int) -> Cells:
    span = last - first
    # A cell spans at least 2^-16 of the codes. So an entry's record is short enough for packing.
    least = max(0, span.bit_length() - 16)
    shift = [draw(st.integers(least, 63))]
    start = [0]
    if span > 1 and draw(st.booleans()):
        # As in a real payload, the width of each piece of the grid has few significant bits.
        start.append(1 << draw(st.integers(0, span.bit_length() - 1)))
        shift.append(draw(st.integers(least, 63)))
    grid = Grid.of(first, last, np.array(start, np.uint64), np.array(shift, np.uint8))
    assert grid is not None
    pairs = draw(
        st.sets(
            st.tuples(st.integers(0, grid.cells - 1), st.integers(0, N - 1)),
            min_size=1,
            max_size=9,
        )
    )
    begin, location = (np.array(column) for column in zip(*sorted(pairs), strict=True))
    end = [draw(st.integers(at, min(grid.cells - 1, at + 9))) for at in begin.tolist()]
    return Cells(grid, begin.astype(np.uint64), np.array(end, np.uint64), location.astype(np.int32))
