"""Pairs of hash and location travel packed, and come back as the maps of their ranges."""

from __future__ import annotations

import numpy as np

from sieve.encoding.hashing import hash_codes
from sieve.indexing.hash_map_tasks import SKETCH, distinct, packed, write_maps
from sieve.segments.hash_map.format import build_map

LOCATIONS = 9


def pairs(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Hashes of some keys in no order, and a location each."""
    random = np.random.default_rng(n)
    hashes = hash_codes(random.permutation(n).astype(np.int64))
    return hashes, random.integers(0, LOCATIONS, n).astype(np.int32)


def test_each_range_makes_the_map_of_its_pairs() -> None:
    """Ranges divide the signed order; pairs that tasks pack apart meet in one map."""
    hashes, locations = pairs(5_000)
    batches = [packed(hashes[at::2], locations[at::2], 3) for at in (0, 1)]
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
    """Exactly while the sketch holds them all, then to a few parts in a hundred."""
    for n in (10, SKETCH - 1, 300_000):
        hashes, locations = pairs(n)
        twice = packed(np.append(hashes, hashes), np.append(locations, locations), 4)
        smallest = twice.column("smallest").to_pylist()
        assert len(smallest[0]) == min(n, SKETCH)
        assert not any(smallest[1:])
        counted = distinct(len(smallest[0]), smallest[0][-1])
        assert counted == n if n < SKETCH else abs(counted / n - 1) < 0.06
