"""One price for a whole version: how many files a byte must save to be worth writing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from sieve.segments.query_model import Numbers

Made = TypeVar("Made")

_PRICES = 24
# Where a whole budget buys less than this many files a query, it is too large for the column; of
# few files this share.
_WORTHLESS_FILES = 1e-3
_WORTHLESS_SHARE = 1e-5
# Bytes are estimated, and interpolated between prices.
_CAUTION = 0.96
# Bytes fall more slowly than the price rises, by about the square root of it; and where no gap is
# worth so little, not at all until the price is far higher.
_ELASTICITY = 2.0
_STEPS = (1.3, 2.0, 4.0, 8.0, 32.0, 128.0, 512.0)
# A version that uses so much of its budget is not made again for the rest of it.
_ENOUGH = 0.9
_REFINED = 4
_MARGIN = 0.2
_NEAR = 1.01


def prices_for(locations: int, budget_bytes: float) -> Numbers:
    """Prices to draw curves at, falling, the right one surely between the ends.

    What a byte saves falls with every byte spent, and all bytes together save no more than all
    locations: at the budget it is about ``locations / budget`` at most. Structures that need less
    than the budget end at the least price.

    Args:
        locations: of the table.
        budget_bytes: for the version.

    Returns:
        float64[24], expected files read a query, per byte.
    """
    budget = max(1.0, budget_bytes)
    return np.geomspace(4 * max(1, locations) / budget, least_price(locations, budget), _PRICES)


def least_price(locations: int, budget_bytes: float) -> float:
    """The price below which nothing is worth writing: a whole budget buys hardly any file."""
    files = min(_WORTHLESS_FILES, _WORTHLESS_SHARE * max(1, locations))
    return files / max(1.0, budget_bytes)


def choose_price(prices: Numbers, curve_bytes: Numbers, budget_bytes: float) -> float:
    """The price at which a version needs as much of its budget as it can use.

    Args:
        prices: float64[p], falling.
        curve_bytes: float64[p], bytes at each price, summed over all stretches.
        budget_bytes: for the version.

    Returns:
        A price between the least that keeps within the budget and the next, interpolated; the
        greatest of `prices` where even that needs more than the budget.
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
    """What is made at the price that the budget seems to allow, or again until it fits and uses it.

    Args:
        make: makes it at so many times the price, and says how many bytes came out.
        budget_bytes: for the version.
        discard: does away with what came out too large, or with less of the budget used.
        lowest: so many times the price at least; 1: what fits at once is taken.

    Returns:
        What fits; after the last attempt whatever came out, which is as small as it can be.
    """
    times, (made, size) = 1.0, make(1.0)
    over, steps = None, iter(_STEPS)
    while size > budget_bytes:
        if (step := next(steps, None)) is None:
            return made
        # What is too large has cost too little.
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
    """Times a price between two whose bytes are known, where they may be what is aimed at."""
    (dear, small), (cheap, large) = fits, over
    part = np.log(aim / max(1.0, small)) / np.log(large / max(1.0, small))
    return float(dear * (cheap / dear) ** np.clip(part, _MARGIN, 1 - _MARGIN))
