"""Settings that change the values of a column of text files, or make a query fail."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from spark_session import Lab


def _sql(name: str, value: str = "true") -> tuple[str, str]:
    return f"spark.sql.{name}", value


_TOKYO = ("spark.sql.session.timeZone", "Asia/Tokyo")
_EUROPE = {"dateFormat": "dd/MM/yyyy"}
_STRICT = {"mode": "DROPMALFORMED"}
_LEGACY = _sql("legacy.timeParserPolicy", "LEGACY")
_EXACT = _sql("json.enableExactStringParsing", "false")
_PARTIAL = _sql("json.enablePartialResults", "false")
_CHARSETS = _sql("legacy.javaCharsets")
_FALLBACK = "DateTimeParsingFallback"
_LINES = "1\n1234567890123"

# Each case: format, content, columns, the query's select list, options, and a setting with its
# value.
TEXTS: list[tuple[str, str, str, str, dict[str, str], tuple[str, str]]] = [
    ("csv", "2020-01-01 00:00:00", "a TIMESTAMP", "unix_micros(a)", {}, _TOKYO),
    ("csv", "2020-1-5x", "a DATE", "a", {"dateFormat": "yyyy-M-d"}, _LEGACY),
    ("csv", "x,y", "a INT, b STRING", "b", {}, _sql("columnNameOfCorruptRecord", "b")),
    ("csv", _LINES, "a BIGINT", "a", {}, ("mapreduce.input.linerecordreader.line.maxlength", "9")),
    ("csv", _LINES, "a BIGINT", "a", {}, ("mapred.linerecordreader.maxlength", "9")),
    ("csv", "1", "a INT, b INT", "a", _STRICT, _sql("csv.parser.columnPruning.enabled", "false")),
    ("csv", "2020-01-05", "a DATE", "a", _EUROPE, _sql("legacy.csv.enable" + _FALLBACK)),
    ("json", '{"a":{"x" : 1}}', "a STRING", "a", {}, _EXACT),
    ("json", '{"a":{"x":"no","y":2}}', "a STRUCT<x: INT, y: INT>", "a.y", {}, _PARTIAL),
    ("json", '{"a":""}', "a INT", "a", _STRICT, _sql("legacy.json.allowEmptyString.enabled")),
    ("json", '{"a":"2020-01-05"}', "a DATE", "a", _EUROPE, _sql("legacy.json.enable" + _FALLBACK)),
    ("json", '{"a":"2020-01-01T00:00:00"}', "a TIMESTAMP", "unix_micros(a)", {}, _TOKYO),
    ("csv", "x", "a STRING", "a", {"encoding": "x-MacRoman"}, _CHARSETS),
]  # fmt: skip
_OF_SPARK_4 = (_EXACT, _CHARSETS)


def shown(lab: Lab, path: Path, schema: str, what: str, options: Mapping[str, str]) -> Any:
    """The rows of a file, or the error class of the failed query."""
    reader = lab.spark.read.format(path.name.split(".")[1]).schema(schema).options(**options)
    try:
        return reader.load(str(path)).selectExpr(what).collect()
    except (PySparkException, Py4JError) as error:
        return type(error)


@pytest.mark.parametrize(
    ("kind", "content", "schema", "what", "options", "setting"),
    [pytest.param(*case, id=f"{case[0]} {case[-1][0]}") for case in TEXTS],
)
def test_a_setting_of_text(
    lab: Lab, tmp_path: Path, kind: str, content: str, schema: str, what: str,
    options: dict[str, str], setting: tuple[str, str],
) -> None:  # fmt: skip
    """Changing a case's setting changes the values that Spark reads from the same file."""
    if setting in _OF_SPARK_4 and str(lab.spark.version) < "4":
        pytest.skip("the setting came with Spark 4")
    path = tmp_path / f"x.{kind}"
    path.write_text(content + "\n")
    before = shown(lab, path, schema, what, options)
    with lab.setting(*setting):
        assert shown(lab, path, schema, what, options) != before
    assert shown(lab, path, schema, what, options) == before
