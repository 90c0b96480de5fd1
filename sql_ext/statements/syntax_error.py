"""Syntax errors, which name the position, the found token, and the expected SQL tokens."""

from __future__ import annotations

import difflib
import re
import unicodedata
from typing import TYPE_CHECKING

from sieve.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterable

STATEMENTS = (
    "CREATE SIEVE INDEX",
    "REFRESH SIEVE INDEX",
    "DROP SIEVE INDEX",
    "ALTER SIEVE INDEX",
    "SHOW SIEVE INDEXES",
    "SHOW SIEVE VERSIONS",
    "DESCRIBE SIEVE INDEX",
    "EXPLAIN SIEVE",
    "ESTIMATE SIEVE INDEX",
    "OPTIMIZE SIEVE INDEX",
    "VACUUM SIEVE INDEX",
    "CHECK SIEVE INDEX",
    "ADVISE SIEVE INDEXES",
    "CALL sieve.procedure",
)

_NEAR = 0.8
"""Words with at least this similarity (0 to 1) count as misspelt first words of a statement."""

_SHOWN_WIDTH = 96
_WORDS = {
    "LPAR": '"("',
    "RPAR": '")"',
    "COMMA": '","',
    "DOT": '"."',
    "EQUAL": '"="',
    "ARROW": '"=>"',
    "STRING": "a string in quotes",
    "NUMBER": "a number",
    "QUERY": "a query",
    "$END": "the end of the statement",
}
# If the grammar also expects a name, the message omits these literals.
_LITERALS = {"STRING", "NUMBER", "EXPRESSION"}
# Maps a word or punctuation mark to the kind of name that follows it in the grammar.
_NAMES = {
    "ON": "a table name",
    "TABLE": "a table name",
    "FROM": "a database name",
    "IN": "a database name",
    "INDEX": "an index name",
    "VERSIONS": "an index name",
    "EXISTS": "an index name",
    "EXTENDED": "an index name",
    "(": "a column name",
    ",": "a column name",
}


def syntax_error(text: str, at: int, message: str, length: int = 1) -> InvalidInputError:
    """A syntax error, whose message quotes the wrong line.

    Below the wrong line, carets mark ``length`` characters from offset ``at``.
    """
    at = min(at, len(text))
    line_start = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    line = re.split(r"[\r\n]", text[line_start:], maxsplit=1)[0]
    # Counts lines as an editor does: \r\n is one line break.
    number = len(re.findall(r"\r\n|\r|\n", text[:line_start])) + 1
    column = at - line_start
    return InvalidInputError(
        "SIEVE_SYNTAX_ERROR",
        f"line {number}, column {column + 1}: {message}\n\n{_pointed(line, column, length)}",
    )


def unexpected(text: str, at: int, found: str, kind: str, expected: Iterable[str]) -> str:
    """The message for an unexpected token.

    Args:
        text: the statement, in which blanks have replaced the comments.
        at: offset of the unexpected token.
        found: text of the unexpected token.
        kind: the token's terminal in the grammar. ``$END`` if the text ends too early.
        expected: terminals that the grammar allows at this position.
    """
    expected = set(expected) - {"SEMICOLON"}
    keywords = sorted(word for word in expected if word.isalpha() and word not in _WORDS)
    places = [_WORDS[word] for word in _WORDS if word in expected]
    if "WORD" in expected:
        names = _name_expected(text[:at], expected)
        # At this position, almost every keyword can also be a name. So the message lists only ON as
        # a keyword.
        keywords = ["ON"] if "ON" in expected else []
        places = [names, *(_WORDS[word] for word in _WORDS if word in expected - _LITERALS)]
    elif len(keywords) + len(places) > 1 and "DOT" in expected:
        places.remove(_WORDS["DOT"])
    choices = [*keywords, *places]
    sentence = f"found {_found(found, kind)}, expected {_either(choices)}."
    if not _is_ours(text[:at], expected):
        nearest = _nearest_statement(text)
        if nearest is None:
            return f"{sentence} The statements are {', '.join(STATEMENTS)}."
        if not text[:at].strip():
            sentence = f"found {_found(found, kind)}."
        return f"{sentence} Did you mean {nearest}?"
    if found.isalpha():
        close = difflib.get_close_matches(found.upper(), keywords, n=1, cutoff=0.7)
        sentence += f" Did you mean {close[0]}?" if close else ""
    return sentence + _hint(text, at, found, expected)


def _nearest_statement(text: str) -> str | None:
    """The statement that is most similar to the text's first words; None if none is similar."""
    words = _words(text)

    def likeness(statement: str) -> float:
        typed = " ".join(words[: len(statement.split())])
        return difflib.SequenceMatcher(None, typed, statement).ratio()

    nearest = max(STATEMENTS, key=likeness)
    return nearest if likeness(nearest) >= _NEAR else None


def _name_expected(before: str, expected: set[str]) -> str:
    if "NUMBER" in expected:
        return "a value"
    last = re.findall(r"\w+|[^\w\s]", before)[-1:]
    if last == ["."]:
        return "a name"
    if "STRING" in expected:
        return "an option name"
    return _NAMES.get(last[0].upper() if last else "", "a name")


def _found(found: str, kind: str) -> str:
    if kind == "$END":
        return "the end of the statement"
    if kind == "QUERY":  # no token of the grammar begins with this character
        return "a quote that is never closed" if found[0] in "'\"`" else f'"{found[0]}"'
    if kind == "STRING":
        return "a string"
    return f'"{found}"' if len(found) <= 60 else f'"{found[:60]}..."'


def _hint(text: str, at: int, found: str, expected: set[str]) -> str:
    if "QUOTED" in expected and found[:1] == '"':
        return " A name is quoted with backquotes: `name`."
    if found.upper() == "RENAME":
        return " An index keeps its name: CREATE one with the other name, and DROP this one."
    if found[:1] in (":", "?"):
        return " A parameter has no value here: give it one, as in spark.sql(text, args)."
    joined = at > 0 and (text[at - 1].isalnum() or text[at - 1] in "_`")
    if joined and found and not found[0].isspace() and found[0] not in "`'\"()=,;.":
        return " A name with such characters is quoted with backquotes: `a-b`."
    return ""


def _words(text: str) -> list[str]:
    """The words of a text in upper case, without OR REPLACE, so that CREATE SIEVE INDEX matches."""
    return re.sub(r"\bOR\s+REPLACE\s+", "", text.upper()).split()


def _is_ours(before: str, expected: set[str]) -> bool:
    """Returns whether the text before the error already shows which statement the user means."""
    words = _words(before)
    return len(words) > 2 or (len(words) == 2 and words[1] != "SIEVE") or "QUERY" in expected


def _either(choices: list[str]) -> str:
    if len(choices) < 2:
        return "".join(choices)
    return f"{', '.join(choices[:-1])} or {choices[-1]}"


def _pointed(line: str, column: int, length: int) -> str:
    """The part of a line around the column, and below it a line with carets."""
    left = max(0, min(column - _SHOWN_WIDTH // 2, len(line) - _SHOWN_WIDTH))
    shown = "".join(c if c.isprintable() else " " for c in line[left : left + _SHOWN_WIDTH])
    column -= left
    indent = sum(_cells(c) for c in shown[:column])
    marks = sum(_cells(c) for c in shown[column : column + length]) or 1
    return f"  {shown}\n  {' ' * indent}{'^' * marks}"


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
