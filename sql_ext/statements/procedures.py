"""The procedures that ``CALL sieve.name(...)`` runs; each of them runs one SIEVE statement."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from sieve.metadata.index_options import OPTION_NAMES
from sql_ext.statements import commands

Kind = Literal["table", "columns", "column", "namespace", "string", "flag", "number"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a procedure.

    Attributes:
        name: the parameter's name in SQL.
        kind: kind of the argument's value.
        field: member of the command record that receives the argument's value.
        required: whether every call must contain the argument.
    """

    name: str
    kind: Kind
    field: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure, with its parameters in the order of positional arguments.

    Attributes:
        make: creates the command record from the record's members.
        parameters: parameters whose arguments can be given by position or by name.
        options: whether the procedure also accepts each option of an index as a named argument.
    """

    make: Callable[..., commands.Command]
    parameters: tuple[Parameter, ...]
    options: bool = False

    @property
    def names(self) -> list[str]:
        """Names of all parameters, and of all options if the procedure accepts options."""
        own = [parameter.name for parameter in self.parameters]
        return own + (sorted(OPTION_NAMES) if self.options else [])

    def parameter(self, name: str) -> Parameter | None:
        """The parameter with this name; None for an option or an unknown name."""
        return next((one for one in self.parameters if one.name == name), None)

    def missing(self, given: Mapping[str, Any]) -> list[str]:
        """Names of the required parameters without an argument in the call."""
        return [one.name for one in self.parameters if one.required and one.name not in given]


def unknown_procedure(name: str) -> str:
    """Error message for an unknown procedure."""
    return f"there is no procedure sieve.{name}{_nearest(name, list(PROCEDURES))} {_all()}"


def unknown_argument(procedure: str, name: str) -> str:
    """Error message for a named argument that the procedure does not accept."""
    names = PROCEDURES[procedure].names
    problem = f"sieve.{procedure} has no argument {name}{_nearest(name, names)}"
    return f"{problem} Its arguments are {', '.join(names)}."


def too_many(procedure: str) -> str:
    """Error message for too many positional arguments."""
    names = [parameter.name for parameter in PROCEDURES[procedure].parameters]
    return (
        f"sieve.{procedure} takes at most {len(names)} arguments by position: {', '.join(names)}."
    )


def missing_arguments(procedure: str, names: Sequence[str]) -> str:
    """Error message for missing required arguments."""
    shown = ", ".join(f"{name} => ..." for name in names)
    return f"sieve.{procedure} needs {' and '.join(names)}: CALL sieve.{procedure}({shown})."


def _nearest(name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f". Did you mean {near[0]}?" if near else "."


def _all() -> str:
    return f"The procedures are {', '.join(PROCEDURES)}."


_TABLE = Parameter("table", "table", "table", required=True)
_INDEX = Parameter("index", "string", "name")
_THE_INDEX = Parameter("index", "string", "name", required=True)
_COLUMN = Parameter("column", "column", "column")
_DATABASE = Parameter("database", "namespace", "namespace")
_HOURS = Parameter("retain_hours", "number", "hours")

PROCEDURES: Mapping[str, Procedure] = {
    "create": Procedure(
        commands.CreateIndex,
        (
            _TABLE,
            Parameter("columns", "columns", "columns", required=True),
            _INDEX,
            Parameter("if_not_exists", "flag", "if_not_exists"),
            Parameter("replace", "flag", "replace"),
            Parameter("comment", "string", "comment"),
        ),
        options=True,
    ),
    "refresh": Procedure(
        commands.RefreshIndex, (_TABLE, _INDEX, _COLUMN, Parameter("full", "flag", "full"))
    ),
    "drop": Procedure(
        commands.DropIndex, (_TABLE, _INDEX, _COLUMN, Parameter("if_exists", "flag", "if_exists"))
    ),
    "enable": Procedure(partial(commands.AlterIndex, state="ready"), (_TABLE, _THE_INDEX)),
    "disable": Procedure(partial(commands.AlterIndex, state="disabled"), (_TABLE, _THE_INDEX)),
    "set_options": Procedure(commands.AlterIndex, (_TABLE, _THE_INDEX), options=True),
    "optimize": Procedure(commands.OptimizeIndex, (_TABLE, _INDEX)),
    "vacuum": Procedure(commands.VacuumIndex, (_TABLE, _INDEX, _HOURS)),
    "vacuum_indexes": Procedure(commands.VacuumIndexes, (_DATABASE, _HOURS)),
    "check": Procedure(
        commands.CheckIndex,
        (
            _TABLE,
            _INDEX,
            Parameter("sample", "number", "sample"),
            Parameter("extended", "flag", "extended"),
        ),
    ),
    "estimate": Procedure(
        commands.EstimateIndex,
        (
            _TABLE,
            Parameter("columns", "columns", "columns", required=True),
            Parameter("predicate", "string", "predicate"),
            Parameter("extended", "flag", "extended"),
        ),
        options=True,
    ),
    "show_indexes": Procedure(
        commands.ShowIndexes, (Parameter("table", "table", "table"), _DATABASE)
    ),
    "show_versions": Procedure(commands.ShowVersions, (_TABLE, _INDEX)),
    "describe": Procedure(
        commands.DescribeIndex, (_TABLE, _THE_INDEX, Parameter("extended", "flag", "extended"))
    ),
    "advise": Procedure(commands.AdviseIndexes, (Parameter("table", "table", "table"), _DATABASE)),
    "explain": Procedure(
        commands.ExplainSieve, (Parameter("query", "string", "query", required=True),)
    ),
}
