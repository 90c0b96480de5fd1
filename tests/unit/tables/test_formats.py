"""Which tables a build refuses, and which versions of earlier releases a scan does not use."""

from __future__ import annotations

import json

import pytest

from sieve.metadata.text_formats import is_outdated
from sieve.tables.formats import refuse_option


def schema(**types: object) -> str:
    """A schema as Spark writes it."""
    fields = [{"name": k, "type": v, "nullable": True, "metadata": {}} for k, v in types.items()]
    return json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"))


NESTED = [
    "void",
    {"type": "array", "elementType": "void", "containsNull": True},
    {"type": "map", "keyType": "string", "valueType": "void", "valueContainsNull": True},
    json.loads(schema(x="integer", y="void")),
    {"type": "array", "elementType": json.loads(schema(y="void")), "containsNull": True},
]


@pytest.mark.parametrize("kind", NESTED, ids=str)
def test_json_with_a_void_anywhere_proves_nothing(kind: object) -> None:
    """Spark does not skip an object in its place: no build and no version is to be believed."""
    parts = {"format": "json x", "records": "whole", "schema": schema(a="integer", v=kind)}
    assert is_outdated("json", parts)
    refused = refuse_option("t", parts)
    assert refused is not None
    assert "VOID" in str(refused)


@pytest.mark.parametrize(
    ("format_name", "text"),
    [
        ("json", schema(void="integer")),
        ("json", schema(v=json.loads(schema(void="string")))),
        ("csv", schema(v="void")),
        ("parquet", schema(v="void")),
    ],
)
def test_other_tables_may_have_a_void(format_name: str, text: str) -> None:
    """A column of that name is one like others; other formats find columns by place or by name."""
    parts = {"format": f"{format_name} x", "records": "whole", "schema": text}
    assert not is_outdated(format_name, parts)
    assert refuse_option("t", parts) is None


def test_text_that_was_not_read_whole_proves_nothing() -> None:
    """Versions of earlier releases lack the part of the fingerprint that says so."""
    for format_name, outdated in (
        ("csv", True),
        ("json", True),
        ("parquet", False),
        ("hudi", False),
    ):
        parts = {"format": f"{format_name} x", "schema": schema(a="integer")}
        assert is_outdated(format_name, parts) is outdated


@pytest.mark.parametrize(
    ("own", "vary"),
    [
        ({}, False),
        ({"option.linesep": "\n"}, False),
        ({"option.linesep": "\r\n"}, False),
        ({"option.linesep": "aab"}, False),
        ({"option.linesep": "  "}, True),
        ({"option.linesep": "aba"}, True),
        ({"option.linesep": "\n", "option.encoding": "UTF-16LE"}, False),
        ({"option.linesep": "\u0101", "option.charset": "UTF-16BE"}, True),
        ({"option.linesep": "--", "option.encoding": "no such"}, True),
        ({"option.linesep": "é", "option.encoding": "ascii"}, False),
        ({"conf.mapreduce.input.linerecordreader.line.maxlength": "1000"}, True),
    ],
)
def test_text_whose_lines_depend_on_splits_is_refused(own: dict[str, str], vary: bool) -> None:
    """A query may split a file at other offsets than the build did, and find other values there."""
    for format_name in ("csv", "json"):
        parts = {"format": f"{format_name} x", "records": "whole"} | own
        assert is_outdated(format_name, parts) is vary
        refused = refuse_option("t", parts)
        assert (refused is not None) is vary
        assert refused is None or "lineSep" in str(refused)
    assert refuse_option("t", {"format": "parquet x"} | own) is None
    assert not is_outdated("parquet", own)
