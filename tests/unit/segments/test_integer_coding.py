"""Tests how the integers of a segment of intervals are encoded and decoded."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

from sieve.encoding.encoder import GREATEST
from sieve.errors import CorruptError
from sieve.segments.intervals import integer_coding
from sieve.segments.intervals.grid import short_widths


def test_numbers_that_repeat_far_apart_are_decoded():
    """Deflated numbers are decoded even if a repetition is 30,000 bytes later.

    Deflate can refer to bytes up to 32 KB earlier, so the reader needs a window of 32 KB.
    """
    draw = np.random.default_rng(4)
    numbers = draw.integers(0, 256, 30_000).astype(np.uint8)
    symbols = np.concatenate([numbers, numbers])
    coder = zlib.compressobj(9, zlib.DEFLATED, -15, 9)
    deflated = coder.compress(symbols.tobytes()) + coder.flush()
    assert len(deflated) < 40_000
    payload = struct.pack("<BI", 2, len(deflated)) + deflated
    found, at = integer_coding.decode(payload, 0, len(symbols))
    assert (found.tolist(), at) == (symbols.tolist(), len(payload))


@pytest.mark.parametrize("ended", [False, True])
def test_stream_must_end_with_its_numbers(ended):
    """A deflated stream is corrupt without its end, or with more bytes after the end."""
    coder = zlib.compressobj(6, zlib.DEFLATED, -15)
    made = coder.compress(bytes([7, 8, 9])) + coder.flush(zlib.Z_SYNC_FLUSH)
    deflated = made + coder.flush()
    assert integer_coding.decode(struct.pack("<BI", 2, len(deflated)) + deflated, 0, 3)
    wrong = deflated + b"\0" if ended else made
    with pytest.raises(CorruptError, match="another length"):
        integer_coding.decode(struct.pack("<BI", 2, len(wrong)) + wrong, 0, 3)


def test_widths_of_pieces_have_six_significant_bits():
    """Widths are rounded down to six significant bits. Small widths are exact."""
    powers = [1 << k for k in range(64)]
    widths = sorted({w + d for w in powers for d in (-1, 0, 1) if w + d > 0} | {(1 << 64) - 1})
    mantissa, exponent = short_widths(np.array(widths, np.uint64))
    for width, m, e in zip(widths, mantissa.tolist(), exponent.tolist(), strict=True):
        assert (m, e) == ((width, 0) if width < 64 else (width >> e, width.bit_length() - 6))


def test_a_class_is_of_64_bits_at_most():
    """Numbers can have up to 64 bits. A stored length of 65 bits makes a payload corrupt."""
    for bits in (64, 65):
        payload = struct.pack("<BI", 1, 8) + b"\1\3\0\xfc\xff" + bytes([bits] * 3) + bytes(24)
        if bits == 64:
            assert integer_coding.decode(payload, 0, 3)[0].tolist() == [1 << 63] * 3
        else:
            with pytest.raises(CorruptError, match="impossible class"):
                integer_coding.decode(payload, 0, 3)


@pytest.mark.parametrize("longest", [56, 57, 58, 63, 64])
def test_long_numbers_are_decoded_from_any_bit(longest):
    """A long number can begin at any bit, and can extend across the end of a 64-bit word."""
    rng = np.random.default_rng(longest)
    top = np.uint64(1) << np.append(longest - 1, rng.integers(0, longest, 3000)).astype(np.uint64)
    values = top | rng.integers(0, GREATEST, len(top), np.uint64) & (top - np.uint64(1))
    payload = integer_coding.encode(values)
    assert payload[0] == 1
    found, after = integer_coding.decode(payload + b"more", 0, len(values))
    assert (found.tolist(), after) == (values.tolist(), len(payload))
