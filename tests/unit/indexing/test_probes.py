"""Probes measure how many files queries are expected to read.

Users see the expected number of files; the build compares the expected bytes.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sieve.encoding.encoder import Encoder
from sieve.encoding.hashing import hash_codes
from sieve.indexing.auto_budget import plan_map, stop_for
from sieve.indexing.column_profile import Profile
from sieve.indexing.column_sample import Sample
from sieve.indexing.probes import (
    EACH,
    Probes,
    _read,
    expectations,
    files_read,
    least_read,
    make_probes,
    map_may_pay,
)
from sieve.metadata.index_options import IndexOptions
from sieve.metadata.records import Expected
from sieve.segments.query_model import QueryModel

MB = 1 << 20
SIZES = np.array([MB, MB, MB, 97 * MB])


def profile(encoder: Encoder | None = None) -> Profile:
    """A column of three small files and one large file, with a thousand keys."""
    codes = np.arange(1000) * 1000
    sample = Sample(
        encoder or Encoder("bigint"), QueryModel.of_sample(codes), codes, hash_codes(codes),
        1_000_000, 8, 1_000_000,
    )  # fmt: skip
    return Profile(sizes=SIZES, sample=sample)


class Halves:
    """A run that, for keys in the lower half of the domain, finds the large file.

    For keys in the upper half of the domain, the run finds a small file.
    """

    has_maps = False

    def locations_in_each(self, intervals: Any) -> Any:
        """Implements `Run.locations_in_each`."""
        lower = intervals[:, 0] < 500_000
        none = np.zeros_like(lower)
        return np.stack([none, ~lower, none, lower], axis=1)


def test_reads_are_counted_in_locations_and_in_bytes() -> None:
    """Expected reads count read locations and matching locations, and the bytes of each group."""
    of = profile()
    probes = make_probes(of.sample)
    low = probes.intervals[:, 0] < 500_000
    hits = np.ones((2, len(low)), np.int64)
    hits[:, EACH : 2 * EACH] = 0
    hits[1] *= 2 * MB
    ends = np.zeros(4, np.int64)
    told = {
        kind.kind: kind
        for kind in expectations(probes, Halves(), SIZES, hits, ends, ends + 999_000)  # type: ignore[arg-type]
    }
    for number, (name, kind) in enumerate(told.items()):
        share = low[number * EACH : (number + 1) * EACH].mean()
        least = 0 if name == "absent" else 1
        assert (kind.files, kind.exact, kind.minmax) == (1, least, 4)
        assert kind.bytes == pytest.approx((97 * share + 1 - share) * MB)
        assert kind.exact_bytes == least * 2 * MB
    reads = files_read(list(told.values()), of.location_bytes)
    assert reads["present"] == pytest.approx(told["present"].bytes / (25 * MB))
    assert least_read(list(told.values()), of.location_bytes)["present"] == 2 / 25


def test_probes_of_columns_with_many_keys_per_row_ignore_frequency() -> None:
    """If rows can have several keys, a build probes rare and frequent keys equally often.

    If each row has one key, a build probes a key as often as the key occurs.
    """
    codes = np.concatenate([np.zeros(9_000, np.int64), np.arange(1000) * 1000])
    for by_key, share in ((True, 0.0), (False, 0.9)):
        sample = replace(profile().sample, codes=codes, hashes=hash_codes(codes), by_key=by_key)
        probed = make_probes(sample).intervals[:EACH, 0]
        assert (probed == 0).mean() == pytest.approx(share, abs=0.05)


def test_least_reads_of_a_stopping_rule_are_bytes() -> None:
    """A stopping rule states the least reads as bytes, divided by the mean size of a file."""
    of = profile()
    probes = make_probes(of.sample)
    hits = np.ones((2, len(probes.kinds)), np.int64)
    hits[1] = np.where(np.arange(len(probes.kinds)) % 2, 97 * MB, MB)
    hits[:, EACH : 2 * EACH] = 0
    stop = stop_for(of, IndexOptions(), probes, hits)
    assert stop.least == {"present": 49 / 25, "absent": 0, "range": 49 / 25}


def test_map_finds_the_file_of_the_value() -> None:
    """If values share a code, queries with a map read one file per value, mostly the large file."""
    exact, vague = profile(), profile(Encoder("string"))
    of_a_row = (3 * 1 + 97**2) / 25**2 / 4
    assert vague.least_by_map(4.0) == pytest.approx(of_a_row, rel=1e-5)
    assert vague.least_by_map(0.5) == 0.5
    assert exact.least_by_map(4.0) == 4.0
    assert replace(vague, sizes=np.full(4, MB)).least_by_map(4.0) == 1.0
    # Every query for a key reads the large file. This file contains the key, so a map could not
    # read less.
    near = [Expected("present", 1.2, 1.1, 4.0, 95 * MB, 94.5 * MB)]
    assert not map_may_pay(vague, near, 1_000_000, 1 << 30)
    assert plan_map(vague, IndexOptions(), near, 1_000, 100) is None
    # The queries read as many files as the queries above, but the large file mostly has no match.
    far = [Expected("present", 1.2, 1.1, 4.0, 95 * MB, 2 * MB)]
    assert map_may_pay(exact, far, 1_000_000, 1 << 30)
    assert plan_map(exact, IndexOptions(), far, 1_000, 100) is not None


KEYS, ENOUGH = 1000, 100_000


def may_pay(files: float, exact: float, *, budget: int = ENOUGH, of: str = "bigint") -> bool:
    """Returns whether a map may pay, if `exact` of the `files` files read contain the key."""
    ten = replace(profile(Encoder(of)), sizes=np.full(10, MB))
    told = [
        Expected("absent", 9.0, 0.0, 10.0, 9.0 * MB, 0.0),
        Expected("present", files, exact, 10.0, files * MB, exact * MB),
    ]
    return map_may_pay(ten, told, KEYS, budget)


def test_map_pays_if_intervals_read_files_without_the_key() -> None:
    """A map can pay back if it fits the budget, and if intervals read more files than needed."""
    assert may_pay(3.0, 1.0)
    assert not may_pay(3.0, 3.0)
    assert not may_pay(3.0, 1.0, budget=10)
    # A saving of a hundredth of the reads is too small for a map to pay.
    assert may_pay(1.011, 1.0)
    assert not may_pay(1.01, 1.0)
    assert not map_may_pay(profile(), [], KEYS, ENOUGH)


def test_map_distinguishes_values_of_one_code() -> None:
    """If values share a code, a map may pay even if all files read have the queried code."""
    assert may_pay(3.0, 3.0, of="string")
    assert not may_pay(1.0, 1.0, of="string")


@pytest.mark.parametrize("has_maps", [False, True])
@pytest.mark.parametrize("together", [1, 3, 100])
def test_map_narrows_the_reads_of_probes_for_one_key(
    has_maps: bool, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a probe of one key, only locations that the map finds by hash count as reads.

    For a probe of a range, each location that the intervals find counts as a read.
    """
    monkeypatch.setattr("sieve.indexing.probes._FLAG_BYTES", 10 * together)
    points = np.array([[7, 7], [3, 3], [5, 5], [2, 6]], np.int64)
    hashes = np.array([3, 1 << 63, 2, 0], np.uint64)
    probes = Probes(points, np.array([0, 0, 1, 2]), hashes)
    asked: list[list[int]] = []

    def below(ends: np.ndarray) -> np.ndarray:
        asked.append(ends.tolist())
        return np.arange(10) < ends[:, None]

    run: Any = SimpleNamespace(
        has_maps=has_maps,
        locations_in_each=lambda intervals: below(intervals[:, 0]),
        locations_of_each=lambda some: below(np.array([{3: 1, 1 << 63: 2, 2: 4}[k] for k in some])),
    )
    read, size = _read(probes, run, np.arange(10) * 100)
    kept = [1, 2, 4, 2] if has_maps else [7, 3, 5, 2]
    assert read.tolist() == kept
    assert size.tolist() == [100 * n * (n - 1) // 2 for n in kept]
    # The build looks up probes in batches that fit into memory, in ascending order: first of keys,
    # then of signed hashes.
    order = [[2, 3, 5, 7], [2, 4, 1]] if has_maps else [[2, 3, 5, 7]]
    assert asked == [
        some[at : at + together] for some in order for at in range(0, len(some), together)
    ]
