"""The command ``sieve advise``, which suggests indexes for the queries in Spark's event logs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from sieve.client.answer import on_a_line
from sieve.errors import InvalidInputError
from sieve.workload.column_use import Column
from sieve.workload.event_log.open_logs import find_logs
from sieve.workload.event_log.replay import Replay
from sieve.workload.scan_groups import Table as TableName
from sieve.workload.spelling import create_statement, estimate_statement, listed, spelled
from sieve.workload.suggest import Suggestion, described, suggest
from sieve.workload.tuples import by_bytes

# The width of a report that goes to a file or pipe, in characters. Names of usual length fit.
_PIPED_WIDTH = 160
_MOST_TUPLES = 5


def replay_folder(folder: Path) -> Replay:
    """Reads the queries of all event logs in a folder.

    Raises:
        InvalidInputError: the folder contains no event log.
    """
    logs = find_logs(folder)
    if not logs:
        raise InvalidInputError(
            "SIEVE_EVENT_LOG",
            f"{folder} holds no event log: name the folder of spark.eventLog.dir",
        )
    replay = Replay()
    for log in logs:
        replay.read(log)
    return replay


def print_report(replay: Replay) -> None:
    """Prints the suggested indexes, their SQL statements, and the unread parts of the logs."""
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, width=_PIPED_WIDTH)
    found = suggest(replay.workload)
    console.print(
        f"applications: {replay.logs}, queries: {replay.executions}, "
        f"scans of tables: {replay.scans}, days: {replay.days:.1f}"
    )
    if found:
        console.print(_table(found, replay.days))
        # Statements are printed without line breaks, so that a user can paste them.
        console.print(
            "No file of a table was read, so these indexes are not tested. The savings are upper "
            "bounds: an index on\na column whose values are in every file saves nothing. Test each "
            "one in a Spark with Sieve:\n" + _pasted(estimate_statement, found),
            soft_wrap=True,
        )
        if tuples := _tuples(replay):
            console.print(
                "\nQueries compare these columns together with values. If the values of each "
                "column are in many files, test\nan index on all of them:\n"
                + _lines(estimate_statement(*one) for one in tuples),
                soft_wrap=True,
            )
        console.print(
            "\nThen create those whose query for a value (=) reads few files:\n"
            + _pasted(create_statement, found),
            soft_wrap=True,
        )
    else:
        console.print("No scan has a filter with which an index could save bytes.")
    if replay.unread:
        console.print("\nNot in these figures:")
        for what, count in replay.unread.most_common():
            console.print(f"  {what}: {count}", soft_wrap=True)


def as_json(replay: Replay) -> str:
    """The report as JSON, in which sizes and rates are plain numbers."""
    return json.dumps(
        {
            "applications": replay.logs,
            "executions": replay.executions,
            "scans": replay.scans,
            "days": replay.days,
            "advice": [_record(one, replay.days) for one in suggest(replay.workload)],
            "tuples": [_record_of_tuple(*one) for one in _tuples(replay)],
            "unread": dict(replay.unread.most_common()),
        },
        indent=2,
    )


def _table(found: Sequence[Suggestion], days: float) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for name in ("table", "column"):
        table.add_column(name, overflow="fold")
    # A narrow window shows only the left part of a table. So these columns precede the column
    # ``asked``, in which descriptions of filters can be long.
    for name in ("scans a day", "read a day", "saved, at most"):
        table.add_column(name, justify="right")
    table.add_column("asked", overflow="fold")
    for one in found:
        table.add_row(
            on_a_line(spelled(one.table)),
            on_a_line(listed(one.column)),
            f"{one.scans / days:.1f}",
            decimal(round(one.bytes_read / days)),
            decimal(round(one.bytes_saved / days)),
            described(one),
        )
    return table


def _record(one: Suggestion, days: float) -> Mapping[str, Any]:
    return {
        "table": spelled(one.table),
        "column": listed(one.column),
        "asked": {str(kind): count for kind, count in one.kinds.items()},
        "scans_a_day": one.scans / days,
        "bytes_read_a_day": round(one.bytes_read / days),
        "bytes_saved_a_day": round(one.bytes_saved / days),
        "tested": False,
        "test": estimate_statement(one.table, one.column),
        "statement": create_statement(one.table, one.column),
    }


def _tuples(replay: Replay) -> list[tuple[TableName, Column]]:
    """The tuples that queries compare with constants, in descending order of bytes.

    An index on a tuple may read as much as an index on one of its columns. Only a test shows the
    difference.
    """
    return by_bytes(replay.workload)[:_MOST_TUPLES]


def _record_of_tuple(table: TableName, column: Column) -> Mapping[str, str]:
    return {
        "table": spelled(table),
        "column": listed(column),
        "test": estimate_statement(table, column),
        "statement": create_statement(table, column),
    }


def _pasted(statement: Callable[[TableName, Column], str], found: Sequence[Suggestion]) -> str:
    """The statement of each suggested index, one statement per line."""
    return _lines(statement(one.table, one.column) for one in found)


def _lines(statements: Iterable[str]) -> str:
    return "\n".join(on_a_line(f"{statement};") for statement in statements)
