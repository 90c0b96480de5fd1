"""A binary fuse function: an array of cells that maps a fixed set of hashes to values.

Each hash has three cells, and the XOR of these cells is the hash's value. The construction peels a
hypergraph: it repeatedly removes every hash with a cell that no other remaining hash has. When no
hash is left, the construction fills the hashes' cells in reverse order: the last removed hash comes
first. The cells form a row of windows. A hash has one cell in each of three neighbouring windows,
so large sets need only 1.13 cells per hash. The peeling takes about a thousand rounds. A round
removes, with a few numpy calls, all hashes that can be removed at once.

The function does not store the hashes themselves, so it maps a hash outside the set to an arbitrary
value. The bits above the value are a fingerprint of the hash. If a hash is not in the set, the
hash's own fingerprint differs from the returned fingerprint with the probability ``1 - 2^-bits``.

Source: Chazelle et al., "The Bloomier Filter"; Graf and Lemire, "Binary Fuse Filters: Fast and
Smaller Than Xor Filters", which gives the window sizes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Hashes, Slots
from sieve.encoding.hashing import mixed

# While hashes are peeled, the state of a cell is one number. The bits from `_COUNT_BIT` upwards
# count the hashes that have the cell. The bits below `_COUNT_BIT` are the sum of the positions of
# all hashes that have the cell. numpy sums float64 fastest, and float64 represents the sum of 3 *
# MAX_KEYS states exactly.
_COUNT_BIT: Final = 24
_NUMBER: Final = (1 << _COUNT_BIT) - 1
MAX_KEYS: Final = 1 << 23
"""Maximum number of hashes in the set of one function."""
MAX_WINDOW_BITS: Final = 18
"""Windows have at most 2^18 cells, because 18 bits of a hash select a position in a window."""
MAX_WINDOWS: Final = 1 << 24

# With up to 10,000 hashes, 1 to 4 % of the attempts to peel all hashes fail. With more hashes,
# hardly any attempt fails. After every `_SAME_ROOM` failed attempts, the next attempts use more
# cells, so that finally one attempt succeeds.
_SAME_ROOM: Final = 4
_MORE_ROOM: Final = 0.1


@dataclass(frozen=True, slots=True)
class Layout:
    """Defines the positions of each hash's three cells, which are in three neighbouring windows.

    Attributes:
        seed: 64 bits; each attempt to construct a function has its own seed.
        window_bits: a window has 2^window_bits cells.
        windows: number of windows that can contain the first cell of a hash. Two more windows
            follow. With 0 windows, the function has no cells.
    """

    seed: int
    window_bits: int
    windows: int

    @classmethod
    def of(cls, n_keys: int, attempt: int = 0) -> Layout:
        """Returns the layout for `n_keys` hashes in attempt number `attempt`, counted from 0."""
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
        """The total number of cells in all windows."""
        return (self.windows + 2) << self.window_bits if self.windows else 0

    def spread(self, hashes: Hashes) -> Hashes:
        """Mixes hashes with the seed by a bijection, for `places` and `fingerprints`."""
        return mixed(hashes ^ np.uint64(self.seed))

    def places(self, spread: Hashes) -> Slots:
        """Returns the three different positions of each hash's cells, uint64[n, 3]."""
        window = np.uint64(1 << self.window_bits)
        within = window - np.uint64(1)
        starts = np.uint64(self.windows << self.window_bits)
        places = np.empty((len(spread), 3), np.uint64)
        places[:, 0] = ((spread >> np.uint64(32)) * starts) >> np.uint64(32)
        places[:, 1] = (places[:, 0] + window) ^ ((spread >> np.uint64(18)) & within)
        places[:, 2] = (places[:, 0] + window + window) ^ (spread & within)
        return places


def fingerprints(spread: Hashes, bits: int) -> npt.NDArray[np.uint64]:
    """Returns a fingerprint of `bits` bits (0 to 63) for each result of `Layout.spread`."""
    # For 0 bits, a single shift would be by 64 bits, which numpy leaves undefined. So the code
    # shifts twice.
    return (mixed(~spread) >> np.uint64(1)) >> np.uint64(63 - bits)


def solve(
    hashes: Hashes, values: npt.NDArray[np.uint64], fingerprint_bits: int, value_bits: int
) -> tuple[Layout, npt.NDArray[np.uint64]]:
    """Constructs the function that maps each hash to its fingerprint and value.

    Args:
        hashes: uint64[n], distinct, at most MAX_KEYS.
        values: uint64[n], the value of each hash, below 2^value_bits.
        value_bits: number of bits of a value.

    Returns:
        The layout, and the contents of its cells, uint64[n_cells]. Equal arguments give equal
        results.
    """
    attempt = 0
    while True:
        layout = Layout.of(len(hashes), attempt)
        spread = layout.spread(hashes)
        # Hashes that are neighbours in this order have cells close to each other, so memory access
        # is nearly sequential.
        order = np.argsort(spread)
        spread = spread[order]
        # Positions fit into 32 bits. Compared with 64 bits, 32 bits halve the memory traffic of
        # peeling.
        places = layout.places(spread).astype(np.int32)
        rounds = _peel(places, layout.n_cells)
        if rounds is not None:
            high_bits = fingerprints(spread, fingerprint_bits) << np.uint64(value_bits)
            return layout, _filled(places, rounds, high_bits | values[order], layout.n_cells)
        attempt += 1


_Round = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]


def _peel(places: npt.NDArray[np.int32], n_cells: int) -> list[_Round] | None:
    """Peels the hashes; returns, for each round, the removed hashes and one cell of each.

    At the removal of a hash, its returned cell belongs to no other remaining hash. The result is
    None if some hashes cannot be peeled.
    """
    n_keys = len(places)
    marks = np.arange(n_keys) + (1 << _COUNT_BIT)
    state = np.bincount(places.ravel(), np.repeat(marks, 3), n_cells).astype(np.int64)
    own = np.flatnonzero(state >> _COUNT_BIT == 1).astype(np.int32)
    chosen = np.empty(n_keys, np.int32)
    rounds: list[_Round] = []
    while len(own):
        keys = state[own] & _NUMBER
        # A hash can be the only remaining hash of several cells, but a round needs only one of
        # these cells per hash.
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
    """Fills the cells so that the XOR of a hash's cells is its image (fingerprint and value)."""
    cells = np.zeros(n_cells, np.uint64)
    for keys, own in reversed(rounds):
        # Each hash of a round has one cell that no hash of a later round has. The loop fills later
        # rounds first, so this cell is still zero.
        cells[own] = images[keys] ^ np.bitwise_xor.reduce(cells[places[keys]], axis=1)
    return cells
