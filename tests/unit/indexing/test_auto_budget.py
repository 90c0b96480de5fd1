"""Tests the budget ``auto``: the probes of the stopping rule, and when builds add a map."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sieve.encoding.encoder import Encoder
from sieve.indexing.auto_budget import map_is_likely, map_limit, stop_for
from sieve.indexing.column_profile import Profile
from sieve.indexing.column_sample import Sample
from sieve.indexing.probes import Probes
from sieve.metadata.index_options import IndexOptions


def test_probes_for_absent_keys_with_a_match_are_omitted() -> None:
    """If a location contains the "absent" key of a probe, the stopping rule omits the probe.

    The "absent" key is a random code of the whole domain, so a location can contain it by chance.
    """
    profile: Any = SimpleNamespace(
        payback=lambda _: SimpleNamespace(price=0.5),
        intervals_budget=lambda *_: 1000.0,
        little=10.0,
        sample=SimpleNamespace(share=1.0),
        location_bytes=100.0,
    )
    intervals = np.array([[7, 7], [3, 3], [5, 5], [4, 4], [1, 9], [0, 2]])
    probes = Probes(intervals, np.array([0, 0, 1, 1, 2, 2]), np.zeros(6, np.uint64))
    hits = np.array([[2, 4, 0, 1, 3, 0]])
    stop = stop_for(profile, IndexOptions(), probes, hits * np.array([[1], [100]]))
    assert [of_kind.tolist() for of_kind in stop.probes] == [
        [[3, 3], [7, 7]],
        [[5, 5]],
        [[0, 2], [1, 9]],
    ]
    assert stop.least == {"present": 3.0, "absent": 0.0, "range": 1.5}
    assert (stop.price, stop.budget) == (0.5, 1000.0)


@pytest.mark.parametrize(
    ("size", "keys", "rows", "n_files", "limit"),
    [
        (1 << 30, 0, 0, 0, None),
        ((1 << 30) + 1, 0, 0, 0, "bytes"),
        # A map takes 1.5 s per million keys. The rest of the build takes 6 s, plus 2 ms per file,
        # plus 0.7 s per million rows. Building a map may take three times as long as the rest of
        # the build.
        (1, 11_999_000, 0, 0, None),
        (1, 12_001_000, 0, 0, "seconds"),
        (1, 15_999_000, 0, 1000, None),
        (1, 16_001_000, 0, 1000, "seconds"),
        (1, 29_999_000, 10_000_000, 1000, None),
        (1, 30_001_000, 10_000_000, 1000, "seconds"),
    ],
)
def test_automatic_map_has_limits(
    size: int, keys: int, rows: int, n_files: int, limit: str | None
) -> None:
    """A build adds a map without a user's option only if the map has at most a gibibyte.

    The automatic map may take at most three times as long as the rest of the build.
    """
    assert map_limit(size, keys, rows, n_files) == limit


@pytest.mark.parametrize(
    ("options", "scattered", "keys", "table_bytes", "likely"),
    [
        (IndexOptions(), 0.5, 1_000_000, 50_000_000, True),
        (IndexOptions(), 0.49, 1_000_000, 50_000_000, False),
        (IndexOptions("map"), 0.0, 1_000_000, 50_000_000, True),
        (IndexOptions("intervals"), 1.0, 1_000_000, 50_000_000, False),
        (IndexOptions(budget="1%"), 1.0, 1_000_000, 50_000_000, False),
        # An index may have at most a tenth of the table's bytes.
        (IndexOptions(), 1.0, 1_000_000, 5_000_000, False),
        # If a query reads the whole table, it reads far more bytes than the map has.
        (IndexOptions(payback=1), 1.0, 1_000_000, 50_000_000, True),
        # A map of so many keys would exceed a gibibyte.
        (IndexOptions(), 1.0, 1_500_000_000, 150_000_000_000, False),
    ],
)
def test_scattered_keys_are_likely_to_get_a_map(
    options: IndexOptions, scattered: float, keys: int, table_bytes: int, likely: bool
) -> None:
    """A map of scattered keys counts as likely if it may pay back and is within all limits.

    A map that the user chose always counts as likely.
    """
    codes = np.empty(0, np.int64)
    sample = Sample(
        Encoder("bigint"), None, codes, codes.view(np.uint64), keys, 8, keys, scattered=scattered
    )
    sizes = np.full(100, table_bytes // 100)
    assert map_is_likely(Profile(sizes=sizes, sample=sample), options) == likely
