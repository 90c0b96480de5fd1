"""Signatures of texts: the bytes of their segments, and look-ups in them."""

from __future__ import annotations

import numpy as np
import pytest

from sieve.errors import CorruptError, UnsupportedError
from sieve.segments import signatures as subject
from sieve.segments.signatures import (
    PIECES,
    Image,
    cut,
    decode_signatures,
    encode_signatures,
    first_hash,
    fold,
    last_hash,
    widen,
)

RNG = np.random.default_rng(14)


def image(bits: int, hashes: list[int]) -> Image:
    """The signature with 2^bits bits that has the bits of these hashes."""
    found = np.zeros(1 << bits, np.bool_)
    found[[value >> (32 - bits) for value in hashes]] = True
    return np.packbits(found, bitorder="little")


def array(payload: bytes) -> Image:
    """A payload as an array, as in a run file."""
    return np.frombuffer(payload, np.uint8)


@pytest.mark.parametrize("bits", [9, 12, 20])
def test_each_hash_of_a_location_is_found(bits: int) -> None:
    """A look-up finds the locations that have a hash's bit, and those without a signature."""
    hashes = [RNG.integers(0, 1 << 32, 50).tolist() for _ in range(3)]
    # The second location has a smaller signature, and the third has none.
    images = [image(bits, hashes[0]), image(9, hashes[1]), None, image(bits, hashes[2])]
    pieces = [None if one is None else cut(one) for one in images]
    segments = [
        decode_signatures(
            array(encode_signatures(k, [None if own is None else own[k] for own in pieces]))
        )
        for k in range(PIECES)
    ]
    assert [one.piece for one in segments] == list(range(PIECES))
    for value in [*hashes[0], *hashes[1], 0, (1 << 32) - 1, *RNG.integers(0, 1 << 32, 20).tolist()]:
        (segment,) = (one for one in segments if one.first <= value <= one.last)
        expected = [
            value >> (32 - bits) in {h >> (32 - bits) for h in hashes[0]},
            value >> 23 in {h >> 23 for h in hashes[1]},
            True,
            value >> (32 - bits) in {h >> (32 - bits) for h in hashes[2]},
        ]
        assert segment.locations_with(value).tolist() == expected
    for k, segment in enumerate(segments):
        assert segment.of(2) is None
        for location in (0, 1, 3):
            own = pieces[location]
            assert own is not None
            assert np.array_equal(segment.of(location), own[k])


def test_pieces_cover_all_hashes() -> None:
    """The ranges of the pieces include each 32-bit hash once, in ascending order."""
    assert first_hash(0) == 0
    assert [first_hash(k + 1) for k in range(PIECES)] == [last_hash(k) + 1 for k in range(PIECES)]
    assert last_hash(PIECES - 1) == (1 << 32) - 1


def test_fold_keeps_each_hash() -> None:
    """A folded signature is the smaller signature of the same hashes; `widen` repeats its bits."""
    hashes = RNG.integers(0, 1 << 32, 300).tolist()
    large = image(14, hashes)
    for bits in (9, 12, 14):
        small = fold(large, 1 << (bits - 3))
        assert np.array_equal(small, image(bits, hashes))
        wide = widen(small, len(large))
        assert len(wide) == len(large)
        assert not np.any(large & ~wide)
        assert np.array_equal(fold(wide, len(small)), small)
    assert fold(large, 1 << 20) is large
    assert widen(large, 1) is large


def test_damage_is_found() -> None:
    """If any byte of a payload changes, or the payload is cut off, the reader refuses it."""
    payload = encode_signatures(3, [image(9, [5])[:8], None, image(12, [7])[:64]])
    for k in range(len(payload)):
        damaged = bytearray(payload)
        damaged[k] ^= 1 << (k % 8)
        with pytest.raises((CorruptError, UnsupportedError)):
            decode_signatures(array(bytes(damaged)))
    for end in (0, 20, len(payload) - 1):
        with pytest.raises(CorruptError):
            decode_signatures(array(payload[:end]))


@pytest.mark.parametrize(
    ("at", "bytes_", "said"),
    [
        (1, b"\x02", "layout 2"),
        (2, b"\x01", "claims the hashes"),
        (18, b"\xff\xff\xff\x00", "claims 16777215 locations"),
        (22, b"\x02", "impossible size"),
        (22, b"\x04", "another length"),
    ],
)
def test_field_with_an_impossible_value_is_refused(at: int, bytes_: bytes, said: str) -> None:
    """A field with an impossible value is refused, even if the checksum matches the field."""
    payload = bytearray(encode_signatures(0, [image(9, [5])[:1]])[:-4])
    payload[at : at + len(bytes_)] = bytes_
    whole = bytes(payload) + subject.zlib.crc32(payload).to_bytes(4, "little")
    with pytest.raises((CorruptError, UnsupportedError), match=said):
        decode_signatures(array(whole))
