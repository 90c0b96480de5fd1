"""Tables of the statement parser, computed when Sieve is built and not at each start.

Lark takes a sixth of a second to make the LALR tables of ``grammar.lark``, which the first
statement of a driver would wait for, and two milliseconds to load them. The file lies beside the
jars, which are built too, and are trusted as much. Without it, or with one of another grammar or
another release of Lark, the tables are computed.
"""

from __future__ import annotations

import hashlib
import io
import sys
from importlib import resources
from pathlib import Path
from typing import Final

import lark
from lark import Lark

NAMES: Final = ("table", "namespace", "column", "columns", "option_list")
"""Rules that can be parsed by themselves, besides the rule of a statement."""

_PACKAGE = resources.files("sql_ext")


def load_grammar() -> Lark:
    """The parser of ``grammar.lark``; its start rule is ``start`` or one of `NAMES`."""
    try:
        stored = _PACKAGE.joinpath("jars", "grammar.tables").read_bytes()
    except OSError:
        stored = b""
    return from_tables(stored) or compute_grammar()


def from_tables(stored: bytes) -> Lark | None:
    """The parser of stored tables; None if they are not those of this grammar and this Lark."""
    mark, _, tables = stored.partition(b"\n")
    return Lark.load(io.BytesIO(tables)) if mark == _mark() else None


def compute_grammar() -> Lark:
    """The parser, its tables computed."""
    return Lark(
        _text(),
        parser="lalr",
        lexer="contextual",
        maybe_placeholders=False,
        start=["start", *NAMES],
    )


def encode_tables() -> bytes:
    """The tables, with what tells whether they fit in the first line."""
    sink = io.BytesIO()
    compute_grammar().save(sink)
    return _mark() + b"\n" + sink.getvalue()


def _text() -> str:
    return _PACKAGE.joinpath("statements", "grammar.lark").read_text(encoding="utf-8")


def _mark() -> bytes:
    parts = (lark.__version__, *NAMES, _text())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest().encode()


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(encode_tables())
