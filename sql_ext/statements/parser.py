"""Parser: converts a statement's text to a command record, with the grammar ``grammar.lark``.

The grammar accepts or rejects the text. `_Reader` then converts the parse tree to a record, and
checks further rules that the grammar cannot express.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lark import Token, Tree, UnexpectedToken

from sql_ext.statements import commands
from sql_ext.statements.calls import CallReader
from sql_ext.statements.commands import ColumnPath, Command, Namespace, OptionValue, TableName
from sql_ext.statements.comments import blank_comments
from sql_ext.statements.expressions import mark_expressions, mark_list
from sql_ext.statements.parse_tree import Node, Words, first_token, grammar, string_of
from sql_ext.statements.syntax_error import syntax_error, unexpected
from sql_ext.statements.validate import problem

if TYPE_CHECKING:
    from sieve.errors import InvalidInputError


def parse_statement(text: str) -> Command:
    """Parses one SIEVE statement, and ignores semicolons at its end.

    Args:
        text: text of the statement as the user typed it.

    Raises:
        InvalidInputError: the statement is wrong (``SIEVE_SYNTAX_ERROR``). The message contains the
            position, the found token and the expected tokens. The message also quotes the wrong
            line, and marks the position with a caret.
    """
    blanked = blank_comments(text)
    try:
        tree = grammar().parse(mark_expressions(blanked.text), start="start")
    except UnexpectedToken as error:
        raise _refusal(text, blanked.text, blanked.unclosed, error) from None
    (statement,) = tree.children
    assert isinstance(statement, Tree)
    command = _Reader(text).read(statement)
    if blanked.unclosed is not None and not _left_to_spark(statement, command):
        raise _never_closed(text, blanked.unclosed)
    return command


def parse_columns(text: str) -> tuple[ColumnPath, ...]:
    """Parses a column list as in CREATE. Raises InvalidInputError if its syntax is wrong."""
    words = Words(text)
    columns = _part(mark_list(text), "columns").children
    return tuple(ColumnPath(words.path(one, None)) for one in columns)


def parse_options(text: str) -> dict[str, OptionValue]:
    """Parses options as in OPTIONS (...). Raises InvalidInputError if their syntax is wrong."""
    return Words(text).options(_part(text, "option_list"))


def _part(text: str, rule: str) -> Node:
    try:
        return grammar().parse(text, start=rule)
    except UnexpectedToken as error:
        raise _refusal(text, text, None, error) from None


def _left_to_spark(statement: Node, command: Command) -> bool:
    """Whether the statement ends with text that Spark parses, with the comments in it."""
    if statement.data == "call":
        return False
    return isinstance(command, commands.ExplainSieve) or (
        isinstance(command, commands.EstimateIndex) and command.predicate is not None
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


def _last(tree: Node) -> Node | Token:
    *_, last = tree.children
    return last


def _never_closed(text: str, at: int) -> InvalidInputError:
    return syntax_error(text, at, "this comment is never closed; end it with */.", 2)


class _Reader(Words):
    """Converts a parse tree to a command record, and checks rules beyond the grammar."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        # Maps each member of the record to its token. An error message about a member points at the
        # member's token.
        self._places: dict[str, Token] = {}

    def read(self, tree: Node) -> Command:
        # Keywords are tokens. Every other part of a statement is a tree.
        parts = {str(child.data): child for child in tree.children if isinstance(child, Tree)}
        # Each statement's rule in the grammar has a method of the same name in `_Reader`.
        command: Command = getattr(self, str(tree.data))(tree, parts)
        if (wrong := problem(command)) is not None:
            member, sentence = wrong
            raise self.error(self._places.get(member, first_token(tree)), sentence)
        return command

    def create(self, _: Node, parts: dict[str, Node]) -> Command:
        columns = parts["columns"].children
        self._places["columns"] = first_token(columns[-1 if len(columns) < 2 else 1])
        if "if_not_exists" in parts:
            self._places["if_not_exists"] = first_token(parts["if_not_exists"])
        comment = parts.get("comment")
        return commands.CreateIndex(
            table=self._table(parts),
            columns=tuple(self._column(column) for column in columns),
            name=self._name(parts),
            if_not_exists="if_not_exists" in parts,
            replace="or_replace" in parts,
            options=self.options(parts["with_options"]) if "with_options" in parts else {},
            comment=string_of(_last(comment)) if comment else None,
        )

    def refresh(self, _: Node, parts: dict[str, Node]) -> Command:
        return commands.RefreshIndex(
            table=self._table(parts),
            name=self._name(parts),
            column=self._selected(parts),
            full="full" in parts,
        )

    def drop(self, tree: Node, parts: dict[str, Node]) -> Command:
        self._places["table"] = next(
            c for c in tree.children if isinstance(c, Token) and c.type == "ON"
        )
        return commands.DropIndex(
            table=self._table(parts),
            name=self._name(parts),
            column=self._selected(parts),
            if_exists="if_exists" in parts,
        )

    def alter(self, _: Node, parts: dict[str, Node]) -> Command:
        table, name = self._table(parts), self._own_name(parts)
        if "set_options" in parts:
            return commands.AlterIndex(table, name, options=self.options(parts["set_options"]))
        return commands.AlterIndex(table, name, "ready" if "enable" in parts else "disabled")

    def show(self, _: Node, parts: dict[str, Node]) -> Command:
        return commands.ShowIndexes(*self._scope(parts))

    def _scope(self, parts: dict[str, Node]) -> tuple[TableName | None, Namespace | None]:
        """The table or database that the statement names, if any."""
        if "of_table" in parts:
            return TableName(self.path(_last(parts["of_table"]), 3)), None
        if "of_namespace" in parts:
            return None, Namespace(self.path(_last(parts["of_namespace"]), 2))
        return None, None

    def versions(self, _: Node, parts: dict[str, Node]) -> Command:
        return commands.ShowVersions(self._table(parts), self._name(parts))

    def optimize(self, _: Node, parts: dict[str, Node]) -> Command:
        return commands.OptimizeIndex(self._table(parts), self._name(parts))

    def vacuum(self, _: Node, parts: dict[str, Node]) -> Command:
        return commands.VacuumIndex(self._table(parts), self._name(parts), self._hours(parts))

    def vacuum_root(self, _: Node, parts: dict[str, Node]) -> Command:
        return commands.VacuumIndexes(self._scope(parts)[1], self._hours(parts))

    def _hours(self, parts: dict[str, Node]) -> float | None:
        if "retain" not in parts:
            return None
        return float(self.number(self._only_number("hours", parts["retain"])))

    def _only_number(self, member: str, tree: Node) -> Token:
        (token,) = (c for c in tree.children if isinstance(c, Token) and c.type == "NUMBER")
        self._places[member] = token
        return token

    def describe(self, _: Node, parts: dict[str, Node]) -> Command:
        name = self._own_name(parts)
        return commands.DescribeIndex(self._table(parts), name, extended="extended" in parts)

    def explain(self, tree: Node, _: dict[str, Node]) -> Command:
        return commands.ExplainSieve(self._query(tree), self._margin(tree))

    def estimate(self, _: Node, parts: dict[str, Node]) -> Command:
        where = parts.get("where")
        return commands.EstimateIndex(
            table=self._table(parts),
            columns=tuple(self._column(column) for column in parts["columns"].children),
            options=self.options(parts["with_options"]) if "with_options" in parts else {},
            predicate=None if where is None else self._query(where).rstrip("; \t\r\n"),
            margin="" if where is None else self._margin(where),
            extended="extended" in parts,
        )

    def check(self, _: Node, parts: dict[str, Node]) -> Command:
        table, name = self._table(parts), self._name(parts)
        extended = "extended" in parts
        if not extended and name is not None:
            # EXTENDED without backquotes is the keyword. To name an index EXTENDED, users write
            # backquotes.
            word = first_token(parts["name"])
            if word.upper() == "EXTENDED":
                extended, name = True, None
        sample = 100.0
        if "sample" in parts:
            sample = float(self.number(self._only_number("sample", parts["sample"])))
        return commands.CheckIndex(table, name, sample, extended)

    def advise(self, _: Node, parts: dict[str, Node]) -> Command:
        return commands.AdviseIndexes(*self._scope(parts))

    def call(self, tree: Node, _: dict[str, Node]) -> Command:
        reader = CallReader(self._text)
        command = reader.read(tree)
        self._places = reader.places
        return command

    def _query(self, tree: Node) -> str:
        return self._text[self._query_start(tree) :].rstrip()

    def _margin(self, tree: Node) -> str:
        """The text before the query, in which blanks replace all characters except line breaks."""
        return re.sub(r"[^\r\n]", " ", self._text[: self._query_start(tree)])

    def _query_start(self, tree: Node) -> int:
        rest = _last(tree)
        assert isinstance(rest, Token)
        return rest.start_pos or 0

    def _selected(self, parts: dict[str, Node]) -> ColumnPath | None:
        if "column" not in parts:
            return None
        self._places["column"] = first_token(parts["column"])
        return self._column(parts["column"])

    def _table(self, parts: dict[str, Node]) -> TableName:
        return TableName(self.path(parts["table"], 3))

    def _column(self, column: Node | Token) -> ColumnPath:
        return ColumnPath(self.path(column, None))

    def _name(self, parts: dict[str, Node]) -> str | None:
        return self._own_name(parts) if "name" in parts else None

    def _own_name(self, parts: dict[str, Node]) -> str:
        (name,) = self.path(parts["name"], 1)
        return name
