"""A placement is the part of a file list that look-ups need.

The tests compare a placement with the whole list.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sieve.errors import CorruptError
from sieve.metadata.file_list import NO_LOCATIONS, FileState, Locations
from sieve.metadata.file_ranges import FileRanges
from sieve.reader.placement import Bits, place
from tests.built_index import plain_locations


def listed(seed: int, *, ranges: bool) -> Locations:
    """A list of nine files, whose counts and slots are random."""
    draw = np.random.default_rng(seed)
    n = 9
    counts = draw.integers(1, 4, n) if ranges else np.ones(n, np.int64)
    m = int(counts.sum())
    rows, nulls, nans = (draw.integers(0, top, m) for top in (4, 3, 2))
    firsts = np.cumsum(counts) - counts
    sums = [np.add.reduceat(one, firsts) for one in (rows, nulls, nans)]
    slots = np.where(draw.random(n) < 0.3, -1, firsts)
    starts = np.arange(m) - np.repeat(firsts, counts)
    own = FileRanges(counts, counts * 0, starts, rows, nulls, nans) if ranges else None
    also = None if ranges else draw.integers(-1, 20, (n, 2))
    rows, nulls, nans = sums
    return replace(
        plain_locations(n), rows=rows, nulls=nulls, nans=nans, slots=slots, also=also, ranges=own,
        states=np.array([*[FileState.READ] * 7, FileState.RACY, FileState.UNPROVEN], np.int8),
    )  # fmt: skip


@pytest.mark.parametrize("ranges", [False, True])
def test_placement_has_the_slots_and_flags_of_the_list(*, ranges: bool) -> None:
    """A placement has the same slots as its list, and the same flags for keys, NULL and NaN."""
    for seed in range(30):
        of = listed(seed, ranges=ranges)
        placed, every = place(of), of.every_range
        assert placed.keys.flags().tolist() == (every.rows - every.nulls > every.nans).tolist()
        assert placed.nulls.flags().tolist() == (every.nulls > 0).tolist()
        assert placed.nans.flags().tolist() == (every.nans > 0).tolist()
        assert placed.all_rows.flags().tolist() == of.all_rows.tolist()
        flags = np.random.default_rng(seed).random(30) < 0.3
        held = flags[of.range_slots] & (of.range_slots >= 0)
        for column in of.places[:, 1:].T:
            held |= flags[column] & (column >= 0)
        assert placed.of_slots(flags).tolist() == held.tolist()
        files = placed.files.unpacked()
        assert (files.paths, files.times.tolist()) == (of.paths, of.mtimes.tolist())
        assert files.lengths.tolist() == of.stored_lengths.tolist()
        assert files.range_starts.tolist() == every.starts.tolist()
        most = max(of.range_slots.max(), of.places.max())
        placed.check(9, most + 1)
        with pytest.raises(CorruptError, match="unknown place"):
            placed.check(9, most)
        for n in (8, 10):
            with pytest.raises(CorruptError, match=f"not of {n} files"):
                placed.check(n, most + 1)


def test_slots_below_minus_one_are_damage() -> None:
    """If any column of a list has a slot below -1, the list is damaged.

    A list that contains no files is valid.
    """
    some = plain_locations(2)
    place(replace(some, slots=np.array([-1, 0]))).check(2, 1)
    with pytest.raises(CorruptError):
        place(replace(some, slots=np.array([-2, 0])))
    with pytest.raises(CorruptError):
        place(replace(some, also=np.array([[-2], [0]])))
    place(NO_LOCATIONS).check(0, 0)


def test_size_of_a_placement_includes_all_its_arrays() -> None:
    """The size of a placement includes all its arrays. Eight flags need one byte."""
    for n, size in ((0, 0), (8, 1), (9, 2)):
        bits = Bits.of(np.ones(n, np.bool_))
        assert (bits.packed.nbytes, bits.flags().tolist()) == (size, [True] * n)
    placed = place(plain_locations(9))
    assert placed.nbytes == placed.files.nbytes + 16 + 4 * 2
