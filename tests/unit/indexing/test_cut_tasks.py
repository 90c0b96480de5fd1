"""For any order of the rows, the distinct codes and their counts are the same."""

from __future__ import annotations

import numpy as np
import pytest

from sieve.indexing.cut_tasks import _distinct


@pytest.mark.parametrize(
    "codes",
    [
        [7],
        [7, 7],
        [1, 2, 3],
        [3, 2, 1],
        [2, 1],
        [1, 1, 2, 2, 0],
        [*range(40), 5],
        [*range(100, 0, -1)],
        [5, *range(40)],
    ],
)
def test_codes_are_counted_in_ascending_order(codes: list[int]) -> None:
    """For rows in any order, the distinct codes ascend, and their counts are right."""
    found, counts = _distinct(np.array(codes, np.int64))
    expected, times = np.unique(codes, return_counts=True)
    assert (found.tolist(), counts.tolist()) == (expected.tolist(), times.tolist())
