"""The statement ESTIMATE SIEVE INDEX: predicts an index's size, and the reads of queries."""

from __future__ import annotations

import json
from dataclasses import replace

from sieve.metadata.index_options import IndexOptions
from sieve.operations.create import check_wanted
from sieve.operations.estimate import FRONTIER, estimate_index
from sieve.operations.estimate_predicate import Asked
from sieve.operations.index_name import Wanted, default_name
from sieve.predicate.parse_predicate import parse
from sql_ext.statements import commands
from sql_ext.statements.context import Row, StatementContext, kind_option, options_of
from sql_ext.statements.describe import estimate_row, frontier_row


def estimate(command: commands.EstimateIndex, context: StatementContext) -> list[Row]:
    """``ESTIMATE SIEVE INDEX``: a row per column; with EXTENDED, a row per column and budget."""
    kind, given = kind_option(command.options)
    options = options_of(given, IndexOptions())
    table = context.table(command.table)
    columns = [table.column(column.parts, kind) for column in command.columns]
    for column in columns:
        check_wanted(table, Wanted(default_name(column), column), options)
    asked = None
    if command.predicate is not None:
        # Spark parses the user's predicate with the user's permissions.
        predicate = command.margin + command.predicate
        name = list(command.table.parts)
        keys = json.dumps([column.key for column in columns if column.computed])
        raw = json.loads(context.driver.explain().predicate(context.session, name, predicate, keys))
        asked = Asked(parse(raw["predicate"]), frozenset(raw["files"]))
    context.check_executors(table, [column.type for column in columns])
    wanted = [options]
    if options.automatic and command.extended:
        wanted = [replace(options, budget=budget) for budget in FRONTIER] + wanted
    return [
        (frontier_row if command.extended else estimate_row)(table, column, estimate)
        for column in columns
        for estimate in estimate_index(table, column, wanted, asked, context.environment)
    ]
