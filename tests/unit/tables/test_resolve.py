"""Tests, without Spark, names of unknown and of refused tables, and cached listings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from sieve.errors import InvalidInputError, UnsupportedError
from sieve.index_key import expression_key
from sieve.tables.column import Column
from sieve.tables.resolve import open_table, plan_column


class Session:
    """A session with the given tables and views. The session records which listings it drops."""

    def __init__(self, *tables: str, views: Sequence[str] = ()) -> None:
        self.forgotten: list[str] = []
        self._catalog = SimpleNamespace(
            isTempView=lambda name: name in views,
            tableExists=lambda name: name in tables,
            invalidateCachedTable=self.forgotten.append,
            currentDatabase=lambda: "shop",
        )

    def sessionState(self) -> Any:  # noqa: N802 - Spark's name
        parser = SimpleNamespace(parseTableIdentifier=lambda text: text.replace("`", ""))
        return SimpleNamespace(catalog=lambda: self._catalog, sqlParser=lambda: parser)

    def catalog(self) -> Any:
        return self._catalog


def driver(kind: str | None, condition: str = "TABLE_OR_VIEW_NOT_FOUND") -> Any:
    """A shim that resolves each name to a relation of this kind, or to no relation."""

    def resolve(_session: object, _parts: object) -> Any:
        if kind is None:
            error = AnalysisException("no")
            cause = SimpleNamespace(getCondition=lambda: condition, getCause=lambda: None)
            error._origin = cause  # type: ignore[attr-defined]
            raise error
        # As in py4j, each call returns a new string object with the kind.
        return SimpleNamespace(kind=lambda: "".join(kind))

    def names(_session: object, database: str) -> str:
        return json.dumps(["orders", "lineitem"] if database == "shop" else ["elsewhere"])

    return SimpleNamespace(tables=lambda: SimpleNamespace(resolve=resolve, names=names))


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        (["order"], r"no table shop\.order; did you mean orders\?"),
        (["shop", "lineitems"], r"no table shop\.lineitems; did you mean lineitem\?"),
        (["xyz"], r"no table shop\.xyz; check its name and database"),
        (["other", "orders"], r"no table other\.orders; check its name and database"),
    ],
)
def test_error_for_an_unknown_table_suggests_similar_ones(parts: list[str], told: str) -> None:
    """The error for an unknown table suggests similar tables of the database."""
    with pytest.raises(InvalidInputError, match=told):
        open_table(driver(None), None, Session(), parts)  # type: ignore[arg-type]


def test_error_suggests_at_most_three_names() -> None:
    """The error for an unknown table suggests at most three names."""
    tables = driver(None).tables()
    tables.names = lambda *_: json.dumps([f"orders{k}" for k in range(5)])
    shim = SimpleNamespace(tables=lambda: tables)
    with pytest.raises(InvalidInputError, match=r"did you mean \w+, \w+, \w+\?$"):
        open_table(shim, None, Session(), ["orders"])  # type: ignore[arg-type]


def test_other_errors_of_spark_are_raised_unchanged() -> None:
    """Other errors of Spark, such as a missing permission for a table, are raised unchanged."""
    with pytest.raises(AnalysisException):
        open_table(driver(None, "OTHER"), None, Session(), ["t"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("parts", "forgotten"),
    [
        (["orders"], ["orders"]),
        (["shop", "orders"], ["shop.orders"]),
        (["spark_catalog", "shop", "orders"], ["shop.orders"]),
        (["iceberg", "shop", "orders"], []),
        (["unknown"], []),
        (["shown"], []),
    ],
)
def test_cached_listing_is_dropped_before_a_build(parts: list[str], forgotten: list[str]) -> None:
    """Before a build, the session drops its cached listing of the table.

    For views and tables of other catalogs, the session drops no listing.
    """
    session = Session("orders", "shop.orders", "shown", views=["shown"])
    with pytest.raises(UnsupportedError):
        open_table(driver("view"), None, session, parts)  # type: ignore[arg-type]
    assert session.forgotten == forgotten


def resolved(format_name: str, **parts: str) -> Any:
    """A shim that resolves each name to a table of this format."""
    info = {
        "catalog": "spark_catalog", "database": "shop", "table": "orders", "create_time_ms": 1,
        "location": "file:/w/orders", "format": format_name, "columns": [], "fingerprint": "a",
        "fingerprint_parts": {"format": f"{format_name} x", **parts}, "case_sensitive": False,
        "corrupt_column": "_corrupt_record", "database_location": "file:/w", "hive": True,
        "spark": "4.1.4",
    }  # fmt: skip
    access = SimpleNamespace(kind=lambda: "files", info=lambda: json.dumps(info))
    return SimpleNamespace(tables=lambda: SimpleNamespace(resolve=lambda *_: access))


@pytest.mark.parametrize("format_name", ["parquet", "orc", "csv", "json", "delta", "hudi"])
def test_a_table_of_files_is_opened(format_name: str) -> None:
    """A table of each supported format is opened."""
    driver = resolved(format_name, **{"hudi.hoodie.table.version": "9"})
    assert open_table(driver, None, Session(), ["orders"]).info.format_name == format_name  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("driver", "told"),
    [
        (resolved("avro"), "is stored as avro"),
        (resolved("hudi", **{"hudi.hoodie.table.version": "6"}), "is a Hudi table of version 6"),
        (resolved("hudi"), "is a Hudi table of version None"),
    ],
)
def test_a_table_of_another_layout_is_refused(driver: Any, told: str) -> None:
    """The error for an unsupported table shows the table's name as the user typed the name."""
    with pytest.raises(UnsupportedError, match=rf"shop\.orders {told}"):
        open_table(driver, None, Session(), ["shop", "orders"])  # type: ignore[arg-type]


def test_plan_column_checks_the_right_to_query_a_column() -> None:
    """`plan_column` plans a query that an authorizer can refuse, even with strange names."""
    planned: list[Any] = []

    def select(table: str, column: str) -> Any:
        execution = SimpleNamespace(executedPlan=lambda: planned.append((table, column)))
        return SimpleNamespace(_jdf=SimpleNamespace(queryExecution=lambda: execution))

    def table(name: str) -> Any:
        return SimpleNamespace(selectExpr=lambda column: select(name, column))

    spark: Any = SimpleNamespace(table=table)
    plan_column(spark, ["shop", "my`t"], Column(("a.b", "c"), "int"))
    plan_column(spark, ["t"], Column(("lower(a)",), "string", expression_key("lower(`col-1`)")))
    assert planned == [("`shop`.`my``t`", "`a.b`.`c`"), ("`t`", "lower(a)")]
