"""Running a command record: one function a record, one table that names them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sql_ext import cleaning, commands, making, showing
from sql_ext.means import Row, Statement


def execute(command: commands.Command, statement: Statement) -> list[Row]:
    """The rows of a command.

    Raises:
        SieveError, Py4JJavaError: it failed, and left nothing half done.
    """
    return _FUNCTIONS[type(command)](command, statement)


_FUNCTIONS: Mapping[type, Callable[[Any, Statement], list[Row]]] = {
    commands.CreateIndex: making.create,
    commands.RefreshIndex: making.refresh,
    commands.DropIndex: making.drop,
    commands.EnableIndex: making.enable,
    commands.DisableIndex: making.disable,
    commands.SetIndexOptions: making.set_options,
    commands.ShowIndexes: showing.show,
    commands.DescribeIndex: showing.describe,
    commands.ExplainSieve: showing.explain,
    commands.EstimateIndex: showing.estimate,
    commands.ShowVersions: showing.versions,
    commands.OptimizeIndex: making.optimize,
    commands.VacuumIndex: cleaning.vacuum,
    commands.VacuumIndexes: cleaning.vacuum_root,
    commands.CheckIndex: showing.check,
}
