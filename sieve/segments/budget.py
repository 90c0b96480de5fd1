"""Fits an index version to a budget of bytes by a single cost per byte (Lagrange multiplier).

The cost per byte ("price" in the code) is a number of files. A build writes a byte only if the byte
saves at least this number of files per expected query. A higher price gives a smaller index. One
price holds for the whole version, so all locations compete for the same budget. `choose_price`
estimates the price from a curve of index bytes over prices. After a build, `within_budget` corrects
the price according to the bytes written.

Source: Lagrangian optimisation as in rate-distortion coding: Everett, "Generalized Lagrange
Multiplier Method for Solving Problems of Optimum Allocation of Resources".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from sieve.arrays.dtypes import Numbers

Made = TypeVar("Made")

_PRICES = 24
# At the least price, a whole budget saves only this number of files per query, or this share of the
# table's files if the share is smaller. A budget that saves less is too large for the column.
_NEGLIGIBLE_FILES = 1e-3
_NEGLIGIBLE_SHARE = 1e-5
# Bytes are estimated and interpolated between prices, so the aim is a little below the budget.
_CAUTION = 0.96
# Four times the price gives about half the bytes. Within a range of prices, the bytes are constant
# if no gap becomes worthwhile in this range.
_ELASTICITY = 2.0
_STEPS = (1.3, 2.0, 4.0, 8.0, 32.0, 128.0, 512.0)
# If a version uses at least this share of the budget, no further build tries to use the rest.
_ENOUGH = 0.9
_REFINED = 4
_MARGIN = 0.2
_NEAR = 1.01


def prices_for(locations: int, budget_bytes: float) -> Numbers:
    """Returns falling prices for a curve of bytes; the right price is between the first and last.

    Each further byte saves less than the byte before, and all bytes together save at most all
    locations. Hence the price at the budget is at most about ``locations / budget``. The least
    price is right for a structure that needs less than the budget.

    Args:
        budget_bytes: maximum bytes of the version.

    Returns:
        float64[24], in expected files read per query and byte.
    """
    budget = max(1.0, budget_bytes)
    return np.geomspace(4 * max(1, locations) / budget, least_price(locations, budget), _PRICES)


def least_price(locations: int, budget_bytes: float) -> float:
    """The lowest useful price: a whole budget at this price saves hardly any file."""
    files = min(_NEGLIGIBLE_FILES, _NEGLIGIBLE_SHARE * max(1, locations))
    return files / max(1.0, budget_bytes)


def choose_price(prices: Numbers, curve_bytes: Numbers, budget_bytes: float) -> float:
    """The price that uses as much of the budget as possible.

    Args:
        prices: float64[p], in falling order.
        curve_bytes: float64[p], bytes at each price, summed over all stretches of the domain.
        budget_bytes: maximum bytes of the version.

    Returns:
        A price interpolated between the least price that fits the budget and the next lower one. If
        even the greatest of `prices` needs more than the budget, the result is the greatest.
    """
    aim = _CAUTION * budget_bytes
    fits = np.flatnonzero(curve_bytes <= aim)
    at = int(fits[-1]) if len(fits) else 0
    if at == len(prices) - 1:
        return float(prices[at])
    low, high = curve_bytes[at], curve_bytes[at + 1]
    if not 0 < low < aim < high < np.inf:
        return float(prices[at])
    part = np.log(aim / low) / np.log(high / low)
    return float(prices[at] * (prices[at + 1] / prices[at]) ** part)


def within_budget(
    make: Callable[[float], tuple[Made, float]],
    budget_bytes: float,
    discard: Callable[[Made], None] = lambda _: None,
    lowest: float = 1.0,
) -> Made:
    """Builds at the expected price; builds again until the result fits and uses the budget.

    Args:
        make: builds at a multiple of the price; returns the result and its size in bytes.
        budget_bytes: maximum bytes of the version.
        discard: deletes a result that exceeds the budget, or that uses less of the budget than
            another result.
        lowest: least multiple of the price to try; with 1, the first result that fits is returned.

    Returns:
        The result that fits, or the last and smallest result if none fits.
    """
    times, (made, size) = 1.0, make(1.0)
    over, steps = None, iter(_STEPS)
    while size > budget_bytes:
        if (step := next(steps, None)) is None:
            return made
        # The result exceeds the budget, so the next price must be higher.
        over = times, size
        discard(made)
        times *= max(step, (size / max(1.0, budget_bytes)) ** _ELASTICITY)
        made, size = make(times)
    for _ in range(_REFINED):
        if size >= _ENOUGH * budget_bytes or times <= (lowest if over is None else _NEAR * over[0]):
            break
        if over is None:
            other_times = max(lowest, times / next(steps))
        else:
            other_times = _between((times, size), over, _CAUTION * budget_bytes)
        try:
            other, other_size = make(other_times)
        except BaseException:
            discard(made)
            raise
        if other_size > budget_bytes:
            discard(other)
            over = other_times, other_size
        else:
            discard(made)
            times, made, size = other_times, other, other_size
    return made


def _between(fits: tuple[float, float], over: tuple[float, float], aim: float) -> float:
    """Interpolates the multiple for `aim` bytes between two multiples with known bytes."""
    (dear, small), (cheap, large) = fits, over
    part = np.log(aim / max(1.0, small)) / np.log(large / max(1.0, small))
    return float(dear * (cheap / dear) ** np.clip(part, _MARGIN, 1 - _MARGIN))
