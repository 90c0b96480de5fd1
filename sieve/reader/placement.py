"""Placement: the slots of each location in a version's runs, and whether it has NULLs or NaNs.

Look-ups need only this part of a file list: for each range, its slots, a few bits, and its least
and greatest key.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sieve.arrays.dtypes import Flags
from sieve.errors import CorruptError
from sieve.metadata.file_list import Locations
from sieve.metadata.key_bounds import KeyBounds
from sieve.reader.flag_slices import Gather, gather
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
        """Returns the flags as bool[n], a new array."""
        return np.unpackbits(self.packed, count=self.n).view(np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """The part of a version's file list that look-ups need.

    Attributes:
        files: the compressed list of files.
        slots: the slot of each range in the version's runs. If several runs contain rows of a file,
            further elements of the tuple have the file's other slots.
        slots_end: the greatest slot plus one.
        keys: whether each range has a key.
        nulls: whether each range has a NULL.
        nans: whether each range has a NaN.
        all_rows: whether the version indexed all rows of each file, including hidden rows; see
            `Locations.all_rows`.
        bounds: the least and greatest key of each range, or None if these keys are unknown.
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
        """The size of the arrays in bytes."""
        bits = (self.keys, self.nulls, self.nans, self.all_rows)
        packed = sum(one.packed.nbytes for one in bits)
        bounds = 0 if self.bounds is None else self.bounds.nbytes
        return self.files.nbytes + sum(one.nbytes for one in self.slots) + packed + bounds

    def check(self, n_files: int, n_slots: int) -> None:
        """Raises CorruptError if the number of files is not `n_files`, or a slot is too big."""
        if self.files.n != n_files:
            raise CorruptError("SIEVE_LOCATIONS_CORRUPT", f"list is not of {n_files} files")
        if self.slots_end > n_slots:
            raise CorruptError(
                "SIEVE_LOCATIONS_CORRUPT", "list of locations names an unknown place"
            )

    def of_slots(self, flags: Flags) -> Flags:
        """Returns bool[m], a new array: True for a range if the flag of one of its slots is set."""
        first, *others = (one.take(flags, absent=False) for one in self.slots)
        for other in others:
            first |= other
        return first


def place(listed: Locations) -> Placement:
    """The placement of a file list. Raises CorruptError if a slot is below -1."""
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
