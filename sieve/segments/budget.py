"""Fits an index version to a byte budget by means of one cost per byte (Lagrange multiplier).

The cost per byte ("price" in the code) is the number of files that each index byte must save
reading per expected query. A build omits bytes that save less, so a higher price gives a smaller
index. All parts of a version have the same price, so the budget goes to the locations where it
saves most reads. `choose_price` estimates the right price from a curve that shows the index's bytes
at several prices. If the built version does not fit the budget, `within_budget` corrects the price
and builds again.

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
# At the least price, the whole budget saves hardly any file per query: `_NEGLIGIBLE_FILES`, or the
# share `_NEGLIGIBLE_SHARE` of the table's files if this share is smaller. If a budget saves even
# less, the budget is too large for the column.
_NEGLIGIBLE_FILES = 1e-3
_NEGLIGIBLE_SHARE = 1e-5
# `choose_price` aims at this share of the budget. The share is below 1, because the bytes at a
# price are an estimate.
_CAUTION = 0.96
# Four times the price gives about half the bytes. To divide the bytes by a factor, the code
# therefore multiplies the price by the square of the factor. If the same gaps are worthwhile at two
# prices, both prices give the same bytes. A small step can therefore be useless, so the factors in
# `_STEPS` grow.
_ELASTICITY = 2.0
_STEPS = (1.3, 2.0, 4.0, 8.0, 32.0, 128.0, 512.0)
# If a version uses at least this share of the budget, `within_budget` does not build again.
_ENOUGH = 0.9
_REFINED = 4
_MARGIN = 0.2
_NEAR = 1.01


def prices_for(locations: int, budget_bytes: float) -> Numbers:
    """Returns falling prices for `choose_price`; the right price is between the first and the last.

    Each further byte of an index saves less than the previous byte. The total saving cannot exceed
    the number of locations. Hence an index that uses the whole budget has a price of at most about
    ``locations / budget``. If the index needs less than the budget, the least price is right.

    Args:
        budget_bytes: maximum bytes of the version.

    Returns:
        float64[24], prices in files per expected query and index byte.
    """
    budget = max(1.0, budget_bytes)
    return np.geomspace(4 * max(1, locations) / budget, least_price(locations, budget), _PRICES)


def least_price(locations: int, budget_bytes: float) -> float:
    """Returns the lowest useful price, at which even the whole budget saves hardly any reads."""
    files = min(_NEGLIGIBLE_FILES, _NEGLIGIBLE_SHARE * max(1, locations))
    return files / max(1.0, budget_bytes)


def choose_price(prices: Numbers, curve_bytes: Numbers, budget_bytes: float) -> float:
    """Returns the price at which a version uses as much of the budget as possible.

    Args:
        prices: float64[p], in falling order.
        curve_bytes: float64[p], the estimated bytes at each price, summed over all stretches of the
            domain.
        budget_bytes: maximum bytes of the version.

    Returns:
        A price between two neighbours in `prices`: the least price that fits the budget, and the
        next lower price. If no price fits the budget, the result is the greatest of `prices`.
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
    """Builds at several prices until the result fits and uses most of the budget.

    Args:
        make: builds at a given multiple of the expected price; returns the result and its size in
            bytes.
        budget_bytes: maximum bytes of the version.
        discard: deletes a result; `within_budget` discards every result except the returned result.
        lowest: the least multiple of the price to try. If `lowest` is 1 and the first result fits,
            the function returns this result at once.

    Returns:
        The largest result that fits the budget; if no result fits, the last and smallest result.
    """
    times, (made, size) = 1.0, make(1.0)
    over, steps = None, iter(_STEPS)
    while size > budget_bytes:
        if (step := next(steps, None)) is None:
            return made
        # The result exceeds the budget, so the next build needs a higher price.
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
    """Interpolates the price multiple for `aim` bytes between two multiples of known size."""
    (dear, small), (cheap, large) = fits, over
    part = np.log(aim / max(1.0, small)) / np.log(large / max(1.0, small))
    return float(dear * (cheap / dear) ** np.clip(part, _MARGIN, 1 - _MARGIN))
