"""Estimates, from sampled rows, how many locations contain a value."""

from __future__ import annotations

import numpy as np
import pytest

from sieve.indexing.value_spread import value_spread

LOCATIONS = 50


def spread(values: np.ndarray, places: np.ndarray, share: float) -> float:
    """Draws a random sample of these rows; returns the estimated number of locations per value."""
    drawn = np.random.default_rng(7).random(len(values)) < share
    hashes = values[drawn].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return value_spread(hashes, places[drawn].astype(np.int32), share)


@pytest.mark.parametrize("share", [1.0, 0.2, 0.01])
@pytest.mark.parametrize("values", [3, 20])
def test_values_of_all_locations_are_in_all(values: int, share: float) -> None:
    """If each value is in all locations, the estimate is the number of all locations.

    In the sample, each value occurs in only a few locations.
    """
    draw = np.random.default_rng(1)
    n = 200_000
    found = spread(draw.integers(0, values, n), draw.integers(0, LOCATIONS, n), share)
    assert found == pytest.approx(LOCATIONS, rel=0.05)


@pytest.mark.parametrize("share", [1.0, 0.2])
def test_values_of_one_location_are_in_one(share: float) -> None:
    """If each value is in one location, the estimate is 1, for any number of rows per value."""
    values = np.arange(20_000)
    assert spread(values // 400, values // 400, share) == pytest.approx(1.0)
    assert spread(values, values % LOCATIONS, share) == pytest.approx(1.0)


def test_frequent_values_count_more() -> None:
    """The estimate is a mean over rows, so frequent values have a greater weight than rare ones."""
    values = np.concatenate([np.zeros(900), np.arange(1, 101)]).astype(np.int64)
    places = np.arange(1000) % 10
    assert spread(values, places, 1.0) == pytest.approx(0.9 * 10 + 0.1 * 1)


def test_frequent_values_count_once_by_key() -> None:
    """With `by_key`, frequent and rare values count equally."""
    hashes = np.array([1] * 90 + [2], np.uint64)
    locations = np.array([*range(90), 7], np.int64)
    assert value_spread(hashes, locations, 1.0, by_key=True) == 45.5


def test_estimate_without_sampled_rows_is_zero() -> None:
    """If no rows were sampled, the estimate is 0."""
    none = np.empty(0, np.uint64)
    assert value_spread(none, np.empty(0, np.int32), 1.0) == 0.0
