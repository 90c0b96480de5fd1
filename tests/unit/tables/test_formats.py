"""Tests which tables and options a build refuses, and which files are cut into ranges."""

from __future__ import annotations

import json

import pytest

from sieve.tables.formats import (
    INDEXED,
    reads_whole_files,
    refuse_kind,
    refuse_names,
    refuse_option,
)


def schema(**types: object) -> str:
    """A schema in Spark's JSON form."""
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
    """A build refuses JSON tables with the type VOID at any depth.

    In a column of type VOID, Spark does not skip objects.
    """
    parts = {"format": "json x", "records": "whole", "schema": schema(a="integer", v=kind)}
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
def test_void_is_accepted_in_other_formats(format_name: str, text: str) -> None:
    """A JSON table may have a column whose name is void.

    Other formats may also have the type VOID.
    """
    parts = {"format": f"{format_name} x", "records": "whole", "schema": text}
    assert refuse_option("t", parts) is None


@pytest.mark.parametrize("format_name", ["csv", "json"])
@pytest.mark.parametrize(
    ("own", "whole"),
    [
        ({}, False),
        ({"option.linesep": "\n"}, False),
        ({"option.linesep": ";", "option.encoding": "latin-1"}, False),
        ({"option.multiline": "false"}, False),
        ({"option.multiline": "true"}, True),
        ({"option.multiline": "TRUE"}, True),
        ({"option.linesep": "\r\n"}, True),
        ({"option.encoding": "UTF-16LE"}, True),
        ({"option.charset": "UTF-16BE"}, True),
        ({"option.linesep": "aba"}, True),
    ],
)
def test_text_is_read_whole_if_lines_depend_on_splits(
    format_name: str, own: dict[str, str], *, whole: bool
) -> None:
    """An index has no ranges of a text file whose lines depend on where Spark splits the file."""
    assert reads_whole_files(format_name, own) is whole


def test_only_some_formats_are_cut_into_ranges() -> None:
    """Only files of Parquet, ORC, Iceberg, CSV and JSON tables can be cut into ranges."""
    parts = {"option.multiline": "true", "option.encoding": "UTF-16LE"}
    cut = {name for name in INDEXED if not reads_whole_files(name, {})}
    assert cut == {"parquet", "orc", "csv", "json", "iceberg"}
    assert {name for name in cut if not reads_whole_files(name, parts)} == cut - {"csv", "json"}


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
    """A build refuses CSV and JSON if the lines depend on where Spark splits a file.

    A query can split the file at other offsets than the build did.
    """
    for format_name in ("csv", "json"):
        parts = {"format": f"{format_name} x", "records": "whole"} | own
        refused = refuse_option("t", parts)
        assert (refused is not None) is vary
        assert refused is None or "lineSep" in str(refused)
    assert refuse_option("t", {"format": "parquet x"} | own) is None


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("view", "is a view; create the index on the table it reads"),
        ("temporary view", "is a temporary view; create the index on the table it reads"),
        ("stream", "is a streaming source; write it to a table"),
        ("path", "is read by its path alone; save it as a table first"),
        ("format avro", "is stored as avro; Sieve indexes Parquet"),
        ("v2 com.example.Table", "is read through com.example.Table, which Sieve does not know"),
        ("source com.example.Table", "is read through com.example.Table, which"),
        ("v2 org.apache.iceberg.spark.SparkTable", "is an Iceberg table that is read by its path"),
        ("location io.delta.tables.DeltaIndex", "is a Delta table that is read by its path"),
        ("format hudi", "is a Hudi table without a commit"),
        ("hudi version 6", "is a Hudi table of version 6, and Sieve knows 8 and 9"),
        ("hudi formats ORC", "is a Hudi table whose base files are ORC, and Sieve knows Parquet"),
        ("hudi bootstrap", "is a Hudi table made by bootstrap"),
        ("hive", "is a Hive table with SerDe unknown, which Spark does not read itself; store it"),
        ("hive org.apache.X", "is a Hive table with SerDe org.apache.x, which Spark does not read"),
        (
            "hive org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
            "through the Hive SerDe; set spark.sql.hive.convertMetastoreParquet = true",
        ),
        (
            "hive org.apache.hadoop.hive.ql.io.orc.OrcSerde",
            "through the Hive SerDe; set spark.sql.hive.convertMetastoreOrc = true",
        ),
    ],
)
def test_error_for_an_unsupported_relation_has_a_remedy(kind: str, told: str) -> None:
    """The error for an unsupported relation states its kind and a remedy."""
    refused = refuse_kind("shop.t", kind)
    assert refused.condition == "SIEVE_UNSUPPORTED_TABLE"
    assert refused.message.startswith("shop.t is ")
    assert told in refused.message


@pytest.mark.parametrize(
    ("columns", "taken"),
    [
        (["id", "sieve"], None),
        (["id", "__sieve_location__"], "__sieve_location__"),
        (["id", "__SIEVE_x", "__sieve_y"], "__SIEVE_x"),
        (["x__sieve_"], None),
    ],
)
def test_column_with_a_reserved_prefix_is_refused(columns: list[str], taken: str | None) -> None:
    """The error for a column with the prefix `__sieve_`, in any letter case, names the column."""
    refused = refuse_names("shop.t", columns)
    if taken is None:
        assert refused is None
    else:
        assert refused is not None
        assert refused.message.startswith(f"shop.t has the column {taken}; names that begin with")
        assert "rename it" in refused.message


@pytest.mark.parametrize(
    ("format_name", "handling", "refused"),
    [
        ("csv", None, False),
        ("csv", "STOP_AT_DELIMITER", False),
        ("csv", "stop_at_delimiter", False),
        ("csv", "BACK_TO_DELIMITER", True),
        ("csvx", "BACK_TO_DELIMITER", False),
        ("json", "BACK_TO_DELIMITER", False),
    ],
)
def test_other_handling_of_stray_quotes_is_refused(
    format_name: str, handling: str | None, refused: bool
) -> None:
    """A build refuses CSV if an option changes the default handling of stray quotes.

    With another handling of stray quotes, a value depends on which other columns a query reads.
    """
    option = {} if handling is None else {"option.unescapedquotehandling": handling}
    found = refuse_option("shop.t", {"format": f"{format_name} x", "schema": "{}"} | option)
    assert (found is not None) == refused
    if found is not None:
        assert f"shop.t has the option unescapedQuoteHandling = {handling}." in found.message
