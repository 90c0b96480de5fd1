"""The demo's queries, and the number of files that Parquet's min/max statistics cannot skip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from bench.lineitem import BY_DATE, BY_ORDER, LARGE, ORDERS_PER_SCALE, order_key

SUMS = "count(*), sum(l_extendedprice * (1 - l_discount))"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a column: its SQL text, and the inclusive ranges of values that satisfy it."""

    column: str
    ranges: tuple[tuple[Any, Any], ...]
    sql: str


@dataclass(frozen=True, slots=True)
class Query:
    """One query of the demo.

    Attributes:
        title: a description of the query in words.
        table: the table's name.
        select: the select list.
        conditions: conditions on indexed columns, combined by AND.
        rest: SQL text of further conditions, on columns without an index.
    """

    title: str
    table: str
    select: str
    conditions: tuple[Condition, ...]
    rest: str = ""

    @property
    def where(self) -> str:
        """SQL text after WHERE."""
        return " AND ".join(c.sql for c in self.conditions) + self.rest

    @property
    def sql(self) -> str:
        """SQL text of the whole query."""
        return f"SELECT {self.select} FROM {self.table} WHERE {self.where}"


def equal(column: str, value: Any) -> Condition:
    """The condition ``column = value``."""
    return Condition(column, ((value, value),), f"{column} = {_literal(value)}")


def one_of(column: str, values: Sequence[Any]) -> Condition:
    """The condition ``column IN (values)``."""
    texts = ", ".join(_literal(v) for v in values)
    return Condition(column, tuple((v, v) for v in values), f"{column} IN ({texts})")


def between(column: str, low: Any, high: Any) -> Condition:
    """The condition ``column BETWEEN low AND high``."""
    text = f"{column} BETWEEN {_literal(low)} AND {_literal(high)}"
    return Condition(column, ((low, high),), text)


def demo_queries(scale: int) -> tuple[Query, ...]:
    """Point and range queries.

    The queries' keys and dates are fixed, and not chosen to favour Sieve.
    """
    day, late_day = date(1995, 3, 15), date(1996, 11, 5)
    orders = ORDERS_PER_SCALE * scale
    spread = [order_key(orders * k // 11) for k in range(1, 11)]
    middle = order_key(orders // 2)
    return (
        Query("shipped on one day", BY_DATE, SUMS, (equal("l_shipdate", day),)),
        Query(
            "shipped in one week",
            BY_DATE,
            SUMS,
            (between("l_shipdate", day, day + timedelta(6)),),
        ),
        Query("received on one day", BY_DATE, SUMS, (equal("l_receiptdate", late_day),)),
        Query(
            "same day, 28+ days on the way",
            BY_DATE,
            "*",
            (
                equal("l_shipdate", day),
                between("l_receiptdate", day + timedelta(28), day + timedelta(30)),
            ),
        ),
        Query(
            "TPC-H query 6: one year",
            BY_DATE,
            "sum(l_extendedprice * l_discount)",
            (between("l_shipdate", date(1994, 1, 1), date(1994, 12, 31)),),
            " AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
        ),
        Query("one order", BY_ORDER, "*", (equal("l_orderkey", order_key(orders // 3)),)),
        Query("ten orders", BY_ORDER, "*", (one_of("l_orderkey", spread),)),
        Query("1,000 order keys", BY_ORDER, SUMS, (between("l_orderkey", middle, middle + 999),)),
        Query("one order", LARGE, "*", (equal("l_orderkey", order_key(orders // 3)),)),
        Query("ten orders", LARGE, "*", (one_of("l_orderkey", spread),)),
    )


class Footers:
    """The minimum and the maximum of each column in each file of a folder."""

    def __init__(self, folder: Path) -> None:
        self._files = [_bounds(path) for path in sorted(folder.glob("*.parquet"))]

    def left_by(self, query: Query) -> int:
        """Number of files that the query reads if it skips files only by minimum and maximum."""
        return sum(
            all(
                any(
                    low <= bounds[c.column][1] and high >= bounds[c.column][0]
                    for low, high in c.ranges
                )
                for c in query.conditions
            )
            for bounds in self._files
        )


def _bounds(path: Path) -> dict[str, tuple[Any, Any]]:
    found: dict[str, tuple[Any, Any]] = {}
    metadata = pq.read_metadata(path)
    for g in range(metadata.num_row_groups):
        group = metadata.row_group(g)
        for k in range(group.num_columns):
            column = group.column(k)
            stats = column.statistics
            if stats is not None and stats.has_min_max:
                low, high = found.get(column.path_in_schema, (stats.min, stats.max))
                found[column.path_in_schema] = (min(low, stats.min), max(high, stats.max))
    return found


def _literal(value: Any) -> str:
    return f"DATE '{value}'" if isinstance(value, date) else str(value)
