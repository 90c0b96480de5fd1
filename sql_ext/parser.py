"""Statement text -> command record, by ``grammar.lark``."""

from __future__ import annotations

import math
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from lark import Lark, Token, Tree, UnexpectedToken

from sql_ext.commands import (
    CheckIndex,
    ColumnPath,
    Command,
    CreateIndex,
    DescribeIndex,
    DisableIndex,
    DropIndex,
    EnableIndex,
    EstimateIndex,
    ExplainSieve,
    Namespace,
    OptimizeIndex,
    OptionValue,
    RefreshIndex,
    SetIndexOptions,
    ShowIndexes,
    ShowVersions,
    TableName,
    VacuumIndex,
    VacuumIndexes,
)
from sql_ext.comments import blank_comments, unquote_name, unquote_string
from sql_ext.syntax_error import syntax_error, unexpected

if TYPE_CHECKING:
    from collections.abc import Callable

    from sieve.errors import InvalidInputError

Node = Tree[Token]


@cache
def _grammar() -> Lark:
    text = resources.files("sql_ext").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", lexer="contextual", maybe_placeholders=False)


def parse_statement(text: str) -> Command:
    """Parses one SIEVE statement, with or without semicolons after it.

    Args:
        text: the statement as the user typed it.

    Raises:
        InvalidInputError: ``SIEVE_SYNTAX_ERROR``, with line, column, the offending line under a
            caret, what was found and what may stand there.
    """
    blanked = blank_comments(text)
    try:
        tree = _grammar().parse(blanked.text)
    except UnexpectedToken as error:
        raise _refusal(text, blanked.text, blanked.unclosed, error) from None
    (statement,) = tree.children
    assert isinstance(statement, Tree)
    command = _Reader(text).read(statement)
    if blanked.unclosed is not None and not _left_to_spark(command):
        raise _never_closed(text, blanked.unclosed)
    return command


def _left_to_spark(command: Command) -> bool:
    """Whether the statement ends in text that is Spark's to parse, comments included."""
    return isinstance(command, ExplainSieve) or (
        isinstance(command, EstimateIndex) and command.predicate is not None
    )


def _refusal(
    text: str, blanked: str, unclosed: int | None, error: UnexpectedToken
) -> InvalidInputError:
    token = error.token
    ended = token.type == "$END"
    if ended and unclosed is not None:
        return _never_closed(text, unclosed)
    at = len(blanked.rstrip()) if ended else token.start_pos or 0
    found = "" if ended else str(token)
    message = unexpected(blanked, at, found, token.type, error.accepts or error.expected)
    return syntax_error(text, at, message, 1 if token.type == "QUERY" else max(1, len(found)))


def _never_closed(text: str, at: int) -> InvalidInputError:
    return syntax_error(text, at, "this comment is never closed; end it with */.", 2)


class _Reader:
    """Turns the parse tree of one text into its record; checks what the grammar cannot say."""

    def __init__(self, text: str) -> None:
        self._text = text

    def read(self, tree: Node) -> Command:
        # Keywords are tokens and carry nothing more; every part that does is a tree of its own.
        parts = {str(child.data): child for child in tree.children if isinstance(child, Tree)}
        return _READERS[str(tree.data)](self, tree, parts)

    def create(self, _: Node, parts: dict[str, Node]) -> Command:
        columns = parts["columns"].children
        if "name" in parts and len(columns) > 1:
            raise self._error(
                _first_token(columns[1]),
                "an index with a name has one column; leave the name out to get one index per "
                "column, or write one statement for each.",
            )
        comment = parts.get("comment")
        return CreateIndex(
            table=self._table(parts),
            columns=tuple(self._column(column) for column in columns),
            name=self._name(parts),
            if_not_exists="if_not_exists" in parts,
            options=self._options(parts["with_options"]) if "with_options" in parts else {},
            comment=_string(comment.children[-1]) if comment else None,
        )

    def refresh(self, _: Node, parts: dict[str, Node]) -> Command:
        self._one_selector(parts)
        return RefreshIndex(
            table=self._table(parts),
            name=self._name(parts),
            column=self._column(parts["column"]) if "column" in parts else None,
            full="full" in parts,
        )

    def drop(self, tree: Node, parts: dict[str, Node]) -> Command:
        self._one_selector(parts)
        if "name" not in parts and "column" not in parts:
            on = next(c for c in tree.children if isinstance(c, Token) and c.type == "ON")
            raise self._error(
                on,
                "say which index: DROP SIEVE INDEX name ON t, or DROP SIEVE INDEX ON t (column).",
            )
        return DropIndex(
            table=self._table(parts),
            name=self._name(parts),
            column=self._column(parts["column"]) if "column" in parts else None,
            if_exists="if_exists" in parts,
        )

    def alter(self, _: Node, parts: dict[str, Node]) -> Command:
        table, name = self._table(parts), self._path(parts["name"], 1)[0]
        if "set_options" in parts:
            return SetIndexOptions(table, name, self._options(parts["set_options"]))
        return EnableIndex(table, name) if "enable" in parts else DisableIndex(table, name)

    def show(self, _: Node, parts: dict[str, Node]) -> Command:
        if "of_table" in parts:
            return ShowIndexes(table=TableName(self._path(parts["of_table"].children[-1], 3)))
        if "of_namespace" in parts:
            space = Namespace(self._path(parts["of_namespace"].children[-1], 2))
            return ShowIndexes(namespace=space)
        return ShowIndexes()

    def versions(self, _: Node, parts: dict[str, Node]) -> Command:
        return ShowVersions(self._table(parts), self._name(parts))

    def optimize(self, _: Node, parts: dict[str, Node]) -> Command:
        return OptimizeIndex(self._table(parts), self._name(parts))

    def vacuum(self, _: Node, parts: dict[str, Node]) -> Command:
        return VacuumIndex(self._table(parts), self._name(parts), self._hours(parts))

    def vacuum_root(self, _: Node, parts: dict[str, Node]) -> Command:
        space = None
        if "of_namespace" in parts:
            space = Namespace(self._path(parts["of_namespace"].children[-1], 2))
        return VacuumIndexes(space, self._hours(parts))

    def _hours(self, parts: dict[str, Node]) -> float | None:
        if "retain" not in parts:
            return None
        token = next(
            child
            for child in parts["retain"].children
            if isinstance(child, Token) and child.type == "NUMBER"
        )
        hours = float(self._number(token))
        if hours < 0:
            raise self._error(token, "hours to retain cannot be negative.")
        return hours

    def describe(self, _: Node, parts: dict[str, Node]) -> Command:
        name = self._path(parts["name"], 1)[0]
        return DescribeIndex(self._table(parts), name, extended="extended" in parts)

    def explain(self, tree: Node, _: dict[str, Node]) -> Command:
        return ExplainSieve(self._rest(tree))

    def estimate(self, _: Node, parts: dict[str, Node]) -> Command:
        return EstimateIndex(
            table=self._table(parts),
            column=self._column(parts["column"]),
            options=self._options(parts["with_options"]) if "with_options" in parts else {},
            predicate=self._rest(parts["where"]).rstrip("; \t\r\n") if "where" in parts else None,
        )

    def check(self, _: Node, parts: dict[str, Node]) -> Command:
        table, name = self._table(parts), self._name(parts)
        if "sample" not in parts:
            return CheckIndex(table, name)
        token = next(
            child
            for child in parts["sample"].children
            if isinstance(child, Token) and child.type == "NUMBER"
        )
        percent = float(self._number(token))
        if not 0 < percent <= 100:
            raise self._error(token, "a sample is above 0 and at most 100 percent of the files.")
        return CheckIndex(table, name, percent)

    def _rest(self, tree: Node) -> str:
        rest = tree.children[-1]
        assert isinstance(rest, Token)
        return self._text[rest.start_pos :].rstrip()

    def _one_selector(self, parts: dict[str, Node]) -> None:
        if "name" in parts and "column" in parts:
            raise self._error(
                _first_token(parts["column"]), "give the index's name or its column, not both."
            )

    def _table(self, parts: dict[str, Node]) -> TableName:
        return TableName(self._path(parts["table"], 3))

    def _column(self, column: Node | Token) -> ColumnPath:
        return ColumnPath(self._path(column, None))

    def _name(self, parts: dict[str, Node]) -> str | None:
        return self._path(parts["name"], 1)[0] if "name" in parts else None

    def _path(self, node: Node | Token, longest: int | None) -> tuple[str, ...]:
        assert isinstance(node, Tree)
        tokens = [child for child in node.children if isinstance(child, Token)]
        if longest is not None and len(tokens) > longest:
            form = "catalog.database.table" if longest == 3 else "catalog.database"
            raise self._error(
                tokens[longest], f"too many parts in this name; at most {longest}: {form}."
            )
        for token in tokens:
            if not _identifier(token):
                raise self._error(token, "this name is empty.")
        return tuple(map(_identifier, tokens))

    def _options(self, tree: Node) -> dict[str, OptionValue]:
        options: dict[str, OptionValue] = {}
        (pairs,) = (child for child in tree.children if isinstance(child, Tree))
        for pair in pairs.children:
            assert isinstance(pair, Tree)
            key, value = pair.children
            name = self._key(key)
            if name in options:
                raise self._error(_first_token(key), f"option {name} is given twice.")
            options[name] = self._value(value)
        return options

    def _key(self, key: Node | Token) -> str:
        assert isinstance(key, Tree)
        if isinstance(key.children[0], Tree):
            return _string(key.children[0]).lower()
        return ".".join(self._path(key, None)).lower()

    def _value(self, tree: Node | Token) -> OptionValue:
        assert isinstance(tree, Tree)
        if tree.data == "string":
            return _string(tree)
        token = _first_token(tree)
        if tree.data == "boolean":
            return token.lower() == "true"
        if tree.data == "number":
            return self._number(token)
        return str(token)

    def _number(self, token: Token) -> int | float:
        number = float(token)
        if not math.isfinite(number):
            raise self._error(token, "this number is too large.")
        # Beyond 2^53 the float has lost digits, so whole numbers are read as such.
        return int(token) if token.lstrip("+-").isdecimal() else number

    def _error(self, token: Token, message: str) -> InvalidInputError:
        return syntax_error(self._text, token.start_pos or 0, message, len(token))


_READERS: dict[str, Callable[[_Reader, Node, dict[str, Node]], Command]] = {
    "create": _Reader.create,
    "refresh": _Reader.refresh,
    "drop": _Reader.drop,
    "alter": _Reader.alter,
    "show": _Reader.show,
    "describe": _Reader.describe,
    "explain": _Reader.explain,
    "estimate": _Reader.estimate,
    "versions": _Reader.versions,
    "optimize": _Reader.optimize,
    "vacuum": _Reader.vacuum,
    "vacuum_root": _Reader.vacuum_root,
    "check": _Reader.check,
}


def _first_token(node: Node | Token) -> Token:
    while isinstance(node, Tree):
        node = node.children[0]
    return node


def _identifier(token: Node | Token) -> str:
    assert isinstance(token, Token)
    return unquote_name(token) if token.type == "QUOTED" else str(token)


def _string(tree: Node | Token) -> str:
    assert isinstance(tree, Tree)
    return "".join(unquote_string(str(token)) for token in tree.children)
