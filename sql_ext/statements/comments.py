"""Reads comments, quoted names and string literals of SQL by Spark's lexical rules."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

# This pattern matches the start of a comment. The pattern also matches quoted tokens as a whole,
# because no comment can start inside quotes. A quoted token that is never closed extends to the end
# of the text.
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
    """A statement with blanks in place of its comments. All offsets in the text stay valid.

    Attributes:
        text: the statement's text without comments. The text's length and line breaks are
            unchanged.
        unclosed: offset of a ``/*`` whose comment is never closed. ``None`` if every comment is
            closed.
    """

    text: str
    unclosed: int | None


def blank_comments(text: str) -> Blanked:
    """Replaces comments by blanks: ``--`` comments, and ``/* */`` comments, which can be nested."""
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
    """The name that a token quotes with backquotes. A doubled backquote becomes one backquote."""
    return token[1:-1].replace("``", "`")


def unquote_string(token: str) -> str:
    r"""The value of a string literal by Spark's rules. In ``r'...'``, a backslash is plain text."""
    if token[0] in "rR":
        return token[2:-1]
    quote = token[0]
    body = token[1:-1]
    # A doubled quote becomes one quote. The pattern matches a backslash together with the next
    # character. So in \\'', the first quote belongs to the escape, and the pattern does not match a
    # doubled quote.
    body = re.sub(
        rf"\\.|{quote}{quote}",
        lambda m: quote if m[0] == quote * 2 else m[0],
        body,
        flags=re.DOTALL,
    )
    value = _ESCAPE.sub(_unescape, body)
    # \\ud83d\\ude00 is a surrogate pair, which becomes one character. A lone surrogate is invalid
    # text.
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescape(match: re.Match[str]) -> str:
    four, eight, octal, other = match.groups()
    if four or eight:
        point = int(four or eight, 16)
        return chr(point) if point <= sys.maxunicode else "\ufffd"
    return chr(int(octal, 8)) if octal else _CONTROL.get(other, other)
