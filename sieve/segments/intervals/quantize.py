"""Chooses the grid and the coding of one segment by weighing its precision against its bytes.

Wider cells save bits, but they make entries cover more keys, so queries read more files without a
match. The search starts with grids whose precision is nearly right according to the query model. In
these grids, one more bit per border would save reads worth about the price of the bit. The search
then tries finer and coarser grids, and encodes the segment with the best grid (rate-distortion
optimal quantisation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Codes, Numbers, Weights, Words
from sieve.segments.intervals.format import Cells, encode, expected_size
from sieve.segments.intervals.grid import MAX_PIECES, Grid, short_widths
from sieve.segments.query_model import QueryModel
from sieve.segments.weights import weights_at

# Each piece of a grid takes three bytes. If a piece contains at least this number of entries'
# borders, its own cell width saves more than three bytes.
_BORDERS_A_PIECE: Final = 128


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The content of one segment before it is encoded.

    Attributes:
        first: the least key code of the segment.
        last: the greatest key code of the segment.
        low: int64[n], the first key of each entry; entries are sorted by location and key.
        high: int64[n], the last key of each entry; entries of one location are disjoint.
        location: int32[n], the location of each entry.
        weights: the weights of all locations, or None if each location weighs 1.
        keys: the number of distinct keys in the entries that begin in this segment.
        rows: the number of rows in the entries that begin in this segment.
        dropped: float64[6], for each kind of query, the share of queries that fall into gaps inside
            the entries. The share of each gap is multiplied by the weight of the gap's location.
    """

    first: int
    last: int
    low: Codes
    high: Codes
    location: npt.NDArray[np.int32]
    weights: Weights | None
    keys: int
    rows: int
    dropped: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """An encoded segment, and the files that queries read only because the segment is imprecise.

    Attributes:
        payload: the bytes of the segment.
        cells: the entries as cells of the grid.
        added: float64[6], for each kind of query, the weighted number of files without a match that
            a query reads.
    """

    payload: bytes
    cells: Cells
    added: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class _Try:
    cells: Cells
    added: Numbers


def cheapest(
    part: Part,
    query_model: QueryModel,
    price: float,
    codings: Sequence[int],
    *,
    search: bool = True,
) -> Coded:
    """Encodes a segment with the coding and the grid of least cost.

    The cost is the number of files that a query reads without a match, plus price * bytes.

    Args:
        part: the content of the segment, at least one entry.
        price: the cost of one byte, in files read per query.
        codings: the allowed codings, one or more.
        search: whether to try grids that are finer or coarser than the initial grids, too.
    """
    exact = _free(part, query_model, part.low, part.high, part.location)
    best: dict[int, tuple[float, _Try]] = {}

    def attempt(start: Words, shift: npt.NDArray[np.int64], offset: int) -> float:
        moved = np.clip(shift + offset, 0, 63).astype(np.uint8)
        grid = Grid.of(part.first, part.last, start, moved)
        if grid is None:
            # This grid would have 2^64 cells of one code, too many for 64-bit numbers, so each cell
            # gets at least two codes.
            grid = Grid.of(part.first, part.last, start, np.maximum(moved, 1))
            assert grid is not None
        cells, low, high = _snapped(part, grid)
        free = _free(part, query_model, low, high, cells.location)
        made = _Try(_in_order(cells), part.dropped + np.maximum(exact - free, 0))
        costs = []
        for coding in codings:
            cost = float(query_model.mean(made.added)) + price * expected_size(made.cells, coding)
            costs.append(cost)
            if coding not in best or cost < best[coding][0]:
                best[coding] = cost, made
        return min(costs)

    grids = [
        (attempt(start, shift, 0), start, shift)
        for start, shift in _pieces(part, query_model, price)
    ]
    cost, start, shift = min(grids, key=lambda grid: grid[0])
    for step in (1, -1) if search else ():
        offset, before = step, cost
        while -64 <= offset <= 64:
            now = attempt(start, shift, offset)
            if now >= before:
                break
            offset, before = offset + step, now
    coded = []
    for coding, (_, made) in best.items():
        payload = encode(made.cells, coding)
        cost = float(query_model.mean(made.added)) + price * len(payload)
        coded.append((cost, Coded(payload, made.cells, made.added)))
    return min(coded, key=lambda pair: pair[0])[1]


def _pieces(
    part: Part, query_model: QueryModel, price: float
) -> list[tuple[Words, npt.NDArray[np.int64]]]:
    """Returns the initial grids to try: for each grid, the starts and the shifts of its pieces."""
    codes = np.concatenate([part.low, part.high])
    order = np.argsort(codes)
    codes = codes[order]
    weight = np.tile(weights_at(part.weights, part.location), 2)[order]
    count = int(np.clip(len(codes) // _BORDERS_A_PIECE, 1, MAX_PIECES))
    # The border of an entry can be anywhere in its cell, so widening the entry to whole cells adds
    # half a cell on average. One more bit halves the cells, so it saves a quarter of a cell.
    wanted = 4 * price / 8
    ideal = np.floor(np.log2(wanted / (query_model.density(codes) * weight)))
    single = np.zeros(1, np.uint64)
    grids = [(single, _medians(ideal, np.zeros(1, np.intp)))]
    if count > 1:
        bounds = np.arange(count) * len(codes) // count
        shift = _medians(ideal, bounds)
        bounds = bounds[np.append(True, shift[1:] != shift[:-1])]
        origin = np.array([part.first], np.int64).view(np.uint64)
        borders = codes.view(np.uint64) - origin
        start, kept = _writable(borders, bounds)
        if len(start) > 1:
            grids.append((start, _medians(ideal, kept)))
    return grids


def _medians(ideal: Numbers, bounds: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    """Returns, for each piece of a grid, the median ideal shift of the borders in the piece."""
    parts = [np.sort(part) for part in np.split(ideal, bounds[1:])]
    middle = [(part[(len(part) - 1) // 2] + part[len(part) // 2]) / 2 for part in parts]
    return np.array(np.clip(middle, 0, 63), np.int64)


def _writable(borders: Words, bounds: npt.NDArray[np.intp]) -> tuple[Words, npt.NDArray[np.intp]]:
    """Returns pieces that begin at or before given borders, with widths of few significant bits.

    Returns:
        The start of each piece, and the position of each piece's first border.
    """
    made, kept = [0], [0]
    for bound in bounds[1:].tolist():
        width = np.array([int(borders[bound]) - made[-1]], np.uint64)
        if width[0]:
            mantissa, exponent = short_widths(width)
            made.append(made[-1] + (int(mantissa[0]) << int(exponent[0])))
            kept.append(bound)
    return np.array(made, np.uint64), np.array(kept)


def _snapped(part: Part, grid: Grid) -> tuple[Cells, Codes, Codes]:
    """Widens entries to whole cells of a grid, and merges adjacent entries of one location."""
    begin, end = grid.cells_of(part.low), grid.cells_of(part.high)
    apart = np.append(
        True, (part.location[1:] != part.location[:-1]) | (begin[1:] > end[:-1] + np.uint64(1))
    )
    start = np.flatnonzero(apart)
    begin, end = begin[start], end[np.append(start[1:] - 1, len(end) - 1)]
    cells = Cells(grid, begin, end, part.location[start])
    return cells, grid.first_codes(begin), grid.last_codes(end)


def _in_order(cells: Cells) -> Cells:
    # The entries are already sorted by location, so a stable sort by first cell sorts them by first
    # cell and location.
    order = np.argsort(cells.begin, kind="stable")
    return Cells(cells.grid, cells.begin[order], cells.end[order], cells.location[order])


def _free(
    part: Part, query_model: QueryModel, low: Codes, high: Codes, location: npt.NDArray[np.int32]
) -> Numbers:
    """Returns, for each kind of query, the share of queries that fall wholly between entries.

    The result is the sum of the shares of all locations, each multiplied by the location's weight.
    """
    leading = np.append(True, location[1:] != location[:-1])
    trailing = np.append(leading[1:], True)
    # There is a gap before each entry, and after the last entry of each location. If an entry
    # reaches an end of the code domain, `low - 1` or `high + 1` wraps around. The gap at this end
    # of the domain is empty, so `some` excludes the gap.
    after = np.append(np.int64(part.first), high[:-1] + 1)
    after[leading] = part.first
    begin = np.concatenate([after, high[trailing] + 1])
    end = np.concatenate([low - 1, np.full(int(trailing.sum()), part.last)])
    some = np.concatenate([low > after, high[trailing] < part.last])
    weight = weights_at(part.weights, np.concatenate([location, location[trailing]])[some])
    free: Numbers = query_model.shares(begin[some], end[some]) @ weight
    return free


def blocks_of(cells: Cells) -> int:
    """Returns the number of stretches into which the entries' borders divide the segment."""
    # Each half of the array is sorted or nearly sorted, so a merge sort is fastest.
    borders = np.sort(np.concatenate([cells.begin, cells.end + np.uint64(1)]), kind="stable")
    return int(np.count_nonzero(borders[1:] != borders[:-1]))
