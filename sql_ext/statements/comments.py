"""Reads SQL comments and string literals by Spark's lexical rules."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

# The tokens that start a comment, and quoted tokens, inside which no comment starts. A quote that
# is not closed contains the rest of the text.
_TOKENS = re.compile(
    r"""
      (?<!\w) r (?: '[^']*'? | "[^"]*"? )
    | ' (?: [^'\\] | \\. )* '?
    | " (?: [^"\\] | \\. )* "?
    | ` [^`]* `?
    | (?P<line>  -- (?: \\\r?\n | [^\r\n] )* )
    | (?P<block> /\* )
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_BLOCK = re.compile(r"/\*|\*/")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_CONTROL = {
    "0": "\0",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "Z": "\x1a",
    "%": "\\%",
    "_": "\\_",
}


@dataclass(frozen=True, slots=True)
class Blanked:
    """A statement with blanks in place of its comments, so that all offsets are unchanged.

    Attributes:
        text: the text, with the same length and line breaks as the original.
        unclosed: offset of a ``/*`` without an end; ``None`` if all comments have an end.
    """

    text: str
    unclosed: int | None


def blank_comments(text: str) -> Blanked:
    """Replaces ``--`` comments and nested ``/* */`` comments by blanks, except inside quotes."""
    pieces: list[str] = []
    unclosed = None
    end = 0
    while match := _TOKENS.search(text, end):
        start, stop = match.span()
        pieces.append(text[end:start])
        if match["block"]:
            close = _close_of_block(text, start)
            if close is None:
                unclosed, stop = start, len(text)
            else:
                stop = close
        comment = match["block"] or match["line"]
        pieces.append(re.sub(r"[^\r\n]", " ", text[start:stop]) if comment else match[0])
        end = stop
    return Blanked("".join(pieces) + text[end:], unclosed)


def _close_of_block(text: str, start: int) -> int | None:
    depth = 0
    for mark in _BLOCK.finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return None


def unquote_name(token: str) -> str:
    """The name inside backquotes. A doubled backquote becomes one backquote."""
    return token[1:-1].replace("``", "`")


def unquote_string(token: str) -> str:
    r"""The value of a string literal, with Spark's rules for escapes; ``r'...'`` has no escapes."""
    if token[0] in "rR":
        return token[2:-1]
    quote = token[0]
    body = token[1:-1]
    # A doubled quote becomes one quote. The pattern skips a backslash and the next character
    # together, so that \\'' is read correctly.
    body = re.sub(
        rf"\\.|{quote}{quote}",
        lambda m: quote if m[0] == quote * 2 else m[0],
        body,
        flags=re.DOTALL,
    )
    value = _ESCAPE.sub(_unescape, body)
    # \\ud83d\\ude00 is a surrogate pair; a lone surrogate is not valid text.
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescape(match: re.Match[str]) -> str:
    four, eight, octal, other = match.groups()
    if four or eight:
        point = int(four or eight, 16)
        return chr(point) if point <= sys.maxunicode else "\ufffd"
    return chr(int(octal, 8)) if octal else _CONTROL.get(other, other)
