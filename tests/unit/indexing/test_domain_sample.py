"""Windows are the sampled parts of a domain. A mapping moves keys and queries into windows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sieve.encoding.encoder import GREATEST, LEAST
from sieve.indexing.domain_sample import DomainSample, _code_at, windows
from sieve.segments.query_model import QueryModel

NOTHING = np.empty((0, 2), np.int64)
codes = st.one_of(
    st.integers(LEAST, GREATEST), st.integers(-50, 50), st.sampled_from([LEAST, GREATEST, 0, -1])
)
keys = st.lists(codes, min_size=2, max_size=200, unique=True).map(np.array)


def zoom_of(
    sample: np.ndarray, share: float, asked: np.ndarray = NOTHING
) -> tuple[DomainSample, QueryModel]:
    """Chooses windows for a sample; returns them with the sample's query model."""
    query_model = QueryModel.of_sample(sample.astype(np.int64))
    return windows(query_model, share, asked), query_model


@given(keys, st.floats(0.01, 0.6), st.lists(codes, max_size=100))
def test_mapping_keeps_order_and_membership(
    sample: np.ndarray, share: float, others: list[int]
) -> None:
    """The mapping keeps the order of the codes within windows, and drops all other codes.

    The mapping maps different codes to different codes.
    """
    domain_sample, _ = zoom_of(sample, share)
    everything = np.unique(np.append(sample, np.array(others, np.int64)).astype(np.int64))
    inside = domain_sample.within(everything)
    seen = domain_sample.codes(everything)
    assert len(seen) == inside.sum()
    assert np.all(seen[:-1] < seen[1:])


@given(keys, st.floats(0.01, 0.6), codes, codes)
def test_mapped_interval_has_the_same_keys(
    sample: np.ndarray, share: float, one: int, other: int
) -> None:
    """A mapped interval contains a mapped key if and only if the interval contains the key."""
    domain_sample, _ = zoom_of(sample, share)
    low, high = min(one, other), max(one, other)
    ((first, last),) = domain_sample.intervals(np.array([[low, high]], np.int64))
    keys = np.unique(np.append(sample, [one, other]).astype(np.int64))
    keys = keys[domain_sample.within(keys)]
    moved = domain_sample.codes(keys)
    assert np.array_equal((keys >= low) & (keys <= high), (moved >= first) & (moved <= last))


@given(keys, st.floats(0.01, 0.6), st.lists(st.tuples(codes, codes), min_size=1, max_size=5))
def test_a_query_keeps_its_keys(
    sample: np.ndarray, share: float, ends: list[tuple[int, int]]
) -> None:
    """All sampled keys of a query are mapped to codes within the query's mapped interval."""
    asked = np.unique(np.sort(np.array(ends, np.int64), axis=1), axis=0)
    apart = np.append(True, asked[1:, 0] > np.maximum.accumulate(asked[:, 1])[:-1])
    asked = asked[apart]
    domain_sample, _ = zoom_of(sample, share, asked)
    for low, high in asked:
        wanted = sample[(sample >= low) & (sample <= high)].astype(np.int64)
        ((first, last),) = domain_sample.intervals(np.array([[low, high]], np.int64))
        moved = domain_sample.codes(wanted)
        assert len(moved) == len(wanted)
        assert np.all((first <= moved) & (moved <= last))


def test_a_query_keeps_its_keys_between_windows() -> None:
    """Keys of a query that are between windows are mapped to the end of the previous window.

    Keys between windows that no query looks for are dropped.
    """
    sample = np.arange(0, 100_000, 10)
    asked = np.array([[30_000, 70_000]], np.int64)
    domain_sample, _ = zoom_of(sample, 0.05, asked)
    seen = domain_sample.within(sample)
    between = ~seen & (sample >= 30_000) & (sample <= 70_000)
    assert np.count_nonzero(between) > 3000
    assert len(domain_sample.codes(sample[between])) == np.count_nonzero(between)
    assert len(domain_sample.codes(sample[~seen & ~between])) == 0
    ((first, last),) = domain_sample.intervals(asked)
    moved = domain_sample.codes(sample[between])
    assert np.all((first <= moved) & (moved <= last))
    assert set(moved.tolist()) <= set(domain_sample.codes(domain_sample.last).tolist())


@pytest.mark.parametrize("share", [0.02, 0.2, 0.5])
@pytest.mark.parametrize("shape", ["even", "skewed", "few"])
def test_the_share_is_that_of_the_keys(shape: str, share: float) -> None:
    """The windows contain roughly the given share of the rows and of the distinct keys."""
    random = np.random.default_rng(5)
    sample = {
        "even": random.integers(0, 1 << 40, 40_000),
        "skewed": (random.exponential(1.0, 40_000) ** 3 * 1e9).astype(np.int64),
        "few": random.integers(0, 3000, 40_000),
    }[shape]
    domain_sample, query_model = zoom_of(sample, share)
    assert domain_sample.share == pytest.approx(share, rel=0.15)
    assert domain_sample.within(query_model.codes).mean() == pytest.approx(share, rel=0.3)
    assert domain_sample.within(sample).mean() == pytest.approx(share, rel=0.3)


def test_a_key_of_many_rows_is_always_seen() -> None:
    """The windows contain each frequent key. The rows of a frequent key represent only this key.

    The rows of any other key also represent keys between the windows.
    """
    random = np.random.default_rng(6)
    sample = np.append(np.full(20_000, 77_777), random.integers(0, 1 << 20, 20_000))
    domain_sample, query_model = zoom_of(sample, 0.1)
    assert domain_sample.within(np.array([77_777])).all()
    assert domain_sample.rates(query_model, np.array([77_777, 5])).tolist() == [
        1.0,
        1 / domain_sample.share,
    ]
    seen = domain_sample.of_mass(query_model)
    assert seen is not None
    assert seen.rows.max() / seen.rows.sum() == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(("others", "seen"), [(63, True), (64, False)])
def test_a_key_is_heavy_from_half_a_stratum_on(others: int, seen: bool) -> None:
    """A key is frequent if at least one row in 64 has the key.

    There are 32 strata. So a key that fills half of a stratum has one row in 64.
    """
    sample = np.append(np.full(1000, 77_777), np.arange(1000 * others) * 1000 + 10**8)
    domain_sample, query_model = zoom_of(sample, 0.01)
    (rate,) = domain_sample.rates(query_model, np.array([77_777]))
    assert bool(rate == 1.0) is seen


def test_windows_without_a_key_have_no_model() -> None:
    """Windows without a key have no query model, and a build has nothing to index."""
    query_model = QueryModel.of_sample(np.array([10, 20, 30]))
    between = DomainSample(np.array([12]), np.array([18]), NOTHING, 0.1)
    assert between.of_mass(query_model) is None
    with_one = DomainSample(np.array([12]), np.array([20]), NOTHING, 0.1)
    assert with_one.of_mass(query_model) is not None


def test_ends_of_a_query_are_within_windows() -> None:
    """Each end of a query lies in a window, and the window has keys on both sides of the end."""
    sample = np.arange(0, 1_000_000, 10)
    asked = np.array([[300_000, 700_000]], np.int64)
    domain_sample, _ = zoom_of(sample, 0.2, asked)
    for end in asked.ravel().tolist():
        assert domain_sample.within(np.arange(end - 1000, end + 1001, 10)).all()


def test_the_outermost_windows_reach_to_the_ends_of_all_codes() -> None:
    """Codes beyond the sampled keys are only in the outermost windows."""
    sample = np.arange(0, 1_000_000, 10)
    ends = np.array([[sample[0], sample[0]], [sample[-1], sample[-1]]], np.int64)
    domain_sample, _ = zoom_of(sample, 0.1, ends)
    assert (domain_sample.first[0], domain_sample.last[-1]) == (LEAST, GREATEST)
    assert np.all(domain_sample.last[:-1] < sample[-1])
    assert np.all(domain_sample.first[1:] > sample[0])


def test_window_model_has_the_shares_of_codes_and_keys() -> None:
    """The query model of windows records the windows' shares of all codes and of all keys."""
    query_model = QueryModel.of_sample(np.array([0, 10, 20, 30]))
    seen = DomainSample(np.array([0]), np.array([10]), NOTHING, 0.5).of_mass(query_model)
    assert seen is not None
    assert (seen.length, seen.keys) == (11 / 31, 2 / 4)


def test_a_window_begins_at_the_least_code_of_its_share() -> None:
    """`_code_at` returns the least code at which the expected queries reach a given share."""
    for sample in (np.arange(0, 10**6, 7), np.array([LEAST, -5, 0, 1 << 40, GREATEST])):
        query_model = QueryModel.of_sample(sample)
        share = np.array([0.01, 0.3, 0.5, 0.77, 0.99])
        found = _code_at(query_model, share)
        assert np.all(query_model.up_to(found) >= share)
        above = found > sample[0]
        assert np.all(query_model.up_to(found[above] - 1) < share[above])


def test_keys_after_a_window_are_mapped_to_its_end() -> None:
    """Keys of a query that are after a window are mapped to the end of the window.

    Keys before the first window are dropped.
    """
    asked = np.array([[-20, -10], [20, 30]], np.int64)
    sample = DomainSample(np.array([0, 100]), np.array([10, 110]), asked, 0.5)
    assert sample.codes(np.array([25])).tolist() == sample.codes(np.array([10])).tolist()
    for code in (-15, 15, 50):
        assert sample.codes(np.array([code])).tolist() == []
