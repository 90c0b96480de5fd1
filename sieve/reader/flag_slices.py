"""Gather: copies flags from one order of files to another order, in slices if slices are long.

If files are consecutive in the file list of one version, they are usually consecutive in the lists
of other versions. So the code copies the flags of consecutive files as one slice. Example: the
positions 0 1 2 7 8 -1 form three slices: three flags from 0 on, two from 7 on, and one absent flag.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from sieve.arrays.dtypes import Counts, Flags

NOWHERE: Final = -1
"""The position that stands for a flag that the source does not contain."""

_WORTH: Final = 256
"""If slices are longer than this on average, copying slices is faster than indexing flags."""

_NARROW: Final = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True, eq=False)
class Gather:
    """The positions of n flags in a source array, as `gather` compresses them.

    Attributes:
        n: number of flags.
        starts: int64[k], the start of each slice in the source, or `NOWHERE` for a slice of absent
            flags. If `lengths` is None, `starts` is int32[n] or int64[n], the position of each
            flag.
        lengths: int64[k], length of each slice, or None.
    """

    n: int
    starts: Counts
    lengths: Counts | None

    @property
    def nbytes(self) -> int:
        """The size of the arrays in bytes."""
        return self.starts.nbytes + (0 if self.lengths is None else self.lengths.nbytes)

    def positions(self) -> Counts:
        """Returns int64[n]: the position of each flag."""
        if self.lengths is None:
            return self.starts.astype(np.int64)
        within = np.arange(self.n) - np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths)
        starts = np.repeat(self.starts, self.lengths)
        return np.where(starts < 0, NOWHERE, starts + within)

    def take(self, flags: Flags, *, absent: bool) -> Flags:
        """Returns bool[n], a new array: the flag at each position, or `absent` for `NOWHERE`."""
        if self.lengths is None:
            found: Flags = np.append(flags, absent)[self.starts]
            return found
        found, at = np.empty(self.n, np.bool_), 0
        for start, length in zip(self.starts.tolist(), self.lengths.tolist(), strict=True):
            found[at : at + length] = absent if start < 0 else flags[start : start + length]
            at += length
        return found


def gather(positions: Counts) -> Gather:
    """Compresses positions, int64[n]; each position is 0 or more, or it is `NOWHERE`."""
    n, before, after = len(positions), positions[:-1], positions[1:]
    goes_on = np.where(before < 0, after < 0, after == before + 1)
    begins = np.flatnonzero(np.append(True, ~goes_on)[:n])
    if len(begins) > 1 and len(begins) * _WORTH > n:
        narrow = positions.max(initial=0) <= _NARROW
        return Gather(n, positions.astype(np.int32 if narrow else np.int64), None)
    return Gather(n, positions[begins], np.diff(begins, append=n))
