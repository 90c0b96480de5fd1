from __future__ import annotations

import pytest

from sieve.index_key import expression_key
from sieve.workload.spelling import (
    create_statement,
    drop_statement,
    estimate_statement,
    listed,
    spelled,
)
from sql_ext.statements.parser import parse_statement


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (("db", "t"), "db.t"),
        (("_a1",), "_a1"),
        (("on",), "`on`"),
        (("ON",), "`ON`"),
        (("only",), "only"),
        (("null",), "`null`"),
        (("1a",), "`1a`"),
        (("a b",), "`a b`"),
        (("a.b", "c`d"), "`a.b`.`c``d`"),
        (("ä",), "`ä`"),
        (("",), "``"),
    ],
)
def test_names_are_quoted_only_if_necessary(parts: tuple[str, ...], text: str) -> None:
    """Names need no quotes if they are plain words and no keywords. All other names are quoted."""
    assert spelled(parts) == text


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("on", "`on`"),
        ("`it ems`.on", "`it ems`.`on`"),
        ("s.`c``d`", "s.`c``d`"),
        ("(on, b)", "(`on`, b)"),
        ("(`a, b`, null, s.x)", "(`a, b`, `null`, s.x)"),
        ("lower(on)", "lower(on)"),
        ("v:a.b", "v:a.b"),
        ("m['k']", "m['k']"),
        ("tags[0]", "tags[0]"),
        ("(a + b)", "(a + b)"),
    ],
)
def test_names_in_keys_are_quoted_like_columns(sql: str, text: str) -> None:
    """Names in the keys of arrays, texts and tuples are quoted; other expressions are unchanged."""
    assert listed(expression_key(sql)) == text
    assert listed(expression_key(sql, "elements")) == text


def test_statement_can_name_the_index() -> None:
    """Without a name, the statement leaves the choice of the name to Sieve."""
    assert create_statement(("db", "t"), ("a",)) == "CREATE SIEVE INDEX ON db.t (a)"


def test_statements_parse_back_to_the_names() -> None:
    """Generated statements parse back to the same names, for names of any characters."""
    table, column = ("my db", "ta`ble"), ("s", "a.b; DROP")
    created = parse_statement(create_statement(table, column))
    assert (created.table.parts, created.columns[0].parts) == (table, column)
    estimated = parse_statement(estimate_statement(table, column))
    assert (estimated.table.parts, estimated.columns[0].parts) == (table, column)
    substrings = ("", "lower(note)", "substring")
    created = parse_statement(create_statement(table, substrings))
    assert (created.columns[0].parts, created.options) == (
        ("", "lower(note)"),
        {"kind": "substring"},
    )
    estimated = parse_statement(estimate_statement(table, substrings))
    assert estimated.options == {"kind": "substring"}
    dropped = parse_statement(drop_statement(table, "in dex"))
    assert (dropped.table.parts, dropped.name) == (table, "in dex")
