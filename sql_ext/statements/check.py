"""The statement CHECK SIEVE INDEX: compares an index with its table's files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sieve.operations.check import OK, CheckedFile, check_index, refuse_losses
from sieve.operations.dropped_column import indexed_column, leave_out_dropped
from sieve.operations.dropped_index import leave_out_if_dropped
from sieve.operations.registered_index import Usable, only_usable, select, usable
from sql_ext.statements import commands
from sql_ext.statements.context import Row, StatementContext


def _check_summary(index: str, checked: Sequence[CheckedFile]) -> Row:
    """The summary row of an index: the number of its files by status, and an overall status."""
    counts = Counter(one.status for one in checked)
    detail = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    whole = OK if OK in counts or not counts else counts.most_common(1)[0][0]
    return (index, None, whole, f"files: {detail}" if detail else "no files")


def check(command: commands.CheckIndex, context: StatementContext) -> list[Row]:
    """``CHECK SIEVE INDEX``: returns a summary row per index, and then rows of files.

    The rows list only the files with a problem, or all files if the statement contains EXTENDED.
    The statement fails if queries that use an index would lose a row.
    """
    table = context.table(command.table)
    chosen = select(context.indexes(table), table.info.label, command.name, None)
    checkable, problems = leave_out_dropped(table.info, only_usable(chosen))
    context.check_executors(table, [index.manifest.type for index in checkable])
    every = command.name is None
    checked: list[CheckedFile] = []
    present: list[Usable] = []
    for index in checkable:
        if not index.manifest.changed_parts(table.info.fingerprint_parts):
            # The report of a lost row contains a key, so the user must have permission to query the
            # column.
            column = indexed_column(table.info, index.manifest)
            context.plan_column(command.table.parts, column)
        with leave_out_if_dropped(index, table, every=every):
            checked += check_index(table, index, command.sample, context.environment)
            present.append(index)
    refuse_losses(table.info.label, checked)
    if not every:
        indexed_column(table.info, usable(chosen[0]).manifest)
    for one in chosen:
        # Reports an unusable index last, after the checks of all other indexes.
        with leave_out_if_dropped(one, table, every=every):
            usable(one)
    rows: list[Row] = [
        (name, None, "column dropped", problem) for name, problem in problems.items()
    ]
    for index in present:
        own = [one for one in checked if one.index == index.name]
        rows.append(_check_summary(index.name, own))
        rows += [
            (one.index, one.file, one.status, one.detail or None)
            for one in own
            if command.extended or one.status != OK
        ]
    return rows
