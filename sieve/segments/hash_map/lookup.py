"""Look-up in a map segment: finds the locations that may contain keys with given hashes.

For each hash, a look-up XORs three cells. The result consists of a fingerprint and a value. If the
fingerprint equals the hash's own fingerprint, the value is a location or refers to a posting list.
Like a look-up in a Bloom filter, this look-up has false positives, but no false negatives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sieve.arrays.bit_packing import bits_at
from sieve.arrays.dtypes import Hashes, Words
from sieve.arrays.interval_set import spelled_out
from sieve.segments.hash_map.fuse_function import Layout, fingerprints
from sieve.segments.hash_map.posting_lists import Lists

# The number of hashes to look up at once, which limits the temporary memory.
_SLICE = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class MapSegment:
    """Maps the hashes from `first` to `last` to locations; the range can wrap around at 2^64.

    Attributes:
        first: the first hash in the build's input order.
        last: the last hash in the build's input order.
        n_keys: number of distinct hashes.
        n_locations: number of locations of the run.
        fingerprint_bits: number of bits of a fingerprint.
        layout: computes the positions of a hash's three cells.
        words: the packed cells, in the form of `sieve.arrays.bit_packing.byte_words`.
        lists: the posting lists; a value of ``n_locations + i`` refers to list i.
    """

    first: int
    last: int
    n_keys: int
    n_locations: int
    fingerprint_bits: int
    layout: Layout
    words: Words
    lists: Lists

    @property
    def value_bits(self) -> int:
        """The number of value bits in a cell; the fingerprint bits are above the value bits."""
        return value_bits(self.n_locations, len(self.lists))

    def locations_of(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Returns which locations may contain a key with one of the hashes.

        Args:
            hashes: uint64[q], in any order; hashes outside the segment's range are ignored.

        Returns:
            bool[n_locations]. The result always includes all locations of an indexed hash. For a
            hash that was not indexed, the result includes wrong locations with a probability of at
            most 2^-fingerprint_bits.
        """
        found = np.zeros(self.n_locations, np.bool_)
        _, values = self._values(hashes)
        single = values < self.n_locations
        found[values[single]] = True
        # Each list is expanded once, because many hashes can share a long list.
        found[self.lists.locations[spelled_out(*self._bounds(np.unique(values[~single])))]] = True
        return found

    def matches(self, hashes: Hashes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Returns all matches: m positions in `hashes`, int64[m], and m locations, int32[m]."""
        index, values = self._values(hashes)
        single = values < self.n_locations
        begin, end = self._bounds(values[~single])
        listed = self.lists.locations[spelled_out(begin, end)]
        indexes = np.concatenate([index[single], np.repeat(index[~single], end - begin)])
        locations = np.concatenate([values[single].astype(np.int32), listed])
        order = np.argsort(indexes, kind="stable")
        return indexes[order], locations[order]

    def holds(self, hashes: Hashes, location: int) -> npt.NDArray[np.bool_]:
        """Returns, for each hash, whether `location` may contain a key with this hash."""
        index, values = self._values(hashes)
        # Each list is searched once, because many hashes can share a long list.
        distinct, which = np.unique(values, return_inverse=True)
        has = distinct == location
        listed = np.flatnonzero(distinct >= self.n_locations)
        if len(listed):
            begin, end = self._bounds(distinct[listed])
            own = self.lists.locations[spelled_out(begin, end)] == location
            # `reduceat` needs lists that are not empty, and each posting list has at least two
            # locations.
            has[listed] = np.logical_or.reduceat(own, np.cumsum(end - begin) - (end - begin))
        may_hold = np.zeros(len(hashes), np.bool_)
        may_hold[index] = has[which]
        return may_hold

    def _values(self, hashes: Hashes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Returns the positions and the values of the hashes whose fingerprint matches."""
        span = np.uint64((self.last - self.first) % (1 << 64))
        inside = np.flatnonzero(hashes - np.uint64(self.first) <= span)
        if self.n_keys == 0 or len(inside) == 0:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        slices = [inside[at : at + _SLICE] for at in range(0, len(inside), _SLICE)]
        cells, wanted = zip(*(self._cells(hashes[part]) for part in slices), strict=True)
        read = np.concatenate(cells)
        bits = np.uint64(self.value_bits)
        values = (read & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)
        hits = (read >> bits == np.concatenate(wanted)) & (
            values < self.n_locations + len(self.lists)
        )
        return inside[hits], values[hits]

    def _cells(self, hashes: Hashes) -> tuple[Words, Words]:
        """Returns two arrays to compare: the XORs of the hashes' cells, and the fingerprints."""
        spread = self.layout.spread(hashes)
        width = self.fingerprint_bits + self.value_bits
        read = bits_at(self.words, width, self.layout.places(spread))
        return np.bitwise_xor.reduce(read, axis=1), fingerprints(spread, self.fingerprint_bits)

    def _bounds(
        self, values: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Returns the offsets at which each value's posting list begins and ends."""
        numbers = values - self.n_locations
        return self.lists.offsets[numbers], self.lists.offsets[numbers + 1]


def value_bits(n_locations: int, n_lists: int) -> int:
    """Returns the number of bits of a value: a location, or n_locations + the number of a list."""
    return max(n_locations + n_lists - 1, 0).bit_length()
