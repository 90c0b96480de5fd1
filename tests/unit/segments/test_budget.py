"""Tests how a build finds a price, in reads per byte, that suits its budget."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sieve.segments.budget import choose_price, least_price, prices_for, within_budget


def test_prices_fall_from_the_highest_possible_one() -> None:
    """At the lowest price, the whole budget has to save a thousandth of a file per query.

    All prices are evenly spaced on a logarithmic scale. The highest price is four times the number
    of files, divided by the budget in bytes. With few files, the lowest price is lower than with
    many files.
    """
    prices = prices_for(1000, 5000.0)
    assert len(prices) == 24
    assert (prices[0], prices[-1]) == pytest.approx((0.8, 1e-3 / 5000))
    assert prices[1:] / prices[:-1] == pytest.approx(np.full(23, prices[1] / prices[0]))
    assert least_price(10, 5000.0) == pytest.approx(1e-4 / 5000)
    assert least_price(0, 0.0) == pytest.approx(1e-5)
    assert prices_for(0, 0.0)[0] == pytest.approx(4.0)


CURVE = np.array([10.0, 20.0, 40.0, 80.0])
PRICES = np.array([8.0, 4.0, 2.0, 1.0])


@pytest.mark.parametrize(
    ("curve", "budget", "price"),
    [
        (CURVE, 30 / 0.96, 4 * 0.5 ** (np.log(1.5) / np.log(2))),
        (CURVE, 20 / 0.96 + 1e-9, 4.0),
        (CURVE, 80 / 0.96 + 1e-9, 1.0),
        (CURVE, 60 / 0.96, 2 * 0.5 ** (np.log(1.5) / np.log(2))),
        (CURVE, 9.0, 8.0),
        (np.array([0.0, 20.0, 40.0, 80.0]), 15.0, 8.0),
        (np.array([10.0, 20.0, 20.0, 80.0]), 20 / 0.96 + 1e-9, 2.0),
        (np.array([10.0, np.inf, np.inf, np.inf]), 20.0, 8.0),
    ],
)
def test_price_is_interpolated_around_the_budget(
    curve: np.ndarray, budget: float, price: float
) -> None:
    """Between two prices of the curve, the price for a budget is interpolated logarithmically.

    The estimated curve is inexact, so the price is for slightly fewer bytes than the budget.
    """
    assert choose_price(PRICES, curve, budget) == pytest.approx(price, rel=1e-6)


def sizes(*steps: tuple[float, float]) -> Callable[[float], float]:
    """Returns a function that maps a multiple of the price to the bytes of a run.

    Each step is a pair: the greatest multiple of the step, and the bytes.
    """
    return lambda times: next(size for most, size in steps if times <= most)


@pytest.mark.parametrize(
    ("size", "lowest", "asked", "taken"),
    [
        # The first attempt nearly uses the budget, or has the lowest price.
        (sizes((99, 90)), 0.1, [1], 1),
        (sizes((99, 89.9)), 1.0, [1], 1),
        # The first attempt has too many bytes, so the price rises. The factor of the price is the
        # square of (bytes / budget). The factor is at least 1.3 the first time, and at least 2
        # later.
        (sizes((1, 200), (99, 95)), 1.0, [1, 4], 4),
        (sizes((1, 101), (99, 95)), 1.0, [1, 1.3], 1.3),
        (sizes((1, 101), (1.3, 100.5), (99, 95)), 1.0, [1, 1.3, 2.6], 2.6),
        # The first attempt has too few bytes, so the price falls until an attempt has too many.
        # Each further price lies between the last two prices.
        (sizes((0.2, 95), (99, 50)), 0.1, [1, 1 / 1.3, 1 / 2.6, 0.1], 0.1),
        (sizes((0.8, 92), (99, 50)), 0.1, [1, 1 / 1.3], 1 / 1.3),
        (sizes((0.9, 60), (99, 50)), 0.9, [1, 0.9], 0.9),
        (sizes((0.9, 60), (99, 50)), 0.8, [1, 0.8], 0.8),
    ],
)
def test_attempts_continue_until_the_bytes_are_right(
    size: Callable[[float], float], lowest: float, asked: list[float], taken: float
) -> None:
    """A build tries prices until its bytes are between 90 and 100 % of the budget.

    In this test, the budget is 100 bytes.
    """
    tried: list[float] = []

    def make(times: float) -> tuple[float, float]:
        tried.append(times)
        return times, size(times)

    made = within_budget(make, 100.0, lowest=lowest)
    assert tried == pytest.approx(asked)
    assert made == pytest.approx(taken)


@pytest.mark.parametrize(
    ("small", "large", "dear", "between"),
    [
        (50.0, 200.0, 4.0, np.log(96 / 50) / np.log(4)),
        (89.0, 101.0, 1.3, np.log(96 / 89) / np.log(101 / 89)),
        (0.0, 200.0, 4.0, 0.8),
        (1.0, 1000.0, 100.0, np.log(96) / np.log(1000)),
        (89.9, 1e9, 1e14, 0.2),
    ],
)
def test_next_price_lies_between_the_prices_of_two_attempts(
    small: float, large: float, dear: float, between: float
) -> None:
    """The next price is between the price of a fitting attempt and the price of a larger attempt.

    On a logarithmic scale, the next price keeps a distance to both prices: at least a fifth of the
    interval between them.
    """
    tried: list[float] = []

    def make(times: float) -> tuple[float, float]:
        tried.append(times)
        return times, large if times <= 1 else small

    within_budget(make, 100.0)
    assert tried[1:3] == pytest.approx([dear, dear * (1 / dear) ** between])


@pytest.mark.parametrize(("large", "attempts"), [(200.0, 2 + 4), (101.0, 2 + 3)])
def test_at_most_four_attempts_refine_the_first_that_fits(large: float, attempts: int) -> None:
    """After an attempt within the budget and an attempt above it, at most four more follow.

    If the prices of two attempts differ by less than a hundredth, no attempt follows.
    """
    tried: list[float] = []

    def make(times: float) -> tuple[float, float]:
        tried.append(times)
        return times, large if times <= 1 else 10.0

    made = within_budget(make, 100.0)
    assert len(tried) == attempts
    assert made == tried[-1] == min(tried[1:])


def test_seven_higher_prices_are_tried_if_nothing_fits() -> None:
    """If no attempt fits, a build tries seven higher prices, and keeps only the last attempt."""
    tried: list[float] = []
    discarded: list[float] = []

    def make(times: float) -> tuple[float, float]:
        tried.append(times)
        return times, 101.0

    made = within_budget(make, 100.0, discarded.append)
    steps = np.cumprod([1, 1.3, 2, 4, 8, 32, 128, 512])
    assert tried == pytest.approx(steps.tolist())
    assert discarded == tried[:-1]
    assert made == tried[-1]
