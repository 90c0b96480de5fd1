"""Stored tables of the parser work like computed tables. The parser refuses unsuitable tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lark import UnexpectedToken

from sql_ext.statements import grammar_tables
from sql_ext.statements.grammar_tables import (
    compute_grammar,
    encode_tables,
    from_tables,
    load_grammar,
)

TEXTS = (
    "SHOW SIEVE INDEXES",
    "CREATE SIEVE INDEX ON t (a.b, c) OPTIONS (k = 'v', n = 1)",
    "SHOW SIEVE",
    "CALL sieve.show()",
)


def parsed(parser: Any, text: str) -> Any:
    """Returns the parsed tree, or the unexpected token and the tokens that were expected."""
    try:
        return parser.parse(text, start="start")
    except UnexpectedToken as error:
        return error.token, error.accepts or error.expected


def test_stored_tables_parse_as_computed_ones() -> None:
    """Stored and computed tables give equal trees and errors, for statements and their parts."""
    stored, computed = from_tables(encode_tables()), compute_grammar()
    assert stored is not None
    for text in TEXTS:
        assert parsed(stored, text) == parsed(computed, text)
    for rule, text in (("columns", "a, b.c"), ("table", "d.t"), ("option_list", "a = 1")):
        assert stored.parse(text, start=rule) == computed.parse(text, start=rule)


def test_tables_of_another_grammar_or_lark_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The parser refuses stored tables that are damaged or of another version of lark."""
    tables = encode_tables()
    assert from_tables(b"") is None
    assert from_tables(tables[:10]) is None
    assert from_tables(b"0" + tables[1:]) is None
    monkeypatch.setattr(grammar_tables.lark, "__version__", "1.9")
    assert from_tables(tables) is None


def test_parser_uses_stored_tables_if_they_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parser uses stored tables, or computes its tables in a checkout without a build."""
    (tmp_path / "statements").mkdir()
    (tmp_path / "jars").mkdir()
    grammar = Path(grammar_tables.__file__).with_name("grammar.lark").read_text()
    (tmp_path / "statements" / "grammar.lark").write_text(grammar)
    monkeypatch.setattr(grammar_tables, "_PACKAGE", tmp_path)
    computed = load_grammar()
    (tmp_path / "jars" / "grammar.tables").write_bytes(encode_tables())
    monkeypatch.setattr(grammar_tables, "compute_grammar", lambda: pytest.fail("computed"))
    assert parsed(load_grammar(), TEXTS[0]) == parsed(computed, TEXTS[0])
