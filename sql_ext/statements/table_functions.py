"""Table functions: the SQL functions in FROM whose rows the front end computes."""

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
from udfs import files, segments, status
from udfs.inspection import inspect_index as inspection

Arguments = Mapping[str, Any]
"""Arguments by parameter name. Names of tables and databases are split into their parts."""


@dataclass(frozen=True, slots=True)
class TableFunction:
    """A table function.

    Attributes:
        columns: names and Spark SQL types of the function's columns.
        rows: computes the function's rows from the arguments and the context of a statement.
    """

    columns: commands.ResultColumns
    rows: Callable[[Arguments, StatementContext], Sequence[Row]]


def call(body: Mapping[str, Any], context: StatementContext) -> Mapping[str, Any]:
    """The columns and rows of the function that a request names.

    Args:
        body: ``name`` and ``arguments``.
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
    """The index that the arguments name, for a table function that returns keys of this index.

    Raises an error if the user lacks the permission to query the column, because this user must not
    see the column's keys.
    """
    table = context.table(_table(given))
    (index,) = select(context.indexes(table), table.info.label, given["index"], None)
    found = usable(index)
    context.plan_column(given["table"], indexed_column(table.info, found.manifest))
    return found


def _files(given: Arguments, context: StatementContext) -> Sequence[Row]:
    # This line raises an error for a relation that is not a table with files. The user's own
    # session plans the scan.
    context.table(_table(given))
    scan = context.driver.explain().files(context.session, given["table"], given["predicate"])
    return list(files.file_rows(json.loads(scan)))


def _status(_: Arguments, context: StatementContext) -> Sequence[Row]:
    return list(status.status_rows(json.loads(context.driver.counters()), context.cache))


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
    """A table function that runs a statement and returns its rows."""
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
    "sieve_status": TableFunction(status.COLUMNS, _status),
    "sieve_inspect": TableFunction(inspection.COLUMNS, _inspection),
}
