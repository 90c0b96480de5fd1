"""Converts (hash, location) pairs to distinct hashes, each with one value.

If a hash occurs in a single location, its value is this location. If a hash occurs in several
locations, its value is n + i: n is the run's number of locations, and i is the number of a posting
list. Hashes with equal posting lists share one list. Example with 10 locations: a hash in location
3 has the value 3; a hash in locations 3 and 7 has the value 10 if list 0 is (3, 7).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Hashes
from sieve.arrays.interval_set import spelled_out
from sieve.encoding.hashing import mixed
from sieve.errors import InvalidInputError
from sieve.segments.blocks.key_groups import add_up


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Posting lists of several locations; list i is ``locations[offsets[i]:offsets[i + 1]]``.

    Attributes:
        offsets: int64[n + 1], ascending from 0.
        locations: int32[m], ascending within a list. The lists are sorted by their first location.
    """

    offsets: npt.NDArray[np.int64]
    locations: npt.NDArray[np.int32]

    @property
    def nbytes(self) -> int:
        """The size of the lists in memory, in bytes."""
        return self.offsets.nbytes + self.locations.nbytes

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """Distinct hashes, each with its value.

    Attributes:
        hashes: uint64[k], the distinct hashes.
        values: uint64[k], the value of each hash: a location, or n_locations + i for list i.
        lists: the posting lists of the hashes that occur in several locations.
    """

    hashes: Hashes
    values: npt.NDArray[np.uint64]
    lists: Lists


def gathered(hashes: Hashes, locations: npt.NDArray[np.int32], n_locations: int) -> Gathered:
    """Returns the distinct hashes of sorted pairs, with their values.

    Raises:
        InvalidInputError: the arrays differ in length, the hashes are not sorted, or a location is
            not from 0 to ``n_locations - 1``.
    """
    _check(hashes, locations, n_locations)
    if len(hashes) == 0:
        empty = Lists(np.zeros(1, np.int64), np.empty(0, np.int32))
        return Gathered(hashes, np.empty(0, np.uint64), empty)
    fresh = np.concatenate([[True], hashes[1:] != hashes[:-1]])
    starts = np.flatnonzero(fresh)
    least = np.minimum.reduceat(locations, starts)
    several = least != np.maximum.reduceat(locations, starts)
    values = least.astype(np.uint64)
    among = several[np.cumsum(fresh) - 1]
    numbers, lists = _shared(np.cumsum(fresh[among]) - 1, locations[among])
    values[several] = (numbers + n_locations).astype(np.uint64)
    return Gathered(hashes[fresh], values, lists)


def _shared(
    keys: npt.NDArray[np.int64], locations: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int64], Lists]:
    """Returns, for each key, the number of its posting list; also returns the distinct lists."""
    if len(keys) == 0:
        return np.empty(0, np.int64), Lists(np.zeros(1, np.int64), np.empty(0, np.int32))
    keys, locations, _ = add_up(keys, locations, np.ones(len(keys), np.int64))
    begin = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    size = np.diff(begin, append=len(keys))
    digest = np.add.reduceat(mixed(locations.astype(np.uint64)), begin)
    order = np.lexsort((size, digest, locations[begin]))
    begin, size, digest = begin[order], size[order], digest[order]
    # Two neighbouring lists with the same digest and size are compared in full, so that different
    # lists with equal digests stay separate.
    alike = np.flatnonzero((digest[1:] == digest[:-1]) & (size[1:] == size[:-1])) + 1
    same = np.zeros(len(order), np.bool_)
    if len(alike):
        here = locations[spelled_out(begin[alike], begin[alike] + size[alike])]
        there = locations[spelled_out(begin[alike - 1], begin[alike - 1] + size[alike])]
        same[alike] = np.logical_and.reduceat(here == there, _running(size[alike])[:-1])
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(~same) - 1
    kept = np.flatnonzero(~same)
    table = locations[spelled_out(begin[kept], begin[kept] + size[kept])]
    return numbers, Lists(_running(size[kept]), table)


def _running(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


def _check(hashes: Hashes, locations: npt.NDArray[np.int32], n_locations: int) -> None:
    if len(hashes) != len(locations):
        raise _refused("are not of one length")
    if len(hashes) == 0:
        return
    # Hashes ascend in signed order, as in Spark, or in unsigned order. In both orders, the
    # distances from the first hash ascend.
    distance = hashes - hashes[0]
    if np.any(distance[1:] < distance[:-1]):
        raise _refused("do not come in order of their hashes")
    if locations.min() < 0 or locations.max() >= n_locations:
        raise _refused(f"name a location that is not one of {n_locations}")


def _refused(problem: str) -> InvalidInputError:
    return InvalidInputError("SIEVE_BAD_PAIRS", f"the pairs to index {problem}; build again")
