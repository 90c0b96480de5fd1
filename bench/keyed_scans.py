"""Finds scans that skipped files by join keys or by the result of a subquery."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bench.session import SWITCH, scans_of, with_settings


@dataclass(frozen=True, slots=True)
class KeyedScan:
    """A scan that skipped files by join keys or by the result of a subquery.

    Attributes:
        table: the scanned table's name.
        columns: the columns that the scan's filters compare with keys or with a subquery's result.
        read: number of files that the scan read.
        least: number of files that contain a row that the scan needs. A needed row matches a key or
            a subquery's result, and satisfies the constant filters on indexed columns.
    """

    table: str
    columns: tuple[str, ...]
    read: int
    least: int


class KeyedScans:
    """Finds the keyed scans of executed queries, and counts the files that the scans need.

    Args:
        spark: the session.
        indexed: a mapping from a table's name to the table's indexed columns.
    """

    def __init__(self, spark: SparkSession, indexed: Mapping[str, Collection[str]]) -> None:
        self._spark = spark
        self._indexed = indexed
        self._counted: dict[tuple[str, str], int] = {}

    def of(self, frame: DataFrame) -> Iterator[KeyedScan]:
        """Yields a query's scans that skipped files by join keys or subquery results."""
        filters = self._spark._jvm.org.apache.spark.sql.sieve.plan.RunTimeFilters  # noqa: SLF001
        for scan in scans_of(frame):
            if scan.getClass().getSimpleName() != "SieveScan":
                continue  # the scan's table has no index
            table = scan.tableIdentifier().get().table()
            found = [e for e in _items(filters.resolved(scan).filters()) if not filters.awaits(e)]
            values = [e.child() for e in found if _is_of_query(e)]
            constants = [
                e
                for e in found
                if not _is_of_query(e) and set(_columns(e)) <= set(self._indexed[table])
            ]
            if values:
                yield KeyedScan(
                    table,
                    tuple(sorted({name for e in values for name in _columns(e)})),
                    scan.metrics().apply("numFiles").value(),
                    self._least(table, " AND ".join(map(_sql, values + constants))),
                )

    def _least(self, table: str, predicate: str) -> int:
        key = (table, predicate)
        if key not in self._counted:
            with with_settings(self._spark, {SWITCH: "false"}):
                text = f"SELECT count(DISTINCT _metadata.file_path) FROM {table} WHERE {predicate}"
                found = self._spark.sql(text).first()
            assert found is not None
            self._counted[key] = found[0]
        return self._counted[key]


def _is_of_query(expression: Any) -> bool:
    return bool(expression.getClass().getSimpleName() == "DynamicPruningExpression")


def _columns(expression: Any) -> list[str]:
    return [attribute.name() for attribute in _items(expression.references().toSeq())]


def _sql(expression: Any) -> str:
    """SQL text of a predicate, without table aliases, because aliases differ between filters."""
    text = str(expression.sql())
    for attribute in _items(expression.references().toSeq()):
        text = text.replace(attribute.sql(), f"`{attribute.name()}`")
    return text


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(k) for k in range(sequence.size())]
