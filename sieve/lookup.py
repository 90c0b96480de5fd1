"""A run in memory: its segments in flat arrays, and which locations may hold keys of intervals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import numpy.typing as npt

from sieve.blocks import Segment
from sieve.errors import CorruptError
from sieve.requirements import Intervals

# Slices of postings from this length on are marked one by one, shorter ones all at once.
_LONG_SLICE: Final = 256

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """The segments of a run, ascending and disjoint; blocks and postings numbered through.

    Attributes:
        first: int64[S], key code of each segment's first key.
        last: int64[S], key code of each segment's last key.
        width: uint64[S], key codes to a block.
        base: int64[S + 1], number of each segment's first block; the last is that of all blocks.
        offsets: int64[B + 1], block b has postings ``offsets[b]:offsets[b + 1]``.
        postings: int32[P], location ordinals of the run.
        present: bool[n_locations], locations with a posting at all.
    """

    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    width: npt.NDArray[np.uint64]
    base: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    postings: npt.NDArray[np.int32]
    present: Flags

    @property
    def n_locations(self) -> int:
        """Locations of the run, those without any key included."""
        return len(self.present)

    @property
    def nbytes(self) -> int:
        """Bytes that the arrays hold in memory."""
        return sum(getattr(self, field.name).nbytes for field in fields(self))

    def locations_in(self, intervals: Intervals) -> Flags:
        """Locations that may hold a key of any interval.

        Args:
            intervals: int64[k, 2], key codes from first to last, both included, in any order; one
                whose first is above its last holds nothing.

        Returns:
            bool[n_locations]; a superset of the truth, by at most the other keys of the blocks that
            an interval touches.
        """
        intervals = intervals[intervals[:, 0] <= intervals[:, 1]]
        start, stop = _united(self._blocks_from(intervals[:, 0]), self._blocks_to(intervals[:, 1]))
        if len(start) == 1 and start[0] == 0 and stop[0] == self.base[-1]:
            return self.present.copy()
        found = np.zeros(self.n_locations, np.bool_)
        begin, end = self.offsets[start], self.offsets[stop]
        long = end - begin >= _LONG_SLICE
        for low, high in zip(begin[long].tolist(), end[long].tolist(), strict=True):
            found[self.postings[low:high]] = True
        found[self.postings[_spelled_out(begin[~long], end[~long])]] = True
        return found

    def _blocks_from(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Number of the first block that holds a code or lies after it."""
        segment = np.searchsorted(self.last, codes, side="left")
        inside = np.flatnonzero(segment < len(self.first))
        within = inside[self.first[segment[inside]] <= codes[inside]]
        blocks = self.base[segment]
        blocks[within] += self._place(segment[within], codes[within])
        return blocks

    def _blocks_to(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """One more than the number of the last block that holds a code or lies before it."""
        after = np.searchsorted(self.first, codes, side="right")
        some = np.flatnonzero(after > 0)
        within = some[codes[some] <= self.last[after[some] - 1]]
        blocks = self.base[after]
        segment = after[within] - 1
        blocks[within] = self.base[segment] + self._place(segment, codes[within]) + 1
        return blocks

    def _place(
        self, segment: npt.NDArray[np.int64], codes: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Number of each code's block in its segment; differences modulo 2^64 are exact."""
        distance = codes.view(np.uint64) - self.first[segment].view(np.uint64)
        return (distance // self.width[segment]).astype(np.int64)


def assemble(segments: Iterable[Segment], n_locations: int | None = None) -> Run:
    """The run made of some segments, given in any order.

    Args:
        segments: disjoint segments, as decoded.
        n_locations: locations of the run, which may have more than the segments name; without it,
            one more than the greatest ordinal.

    Raises:
        CorruptError: two segments overlap, or one names a location that the run does not have.
    """
    ordered = sorted(segments, key=lambda segment: segment.first)
    first = np.array([segment.first for segment in ordered], np.int64)
    last = np.array([segment.last for segment in ordered], np.int64)
    if np.any(first[1:] <= last[:-1]):
        raise _corrupt("has segments that overlap")
    blocks = [segment.blocks for segment in ordered]
    postings = np.concatenate([np.empty(0, np.int32), *(block.locations for block in blocks)])
    named = int(postings.max()) + 1 if len(postings) else 0
    if n_locations is None:
        n_locations = named
    if named > n_locations:
        raise _corrupt(f"names location {named - 1} of {n_locations}")
    counts = [np.diff(block.offsets) for block in blocks]
    present = np.zeros(n_locations, np.bool_)
    present[postings] = True
    return Run(
        first,
        last,
        np.array([segment.width for segment in ordered], np.uint64),
        _running([len(count) for count in counts]),
        _running(np.concatenate([np.empty(0, np.int64), *counts])),
        postings,
        present,
    )


def _united(
    start: npt.NDArray[np.int64], stop: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The same blocks as ranges that neither overlap nor touch: no posting is read twice."""
    some = start < stop
    start, stop = start[some], stop[some]
    if len(start) < 2:
        return start, stop
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(stop[order])
    apart = np.flatnonzero(start[1:] > reach[:-1])
    return start[np.append(0, apart + 1)], reach[np.append(apart, len(start) - 1)]


def _spelled_out(begin: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Every number of the ranges ``begin:end``, one after another."""
    sizes = end - begin
    skipped = begin - (np.cumsum(sizes) - sizes)
    numbers: npt.NDArray[np.int64] = np.arange(int(sizes.sum())) + np.repeat(skipped, sizes)
    return numbers


def _running(counts: npt.NDArray[np.int64] | list[int]) -> npt.NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.asarray(counts, np.int64))])


def _corrupt(problem: str) -> CorruptError:
    return CorruptError("SIEVE_CORRUPT_RUN", f"a run {problem}; REFRESH the index FULL")
