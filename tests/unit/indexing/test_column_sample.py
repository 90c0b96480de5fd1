"""The sample of a column: the widths of its values, and windows of its domain."""

from __future__ import annotations

import numpy as np
import pytest

from sieve.encoding.encoder import Encoder
from sieve.indexing.column_sample import Sample, _width, zoomed
from sieve.segments.query_model import QueryModel


@pytest.mark.parametrize(
    ("type_name", "width"),
    [
        ("boolean", 1), ("tinyint", 1), ("smallint", 2), ("int", 4), ("date", 4), ("float", 4),
        ("bigint", 8), ("double", 8), ("timestamp", 8), ("decimal(1,1)", 8), ("decimal(18,2)", 8),
        ("decimal(19,2)", 16), ("decimal(38,0)", 16),
    ],
)  # fmt: skip
def test_width_of_a_value_is_its_width_in_parquet(type_name: str, width: int) -> None:
    """The width of a value is the number of its bytes in Parquet."""
    assert _width(type_name) == width


@pytest.mark.parametrize("others", [0, 1000])
def test_a_column_of_few_values_has_no_windows(others: int) -> None:
    """A column with only frequent keys gets no windows, because it has no other keys to sample."""
    codes = np.append(np.repeat([0, 1], 5000), np.arange(others) * 1000)
    plain, none = Encoder.for_type("int"), np.empty((0, 2), np.int64)
    sample = Sample(
        plain, QueryModel.of_sample(codes), codes, codes.view(np.uint64), 10**6, 4, 10**6
    )
    found = zoomed(sample, 0.5, none)
    assert (found is sample) == (others == 0)
    assert 0 < found.share <= 1
