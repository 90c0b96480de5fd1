"""The tables of the statement parser, which the build of Sieve computes.

Lark needs a sixth of a second to compute the LALR tables of ``grammar.lark``, which would delay the
first statement of each driver. Loading stored tables takes two milliseconds. The file with the
tables is in the folder of the jars, and Sieve trusts this file as it trusts the jars. If the file
is missing, or is for another grammar or another release of Lark, the parser computes the tables.
"""

from __future__ import annotations

import hashlib
import io
import re
import sys
from importlib import resources
from pathlib import Path
from typing import Final

import lark
from lark import Lark

NAMES: Final = ("table", "namespace", "column", "columns", "option_list")
"""The start rules of the grammar, other than the rule for a statement."""

_PACKAGE = resources.files("sql_ext")


def load_grammar() -> Lark:
    """The parser of ``grammar.lark``. The start rule can be ``start`` or one of `NAMES`."""
    try:
        stored = _PACKAGE.joinpath("jars", "grammar.tables").read_bytes()
    except OSError:
        stored = b""
    return from_tables(stored) or compute_grammar()


def from_tables(stored: bytes) -> Lark | None:
    """The parser with stored tables. None if the tables are for another grammar or another Lark."""
    mark, _, tables = stored.partition(b"\n")
    return Lark.load(io.BytesIO(tables)) if mark == _mark() else None


def compute_grammar() -> Lark:
    """The parser, with newly computed tables."""
    return Lark(
        _text(),
        parser="lalr",
        lexer="contextual",
        maybe_placeholders=False,
        start=["start", *NAMES],
    )


def encode_tables() -> bytes:
    """The tables as bytes. The first line identifies the grammar and the release of Lark."""
    sink = io.BytesIO()
    compute_grammar().save(sink)
    return _mark() + b"\n" + sink.getvalue()


def keywords(grammar: str) -> list[str]:
    """The keywords of the grammar: all keywords in its rule ``keyword``, and ON."""
    _, _, listed = grammar.partition("?keyword:")
    return ["ON", *re.findall(r"[A-Z]+", listed.partition("\n\n")[0])]


def _text() -> str:
    """The grammar with a terminal for each keyword. A terminal matches only whole words."""
    grammar = _PACKAGE.joinpath("statements", "grammar.lark").read_text(encoding="utf-8")
    return grammar + "".join(f"{word}.1: /{word}\\b/i\n" for word in keywords(grammar))


def _mark() -> bytes:
    parts = (lark.__version__, *NAMES, _text())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest().encode()


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(encode_tables())
