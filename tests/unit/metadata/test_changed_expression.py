"""Tests which parts of a reader fingerprint matter to an index on an expression."""

from __future__ import annotations

import json

import pytest

from sieve.metadata.column_reader import changed_parts

KEY = ("", "lower(a)")


def parts(value: str = "lower(column(a: string))", **other: str) -> dict[str, str]:
    """The fingerprint of a table with the columns `a` and `b`, and of the expression lower(a)."""
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (("a", other.pop("a", "string")), ("b", other.pop("b", "integer")))
    ]
    schema = json.dumps({"type": "struct", "fields": fields})
    expression = json.dumps({"columns": [["a"]], "value": value})
    return {
        "format": "parquet x", "schema": schema, "spark": "4.1", "expression.lower(a)": expression,
    } | other  # fmt: skip


@pytest.mark.parametrize(
    ("now", "changed"),
    [
        (parts(), ()),
        (parts(b="string"), ()),
        (parts(a="binary"), ("schema",)),
        (parts("lower(column(a: string), UTF8_LCASE)"), ("expression.lower(a)",)),
        ({k: v for k, v in parts().items() if k[:4] != "expr"}, ("expression.lower(a)",)),
        (parts(**{"expression.upper(b)": "x"}), ()),
    ],
)
def test_only_the_expression_and_its_columns_matter(
    now: dict[str, str], changed: tuple[str, ...]
) -> None:
    """An index on an expression is unusable only after changes of the expression or its columns."""
    assert changed_parts(KEY, parts(), now) == changed
    assert changed_parts(KEY, now, parts()) == changed


def test_expressions_do_not_matter_for_a_column() -> None:
    """Creating or dropping an index on an expression does not affect indexes on columns."""
    bare = {k: v for k, v in parts().items() if k[:4] != "expr"}
    assert changed_parts(("a",), parts(), bare) == ()
    assert changed_parts(("a",), bare, parts("other")) == ()
    text = {name: part | {"format": "json x"} for name, part in (("one", parts()), ("other", bare))}
    assert changed_parts(("a",), text["one"], text["other"]) == ()
