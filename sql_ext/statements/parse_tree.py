"""The parser of ``grammar.lark``, and code that reads names and literals from its parse trees."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import TYPE_CHECKING

from lark import Lark, Token, Tree

from sieve.index_key import expression_key
from sql_ext.statements.comments import blank_comments, unquote_name, unquote_string
from sql_ext.statements.grammar_tables import load_grammar
from sql_ext.statements.syntax_error import syntax_error

if TYPE_CHECKING:
    from sieve.errors import InvalidInputError
    from sql_ext.statements.commands import OptionValue

Node = Tree[Token]


@cache
def grammar() -> Lark:
    """The parser. The start rule can be ``start`` or one of `grammar_tables.NAMES`."""
    return load_grammar()


class Words:
    """Reads names and literals from the parse trees of one statement's text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def path(self, node: Node | Token, longest: int | None) -> tuple[str, ...]:
        """The parts of a name, or an expression's key.

        A name may have at most ``longest`` parts.
        """
        assert isinstance(node, Tree)
        tokens = [child for child in node.children if isinstance(child, Token)]
        if tokens[0].type == "EXPRESSION":
            return expression_key(_on_a_line(self._text[tokens[0].start_pos : tokens[0].end_pos]))
        if longest is not None and len(tokens) > longest:
            form = "catalog.database.table" if longest == 3 else "catalog.database"
            raise self.error(
                tokens[longest], f"too many parts in this name; at most {longest}: {form}."
            )
        for token in tokens:
            if not identifier(token):
                raise self.error(token, "this name is empty.")
        return tuple(map(identifier, tokens))

    def options(self, tree: Node) -> dict[str, OptionValue]:
        """The values of options, by lower-case name."""
        options: dict[str, OptionValue] = {}
        (pairs,) = tree.find_data("option_list")
        for pair in pairs.children:
            assert isinstance(pair, Tree)
            key, value = pair.children
            name = self._key(key)
            if name in options:
                raise self.error(first_token(key), f"option {name} is given twice.")
            options[name] = self.value(value)
        return options

    def _key(self, key: Node | Token) -> str:
        assert isinstance(key, Tree)
        if isinstance(key.children[0], Tree):
            return string_of(key.children[0]).lower()
        return ".".join(self.path(key, None)).lower()

    def value(self, tree: Node | Token) -> OptionValue:
        """The value of a literal. A word without quotes stands for itself."""
        assert isinstance(tree, Tree)
        if tree.data == "string":
            return string_of(tree)
        token = first_token(tree)
        if tree.data == "boolean":
            return token.lower() == "true"
        if tree.data == "number":
            return self.number(token)
        return str(token)

    def number(self, token: Token) -> int | float:
        """The value of a token NUMBER."""
        digits = token.rstrip("BbDdFfLlSsYy")
        number = float(digits)
        if not math.isfinite(number):
            raise self.error(token, "this number is too large.")
        # A float cannot represent every integer above 2^53, so a whole number becomes an int.
        return int(digits) if digits.lstrip("+-").isdecimal() else number

    def error(self, token: Token, message: str) -> InvalidInputError:
        """A syntax error with this message, which points at a token."""
        return syntax_error(self._text, token.start_pos or 0, message, len(token))


def _on_a_line(sql: str) -> str:
    """The SQL of an expression, without comments.

    If the SQL contains no quotes, one blank replaces each sequence of blanks and line breaks.
    """
    text = blank_comments(sql).text.strip()
    return text if re.search("['\"`]", text) else " ".join(text.split())


def first_token(node: Node | Token) -> Token:
    """The first token in the text of a node."""
    while isinstance(node, Tree):
        node = node.children[0]
    return node


def identifier(token: Node | Token) -> str:
    """The name that a token contains, without quotes."""
    assert isinstance(token, Token)
    return unquote_name(token) if token.type == "QUOTED" else str(token)


def string_of(tree: Node | Token) -> str:
    """The concatenated values of adjacent string literals."""
    assert isinstance(tree, Tree)
    return "".join(unquote_string(str(token)) for token in tree.children)
