"""Finds the expressions in a statement's column list. Spark's parser then parses them."""

from __future__ import annotations

import re
from typing import Final

MARK: Final = "\x02"
"""This character replaces each character of an expression, so all offsets stay the same."""

_LISTING: Final = re.compile(r"\s*(?:CREATE|REFRESH|DROP|ESTIMATE)\b", re.IGNORECASE)
_TOKEN: Final = re.compile(
    r"""'(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `[^`]*` | [(\[{] | [)\]}] | ,""",
    re.VERBOSE | re.DOTALL,
)
_OPERATOR: Final = re.compile(
    r"(?:IS|NOT|AND|OR|CASE|DIV|I?LIKE|RLIKE|IN|BETWEEN)\b|.*?\s(?:IS|AND|OR|DIV|I?LIKE|RLIKE)\s",
    re.IGNORECASE | re.DOTALL,
)
"""Matches an expression whose operator is a word, such as ``a IS NULL`` or ``NOT a``."""
_NAME: Final = re.compile(r"(?:\w|[.\s]|`[^`]*`)*|['\"].*|[^\w]*|[^`]*`[^`]*", re.DOTALL)
"""Matches text that is not an expression: a name, or a syntax error for the grammar to report."""


def mark_expressions(text: str) -> str:
    """Replaces each expression in the first parenthesised list of a statement by `MARK` characters.

    Args:
        text: a statement in which blanks have replaced the comments.
    """
    if not _LISTING.match(text):
        return text
    opening = next((found for found in _TOKEN.finditer(text) if found[0] == "("), None)
    return text if opening is None else mark_list(text, opening.end())


def mark_list(text: str, start: int = 0) -> str:
    """Replaces each expression in a list of columns by `MARK` characters.

    Args:
        start: offset at which the list starts. The list ends at its closing parenthesis. Without a
            closing parenthesis, the list ends with the text.
    """
    pieces, depth, begun = [text[:start]], 0, start
    for found in _TOKEN.finditer(text, start):
        if found[0] in "([{":
            depth += 1
        elif depth and found[0] in ")]}":
            depth -= 1
        elif not depth and found[0] in "),":
            pieces += [_marked(text[begun : found.start()]), found[0]]
            begun = found.end()
            if found[0] == ")":
                return "".join(pieces) + text[begun:]
    return "".join(pieces) + _marked(text[begun:])


def _marked(item: str) -> str:
    own = item.strip()
    bare = re.sub("`[^`]*`", "x", own)
    if _NAME.fullmatch(own) and not (" " in bare and _OPERATOR.match(bare)):
        return item
    return item.replace(own, MARK * len(own), 1)
