"""Placement: where a version's runs hold each location, and which locations have NULLs and NaNs.

A placement is the part of a file list that look-ups need: for each range, a few bits and the bounds
of the range's keys.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Flags
from sieve.errors import CorruptError
from sieve.metadata.file_list import Locations
from sieve.metadata.key_bounds import KeyBounds
from sieve.reader.gather import Gather, gather
from sieve.reader.packed_files import Files, PackedFiles


@dataclass(frozen=True, slots=True, eq=False)
class Bits:
    """n flags, with eight flags packed into each byte."""

    n: int
    packed: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, flags: Flags) -> Bits:
        """Packs flags."""
        return cls(len(flags), np.packbits(flags))

    def flags(self) -> Flags:
        """bool[n], a new array."""
        return np.unpackbits(self.packed, count=self.n).view(np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """The part of a version's file list that look-ups need.

    Attributes:
        files: the files, compressed.
        slots: the position of each range among the locations of all runs, and further positions for
            files that several runs cover.
        slots_end: the greatest position plus one.
        keys: the ranges with a key.
        nulls: the ranges with a NULL.
        nans: the ranges with a NaN.
        all_rows: the files of which all rows were indexed, including hidden rows; see
            `Locations.all_rows`.
        bounds: the bounds of the ranges, or None if none are known.
    """

    files: PackedFiles
    slots: tuple[Gather, ...]
    slots_end: int
    keys: Bits
    nulls: Bits
    nans: Bits
    all_rows: Bits
    bounds: KeyBounds | None = None

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        bits = (self.keys, self.nulls, self.nans, self.all_rows)
        packed = sum(one.packed.nbytes for one in bits)
        bounds = 0 if self.bounds is None else self.bounds.nbytes
        return self.files.nbytes + sum(one.nbytes for one in self.slots) + packed + bounds

    def check(self, n_files: int, n_slots: int) -> None:
        """Raises CorruptError if the number of files is not `n_files`, or a position is too big."""
        if self.files.n != n_files:
            raise CorruptError("SIEVE_LOCATIONS_CORRUPT", f"list is not of {n_files} files")
        if self.slots_end > n_slots:
            raise CorruptError(
                "SIEVE_LOCATIONS_CORRUPT", "list of locations names an unknown place"
            )

    def of_slots(self, flags: Flags) -> Flags:
        """Returns bool[m], a new array: True for a range if one of its positions has a flag."""
        first, *others = (one.take(flags, absent=False) for one in self.slots)
        for other in others:
            first |= other
        return first


def place(listed: Locations) -> Placement:
    """The placement of a file list. Raises CorruptError for a position below -1."""
    every, places = listed.every_range, listed.places
    if places.min(initial=-1) < -1:
        raise CorruptError("SIEVE_LOCATIONS_CORRUPT", "list of locations names an unknown place")
    first = listed.range_slots
    also = places[:, 1:].T
    files = Files(
        listed.path_list,
        listed.stored_lengths,
        listed.mtimes,
        every.counts - 1,
        every.footers,
        every.starts[every.starts > 0],
    )
    return Placement(
        files=files.packed(),
        slots=(gather(first), *map(gather, also)),
        slots_end=int(max(places.max(initial=-1), first.max(initial=-1))) + 1,
        keys=Bits.of(every.rows > every.nulls + every.nans),
        nulls=Bits.of(every.nulls > 0),
        nans=Bits.of(every.nans > 0),
        all_rows=Bits.of(listed.all_rows),
        bounds=listed.bounds,
    )
