"""Tests which expressions in a list of columns Sieve passes to Spark, and which it refuses."""

from __future__ import annotations

import pytest

from sieve.errors import InvalidInputError
from sieve.index_key import expression_of
from sql_ext.statements.commands import CreateIndex, DropIndex, EstimateIndex, RefreshIndex
from sql_ext.statements.parser import parse_columns, parse_statement


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        ("lower(email)", [("", "lower(email)")]),
        ("a, lower(b), c.d", [("a",), ("", "lower(b)"), ("c", "d")]),
        ("concat(a, ',)', b), c", [("", "concat(a, ',)', b)"), ("c",)]),
        ("m['k'], v:a.b::int, x + 1", [("", "m['k']"), ("", "v:a.b::int"), ("", "x + 1")]),
        ("f(\n  a /* , b */,\n  c)", [("", "f( a , c)")]),
        ("`a(b`, `c,d`", [("a(b",), ("c,d",)]),
        ("lower(`a)`)", [("", "lower(`a)`)")]),
        ("(a, b)", [("", "(a, b)")]),
        ("a -- b\n, c", [("a",), ("c",)]),
        ("a IS NULL, NOT b", [("", "a IS NULL"), ("", "NOT b")]),
        ("a AND b, not, `a is b`", [("", "a AND b"), ("not",), ("a is b",)]),
        ("case when a then b end", [("", "case when a then b end")]),
    ],
)
def test_a_list_has_columns_and_expressions(typed: str, keys: list[tuple[str, ...]]) -> None:
    """An expression ends at a comma or parenthesis outside of its own parentheses and quotes."""
    created = parse_statement(f"CREATE SIEVE INDEX ON t ({typed}) OPTIONS (budget = '2%')")
    assert isinstance(created, CreateIndex)
    assert [column.parts for column in created.columns] == keys
    assert created.options == {"budget": "2%"}


def test_each_statement_takes_an_expression() -> None:
    """REFRESH, DROP, ESTIMATE and declarations accept the same expressions as CREATE does."""
    key = ("", "lower(a)")
    refresh = parse_statement("REFRESH SIEVE INDEX ON t (lower(a))")
    drop = parse_statement("DROP SIEVE INDEX IF EXISTS ON t (lower(a))")
    estimate = parse_statement("ESTIMATE SIEVE INDEX ON t (lower(a)) WHERE lower(a) IN ('x', 'y')")
    assert isinstance(refresh, RefreshIndex)
    assert isinstance(drop, DropIndex)
    assert isinstance(estimate, EstimateIndex)
    assert refresh.column is not None
    assert drop.column is not None
    assert refresh.column.parts == drop.column.parts == estimate.columns[0].parts == key
    assert estimate.predicate == "lower(a) IN ('x', 'y')"
    assert [one.parts for one in parse_columns("id, lower(a)")] == [("id",), key]


@pytest.mark.parametrize(
    "typed", ["a b", "'a'", "", "lower(a", "a,", "!", "`a", "a.", "lower(a)) (b", "a, 'b'"]
)
def test_invalid_expression_is_a_syntax_error(typed: str) -> None:
    """A text that cannot be an expression causes a syntax error."""
    with pytest.raises(InvalidInputError, match="SIEVE_SYNTAX_ERROR"):
        parse_statement(f"CREATE SIEVE INDEX ON t ({typed})")


def test_only_an_expression_has_an_empty_name() -> None:
    """The path of an expression begins with an empty part, unlike the path of a column."""
    assert expression_of(("", "lower(a)")) == "lower(a)"
    assert [expression_of(path) for path in (("a",), ("a", "b"), ("", "a", "b"), ("",))] == [
        None
    ] * 4
