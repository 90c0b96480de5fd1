"""Bit packing: integers of up to 56 bits are packed, and longer integers are exceptions."""

from __future__ import annotations

import numpy as np
import pytest

from sieve.arrays.bit_packing import ARRAY_HEAD_BYTES, EXCEPTION_BYTES, pack, unpack


@pytest.mark.parametrize(
    ("width", "bits", "each"), [(1, 1, 1 / 8), (55, 55, 55 / 8), (56, 56, 7), (57, 0, 12)]
)
def test_numbers_of_up_to_56_bits_are_packed(width: int, bits: int, each: float) -> None:
    """Numbers of up to 56 bits are bit-packed; longer numbers are stored as exceptions."""
    values = np.full(80, (1 << width) - 1, np.uint64)
    data = pack(values)
    assert data[0] == bits
    assert len(data) == ARRAY_HEAD_BYTES + 80 * each
    found, after = unpack(b"*" + data, 1, 80)
    assert (found.tolist(), after) == (values.tolist(), 1 + len(data))


def test_a_long_number_among_short_ones_is_an_exception() -> None:
    """A long number among short numbers is an exception, stored after the packed numbers."""
    values = np.ones(100, np.uint64)
    values[[3, 99]] = 1 << 63, 2
    data = pack(values)
    assert data[0] == 2 or len(data) == ARRAY_HEAD_BYTES + 13 + 2 * EXCEPTION_BYTES
    assert unpack(data, 0, 100)[0].tolist() == values.tolist()
