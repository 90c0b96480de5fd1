"""Procedure calls: converts ``CALL sieve.name(...)`` to the command record of its statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from lark import Token, Tree, UnexpectedToken

from sieve.errors import InvalidInputError
from sql_ext.statements.commands import ColumnPath, Command, Namespace, TableName
from sql_ext.statements.parse_tree import Node, Words, first_token, grammar, identifier
from sql_ext.statements.procedures import (
    PROCEDURES,
    Parameter,
    missing_arguments,
    too_many,
    unknown_argument,
    unknown_procedure,
)


class CallReader(Words):
    """Converts the parse tree of a procedure call to a command record.

    Attributes:
        places: maps each member of the record to its token. An error message about a member points
            at the member's token.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.places: dict[str, Token] = {}

    def read(self, tree: Node) -> Command:
        """The command record of a parsed call. Raises InvalidInputError if the call is invalid."""
        parts = {str(child.data): child for child in tree.children if isinstance(child, Tree)}
        holder = next(c for c in tree.children if isinstance(c, Token) and c.type != "CALL")
        if identifier(holder).lower() != "sieve":
            raise self.error(holder, "procedures of Sieve are called sieve.name.")
        token = first_token(parts["procedure"])
        name = identifier(token).lower()
        if name not in PROCEDURES:
            raise self.error(token, unknown_procedure(name))
        procedure = PROCEDURES[name]
        given = self._arguments(name, parts["arguments"]) if "arguments" in parts else {}
        if missing := procedure.missing(given):
            raise self.error(token, missing_arguments(name, missing))
        members: dict[str, Any] = {}
        for argument, value in given.items():
            if (parameter := procedure.parameter(argument)) is None:
                members.setdefault("options", {})[argument] = self.value(value)
            else:
                members[parameter.field] = self._argument(parameter, value)
                self.places[parameter.field] = first_token(value)
        if procedure.options:
            members.setdefault("options", {})
        return procedure.make(**members)

    def _arguments(self, name: str, tree: Node) -> dict[str, Node]:
        """The call's arguments by parameter name, without arguments that are NULL."""
        given: dict[str, Node] = {}
        by_name = False
        names = [parameter.name for parameter in PROCEDURES[name].parameters]
        for position, argument in enumerate(tree.children):
            assert isinstance(argument, Tree)
            value = argument.children[-1]
            assert isinstance(value, Tree)
            at = first_token(argument)
            if len(argument.children) > 1:
                by_name, key = True, identifier(at).lower()
                if key not in PROCEDURES[name].names:
                    raise self.error(at, unknown_argument(name, key))
            elif by_name:
                raise self.error(at, "values without a name come before those that have one.")
            elif position >= len(names):
                raise self.error(at, too_many(name))
            else:
                key = names[position]
            if key in given:
                raise self.error(at, f"argument {key} is given twice.")
            given[key] = value
        return {key: value for key, value in given.items() if not _is_null(value)}

    def _argument(self, parameter: Parameter, tree: Node) -> Any:
        """Returns an argument's value as an object of the type that the command record needs."""
        value, token = self.value(tree), first_token(tree)
        if parameter.kind == "flag":
            if not isinstance(value, bool):
                raise self.error(token, f"{parameter.name} is TRUE or FALSE.")
            return value
        if parameter.kind == "number":
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise self.error(token, f"{parameter.name} is a number.")
            return float(value)
        if not isinstance(value, str):
            raise self.error(token, f"{parameter.name} is a string.")
        if parameter.kind == "string":
            return value
        try:
            return _names_in(value, parameter.kind)
        except (UnexpectedToken, InvalidInputError):
            form = _FORMS[parameter.kind]
            raise self.error(token, f"{parameter.name} is {form}, as SQL has it.") from None


def _names_in(text: str, kind: str) -> Any:
    """Parses the names in a string argument.

    Raises:
        UnexpectedToken, InvalidInputError: the string is no valid name, or list of names, of this
            kind.
    """
    tree = grammar().parse(text, start=kind)
    assert isinstance(tree, Tree)
    return _READERS[kind](Words(text), tree)


_READERS: Final[Mapping[str, Callable[[Words, Node], Any]]] = {
    "table": lambda words, tree: TableName(words.path(tree, 3)),
    "namespace": lambda words, tree: Namespace(words.path(tree, 2)),
    "column": lambda words, tree: ColumnPath(words.path(tree, None)),
    "columns": lambda words, tree: tuple(
        ColumnPath(words.path(column, None)) for column in tree.children
    ),
}
_FORMS: Final = {
    "table": "the name of a table",
    "namespace": "the name of a database",
    "column": "the name of a column",
    "columns": "a list of columns",
}


def _is_null(value: Node) -> bool:
    return value.data == "word" and first_token(value).upper() == "NULL"
