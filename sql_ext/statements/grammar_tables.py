"""The LALR tables of the statement parser. Sieve's own build computes and stores the tables.

Lark needs a sixth of a second to compute the LALR tables of ``grammar.lark``. The computation would
delay the first statement of each driver. Loading stored tables takes two milliseconds. The file
with the tables is in the folder of the jars. Sieve trusts the file as it trusts the jars. If the
file is missing, or belongs to another grammar or release of Lark, this module computes the tables.
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
"""The grammar's start rules in addition to ``start``, which parses a whole statement."""

_PACKAGE = resources.files("sql_ext")


def load_grammar() -> Lark:
    """The parser of ``grammar.lark``, with the start rules ``start`` and `NAMES`."""
    try:
        stored = _PACKAGE.joinpath("jars", "grammar.tables").read_bytes()
    except OSError:
        stored = b""
    return from_tables(stored) or compute_grammar()


def from_tables(stored: bytes) -> Lark | None:
    """The parser with stored tables; None if the tables are for another grammar or Lark release."""
    mark, _, tables = stored.partition(b"\n")
    return Lark.load(io.BytesIO(tables)) if mark == _mark() else None


def compute_grammar() -> Lark:
    """The parser with tables that Lark computes now."""
    return Lark(
        _text(),
        parser="lalr",
        lexer="contextual",
        maybe_placeholders=False,
        start=["start", *NAMES],
    )


def encode_tables() -> bytes:
    """Computes the tables as bytes. The first line identifies the grammar and Lark's release."""
    sink = io.BytesIO()
    compute_grammar().save(sink)
    return _mark() + b"\n" + sink.getvalue()


def keywords(grammar: str) -> list[str]:
    """The keywords of the grammar: ON, and the keywords in its rule ``keyword``."""
    _, _, listed = grammar.partition("?keyword:")
    return ["ON", *re.findall(r"[A-Z]+", listed.partition("\n\n")[0])]


def _text() -> str:
    """The grammar's text, plus a terminal for each keyword.

    The terminal matches the keyword only as a whole word.
    """
    grammar = _PACKAGE.joinpath("statements", "grammar.lark").read_text(encoding="utf-8")
    return grammar + "".join(f"{word}.1: /{word}\\b/i\n" for word in keywords(grammar))


def _mark() -> bytes:
    parts = (lark.__version__, *NAMES, _text())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest().encode()


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(encode_tables())
