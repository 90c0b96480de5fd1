"""Statements as functions of a Spark session, for programs and notebooks.

Each function sends one statement through ``spark.sql`` and returns an `Answer`. So the functions
also work in a session of Spark Connect. Callers name tables, columns and databases as in SQL:
``shop.orders``, with backquotes where SQL needs them. PySpark raises the statement's errors.
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
    """Suggests indexes to create, keep or drop, from this driver's scans: ADVISE SIEVE INDEXES.

    Args:
        spark: a session with Sieve.
        table: the only table to advise on; None for all tables of the database.
        db: the database to advise on; by default the current one.
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
        spark: a session with Sieve.
        columns: one or more, ``"id, day"`` or ``["id", "day"]``.
        index: name of the index, allowed only for a single column; ``<column>_sieve`` by default.
        if_not_exists: do nothing if an index of that name exists.
        replace: replace an existing index of that name.
        comment: free text that DESCRIBE shows.
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
        spark: a session with Sieve.
        index: name of the index; None for all.
        full: read all files again, not only the new and changed files.
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
        spark: a session with Sieve.
        index: name of the index.
        extended: compare the index with the table's current files.
    """
    return _call(spark, Property, "describe", table=table, index=index, extended=extended)


def inspect(spark: Session, table: str, index: str) -> Picture:
    """Shows, in a picture and a summary, which files queries read for which keys.

    Args:
        spark: a session with Sieve. Only the driver needs matplotlib.
        index: name of the index.
    """
    arguments = f"{_literal(table)}, {_literal(index)}"
    query = f"SELECT * FROM sieve_inspect({arguments})"  # noqa: S608 - both are literals
    (row,) = spark.sql(query).collect()
    return Picture(row["summary"], bytes(row["png"]))


def explain(spark: Session, query: str) -> Answer[Scan]:
    """Shows how many files each scan of a query would read: EXPLAIN SIEVE.

    The function does not run the query.
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
    """Checks that no query loses a row, by reading the table's files again: CHECK SIEVE INDEX.

    Args:
        spark: a session with Sieve.
        index: name of the index; None for all.
        sample: percentage of the files to read, above 0; None for all.
        extended: also show the files that are ok.
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
    """Estimates the size and the reads of an index before it is built: ESTIMATE SIEVE INDEX.

    Args:
        spark: a session with Sieve.
        columns: one or more, as in `create`.
        predicate: condition of a query, as after WHERE. The answer then also estimates the query's
            files and bytes.
        extended: show all figures, and several sizes unless the options name a budget.
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
    """Calls a procedure and returns its answer; omits arguments that are None or False."""
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
