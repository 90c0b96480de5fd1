"""In generated maps, a look-up of an indexed hash finds exactly the locations of this hash."""

from __future__ import annotations

import zlib
from collections import defaultdict
from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sieve.encoding.hashing import decimal_bytes, hash_codes
from sieve.errors import CorruptError, SieveError, UnsupportedError
from sieve.segments.hash_map.format import CHECK_BYTES, MAX_FINGERPRINT_BITS, build_map, decode_map

GREATEST = (1 << 64) - 1
HASHES = st.one_of(
    st.integers(0, GREATEST),
    st.sampled_from([0, 1, 1 << 63, (1 << 63) - 1, GREATEST]),
    st.integers(0, 20),
)
N_LOCATIONS = st.sampled_from([1, 2, 3, 40, 1000, 100_000, (1 << 31) - 99])


@st.composite
def maps(draw):
    """Generates one or many locations for each hash, and the total number of locations."""
    n_locations = draw(N_LOCATIONS)
    location = st.integers(0, n_locations - 1)
    several = st.one_of(
        st.lists(location, min_size=1, max_size=3),
        # Many of the hashes share one set of locations.
        st.builds(lambda at: [at, at + 1], st.integers(0, min(n_locations, 5) - 1)).map(
            lambda pair: [min(at, n_locations - 1) for at in pair]
        ),
        st.just(list(range(min(n_locations, 300)))),
    )
    return draw(st.dictionaries(HASHES, several, max_size=40)), n_locations


def pairs_of(truth, *, signed=False):
    """The arrays of hashes and locations in a build, sorted by hash.

    Hashes are sorted as signed or as unsigned numbers.
    """

    def place(pair):
        return (pair[0] + (1 << 63)) % (1 << 64) if signed else pair[0]

    pairs = sorted(((key, at) for key, locations in truth.items() for at in locations), key=place)
    hashes = np.array([key for key, _ in pairs], np.uint64)
    return hashes, np.array([at for _, at in pairs], np.int32)


def found_by(segment, hashes):
    """Converts the result of `matches` to a set of locations for each hash."""
    index, locations = segment.matches(hashes)
    assert (index.dtype, locations.dtype) == (np.int64, np.int32)
    assert np.all(index[1:] >= index[:-1])
    found = defaultdict(list)
    for at, location in zip(index.tolist(), locations.tolist(), strict=True):
        found[at].append(location)
    return found


@given(maps(), st.integers(0, MAX_FINGERPRINT_BITS), st.booleans(), st.data())
def test_hashes_find_exactly_their_locations(made, bits, signed, data):
    """Each indexed hash finds exactly its locations, even if the look-up is repeated."""
    truth, n_locations = made
    segment = decode_map(build_map(*pairs_of(truth, signed=signed), n_locations, bits))
    asked = data.draw(st.lists(st.sampled_from(sorted(truth)))) if truth else []
    hashes = np.array(asked, np.uint64)
    found = found_by(segment, hashes)
    for at, key in enumerate(asked):
        assert found[at] == sorted(set(truth[key]))


@given(maps().filter(lambda made: made[1] < 1 << 20), st.lists(HASHES, max_size=20))
def test_locations_are_the_union_of_matches(made, others):
    """`locations_of` returns the union of all hashes' locations, even if some hashes are absent."""
    truth, n_locations = made
    segment = decode_map(build_map(*pairs_of(truth), n_locations, 2))
    hashes = np.array([*truth, *others], np.uint64)
    want = np.zeros(n_locations, np.bool_)
    want[segment.matches(hashes)[1]] = True
    found = segment.locations_of(hashes)
    assert found.dtype == np.bool_
    assert np.array_equal(found, want)
    for locations in truth.values():
        assert np.all(found[locations])


@given(maps())
def test_sets_with_one_digest_stay_separate(made):
    """A map stores two different sets of locations even if the sets have the same digest."""
    truth, n_locations = made
    with mock.patch("sieve.segments.hash_map.posting_lists.mixed", np.zeros_like):
        segment = decode_map(build_map(*pairs_of(truth), n_locations, 4))
    found = found_by(segment, np.array(list(truth), np.uint64))
    for at, locations in enumerate(truth.values()):
        assert found[at] == sorted(set(locations))


@given(maps(), st.data())
def test_damage_is_noticed(made, data):
    """If a byte of a map is changed, removed or added, Sieve raises an error."""
    truth, n_locations = made
    payload = build_map(*pairs_of(truth), n_locations, 6)
    at = data.draw(st.integers(0, len(payload) - 1))
    damaged = bytearray(payload)
    damaged[at] ^= data.draw(st.integers(1, 255))
    for broken in (bytes(damaged), payload[:at], payload + payload[at:]):
        try:
            decode_map(broken)
        except CorruptError:
            continue
        except UnsupportedError:
            # A later layout can have other fields, so Sieve checks shape and layout first.
            assert at < 2
            continue
        raise AssertionError(at)


@given(maps(), st.data())
def test_wrong_bytes_are_refused_or_within_bounds(made, data):
    """If a map has a right checksum but wrong bytes, look-ups fail or stay in bounds."""
    truth, n_locations = made
    body = bytearray(build_map(*pairs_of(truth), n_locations, 6)[:-CHECK_BYTES])
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    lie = bytes(body) + zlib.crc32(body).to_bytes(CHECK_BYTES, "little")
    try:
        segment = decode_map(lie)
    except SieveError:
        return
    index, locations = segment.matches(np.array([*truth, 0, 1, GREATEST], np.uint64))
    assert np.all((locations >= 0) & (locations < segment.n_locations))
    assert np.all((index >= 0) & (index < len(truth) + 3))


@given(st.integers(), st.integers(-(1 << 63), (1 << 63) - 1))
def test_hash_of_a_decimal_uses_its_shortest_bytes(unscaled, code):
    """The hash of a decimal is the hash of its unscaled number, in as few bytes as possible.

    The hash of a code is invertible, so different codes have different hashes.
    """
    image = decimal_bytes(unscaled)
    assert int.from_bytes(image, "big", signed=True) == unscaled
    if len(image) > 1:
        shorter = int.from_bytes(image[1:], "big", signed=True)
        assert shorter != unscaled
    word = int(hash_codes(np.array([code]))[0])
    for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1)):
        word = word ^ word >> shift ^ word >> 2 * shift
        word = word * pow(factor, -1, 1 << 64) % (1 << 64)
    assert word == code % (1 << 64)
