"""A build estimates from the smallest hashes how many keys a map will have."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sieve.encoding.encoder import Encoder
from sieve.encoding.hashing import hash_codes
from sieve.indexing import build_hash_map, hash_map_tasks
from sieve.indexing.arrow_jobs import map_batches
from sieve.indexing.build_hash_map import CollectedPairs, SharedPairs, _counts
from sieve.tables.table import LOCATION
from tests import fake_frames
from tests.fake_frames import Frame

HALF = -(1 << 62)
"""A quarter of all hashes is below this hash."""


@pytest.mark.parametrize(
    ("tasks", "counted"),
    [
        ([], (0, 0)),
        ([(0, [])], (0, 0)),
        # If the sketch has room for all hashes, the count of keys is exact.
        ([(5, [1, 2]), (7, [2, 3])], (12, 3)),
        # Each of the four hashes occurs in one pair, so there are as many keys as pairs.
        ([(5, [-9, 4]), (7, [-3, 8, 20])], (12, 12)),
        # One hash occurs in two pairs, so the build estimates the number of keys. Three of the four
        # hashes are below the fourth hash. The fourth hash is at a quarter of the hash range, so
        # the estimate is 3 / (1/4) = 12.
        ([(40, [-(1 << 63), HALF]), (60, [HALF, HALF - 1, HALF - 2])], (100, 12)),
    ],
)
def test_keys_are_counted_by_their_smallest_hashes(
    monkeypatch: pytest.MonkeyPatch,
    tasks: Sequence[tuple[int, list[int]]],
    counted: tuple[int, int],
) -> None:
    """A build estimates the number of keys from the smallest hashes that all tasks found.

    For unique keys, the estimated number of keys is exact. For other keys, it is approximate.
    """
    fake_frames.use(monkeypatch)
    monkeypatch.setattr(hash_map_tasks, "SKETCH", 4)
    types = {"pairs": pa.int64(), "smallest": pa.binary()}
    parts = [
        [{"pairs": pairs, "smallest": np.array(smallest, np.int64).tobytes()}]
        for pairs, smallest in tasks
    ]
    frame: Any = Frame(types, parts)
    assert _counts(frame) == counted


@pytest.mark.parametrize(
    ("rows", "parts"), [([], 1), ([0, 5], 1), ([10, 10], 1), ([10, 10, 1], 2), ([50, 1], 3)]
)
def test_pairs_have_a_part_for_each_possible_map(
    monkeypatch: pytest.MonkeyPatch, rows: list[int], parts: int
) -> None:
    """A build divides the pairs into one part per possible map, and assumes one pair per row.

    A location that was read only in part adds no pairs.
    """
    asked: list[Any] = []
    monkeypatch.setattr(build_hash_map, "_PAIRS_PER_MAP", 20)
    persisted: Any = SimpleNamespace(persist=lambda _: None)
    monkeypatch.setattr(build_hash_map, "map_batches", lambda *_: persisted)
    monkeypatch.setattr(hash_map_tasks, "pack_hashes", lambda *given: asked.append(given))
    monkeypatch.setattr(build_hash_map, "value_columns", lambda *_: None)
    partial = np.arange(len(rows)) == 1
    sample: Any = SimpleNamespace(encoder=Encoder("bigint"), domain_sample=None)
    values: Any = None
    seen: Any = SimpleNamespace(rows=np.array(rows, np.int64), partial=partial)
    SharedPairs(values, sample, seen, None)._packed()
    ((_, _, made, proves),) = asked
    assert made == parts
    assert (proves is None) == (len(rows) < 2)
    assert proves is None or proves.tolist() == (~partial).tolist()


@pytest.mark.parametrize("collects", [True, False])
def test_collected_pairs_are_not_read_again(
    monkeypatch: pytest.MonkeyPatch, collects: bool
) -> None:
    """If a build collected pairs while it read the column, it does not persist the pairs again.

    If a build has not collected pairs, it persists them when it builds the first map.
    """
    fake_frames.use(monkeypatch)
    step = hash_map_tasks.pack_hashes(Encoder("bigint"), None, 1, None)
    values = Frame(
        {"v": pa.int64(), LOCATION: pa.int32()},
        [[{"v": k, LOCATION: k % 2} for k in range(part, part + 5)] for part in (0, 3)],
    )
    given: Any = values
    rows: Any = map_batches(values, step, hash_map_tasks.PACKED)
    sample: Any = SimpleNamespace(encoder=Encoder("bigint"), domain_sample=None)
    seen: Any = SimpleNamespace(rows=np.array([5, 5]), partial=np.zeros(2, np.bool_))
    collected = CollectedPairs(rows, 1) if collects else None
    calls = values.cluster.calls
    with SharedPairs(given, sample, seen, collected) as pairs:
        assert "persist" not in calls
        (first,), (second,) = (pairs.map_rows(1 << 20).rows for _ in range(2))
        assert calls.count("persist") == (not collects)
        assert "unpersist" not in calls
    assert calls.count("unpersist") == (not collects)
    hashes = np.sort(hash_codes(np.arange(8)).view(np.int64))
    assert (first["first"], first["last"]) == (hashes[0], hashes[-1])
    assert first == second
