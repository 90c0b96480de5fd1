"""Checks whether two runs of a query returned the same rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pyspark.sql import Row

RELATIVE = 1e-9
"""The tolerance for floats. A sum of floats depends on the order in which Spark reads files."""


def same_rows(one: Sequence[Row], other: Sequence[Row]) -> bool:
    """Returns whether two answers contain the same rows in any order.

    Floats may differ by the relative tolerance `RELATIVE`.
    """
    if len(one) != len(other):
        return False
    pairs = zip(sorted(one, key=_order), sorted(other, key=_order), strict=True)
    return all(
        len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True)) for a, b in pairs
    )


def same_first_column(one: Sequence[Row], other: Sequence[Row]) -> bool:
    """Returns whether two answers have equal values in their first column, in the same order.

    The first column is the ORDER BY key. Rows with equal keys can differ in their other columns.
    """
    return [row[0] for row in one] == [row[0] for row in other]


def _order(row: Row) -> tuple[list[str], list[float]]:
    """A row's sort key: all values that are not floats, and then the floats."""
    exact = [repr(value) for value in row if not isinstance(value, float)]
    return exact, [value for value in row if isinstance(value, float)]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or math.isclose(one, other, rel_tol=RELATIVE, abs_tol=RELATIVE)
    return bool(one == other)
