"""Dispatch: calls the function that runs a command, by the type of the command record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sql_ext.statements import advise, check, commands, ddl, estimate, explain, maintenance, show
from sql_ext.statements.context import Row, StatementContext


def execute(command: commands.Command, statement: StatementContext) -> list[Row]:
    """Runs a command and returns its rows.

    Raises:
        SieveError, Py4JJavaError: the command failed. Each index is either unchanged or completely
            changed.
    """
    return _FUNCTIONS[type(command)](command, statement)


_FUNCTIONS: Mapping[type, Callable[[Any, StatementContext], list[Row]]] = {
    commands.CreateIndex: ddl.create,
    commands.RefreshIndex: ddl.refresh,
    commands.DropIndex: ddl.drop,
    commands.AlterIndex: ddl.alter,
    commands.ShowIndexes: show.show,
    commands.DescribeIndex: show.describe,
    commands.ExplainSieve: explain.explain,
    commands.EstimateIndex: estimate.estimate,
    commands.AdviseIndexes: advise.advise,
    commands.ShowVersions: show.versions,
    commands.OptimizeIndex: ddl.optimize,
    commands.VacuumIndex: maintenance.vacuum,
    commands.VacuumIndexes: maintenance.vacuum_root,
    commands.CheckIndex: check.check,
}
