"""Tests the tasks that pack pairs of hash and location, and the tasks that make maps of them."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

from sieve.encoding.encoder import Encoder
from sieve.encoding.hashing import hash_bytes, hash_codes
from sieve.errors import InvalidInputError
from sieve.indexing import build_hash_map, hash_map_tasks
from sieve.indexing.build_hash_map import _WORTHWHILE_BITS, fit_maps
from sieve.indexing.domain_sample import DomainSample
from sieve.indexing.hash_map_tasks import (
    SKETCH,
    PairPacker,
    distinct,
    merge_sketches,
    pack_hashes,
    packed,
    write_maps,
)
from sieve.segments.hash_map.fingerprint_bits import estimate_bytes
from sieve.segments.hash_map.format import build_map

LOCATIONS = 9


def pairs(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Hashes of distinct keys, in random order; each has one random location."""
    random = np.random.default_rng(n)
    hashes = hash_codes(random.permutation(n).astype(np.int64))
    return hashes, random.integers(0, LOCATIONS, n).astype(np.int32)


def test_each_range_makes_the_map_of_its_pairs() -> None:
    """For each range of signed hashes, the build makes one map from the pairs of all tasks."""
    hashes, locations = pairs(5_000)
    batches = [packed(hashes[at::2], locations[at::2], 3) for at in (0, 1)]
    for batch in batches:
        assert batch.column("part").to_pylist() == [0, 1, 2]
        assert pa.compute.sum(batch.column("pairs")).as_py() == 2_500
    made = [row for batch in write_maps(LOCATIONS, 6)(iter(batches)) for row in batch.to_pylist()]
    order = np.argsort(hashes.view(np.int64))
    signed, locations = hashes.view(np.int64)[order], locations[order]
    borders = [0, *np.searchsorted(signed, [-(2**63) // 3, 2**63 // 3 + 1]), len(signed)]
    assert len(made) == 3
    for row, first, last in zip(made, borders[:-1], borders[1:], strict=True):
        part = slice(int(first), int(last))
        assert (row["first"], row["last"]) == (signed[part][0], signed[part][-1])
        assert row["payload"] == build_map(
            signed[part].view(np.uint64), locations[part], LOCATIONS, 6
        )


def test_distinct_hashes_are_counted() -> None:
    """A sketch counts distinct hashes: exactly if it has room for all, otherwise within 6 %.

    If a hash occurs more than twice, the sketch contains it only twice.
    """
    for n in (10, SKETCH - 1, SKETCH, 300_000):
        for times in range(1, 6):
            hashes, locations = pairs(n)
            repeated = packed(np.tile(hashes, times), np.tile(locations, times), 4)
            smallest = repeated.column("smallest").to_pylist()
            known = np.frombuffer(smallest[0], np.int64)
            found, often = np.unique(known, return_counts=True)
            assert found.tolist() == sorted(hashes.view(np.int64).tolist())[:SKETCH]
            assert set(often.tolist()) == {min(times, 2)}
            assert not any(smallest[1:])
            counted = distinct(n * times, smallest[0])
            assert counted == n if times == 1 or n < SKETCH else abs(counted / n - 1) < 0.06


def test_sketches_of_tasks_become_one() -> None:
    """A merge of the tasks' sketches, in any order, gives the sketch of all pairs."""
    hashes, locations = pairs(20_000)
    hashes = np.append(hashes, hashes[:7_000])
    locations = np.append(locations, locations[:7_000])
    whole = packed(hashes, locations, 1).column("smallest")[0].as_py()
    tasks = [packed(hashes[at::3], locations[at::3], 2) for at in range(3)]
    rows = [batch.select(["pairs", "smallest"]) for batch in tasks]
    for batches in (rows, rows[::-1]):
        (made,) = merge_sketches(iter(batches))
        assert made.to_pylist() == [{"pairs": 27_000, "smallest": whole}]
    (nothing,) = merge_sketches(iter([]))
    assert nothing.to_pylist() == [{"pairs": 0, "smallest": b""}]
    assert distinct(0, b"") == 0


def test_pairs_are_packed_when_the_buffer_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task packs pairs whenever its buffer is full, and packs the remaining pairs at the end."""
    monkeypatch.setattr(hash_map_tasks, "_HELD", 10)
    packer = PairPacker(1)
    numbers = [
        sum(batch.column("pairs")[0].as_py() for batch in packer.add(hashes, at))
        for at, hashes in enumerate(np.split(hash_codes(np.arange(24)), [9, 10, 20, 21]))
    ]
    assert numbers == [0, 10, 10, 0, 0]
    (rest,) = packer.finish()
    (row,) = rest.to_pylist()
    assert row["pairs"] == 4
    assert sorted(np.frombuffer(row["locations"], np.int32).tolist()) == [3, 4, 4, 4]
    assert list(packer.finish()) == []


@pytest.mark.parametrize("seed", range(8))
def test_unique_keys_fit_a_map_for_unique_keys(seed: int) -> None:
    """If all keys are unique, their map fits into its budget, even if the sketch has an error."""
    hashes = hash_codes(np.arange(20_000) + 20_000 * seed)
    (smallest,) = packed(hashes, np.arange(20_000) % LOCATIONS, 1).column("smallest").to_pylist()
    keys = distinct(20_000, smallest)
    bytes_of_unique = estimate_bytes(20_000, LOCATIONS, 0)
    assert fit_maps(20_000, keys, LOCATIONS, round(1.05 * bytes_of_unique)) == (1, 0)


@pytest.mark.parametrize("zoomed", [False, True])
@pytest.mark.parametrize("type_name", ["bigint", "string"])
def test_each_value_is_packed_once_per_location(type_name: str, zoomed: bool) -> None:
    """A task packs each pair of hash and location once, even if a location repeats a value.

    A task omits NULLs, values outside of the windows, and unproven locations.
    """
    encoder, text = Encoder(type_name), type_name == "string"
    files = [["b", "a", None, "b", "d"], ["c"], ["d", "b"]]
    batches, wanted = [], set()
    for location, values in enumerate(files):
        some = [value and (value if text else ord(value)) for value in values]
        given = [value and hash_bytes([value.encode()])[0].astype(np.int64) for value in values]
        v = pa.array(some, pa.string() if text else pa.int64())
        key = pa.array(given, pa.int64()) if text else v
        places = pa.array(np.full(len(v), location, np.int32))
        columns = [key, places, *([v] if text and zoomed else [])]
        batches.append(pa.RecordBatch.from_arrays(columns, names=list("klv")[: len(columns)]))
        for value, number, hashed in zip(values, some, given, strict=True):
            if location != 1 and value is not None and (value < "d" or not zoomed):
                code = hash_codes(np.array([number]))[0].astype(np.int64) if not text else hashed
                wanted.add((int(code), location))
    ends = encoder.encode(pa.array(["a", "c"] if text else [97, 99])).codes
    windows = DomainSample(ends[:1], ends[1:], np.empty((0, 2), np.int64), 0.5)
    step = pack_hashes(encoder, windows if zoomed else None, 2, np.array([True, False, True]))
    found = []
    for row in (row for batch in step(iter(batches)) for row in batch.to_pylist()):
        hashes = np.frombuffer(row["hashes"], np.int64).tolist()
        found += zip(hashes, np.frombuffer(row["locations"], np.int32).tolist(), strict=True)
    assert sorted(found) == sorted(wanted)


@pytest.mark.parametrize(("n", "keys"), [(1000, 1000), (100_000, 90_000), (30_000_000, 20_000_000)])
def test_budget_in_the_error_is_enough_for_a_map(n: int, keys: int) -> None:
    """If a budget is too small for a useful map, the error names a sufficient budget."""
    with pytest.raises(InvalidInputError) as caught:
        fit_maps(n, keys, 50, 10)
    message = caught.value.message
    named = re.search(rf"a map of {keys} keys takes about (\d+) bytes, .* '(\d+)KB'", message)
    assert named is not None
    needed, advised = int(named[1]), 1024 * int(named[2])
    assert 1.1 * needed <= advised < 1.1 * needed + 1024
    maps, bits = fit_maps(n, keys, 50, advised)
    assert maps == fit_maps(n, keys, 50, 1 << 40)[0]
    assert bits >= _WORTHWHILE_BITS


def test_map_needs_three_percent_more_than_estimated() -> None:
    """The plan of a map reserves three per cent more bytes than the estimate.

    If all keys are unique, fingerprints get as many bits as the budget allows.
    """
    least = estimate_bytes(1000, LOCATIONS, 0)
    assert fit_maps(1000, 1000, LOCATIONS, round(least / 0.97) + 1) == (1, 0)
    with pytest.raises(InvalidInputError):
        fit_maps(1000, 1000, LOCATIONS, round(1.025 * least))
    more = estimate_bytes(1000, LOCATIONS, 6)
    assert fit_maps(1000, 1000, LOCATIONS, round(more / 0.97) + 1) == (1, 6)
    with pytest.raises(InvalidInputError, match=f"takes about {more} bytes"):
        fit_maps(1000, 1000, LOCATIONS, 1)


@pytest.mark.parametrize(
    ("n", "maps"), [(1, 1), (1 << 19, 1), ((1 << 19) + 1, 2), (1 << 20, 2), ((1 << 20) + 1, 3)]
)
def test_a_map_has_half_a_million_pairs_at_most(n: int, maps: int) -> None:
    """A map has at most half a million pairs, so the map mostly fits into the cache of a core."""
    assert fit_maps(n, n, LOCATIONS, 1 << 30)[0] == maps


@pytest.mark.parametrize(
    ("pairs", "worth", "bits"),
    [
        (1000, 1e6, 0),  # A query for an absent key reads one location, and has the weight 1.
        (4000, 1e6, 2),
        (30_000, 1e6, 5),
        (30_000, 2000, 5),
        # For 1,000 keys, one fingerprint bit needs 147 bytes, and halves the reads for absent keys.
        (30_000, 100, 4),
        (30_000, 0.0, 0),
        (0, 1e6, 0),
    ],
)
def test_fingerprints_have_the_bits_that_pay_back(pairs: int, worth: float, bits: int) -> None:
    """Fingerprints get more bits, as long as the next bit costs less than the reads that it saves.

    Fingerprints save reads only in queries for absent keys.
    """
    keys = min(pairs, 1000)
    assert fit_maps(pairs, keys, LOCATIONS, 1 << 30, worth) == (1, bits)


def test_fingerprints_that_pay_back_keep_the_budget() -> None:
    """The budget limits the number of fingerprint bits, even if more bits would pay back."""
    least = estimate_bytes(1000, LOCATIONS, 1, 1000, 4000)
    assert fit_maps(4000, 1000, LOCATIONS, round(least / 0.97) + 1, 1e6) == (1, 1)


def test_maps_are_planned_for_equal_numbers_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a run has several maps, each map is planned for an equal share of the keys."""
    asked: list[tuple[int, ...]] = []
    monkeypatch.setattr(build_hash_map, "fingerprint_for", lambda *given: asked.append(given) or 5)
    assert fit_maps((1 << 20) + 1, 1 << 20, LOCATIONS, 300_000) == (3, 5)
    assert asked == [(97_000, 349_526, LOCATIONS, 1, 1)]
