"""SQL functions whose rows the front end gives: one entry a function, in one table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sieve.found import choose
from sql_ext.commands import ResultColumns, TableName
from sql_ext.means import Row, Statement
from udfs import files, segments, status


@dataclass(frozen=True, slots=True)
class TableFunction:
    """A function in FROM.

    Attributes:
        columns: names and Spark SQL types of its rows.
        rows: its rows, given the table, the other arguments and the means of a statement; the
            table is None for a function that takes no arguments.
    """

    columns: ResultColumns
    rows: Callable[[Any, Sequence[str], Statement], Sequence[Row]]


def call(body: Mapping[str, Any], at: Statement) -> Mapping[str, Any]:
    """The columns and rows of the function that a request names.

    Args:
        body: ``name``; ``table`` (parts of its name) and ``arguments``, all strings, if it has any.
        at: the means of a statement.
    """
    function = FUNCTIONS[body["name"]]
    table = TableName(tuple(body["table"])) if "table" in body else None
    rows = function.rows(table, body.get("arguments", []), at)
    return {"columns": function.columns, "rows": rows}


def _segments(name: TableName, arguments: Sequence[str], at: Statement) -> Sequence[Row]:
    (index,) = arguments
    table = at.table(name)
    (found,) = choose(at.found(table), table.info.label, index, None)
    # Its rows show keys, so whoever may not query the column must not see them.
    at.driver.planColumn(at.session, list(name.parts), list(found.registration.column))
    return segments.segment_rows(found)


def _files(name: TableName, arguments: Sequence[str], at: Statement) -> Sequence[Row]:
    (predicate,) = arguments
    # Refuses what is no table with files; the scan is planned in the user's own session.
    at.table(name)
    scan = at.driver.scannedFiles(at.session, list(name.parts), predicate)
    return list(files.file_rows(json.loads(scan)))


def _status(_name: None, _arguments: Sequence[str], at: Statement) -> Sequence[Row]:
    return list(status.status_rows(json.loads(at.driver.counters()), at.cache))


FUNCTIONS: Mapping[str, TableFunction] = {
    "sieve_segments": TableFunction(segments.COLUMNS, _segments),
    "sieve_files": TableFunction(files.COLUMNS, _files),
    "sieve_status": TableFunction(status.COLUMNS, _status),
}
