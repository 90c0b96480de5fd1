"""Tests maps from hashes to locations: size, false positives, refused input, stable bytes."""

from __future__ import annotations

import zlib
from unittest import mock

import numpy as np
import pytest

from sieve.arrays.bit_packing import pack
from sieve.encoding.hashing import hash_bytes, hash_codes
from sieve.errors import CorruptError, InvalidInputError, UnsupportedError
from sieve.segments.hash_map import fuse_function, posting_lists
from sieve.segments.hash_map.fingerprint_bits import (
    MOST_WORTHWHILE,
    estimate_bytes,
    fingerprint_for,
)
from sieve.segments.hash_map.format import CHECK_BYTES, HEAD, build_map, decode_map
from sieve.segments.hash_map.lookup import value_bits

FIELDS = "shape layout first last keys locations lists postings bits seed window_bits windows"


def draw(n_keys, n_locations, seed=0):
    """Random hashes, each in one location."""
    rng = np.random.default_rng(seed)
    hashes = np.sort(rng.integers(0, 1 << 64, n_keys, np.uint64))
    return hashes, rng.integers(0, n_locations, n_keys, np.int32)


def sample():
    """Three hashes: one hash is in location 4, and two hashes are in the locations 0 and 9."""
    hashes = hash_codes(np.array([1, 2, 2, 3, 3]))
    order = np.argsort(hashes, kind="stable")
    return hashes[order], np.array([4, 0, 9, 9, 0], np.int32)[order]


def test_layout_version_1_is_unchanged():
    """A stored map of layout version 1 is decoded, and `build_map` still gives the same bytes."""
    written = bytes.fromhex(
        "0401f02814e3ed5e531e8a142b3a9738d2db030000000a00000001000000020000000000000006e5"
        "050b101d169256030100000000000000000000000000d4020080d600000000000000000000000000"
        "80de00000000000000000000040000000008af2e84a3"
    )
    assert build_map(*sample(), 10, 6) == written
    index, locations = decode_map(written).matches(hash_codes(np.array([1, 2, 3])))
    assert index.tolist() == [0, 1, 1, 2, 2]
    assert locations.tolist() == [4, 0, 9, 0, 9]


def test_hashes_are_the_same_in_every_release():
    """Stored maps contain hashes, so hashes are the same in every release.

    Hashes of bytes equal the hashes of Spark 3.5.
    """
    assert hash_codes(np.array([0, 1, -1, 1 << 62])).tolist() == [
        0x0,
        0x5692161D100B05E5,
        0xB4D055FCF2CBBD7B,
        0x12E13752BCE754C5,
    ]
    assert hash_bytes([b"", b"sieve", bytes(100)]).tolist() == [
        0x98B1582B0977E704,
        0x941C95482263A434,
        0x1BEDC765C826D5CC,
    ]


@pytest.mark.parametrize(("n_locations", "most_bytes"), [(1000, 2.4), (100_000, 3.4)])
def test_unique_keys_take_few_bytes_and_reads(n_locations, most_bytes):
    """If all keys are unique, a look-up of a present key finds only its location.

    A look-up of an absent key finds at most 0.02 locations on average.
    """
    hashes, locations = draw(300_000, n_locations)
    payload = build_map(hashes, locations, n_locations, 6)
    assert len(payload) <= most_bytes * len(hashes)
    segment = decode_map(payload)
    index, found = segment.matches(hashes)
    assert np.array_equal(index, np.arange(len(hashes)))
    assert np.array_equal(found, locations)
    others = np.random.default_rng(1).integers(0, 1 << 64, 100_000, np.uint64)
    assert len(segment.matches(others)[0]) <= 0.02 * len(others)


def test_hashes_of_other_segments_find_nothing():
    """A look-up of a hash outside of a map's range finds nothing, even without fingerprints."""
    hashes, locations = draw(1000, 8)
    hashes += np.uint64(10)
    segment = decode_map(build_map(hashes[100:-100], locations[100:-100], 8, 0))
    outside = np.concatenate([hashes[:100], hashes[-100:], [np.uint64(0)]])
    assert len(segment.matches(outside)[0]) == 0
    assert not segment.locations_of(outside).any()


def test_map_without_keys_finds_nothing():
    """A map without keys finds nothing."""
    payload = build_map(np.empty(0, np.uint64), np.empty(0, np.int32), 5, 8)
    assert len(payload) == estimate_bytes(0, 5, 8)
    segment = decode_map(payload)
    assert segment.locations_of(np.arange(100, dtype=np.uint64)).tolist() == [False] * 5


def test_keys_with_the_same_set_share_one_list():
    """Keys with the same set of locations share one list."""
    hashes, first = draw(100_000, 9)
    payload = build_map(np.repeat(hashes, 2), np.stack([first, first + 1], 1).ravel(), 10, 6)
    segment = decode_map(payload)
    assert len(segment.lists) == 9
    assert len(payload) < 1.8 * len(hashes)
    assert len(segment.words) + segment.lists.nbytes < 1.01 * len(payload)


def test_failed_attempt_is_repeated_with_another_seed():
    """If one seed gives no function for the hashes, `build_map` tries another seed.

    After some attempts, `build_map` also uses more cells.
    """
    hashes, locations = draw(5000, 100)
    real, failures = fuse_function._peel, [None] * 9

    def unlucky(*args):
        return failures.pop() if failures else real(*args)

    easy = decode_map(build_map(hashes, locations, 100, 6)).layout
    with mock.patch.object(fuse_function, "_peel", unlucky):
        segment = decode_map(build_map(hashes, locations, 100, 6))
    assert segment.layout.seed != easy.seed
    assert segment.layout.n_cells > easy.n_cells
    assert np.array_equal(segment.matches(hashes)[1], locations)


def test_peel_reports_that_it_failed():
    """If two hashes have the same cells, `_peel` returns None."""
    assert fuse_function._peel(np.array([[0, 5, 9], [0, 5, 9]], np.int32), 12) is None


@pytest.mark.parametrize(
    ("hashes", "locations", "n_locations", "bits"),
    [
        ([1, 2], [0], 5, 6),
        ([5, 1, 7], [0, 0, 0], 5, 6),
        ([1, 3, 1], [0, 0, 0], 5, 6),
        ([1, 2], [0, 5], 5, 6),
        ([1, 2], [0, -1], 5, 6),
        ([], [], 0, 6),
        ([1], [0], 5, 25),
        ([1], [0], 5, -1),
        ([1], [0], (1 << 31) + 1, 6),
        ([1, 1], [0, 1], 1 << 31, 6),
    ],
)
def test_pairs_that_make_no_map_are_refused(hashes, locations, n_locations, bits):
    """`build_map` refuses impossible sizes, and pairs of a wrong order, length or location."""
    with pytest.raises(InvalidInputError):
        build_map(np.array(hashes, np.uint64), np.array(locations, np.int32), n_locations, bits)


def test_a_fingerprint_has_up_to_24_bits():
    """A fingerprint can have from 0 to 24 bits."""
    for bits in (0, 24):
        segment = decode_map(build_map(np.array([1, 5], np.uint64), np.array([0, 3]), 5, bits))
        assert np.flatnonzero(segment.locations_of(np.array([5], np.uint64))).tolist() == [3]


@pytest.mark.parametrize("name", ["MAX_KEYS", "MAX_POSTINGS"])
def test_too_much_for_one_segment_is_refused(name):
    """`build_map` does not write a map beyond the limits of readers."""
    with mock.patch(f"sieve.segments.hash_map.format.{name}", 1), pytest.raises(InvalidInputError):
        build_map(*sample(), 10, 6)


def forged(arrays=None, **fields):
    """The payload of the sample with changed fields or arrays, and with the right checksum."""
    payload = build_map(*sample(), 10, 6)
    head = dict(zip(FIELDS.split(), HEAD.unpack_from(payload), strict=True)) | fields
    cells = (((head["windows"] + 2) << min(head["window_bits"], 9)) * 10 + 7) // 8
    body = payload[HEAD.size : -CHECK_BYTES]
    if arrays is not None:
        body = body[:cells] + b"".join(pack(np.array(part, np.uint64)) for part in arrays)
    body = HEAD.pack(*head.values()) + body
    return body + zlib.crc32(body).to_bytes(CHECK_BYTES, "little")


def test_a_forged_payload_can_pass():
    """Without changes, `forged` returns the payload that `build_map` makes."""
    assert forged(arrays=([0], [0], [8])) == build_map(*sample(), 10, 6)


@pytest.mark.parametrize(("shape", "layout"), [(5, 1), (4, 2), (255, 255)])
def test_later_layouts_are_too_new(shape, layout):
    """A map with the shape or layout of a later release is too new, not damaged."""
    with pytest.raises(UnsupportedError) as refusal:
        decode_map(forged(shape=shape, layout=layout))
    assert refusal.value.condition == "SIEVE_VERSION_TOO_NEW"


@pytest.mark.parametrize(
    ("lie", "problem"),
    [
        ({"shape": 3}, "claims shape"),
        ({"layout": 0}, "claims shape"),
        ({"locations": 0}, "claims 0 locations"),
        ({"locations": 1 << 31}, "locations and 1 lists"),
        ({"lists": 4, "postings": 8}, "4 lists for 3 keys"),
        ({"postings": 1}, "claims 1 postings"),
        ({"postings": 1 << 60}, "postings"),
        ({"lists": 0}, "2 postings in 0 lists"),
        ({"bits": 25}, "25 bits"),
        ({"window_bits": 255}, "windows of 255 bits"),
        ({"window_bits": 19}, "windows of 19 bits"),
        ({"windows": (1 << 24) + 1, "window_bits": 0}, "16777217 windows"),
        ({"windows": (1 << 32) - 1}, "windows"),
        ({"windows": 1 << 24, "window_bits": 18}, "cells"),
        ({"windows": 0}, "3 keys in 0 cells"),
        ({"keys": (1 << 32) - 1}, "4294967295 keys"),
        ({"arrays": ([0], [0], [9])}, "location"),
        ({"arrays": ([0], [10], [8])}, "location"),
        ({"arrays": ([0], [0], [(1 << 64) - 1])}, "location"),
        ({"arrays": ([1], [0], [8])}, "add up"),
        ({"arrays": ([(1 << 64) - 1], [0], [8])}, "add up"),
        ({"arrays": ([0], [0], [8], [])}, "too long"),
    ],
)
def test_invalid_fields_are_corrupt(lie, problem):
    """A map with an invalid field is corrupt, even if its checksum is right.

    The error names the field.
    """
    with pytest.raises(CorruptError, match=problem):
        decode_map(forged(**lie))


def test_the_estimate_is_close():
    """The estimate of a map's bytes is exact without lists, and within a tenth with lists."""
    rng = np.random.default_rng(3)
    for n_keys, n_locations in ((1, 1), (10, 3), (5000, 1000), (200_000, 100_000)):
        hashes, locations = draw(n_keys, n_locations)
        made = len(build_map(hashes, locations, n_locations, 6))
        assert made == estimate_bytes(n_keys, n_locations, 6)
    for repeats in (2, 5, 40):
        hashes = np.repeat(draw(5000, 1)[0], repeats)
        payload = build_map(hashes, rng.integers(0, 1000, len(hashes), np.int32), 1000, 6)
        lists = decode_map(payload).lists
        guess = estimate_bytes(5000, 1000, 6, len(lists), len(lists.locations))
        assert 0.98 * len(payload) <= guess <= 1.1 * len(payload)


def test_a_budget_buys_the_most_bits_it_can():
    """Fingerprints get as many bits as the budget allows.

    If the budget is too small for a map, `fingerprint_for` returns None.
    """
    for budget in (1_500_000, 2_000_000, 2_500_000, 3_500_000):
        bits = fingerprint_for(budget, 1_000_000, 1000)
        assert estimate_bytes(1_000_000, 1000, bits) <= budget
        assert estimate_bytes(1_000_000, 1000, bits + 1) > budget
    assert fingerprint_for(1_000_000, 1_000_000, 1000) is None
    assert fingerprint_for(1 << 40, 1_000_000, 1000) == MOST_WORTHWHILE


@pytest.mark.parametrize("bits", [0, 3, 12])
def test_holds_agrees_with_look_ups(bits):
    """`holds` agrees with a look-up for each hash and location.

    Some of the hashes are in one location, some share a list, and some are absent.
    """
    hashes, locations = draw(300, 7)
    pairs = np.concatenate([hashes, np.repeat(hashes[:120], 2)])
    order = np.argsort(pairs, kind="stable")
    places = np.concatenate([locations, np.arange(240, dtype=np.int32) % 7])[order]
    one = decode_map(build_map(pairs[order], places, 7, bits))
    asked = np.concatenate([hashes[::3], draw(100, 7, seed=1)[0]])
    by_look_up = np.stack([one.locations_of(asked[k : k + 1]) for k in range(len(asked))])
    for location in range(7):
        assert one.holds(asked, location).tolist() == by_look_up[:, location].tolist()
    assert not one.holds(asked, 7).any()
    assert len(one.holds(asked[:0], 0)) == 0


@pytest.mark.parametrize("by", [1, -1, 1 << 31, -(1 << 31)])
def test_another_checksum_is_damage(by):
    """A payload with a wrong checksum is corrupt."""
    payload = build_map(*sample(), 10, 6)
    stored = int.from_bytes(payload[-CHECK_BYTES:], "little")
    other = (stored + by) % (1 << 32)
    with pytest.raises(CorruptError):
        decode_map(payload[:-CHECK_BYTES] + other.to_bytes(CHECK_BYTES, "little"))


def test_after_some_attempts_a_map_gets_more_room():
    """After every four attempts, the next attempt has a tenth more cells.

    The first attempt has an eighth more cells than keys, or a third more if there are few keys.
    """
    n = 1_000_000
    cells = [fuse_function.Layout.of(n, attempt).n_cells / n for attempt in range(9)]
    assert cells[:4] == [cells[0]] * 4
    assert cells[4:8] == [cells[4]] * 4
    assert cells[0] == pytest.approx(1.125, abs=0.02)
    assert cells[4] == pytest.approx(1.1 * 1.125, abs=0.02)
    assert cells[8] == pytest.approx(1.2 * 1.125, abs=0.02)
    assert len({fuse_function.Layout.of(n, attempt).seed for attempt in range(9)}) == 9
    few = fuse_function.Layout.of(10_000).n_cells / 10_000
    assert few == pytest.approx(0.875 + 0.25 * 6 / 4, abs=0.06)
    assert fuse_function.Layout.of(0).n_cells == 0


def test_sets_with_one_digest_are_both_kept(monkeypatch):
    """If different sets of locations have the same digest, the map stores all of them."""
    monkeypatch.setattr(posting_lists, "mixed", np.ones_like)
    sets = [(0, 3), (0, 1), (0, 1), (0, 2), (0, 3), (1, 2), (0, 1, 2), (0, 1, 2), (0, 1, 3)]
    hashes = np.repeat(np.arange(len(sets), dtype=np.uint64), [len(one) for one in sets])
    segment = decode_map(build_map(hashes, np.concatenate(sets).astype(np.int32), 4, 8))
    # Equal sets that follow each other share one list. If a different set is between two equal
    # sets, each of the equal sets has its own list.
    assert len(segment.lists) == 7
    for number, one in enumerate(sets):
        found = segment.locations_of(np.array([number], np.uint64))
        assert np.flatnonzero(found).tolist() == list(one)


@pytest.mark.parametrize(("each", "most"), [(2, 1.03), (3, 1.1)])
def test_the_estimate_of_sets_is_close(each, most):
    """The estimate for a map with lists is close to the real bytes, and never lower.

    If every set has two locations, a list stores the distance between its locations, but not their
    number.
    """
    draw = np.random.default_rng(1)
    hashes = np.sort(draw.integers(0, 1 << 63, 4000, np.uint64))
    sets = np.array([np.sort(draw.choice(300, each, replace=False)) for _ in hashes], np.int32)
    lists = len(np.unique(sets, axis=0))
    size = len(build_map(np.repeat(hashes, each), sets.ravel(), 300, 4))
    assert size <= estimate_bytes(4000, 300, 4, lists, each * lists) <= most * size


@pytest.mark.parametrize(
    ("n_locations", "n_lists", "bits"),
    [(0, 0, 0), (1, 0, 0), (2, 0, 1), (4, 0, 2), (3, 1, 2), (4, 1, 3), (5, 0, 3), (5, 4, 4)],
)
def test_values_have_just_the_bits_for_each_location_and_list(n_locations, n_lists, bits):
    """A value in a map has just enough bits to number all locations and lists."""
    assert value_bits(n_locations, n_lists) == bits
