"""Tests the first and the last cell of each entry, for every shape of segments."""

from __future__ import annotations

import numpy as np
import pytest

from sieve.errors import SieveError
from sieve.segments.blocks.format import CSR, Segment, encode_segment
from sieve.segments.intervals.format import IN_BLOCKS, IN_CELLS, Cells, encode
from sieve.segments.intervals.grid import Grid
from sieve.segments.payload import decode, decode_ends


@pytest.mark.parametrize("shape", [IN_CELLS, IN_BLOCKS])
def test_ends_are_the_first_and_the_last_cell_of_an_entry(shape):
    """An entry's first cell surely has a key, unless the entry begins where its segment begins.

    An entry's last cell surely has a key, unless the entry ends where its segment ends.
    """
    grid = Grid.of(0, 31, np.zeros(1, np.uint64), np.array([2], np.uint8))
    begin, end = np.array([0, 0, 1, 2], np.uint64), np.array([3, 7, 1, 7], np.uint64)
    payload = encode(Cells(grid, begin, end, np.array([0, 3, 1, 2], np.int32)), shape)
    ends = decode_ends(payload)
    assert ends.location.tolist() == [0, 3, 1, 2]
    assert ends.low.tolist() == decode(payload).low.tolist() == [0, 0, 4, 8]
    assert ends.first_by.tolist() == [3, 3, 7, 11]
    assert ends.last_from.tolist() == [12, 28, 4, 28]
    assert ends.high.tolist() == decode(payload).high.tolist() == [15, 31, 7, 31]
    assert ends.begins.tolist() == [False, False, True, True]
    assert ends.finishes.tolist() == [True, False, True, False]
    assert ends.apart.tolist() == [True, True, False, True]


def test_a_block_has_a_key_of_each_of_its_locations():
    """In a segment of blocks, an entry is one block, and the key can be anywhere in the block."""
    blocks = CSR(np.array([0, 2, 3]), np.array([1, 4, 1], np.int32), np.ones(3, np.int64))
    ends = decode_ends(encode_segment(Segment(10, 25, 8, blocks)))
    assert (ends.low.tolist(), ends.first_by.tolist()) == ([10, 10, 18], [17, 17, 25])
    assert (ends.last_from.tolist(), ends.high.tolist()) == ([10, 10, 18], [17, 17, 25])
    assert ends.location.tolist() == [1, 4, 1]
    assert ends.begins.all()
    assert ends.finishes.all()
    assert not ends.apart.any()


@pytest.mark.parametrize("payload", [b"", b"\x01", bytes([9, 1]), bytes([2, 2]), bytes([2, 1])])
def test_ends_of_invalid_payloads_are_refused(payload):
    """`decode_ends` refuses the same payloads as `decode`."""
    for read in (decode, decode_ends):
        with pytest.raises(SieveError):
            read(payload)
