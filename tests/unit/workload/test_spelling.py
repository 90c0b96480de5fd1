from __future__ import annotations

import pytest

from sieve.workload.spelling import create_statement, drop_statement, estimate_statement, spelled
from sql_ext.statements.parser import parse_statement


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (("db", "t"), "db.t"),
        (("_a1",), "_a1"),
        (("on",), "`on`"),
        (("ON",), "`ON`"),
        (("only",), "only"),
        (("1a",), "`1a`"),
        (("a b",), "`a b`"),
        (("a.b", "c`d"), "`a.b`.`c``d`"),
        (("ä",), "`ä`"),
        (("",), "``"),
    ],
)
def test_names_are_quoted_only_if_necessary(parts: tuple[str, ...], text: str) -> None:
    """Names are quoted unless they are plain words and not keywords."""
    assert spelled(parts) == text


def test_statements_parse_back_to_the_names() -> None:
    """Generated statements parse back to the same names, whatever their characters."""
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
