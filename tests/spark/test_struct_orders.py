"""Tests ORDER BY on a struct's field with a filter on the struct. Both can be NULL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from spark_session import INTERPRETED, Lab, together

FILES = 12
PARENTS = {
    "st IS NOT NULL": 100,
    "st IS NULL": 120,
    "st IS NOT NULL AND st.n IS NOT NULL": 52,
    "st IS NOT NULL AND st.n > 35": 52,
    "st IS NOT NULL OR f = 7": 120,
    "st.m >= 0": 25,
    "st.t IS NOT NULL": 110,
    "st.t IS NOT NULL AND st.t.x IS NULL": 40,
}
"""For each filter, the number of files that ten queries read."""
FIELDS = ("st.n", "st.t.x")
ORDERS = ("ASC NULLS FIRST", "ASC NULLS LAST", "DESC NULLS FIRST", "DESC NULLS LAST")


@pytest.fixture(scope="module")
def structs(lab: Lab) -> Iterator[Lab]:
    """Files of ten rows; in some files, a struct, inner struct or field is NULL in some rows."""
    with lab.database("structs"), lab.settings(INTERPRETED):
        lab.sql(
            "CREATE TABLE t USING parquet AS SELECT id, f, "
            "IF(f = 1 OR (f = 4 AND id % 2 = 0), NULL, NAMED_STRUCT('n', IF(f = 2, NULL, id), "
            "'t', IF(f = 2, NULL, NAMED_STRUCT('x', IF(f = 3, NULL, id))), 'm', id)) AS st "
            f"FROM (SELECT id, id DIV 10 AS f FROM range(0, {FILES * 10}, 1, {FILES}))"
        )
        lab.sql("CREATE SIEVE INDEX ON t (st.n, st.t.x, st.m)")
        yield lab


@pytest.mark.sampled(4)
@pytest.mark.parametrize("parent", PARENTS)
def test_filter_on_a_struct_keeps_rows_with_a_null_field(structs: Lab, parent: str) -> None:
    """A filter on a struct keeps rows in which only a field of the struct is NULL."""
    orders = (
        f"SELECT id, {field} AS x FROM t WHERE {parent} ORDER BY {field} {order}, id LIMIT 12"
        for field in FIELDS
        for order in ORDERS
    )
    ends = (f"SELECT min({field}), max({field}) FROM t WHERE {parent}" for field in FIELDS)
    structs.check(together([*orders, *ends]), exactly=PARENTS[parent])
