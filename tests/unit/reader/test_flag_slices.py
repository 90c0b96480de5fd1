"""`Gather` maps flags from one numbering to another; it stores positions as runs or as an array."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sieve.reader import flag_slices as module
from sieve.reader.flag_slices import NOWHERE, Gather, gather


def check(positions: list[int], source: int) -> Gather:
    """Checks that a `Gather` maps random flags just as array indexing does."""
    made = gather(np.array(positions, np.int64))
    assert made.positions().tolist() == positions
    draw = np.random.default_rng(len(positions))
    for absent in (False, True):
        flags = draw.random(source) < 0.5
        before = flags.copy()
        taken = made.take(flags, absent=absent)
        assert taken.dtype == np.bool_
        assert taken.tolist() == [absent if k < 0 else bool(flags[k]) for k in positions]
        taken[:] = ~taken
        assert (flags == before).all()
    return made


@given(st.lists(st.integers(NOWHERE, 9), max_size=40), st.sampled_from([1, 3, 256]))
def test_any_positions(positions: list[int], worth: int) -> None:
    """A gather returns the same flags, whether it stores positions as runs or as an array."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_WORTH", worth)
        check(positions, 10)


def test_the_positions_of_one_list_are_one_stretch() -> None:
    """Consecutive positions are stored as one run, in a few bytes.

    If the first position is absent, this test's positions are stored as an array.
    """
    made = check(list(range(5000)), 5000)
    assert made.lengths is not None
    assert made.nbytes == 16
    assert check([], 0).nbytes == 0
    assert check([3], 5).lengths is not None
    made = gather(np.array([NOWHERE, 0, 1, NOWHERE, NOWHERE]))
    assert made.lengths is None
    assert made.nbytes == 20


def test_stretches_are_used_from_512_flags_on() -> None:
    """A `Gather` stores two runs of positions as an array if there are fewer than 512 positions."""
    for n, stretches in ((512, True), (511, False)):
        made = check([*range(7, 7 + n - 1), 3], 600)
        assert (made.lengths is not None) == stretches
        assert made.nbytes == (32 if stretches else 4 * n)


def test_positions_past_32_bits_stay_whole() -> None:
    """Each position needs four bytes, or eight bytes if a position exceeds 2^31 - 1."""
    for last, each in ((2**31 - 1, 4), (2**31, 8)):
        made = gather(np.array([0, last], np.int64))
        assert made.nbytes == 2 * each
        assert made.positions().tolist() == [0, last]
