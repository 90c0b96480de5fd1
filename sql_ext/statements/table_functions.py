"""Table functions: SQL functions in a FROM clause. The front end computes their rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sieve.errors import InvalidInputError
from sieve.operations.dropped_column import indexed_column
from sieve.operations.registered_index import Usable, select, usable
from sql_ext.statements import commands
from sql_ext.statements.context import Row, StatementContext
from sql_ext.statements.execute import execute
from udfs import counters, files, segments
from udfs.inspection import inspect_index as inspection

Arguments = Mapping[str, Any]
"""The arguments of a call, by parameter name. A name of a table or database is a list of parts."""


@dataclass(frozen=True, slots=True)
class TableFunction:
    """A table function.

    Attributes:
        columns: name and the Spark SQL type of each result column.
        rows: computes the result rows from the arguments and a statement context.
    """

    columns: commands.ResultColumns
    rows: Callable[[Arguments, StatementContext], Sequence[Row]]


def call(body: Mapping[str, Any], context: StatementContext) -> Mapping[str, Any]:
    """Runs the table function that a request names, and returns its columns and rows.

    Args:
        body: contains ``name`` (the function's name) and ``arguments``.
    """
    function = FUNCTIONS[body["name"]]
    return {"columns": function.columns, "rows": function.rows(body["arguments"], context)}


def _segments(given: Arguments, context: StatementContext) -> Sequence[Row]:
    return segments.segment_rows(_index_with_keys(given, context))


def _inspection(given: Arguments, context: StatementContext) -> Sequence[Row]:
    index = _index_with_keys(given, context)
    properties = execute(_describe({**given, "detail": "extended"}), context)
    return inspection.inspection_rows(index, {row[0]: row[1] for row in properties})


def _index_with_keys(given: Arguments, context: StatementContext) -> Usable:
    """The index that the arguments name, for a table function that returns the index's keys.

    The keys are values of the indexed column. So the function raises an error if the user may not
    query the column.
    """
    table = context.table(_table(given))
    (index,) = select(context.indexes(table), table.info.label, given["index"], None)
    found = usable(index)
    context.plan_column(given["table"], indexed_column(table.info, found.manifest))
    return found


def _files(given: Arguments, context: StatementContext) -> Sequence[Row]:
    # The call of `table` raises an error if the relation is not a table with files. The code
    # ignores the returned table, because the user's own session plans the scan.
    context.table(_table(given))
    scan = context.driver.explain().files(context.session, given["table"], given["predicate"])
    return list(files.file_rows(json.loads(scan)))


def _status(_: Arguments, context: StatementContext) -> Sequence[Row]:
    return list(counters.counter_rows(json.loads(context.driver.counters()), context.cache))


def _indexes(given: Arguments) -> commands.ShowIndexes:
    if "database" not in given:
        return commands.ShowIndexes()
    return commands.ShowIndexes(namespace=commands.Namespace(tuple(given["database"])))


def _advice(given: Arguments) -> commands.AdviseIndexes:
    return commands.AdviseIndexes(namespace=_indexes(given).namespace)


def _describe(given: Arguments) -> commands.DescribeIndex:
    detail = given.get("detail", "extended")
    if detail.lower() != "extended":
        raise InvalidInputError(
            "SIEVE_INVALID_ARGUMENT",
            f"sieve_describe takes 'extended' as its third argument or none, not '{detail}'",
        )
    return commands.DescribeIndex(_table(given), given["index"], extended="detail" in given)


def _table(given: Arguments) -> commands.TableName:
    return commands.TableName(tuple(given["table"]))


def _answer_of(
    statement: type[commands.Command], command: Callable[[Arguments], commands.Command]
) -> TableFunction:
    """A table function that runs a statement and returns the statement's rows."""
    return TableFunction(
        statement.result_columns, lambda given, context: execute(command(given), context)
    )


FUNCTIONS: Mapping[str, TableFunction] = {
    "sieve_indexes": _answer_of(commands.ShowIndexes, _indexes),
    "sieve_versions": _answer_of(
        commands.ShowVersions, lambda given: commands.ShowVersions(_table(given))
    ),
    "sieve_describe": _answer_of(commands.DescribeIndex, _describe),
    "sieve_explain": _answer_of(
        commands.ExplainSieve, lambda given: commands.ExplainSieve(given["query"])
    ),
    "sieve_advice": _answer_of(commands.AdviseIndexes, _advice),
    "sieve_segments": TableFunction(segments.COLUMNS, _segments),
    "sieve_files": TableFunction(files.COLUMNS, _files),
    "sieve_status": TableFunction(counters.COLUMNS, _status),
    "sieve_inspect": TableFunction(inspection.COLUMNS, _inspection),
}
