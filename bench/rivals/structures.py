"""Rival structures. A structure has a size, and finds the files that can hold keys of a range."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from bench.rivals.columns import Codes, Column
from sieve.arrays.bit_packing import pack
from sieve.segments.blocks.cut_blocks import cut_segments
from sieve.segments.blocks.format import encode_segment
from sieve.segments.entries import Entries
from sieve.segments.intervals.plan_segments import SEGMENT_OVERHEAD
from sieve.segments.payload import decode

Answer = npt.NDArray[np.bool_]


class Structure(Protocol):
    """An index structure of the comparison.

    Attributes:
        name: the structure's name in reports.
        nbytes: the structure's size on disk, in bytes.
    """

    name: str
    nbytes: int

    def may_hold(self, low: Codes, high: Codes) -> Answer:
        """bool[queries, files]: which files can hold a key in query i's ``[low[i], high[i]]``."""


class Lists:
    """A structure whose content is a list of key intervals for each file."""

    def __init__(self, name: str, nbytes: int, entries: Entries, files: int) -> None:
        self.name, self.nbytes, self._files = name, nbytes, files
        order = np.lexsort((entries.low, entries.location))
        self._low, high = entries.low[order], entries.high[order]
        self._bounds = np.searchsorted(entries.location[order], np.arange(files + 1))
        self._reach = high

    def may_hold(self, low: Codes, high: Codes) -> Answer:
        """Returns the files with an interval that overlaps with the query's range.

        The intervals of a file can overlap each other. So the search uses the running maximum of
        the intervals' ends.
        """
        found = np.zeros((len(low), self._files), np.bool_)
        for file in range(self._files):
            part = slice(self._bounds[file], self._bounds[file + 1])
            starts, reach = self._low[part], np.maximum.accumulate(self._reach[part])
            at = np.searchsorted(starts, high, side="right")
            some = at > 0
            found[some, file] = reach[at[some] - 1] >= low[some]
        return found


def truth(column: Column) -> Lists:
    """A structure that stores every key of every file, so that queries read the fewest files."""
    keys = [codes for codes, _ in column.keys_of_files()]
    files = np.repeat(np.arange(column.files, dtype=np.int32), [len(k) for k in keys])
    codes = np.concatenate(keys)
    distinct, number = np.unique(codes, return_inverse=True)
    # The structure has the size of an inverted list: all distinct keys, and the files of each key.
    order = np.lexsort((files, number))
    packed = (
        pack(np.diff(distinct.view(np.uint64), prepend=np.uint64(0))),
        pack(np.bincount(number).astype(np.uint64)),
        pack(files[order].astype(np.uint64)),
    )
    size = sum(len(array) for array in packed)
    return Lists("exact inverted list", size, Entries(codes, codes, files), column.files)


def k_intervals(column: Column, k: int) -> Lists:
    """The first layer of HIndex: at most k intervals per file, separated by the longest gaps.

    With k = 1, this is min/max.
    """
    low, high, location = [], [], []
    for file, (codes, _) in enumerate(column.keys_of_files()):
        gaps = np.diff(codes.view(np.uint64))
        cuts = np.sort(np.argsort(gaps)[::-1][: k - 1])
        low.append(codes[np.append(0, cuts + 1)])
        high.append(codes[np.append(cuts, len(codes) - 1)])
        location.append(np.full(len(cuts) + 1, file, np.int32))
    entries = Entries(np.concatenate(low), np.concatenate(high), np.concatenate(location))
    name = "min/max" if k == 1 else f"{k} intervals"
    return Lists(name, 16 * len(entries.low), entries, column.files)


def seed_sieve(column: Column, error: int) -> Lists:
    """Sieve's shape `sieve`: blocks of equal width. In each segment, a line fits the keys."""
    order = np.lexsort((column.file, column.codes))
    chunk = (column.codes[order], column.file[order], np.ones(len(order), np.int64))
    payloads = [encode_segment(segment) for segment in cut_segments([chunk], error=error)]
    size = sum(len(payload) + SEGMENT_OVERHEAD for payload in payloads)
    return Lists(f"seed sieve, error {error}", size, joined(payloads), column.files)


def joined(payloads: list[bytes]) -> Entries:
    """The entries of all segments, decoded from the segments' payloads."""
    parts = [decode(payload) for payload in payloads]
    return Entries(
        np.concatenate([part.low for part in parts]),
        np.concatenate([part.high for part in parts]),
        np.concatenate([part.location for part in parts]),
    )


class Bloom:
    """A Bloom filter per file (10 bits per key, 7 hashes), and the file's minimum and maximum."""

    name = "Bloom filter a file"
    _BITS = 10
    _HASHES = 7

    def __init__(self, column: Column) -> None:
        self._minmax = k_intervals(column, 1)
        self._filters: list[npt.NDArray[np.bool_]] = []
        for codes, _ in column.keys_of_files():
            bits = np.zeros(-(-self._BITS * len(codes) // 64) * 64, np.bool_)
            for place in self._places(codes, len(bits)):
                bits[place] = True
            self._filters.append(bits)
        self.nbytes = self._minmax.nbytes + sum(len(bits) // 8 for bits in self._filters)

    def may_hold(self, low: Codes, high: Codes) -> Answer:
        """For points, uses the filters and min/max; for ranges, uses only min/max."""
        found = self._minmax.may_hold(low, high)
        points = np.flatnonzero(low == high)
        for file, bits in enumerate(self._filters):
            for place in self._places(low[points], len(bits)):
                found[points, file] &= bits[place]
        return found

    def _places(self, codes: Codes, size: int) -> list[npt.NDArray[np.uint64]]:
        one, two = _mixed(codes.view(np.uint64), 1), _mixed(codes.view(np.uint64), 2) | np.uint64(1)
        with np.errstate(over="ignore"):
            return [(one + two * np.uint64(i)) % np.uint64(size) for i in range(self._HASHES)]


def _mixed(words: npt.NDArray[np.uint64], stream: int) -> npt.NDArray[np.uint64]:
    """The result of SplitMix64's last mixing step for each word."""
    with np.errstate(over="ignore"):
        x = words + np.uint64(stream) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def rivals(column: Column, exact: Lists) -> list[Structure]:
    """All structures that have no budget."""
    return [
        k_intervals(column, 1),
        k_intervals(column, 10),
        k_intervals(column, 160),
        seed_sieve(column, 10),
        seed_sieve(column, 100),
        Bloom(column),
        exact,
    ]
