"""A map segment in memory: which locations may hold keys of some hashes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sieve.arrays.bit_packing import Words, bits_at
from sieve.arrays.ranges import spelled_out
from sieve.encoding.hashing import Hashes
from sieve.segments.hash_map.fuse_function import Layout, fingerprints
from sieve.segments.hash_map.posting_lists import Lists

# Hashes looked up at once: bounds what a long list of them takes in passing.
_SLICE = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class MapSegment:
    """The locations of the hashes from `first` to `last`, around the circle of 64-bit numbers.

    Attributes:
        first: least hash, by the order in which the hashes were given.
        last: greatest hash.
        n_keys: distinct hashes.
        n_locations: locations of the run.
        fingerprint_bits: how many bits a hash must match before its value counts.
        layout: where the cells of a hash are.
        words: the packed cells, as `sieve.packing.byte_words`.
        lists: the sets that values from `n_locations` on stand for.
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
        """Bits of a cell below the fingerprint."""
        return value_bits(self.n_locations, len(self.lists))

    def locations_of(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Locations that may hold a key of any of the hashes.

        Args:
            hashes: uint64[q], in any order; those of other segments are left out.

        Returns:
            bool[n_locations]; never without a location of a hash that was indexed. A hash that was
            not adds one value's locations with a probability of 2^-fingerprint_bits at most.
        """
        found = np.zeros(self.n_locations, np.bool_)
        _, values = self._values(hashes)
        single = values < self.n_locations
        found[values[single]] = True
        # Each list once: many hashes may share a long one.
        found[self.lists.locations[spelled_out(*self._bounds(np.unique(values[~single])))]] = True
        return found

    def matches(self, hashes: Hashes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """The same by hash: index int64[m] into `hashes`, ascending, and location int32[m]."""
        index, values = self._values(hashes)
        single = values < self.n_locations
        begin, end = self._bounds(values[~single])
        listed = self.lists.locations[spelled_out(begin, end)]
        indexes = np.concatenate([index[single], np.repeat(index[~single], end - begin)])
        locations = np.concatenate([values[single].astype(np.int32), listed])
        order = np.argsort(indexes, kind="stable")
        return indexes[order], locations[order]

    def holds(self, hashes: Hashes, location: int) -> npt.NDArray[np.bool_]:
        """For which of the hashes `locations_of` has that location, each by itself: bool[q]."""
        index, values = self._values(hashes)
        # Each list once: many hashes may share a long one.
        distinct, which = np.unique(values, return_inverse=True)
        has = distinct == location
        listed = np.flatnonzero(distinct >= self.n_locations)
        if len(listed):
            begin, end = self._bounds(distinct[listed])
            own = self.lists.locations[spelled_out(begin, end)] == location
            # No list is empty: one location stands for itself.
            has[listed] = np.logical_or.reduceat(own, np.cumsum(end - begin) - (end - begin))
        held = np.zeros(len(hashes), np.bool_)
        held[index] = has[which]
        return held

    def _values(self, hashes: Hashes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The hashes that may have been indexed, as indexes, and their values."""
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
        """What the hashes read, and the fingerprints they would read had they been indexed."""
        spread = self.layout.spread(hashes)
        width = self.fingerprint_bits + self.value_bits
        read = bits_at(self.words, width, self.layout.places(spread))
        return np.bitwise_xor.reduce(read, axis=1), fingerprints(spread, self.fingerprint_bits)

    def _bounds(
        self, values: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Where the lists that these values stand for begin and end."""
        numbers = values - self.n_locations
        return self.lists.offsets[numbers], self.lists.offsets[numbers + 1]


def value_bits(n_locations: int, n_lists: int) -> int:
    """Bits that hold a location or the number of a list."""
    return max(n_locations + n_lists - 1, 0).bit_length()
