"""The facts about a column's values that a build gets from a sample."""

from __future__ import annotations

import pytest

from sieve.indexing.column_sample import _width


@pytest.mark.parametrize(
    ("type_name", "width"),
    [
        ("boolean", 1), ("tinyint", 1), ("smallint", 2), ("int", 4), ("date", 4), ("float", 4),
        ("bigint", 8), ("double", 8), ("timestamp", 8), ("decimal(1,1)", 8), ("decimal(18,2)", 8),
        ("decimal(19,2)", 16), ("decimal(38,0)", 16),
    ],
)  # fmt: skip
def test_the_width_of_a_value_is_what_parquet_takes(type_name: str, width: int) -> None:
    """The budget is a share of the column's bytes, so the width must be the width in Parquet."""
    assert _width(type_name) == width
