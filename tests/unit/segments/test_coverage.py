from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sieve.encoding.encoder import GREATEST, LEAST
from sieve.segments.coverage import Coverage, disjoint
from sieve.segments.entries import Entries

SPANS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 5), st.integers(0, 3)), min_size=0, max_size=12
)


def _entries(spans: list[tuple[int, int, int]]) -> Entries:
    low, length, location = np.array(spans, np.int64).reshape(-1, 3).T
    return Entries(low.copy(), low + length, location.astype(np.int32))


@given(SPANS)
def test_coverage_counts_each_location_once_a_key(spans: list[tuple[int, int, int]]) -> None:
    """A coverage counts, for each code, the locations with an entry for the code."""
    coverage = Coverage.of(_entries(spans))
    assert np.all(coverage.first <= coverage.last)
    assert np.all(coverage.last[:-1] < coverage.first[1:])
    counted = []
    for code in range(20):
        truth = len({where for low, more, where in spans if low <= code <= low + more})
        at = (coverage.first <= code) & (code <= coverage.last)
        assert int(coverage.locations[at].sum()) == truth
        counted += [truth] if truth else []
    assert coverage.mean() == pytest.approx(np.mean(counted) if counted else 0)


@given(SPANS)
def test_disjoint_entries_cover_the_same(spans: list[tuple[int, int, int]]) -> None:
    """`disjoint` merges the overlapping entries of a location, and loses no code."""
    low, high, location = disjoint(_entries(spans))
    for where in range(4):
        mine = sorted(zip(low[location == where], high[location == where], strict=True))
        assert all(a[1] < b[0] for a, b in pairwise(mine))
        covered = {code for a, b in mine for code in range(a, b + 1)}
        truth = {c for lo, more, at in spans if at == where for c in range(lo, lo + more + 1)}
        assert covered == truth


def test_the_ends_of_the_codes_are_covered() -> None:
    """The coverage is right at the least and greatest code, without overflow."""
    whole = Entries(
        np.array([LEAST, GREATEST, LEAST]),
        np.array([GREATEST, GREATEST, LEAST]),
        np.array([0, 1, 2], np.int32),
    )
    coverage = Coverage.of(whole)
    assert coverage.first.tolist() == [LEAST, LEAST + 1, GREATEST]
    assert coverage.last.tolist() == [LEAST, GREATEST - 1, GREATEST]
    assert coverage.locations.tolist() == [2, 1, 2]


def test_coverage_of_no_entries_is_zero() -> None:
    """Without entries, the mean coverage is 0."""
    assert Coverage.of(_entries([])).mean() == 0.0
