"""A static function: an array of cells from which each of a fixed set of hashes reads its value.

A hash has three cells, and its value is their XOR. Building takes hashes off one after another,
each while some cell is left to it alone, and then fills the cells in the opposite order. The cells
form a row of overlapping windows, and a hash has one in each of three neighbouring windows, so that
1.13 cells a hash are enough (large sets). All hashes that can be taken off are taken off at once,
by numpy, so a round costs some calls and a set some thousand rounds.

Source: Chazelle et al., "The Bloomier Filter"; Graf and Lemire, "Binary Fuse Filters: Fast and
Smaller Than Xor Filters", whose sizes of windows are used here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.encoding.hashing import Hashes, mixed

# A cell's state counts its hashes above this bit and adds up their numbers below: a float64, in
# which numpy sums by cell fastest, then holds 3 * MAX_KEYS of them without rounding.
_COUNT_BIT: Final = 24
_NUMBER: Final = (1 << _COUNT_BIT) - 1
MAX_KEYS: Final = 1 << 23
"""Most hashes of one function."""
MAX_WINDOW_BITS: Final = 18
"""Windows are not wider than 2^18 cells: the hash has no more bits for the place in one."""
MAX_WINDOWS: Final = 1 << 24

# With as many cells as below, an attempt fails for one to four in a hundred of sets up to 10,000,
# for larger ones hardly ever. Room that grows makes sure that some attempt succeeds.
_SAME_ROOM: Final = 4
_MORE_ROOM: Final = 0.1

Places = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the cells of a hash are.

    Attributes:
        seed: what sets this attempt apart from others, 64 bits.
        window_bits: a window has 2^window_bits cells.
        windows: in how many windows a first cell may lie; two more follow. None: no cells.
    """

    seed: int
    window_bits: int
    windows: int

    @classmethod
    def of(cls, n_keys: int, attempt: int = 0) -> Layout:
        """The layout to try for some number of hashes."""
        if n_keys == 0:
            return cls(0, 0, 0)
        size = math.log(max(n_keys, 2))
        window_bits = min(MAX_WINDOW_BITS, int(size / math.log(3.33) + 2.25))
        cells_a_key = max(1.125, 0.875 + 0.25 * math.log(1e6) / size)
        cells_a_key *= 1 + _MORE_ROOM * (attempt // _SAME_ROOM)
        windows = max(1, -(-math.ceil(n_keys * cells_a_key) >> window_bits) - 2)
        return cls(int(mixed(np.array([attempt + 1], np.uint64))[0]), window_bits, windows)

    @property
    def n_cells(self) -> int:
        """Cells of the function."""
        return (self.windows + 2) << self.window_bits if self.windows else 0

    def spread(self, hashes: Hashes) -> Hashes:
        """The hashes anew, for `places` and `fingerprints`: different ones stay different."""
        return mixed(hashes ^ np.uint64(self.seed))

    def places(self, spread: Hashes) -> Places:
        """The cells of each hash, uint64[n, 3], three different ones."""
        window = np.uint64(1 << self.window_bits)
        within = window - np.uint64(1)
        starts = np.uint64(self.windows << self.window_bits)
        places = np.empty((len(spread), 3), np.uint64)
        places[:, 0] = ((spread >> np.uint64(32)) * starts) >> np.uint64(32)
        places[:, 1] = (places[:, 0] + window) ^ ((spread >> np.uint64(18)) & within)
        places[:, 2] = (places[:, 0] + window + window) ^ (spread & within)
        return places


def fingerprints(spread: Hashes, bits: int) -> npt.NDArray[np.uint64]:
    """Numbers of `bits` bits, at least 0 and below 64, that tell hashes apart."""
    # Not a shift by 64 for none: numpy leaves that undefined.
    return (mixed(~spread) >> np.uint64(1)) >> np.uint64(63 - bits)


def solve(
    hashes: Hashes, values: npt.NDArray[np.uint64], fingerprint_bits: int, value_bits: int
) -> tuple[Layout, npt.NDArray[np.uint64]]:
    """The function by which each hash reads its fingerprint above its value.

    Args:
        hashes: uint64[n], each once, at most MAX_KEYS.
        values: uint64[n] below 2^value_bits.
        fingerprint_bits: bits of the fingerprints.
        value_bits: bits of the values.

    Returns:
        The layout, and its cells, uint64[n_cells]; the same for the same input.
    """
    attempt = 0
    while True:
        layout = Layout.of(len(hashes), attempt)
        spread = layout.spread(hashes)
        # Neighbours in this order have cells close to each other: memory is read in order.
        order = np.argsort(spread)
        spread = spread[order]
        # 32 bits hold every place and halve what the rounds below must read.
        places = layout.places(spread).astype(np.int32)
        rounds = _taken_off(places, layout.n_cells)
        if rounds is not None:
            marks = fingerprints(spread, fingerprint_bits) << np.uint64(value_bits)
            return layout, _filled(places, rounds, marks | values[order], layout.n_cells)
        attempt += 1


_Round = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]


def _taken_off(places: npt.NDArray[np.int32], n_cells: int) -> list[_Round] | None:
    """Rounds of hashes with the cell that is left to each alone; None if some cannot be."""
    n_keys = len(places)
    marks = np.arange(n_keys) + (1 << _COUNT_BIT)
    state = np.bincount(places.ravel(), np.repeat(marks, 3), n_cells).astype(np.int64)
    own = np.flatnonzero(state >> _COUNT_BIT == 1).astype(np.int32)
    chosen = np.empty(n_keys, np.int32)
    rounds: list[_Round] = []
    while len(own):
        keys = state[own] & _NUMBER
        # A hash may be alone in several of its cells, and a cell be named twice: one will do.
        turn = np.arange(len(own), dtype=np.int32)
        chosen[keys] = turn
        once = chosen[keys] == turn
        keys, own = keys[once], own[once]
        rounds.append((keys, own))
        left = places[keys].ravel()
        np.subtract.at(state, left, np.repeat(marks[keys], 3))
        own = left[state[left] >> _COUNT_BIT == 1]
    return rounds if sum(len(keys) for keys, _ in rounds) == n_keys else None


def _filled(
    places: npt.NDArray[np.int32],
    rounds: list[_Round],
    images: npt.NDArray[np.uint64],
    n_cells: int,
) -> npt.NDArray[np.uint64]:
    """Cells from which each hash reads its image."""
    cells = np.zeros(n_cells, np.uint64)
    for keys, own in reversed(rounds):
        # A round's own cells belong to one hash each, and are zero until they are filled here.
        cells[own] = images[keys] ^ np.bitwise_xor.reduce(cells[places[keys]], axis=1)
    return cells
