"""Statements as functions of a Spark session, for programs and notebooks.

Each function sends one statement through ``spark.sql``, so the functions also work with Spark
Connect. `inspect` returns a `Picture`; the other functions return an `Answer`. Callers spell names
as in SQL: ``shop.orders``, with backquotes where SQL needs them. If a statement fails, PySpark
raises its error.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Literal, Protocol, TypeVar, overload

from sieve.client.answer import Answer
from sieve.client.answer_columns import (
    Advised,
    Built,
    CheckedFile,
    Dropped,
    Estimated,
    EstimatedBudget,
    IndexState,
    Property,
    Scan,
)
from sieve.client.picture import Picture

OptionValue = str | int | float | bool
_Record = TypeVar("_Record")


class Session(Protocol):
    """The part of a ``SparkSession`` that the functions use."""

    def sql(self, query: str, /) -> Any:
        """Runs a statement; the result has a method ``collect()``."""
        ...


def indexes(spark: Session, db: str | None = None) -> Answer[IndexState]:
    """Lists the indexes of a database, by default the current one: SHOW SIEVE INDEXES."""
    return _call(spark, IndexState, "show_indexes", database=db)


def advise(spark: Session, table: str | None = None, db: str | None = None) -> Answer[Advised]:
    """Suggests which indexes to create, keep or drop for this driver's scans: ADVISE SIEVE INDEXES.

    Args:
        spark: a session that has loaded Sieve.
        table: the table that needs advice; None for all tables of the database.
        db: the database whose tables need advice; by default the current one.
    """
    return _call(spark, Advised, "advise", table=table, database=db)


def create(
    spark: Session,
    table: str,
    columns: str | Iterable[str],
    *,
    index: str | None = None,
    if_not_exists: bool = False,
    replace: bool = False,
    comment: str | None = None,
    **options: OptionValue,
) -> Answer[Built]:
    """Creates an index on each column: CREATE SIEVE INDEX.

    Args:
        spark: a session that has loaded Sieve.
        columns: one or more columns, as ``"id, day"`` or as ``["id", "day"]``.
        index: name of the index, allowed only for a single column; by default ``<column>_sieve``.
        if_not_exists: whether to do nothing if an index with the same name exists.
        replace: whether to replace an existing index that has the same name.
        comment: any text; DESCRIBE shows it.
        **options: options of the index, such as ``budget="2%"``.
    """
    return _call(
        spark,
        Built,
        "create",
        options,
        table=table,
        columns=_listed(columns),
        index=index,
        if_not_exists=if_not_exists,
        replace=replace,
        comment=comment,
    )


def refresh(
    spark: Session, table: str, index: str | None = None, *, full: bool = False
) -> Answer[Built]:
    """Updates one index, or all indexes of a table: REFRESH SIEVE INDEX.

    Args:
        spark: a session that has loaded Sieve.
        index: name of the index; None for all indexes of the table.
        full: whether to read all files of the table again instead of only the new and changed
            files.
    """
    return _call(spark, Built, "refresh", table=table, index=index, full=full)


def drop(
    spark: Session,
    table: str,
    index: str | None = None,
    *,
    column: str | None = None,
    if_exists: bool = False,
) -> Answer[Dropped]:
    """Drops an index, given its name or its column: DROP SIEVE INDEX."""
    return _call(
        spark, Dropped, "drop", table=table, index=index, column=column, if_exists=if_exists
    )


def describe(spark: Session, table: str, index: str, *, extended: bool = False) -> Answer[Property]:
    """Describes an index, and how many files queries read with it: DESCRIBE SIEVE INDEX.

    Args:
        spark: a session that has loaded Sieve.
        index: name of the index.
        extended: whether to compare the index with the table's current files, too.
    """
    return _call(spark, Property, "describe", table=table, index=index, extended=extended)


def inspect(spark: Session, table: str, index: str) -> Picture:
    """Returns a picture and a summary of the files that queries read for each key of an index.

    Args:
        spark: a session that has loaded Sieve. Only the driver's machine needs matplotlib.
        index: name of the index.
    """
    arguments = f"{_literal(table)}, {_literal(index)}"
    query = f"SELECT * FROM sieve_inspect({arguments})"  # noqa: S608 - both are literals
    (row,) = spark.sql(query).collect()
    return Picture(row["summary"], bytes(row["png"]))


def explain(spark: Session, query: str) -> Answer[Scan]:
    """Shows how many files each scan of a query would read: EXPLAIN SIEVE.

    The function plans the query and does not run it.
    """
    return _answer(spark, Scan, f"EXPLAIN SIEVE {query}")


def check(
    spark: Session,
    table: str,
    index: str | None = None,
    *,
    sample: float | None = None,
    extended: bool = False,
) -> Answer[CheckedFile]:
    """Reads a table's files again and checks that no query loses rows: CHECK SIEVE INDEX.

    Args:
        spark: a session that has loaded Sieve.
        index: name of the index; None for all indexes of the table.
        sample: percentage of the files that the statement reads, above 0; None for all files.
        extended: whether the answer also has rows for files without a problem.
    """
    return _call(
        spark, CheckedFile, "check", table=table, index=index, sample=sample, extended=extended
    )


@overload
def estimate(
    spark: Session,
    table: str,
    columns: str | Iterable[str],
    *,
    predicate: str | None = None,
    extended: Literal[False] = False,
    **options: OptionValue,
) -> Answer[Estimated]: ...


@overload
def estimate(
    spark: Session,
    table: str,
    columns: str | Iterable[str],
    *,
    predicate: str | None = None,
    extended: Literal[True],
    **options: OptionValue,
) -> Answer[EstimatedBudget]: ...


def estimate(
    spark: Session,
    table: str,
    columns: str | Iterable[str],
    *,
    predicate: str | None = None,
    extended: bool = False,
    **options: OptionValue,
) -> Answer[Estimated] | Answer[EstimatedBudget]:
    """Estimates an index's size and how many files queries read with it: ESTIMATE SIEVE INDEX.

    Args:
        spark: a session that has loaded Sieve.
        columns: one or more columns, as in `create`.
        predicate: the condition of a query, written as in a WHERE clause. With a condition, the
            answer also estimates the files and bytes that the query reads.
        extended: whether to show all estimates. Without the option ``budget``, an extended answer
            has estimates for several budgets.
        **options: options of the index.
    """
    arguments = {"table": table, "columns": _listed(columns), "predicate": predicate}
    if extended:
        return _call(spark, EstimatedBudget, "estimate", options, **arguments, extended=True)
    return _call(spark, Estimated, "estimate", options, **arguments)


def _call(
    spark: Session,
    record: type[_Record],
    procedure: str,
    options: dict[str, OptionValue] | None = None,
    /,
    **arguments: OptionValue | None,
) -> Answer[_Record]:
    """Calls a procedure and returns its answer; omits the arguments that are None or False."""
    given = [
        f"{name} => {_literal(value)}"
        for name, value in arguments.items()
        if value is not None and value is not False
    ]
    given += [f"{_quoted(name)} => {_literal(value)}" for name, value in (options or {}).items()]
    return _answer(spark, record, f"CALL sieve.{procedure}({', '.join(given)})")


def _answer(spark: Session, record: type[_Record], statement: str) -> Answer[_Record]:
    names = [field.name for field in fields(record)]  # type: ignore[arg-type]
    rows = spark.sql(statement).collect()
    return Answer(record, [record(**{name: row[name] for name in names}) for row in rows])


def _listed(columns: str | Iterable[str]) -> str:
    return columns if isinstance(columns, str) else ", ".join(columns)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _literal(value: OptionValue) -> str:
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return repr(value)
