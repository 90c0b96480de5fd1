"""The bytes that an index may have, computed from its options and the size of its column."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sieve.indexing.column_profile import Profile
from sieve.metadata.index_options import IndexOptions

MB = 1 << 20
AUTO = IndexOptions()


def profile(
    sizes: list[int] | None = None,
    rows: int = 1_000_000,
    *,
    width: float = 8.0,
    share: float = 1.0,
    shown: int = 40_000,
    exact: bool = True,
    wide: bool = False,
    few: bool = False,
    spread: float = 0.0,
) -> Profile:
    """A column profile; by default, the column has a hundred files, each of a megabyte."""
    sample: Any = SimpleNamespace(
        rows=rows,
        width=width,
        share=share,
        shown=shown,
        encoder=SimpleNamespace(exact=exact),
        spread=spread,
    )
    lengths = np.array([MB] * 100 if sizes is None else sizes, np.int64)
    return Profile(sizes=lengths, sample=sample, wide=wide, few=few)


def test_a_profile_counts_its_locations_and_its_bytes() -> None:
    """A profile has the table's bytes on disk, and the column's bytes without compression."""
    found = profile([300, 100])
    assert (found.n_files, found.table_bytes, found.location_bytes) == (2, 400, 200.0)
    assert found.column_bytes == 8_000_000
    assert found.weights is not None
    assert found.weights.tolist() == [1.5, 0.5]
    assert profile().weights is None


@pytest.mark.parametrize(
    ("sizes", "options", "share", "budget"),
    [
        # The budget is the larger of a tenth of the table's bytes and 64 KB.
        (None, AUTO, 1.0, 10 * MB),
        (None, AUTO, 0.25, 10 * MB // 4),
        ([100_000] * 3, AUTO, 1.0, 64 << 10),
        ([655_361], AUTO, 1.0, 64 << 10),
        ([655_370], AUTO, 1.0, 65_537),
        (None, IndexOptions(budget="1%"), 1.0, 80_000),
        (None, IndexOptions(budget="1%"), 0.5, 40_000),
        (None, IndexOptions(budget="20KB"), 1.0, 20 << 10),
        (None, IndexOptions(budget="20KB"), 1e-9, 1),
    ],
)
def test_sampled_part_gets_its_share_of_the_budget(
    sizes: list[int] | None, options: IndexOptions, share: float, budget: int
) -> None:
    """A sampled part of the domain gets its share of the budget, and at least one byte."""
    found = profile(sizes, share=share)
    assert found.budget(options) == budget
    assert found.most(options) == budget


@pytest.mark.parametrize("shape", ["sieve", "map"])
def test_maps_and_blocks_are_not_rebuilt_to_fit_a_budget(shape: str) -> None:
    """A build makes maps and blocks only once, even if they exceed their budget.

    The plan of a map fits the budget, and an error bound limits blocks.
    """
    assert profile().most(IndexOptions(shape, budget="20KB")) == math.inf


@pytest.mark.parametrize(
    ("rows", "share", "wide", "allowed"),
    [
        # The budget is the larger of a hundredth of the column and 320 KB. In a second reading,
        # intervals get up to eight times this budget.
        (1_000_000, 1.0, False, 320 << 10),
        (4_096_100, 1.0, False, 327_688),
        (10_000_000, 1.0, False, 800_000),
        (10_000_000, 0.5, False, 400_000),
        (10_000_000, 1.0, True, 6_400_000),
        (1_000_000, 1.0, True, 8 * (320 << 10)),
        # Intervals may have at most a tenth of the table's bytes.
        (1_000_000_000, 1.0, False, 10 * MB),
    ],
)
def test_second_reading_has_a_larger_budget_if_it_can_pay(
    rows: int, share: float, wide: bool, allowed: int
) -> None:
    """With the budget `auto`, intervals get a hundredth of the column.

    After a second reading of the column, intervals get more bytes.
    """
    found = profile(rows=rows, share=share, wide=wide)
    assert found.intervals_budget(AUTO, "auto") == allowed
    # There are two limits on the number of cuts: one per row, and 1.5 per byte of budget plus 64
    # per location.
    assert found.most_cuts(AUTO) == min(found.sample.shown, 64 * 100 + 3 * allowed // 2)
    many = profile(rows=rows, share=share, wide=wide, shown=1 << 30)
    assert many.most_cuts(AUTO) == 64 * 100 + 3 * allowed // 2


@pytest.mark.parametrize(("share", "allowed"), [(1.0, 320 << 10), (0.5, 160 << 10)])
def test_a_likely_map_reads_the_cuts_of_a_small_column(share: float, allowed: int) -> None:
    """If a map is likely, the first reading collects as few cuts as for a small column.

    A second reading of the column has the usual budget.
    """
    found = profile(rows=10_000_000, share=share, few=True)
    assert found.intervals_budget(AUTO, "auto") == allowed
    usual = profile(rows=10_000_000, share=share)
    assert found.wider(AUTO).intervals_budget(AUTO, "auto") == usual.wider(AUTO).intervals_budget(
        AUTO, "auto"
    )


@pytest.mark.parametrize(
    ("budget", "beside"), [("40KB", 20 << 10), ("640KB", 32 << 10), ("1280KB", 64 << 10)]
)
def test_intervals_next_to_a_map_get_little_budget(budget: str, beside: int) -> None:
    """If an index has a map, its intervals get a twentieth of the budget.

    Intervals of an index with a map get at least 32 KB, and at most half of the budget.
    """
    options = IndexOptions(budget=budget)
    assert profile().intervals_budget(options, "auto") == int(budget[:-2]) << 10
    assert profile().intervals_budget(options, "map") == beside


def test_at_least_one_cut_is_allowed() -> None:
    """Even for a column without rows, a build may collect one cut."""
    for options in (AUTO, IndexOptions("sieve")):
        assert profile(shown=0).most_cuts(options) == 1
        assert profile([MB], shown=7).most_cuts(options) == 7


@pytest.mark.parametrize(
    ("options", "rows", "wide", "more"),
    [
        (AUTO, 1_000_000, False, True),
        (AUTO, 1_000_000, True, False),
        (IndexOptions(budget="1%"), 1_000_000, False, False),
        # Here, the first reading has already collected all cuts that the budget allows.
        (AUTO, 1_000_000_000, False, False),
    ],
)
def test_more_cuts_are_read_once_and_within_the_budget(
    options: IndexOptions, rows: int, wide: bool, more: bool
) -> None:
    """With the budget `auto`, a build can read the column once more to collect more cuts."""
    found = profile(rows=rows, wide=wide)
    wider = found.wider(options)
    assert (wider is not None) == more
    if wider is not None:
        assert (wider.wide, wider.sizes) == (True, found.sizes)


def test_a_map_finds_the_location_of_a_row() -> None:
    """If values can share a code, `least_by_map` is the mean size of the location of a random row.

    A random row is more likely in a large location than in a small one.
    """
    assert profile([300, 100]).least_by_map(3.0) == 3.0
    assert profile([300, 100], exact=False).least_by_map(3.0) == (1.5**2 + 0.5**2) / 2
    assert profile([300, 100], exact=False).least_by_map(1.1) == 1.1


def test_a_map_finds_each_location_of_a_value() -> None:
    """With a map, a query for a value reads only the locations that contain the value.

    With intervals, a query also reads the locations of other values with the same code.
    """
    assert profile([200] * 10, exact=False, spread=4.5).least_by_map(9.0) == 4.5
    assert profile([200] * 10, exact=False, spread=4.5).least_by_map(3.0) == 3.0


def test_bytes_that_hardly_count() -> None:
    """Savings of bytes are negligible below the larger of a hundredth of the column and 8 KB.

    For a sampled part of the domain, the limit of negligible bytes is scaled to the part's share.
    """
    assert profile().little == 80_000
    assert profile(rows=1000).little == 8 << 10
    assert profile(share=0.5).little == 40_000
    assert profile().payback(IndexOptions()).file == 10 * MB
    assert profile(share=0.5).payback(IndexOptions(payback=3)).file == 1.5 * MB


def test_the_smallest_windows_have_a_byte_for_intervals() -> None:
    """Even for a tiny sampled part of the column, intervals get at least one byte."""
    found = profile([10 << 30], share=1e-6)
    assert (found.budget(AUTO), found.intervals_budget(AUTO, "auto")) == (1073, 1)
