"""Settings that change the values of a Parquet or ORC column, or that make a query fail."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import zipfile
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError
from pyarrow import orc
from pyspark.errors import PySparkException
from pyspark.sql.types import (
    DataType,
    DateType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)
from spark_session import Lab

from sieve.client.spark_home import find_spark
from sieve.metadata.column_reader import deciding_parts

Writer = Callable[[Lab, Path], None]


class Case(NamedTuple):
    """A file, a column of the file, and a setting or option that changes this column's values."""

    write: Writer
    schema: str | StructType
    shown: str
    key: str
    value: str = "true"
    given: Mapping[str, str] = {}
    options: Mapping[str, str] = {}
    lines: str = "3.5 4.0 4.1"


_OLD = dt.datetime(1500, 1, 1, 12, tzinfo=dt.UTC)


def _parquet(table: Mapping[str, pa.Array], **how: Any) -> Writer:
    return lambda _, path: pq.write_table(pa.table(dict(table)), path, **how)


def _with_id(column: pa.Array, **how: Any) -> Writer:
    """A file whose only column, `b`, has the Parquet field id 1."""
    field = pa.field("b", column.type, metadata={"PARQUET:field_id": "1"})
    table = pa.table([column], schema=pa.schema([field]))
    return lambda _, path: pq.write_table(table, path, **how)


def _orc(table: Mapping[str, Any]) -> Writer:
    return lambda _, path: orc.write_table(pa.table(dict(table)), path)


def _by_spark(query: str) -> Writer:
    def write(lab: Lab, path: Path) -> None:
        kind = path.suffix[1:]
        lab.spark.sql(query).coalesce(1).write.format(kind).save(str(path))

    return write


def _damaged(_: Lab, path: Path) -> None:
    """An ORC file with damaged numbers: the encoding's patches are wider than the numbers allow."""
    numbers = [2030, 2000, 2020, 1000000, *range(2040, 2200, 10)]
    orc.write_table(pa.table({"a": numbers}), path, compression="uncompressed")
    content = path.read_bytes()
    start = bytes.fromhex("8e132b21")
    assert content.count(start) == 1
    path.write_bytes(content.replace(start, bytes.fromhex("8e133f21")))


def _as(name: str, kind: DataType, **metadata: Any) -> StructType:
    own = {key.replace("__", "."): value for key, value in metadata.items()}
    return StructType([StructField(name, kind, metadata=own)])


def _default(kind: DataType, text: str) -> StructType:
    return _as("x", kind, EXISTS_DEFAULT=text, CURRENT_DEFAULT=text)


def _setting_of_format(kind: str, key: str) -> str:
    return f"spark.sql.{kind}.{key}"


_INT96 = {"use_deprecated_int96_timestamps": True}
_OLDS = _parquet({"d": pa.array([_OLD.date()]), "t": pa.array([_OLD], pa.timestamp("us", "UTC"))})
_OLD_96 = _parquet({"t": pa.array([_OLD], pa.timestamp("us"))}, **_INT96)
_NEW_96 = _parquet(
    {"t": pa.array([dt.datetime(2020, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us"))}, **_INT96
)
_A = _parquet({"a": pa.array([1])})
_AB = _orc({"a": [1], "b": [2]})
_NESTED = _orc({"s": [{"a": 1, "b": 2}]})
_NANOS, _MICROS = pa.array([5], pa.timestamp("ns")), pa.array([5], pa.timestamp("us"))
_UNSIGNED = pa.array([{"x": 7}], pa.struct([("x", pa.uint32())]))
_CONVERT = _setting_of_format("parquet", "int96TimestampConversion")
_ZONE = "spark.sql.session.timeZone"
_BY_IDS = {_setting_of_format("parquet", "fieldId.read.enabled"): "true"}
_BY_ID = _as("a", LongType(), parquet__field__id=1)
_INSTANT_BY_ID = _as("a", TimestampType(), parquet__field__id=1)
_OTHER_ID = _as("a", LongType(), parquet__field__id=2)
_FIVE, _SINCE_41 = "3.5", "4.1"
_FOUR = "4.0 4.1"
_DATE_TEXT = "to_date('2020-1-5x', 'yyyy-M-d')"
_BY_PLACE = {"orc.force.positional.evolution": "true"}
_ROWS = {_setting_of_format("orc", "enableVectorizedReader"): "false"}
_NO_ANSI, _ANSI = {"spark.sql.ansi.enabled": "false"}, {"spark.sql.ansi.enabled": "true"}

PARQUET = [
    Case(_OLDS, "d DATE", "d", _setting_of_format("parquet", "datetimeRebaseModeInRead"), "LEGACY"),
    Case(
        _OLDS,
        "t TIMESTAMP",
        "unix_micros(t)",
        _setting_of_format("parquet", "datetimeRebaseModeInRead"),
        "LEGACY",
    ),
    Case(_OLDS, "d DATE", "d", "datetimeRebaseMode", "LEGACY", options={"datetimeRebaseMode": ""}),
    Case(
        _OLD_96,
        "t TIMESTAMP",
        "unix_micros(t)",
        _setting_of_format("parquet", "int96RebaseModeInRead"),
        "LEGACY",
    ),
    Case(
        _OLD_96,
        "t TIMESTAMP",
        "unix_micros(t)",
        "int96RebaseMode",
        "LEGACY",
        options={"int96RebaseMode": ""},
    ),
    Case(_NEW_96, "t TIMESTAMP", "unix_micros(t)", _CONVERT, given={_ZONE: "Asia/Tokyo"}),
    Case(_NEW_96, "t TIMESTAMP", "unix_micros(t)", _ZONE, "Asia/Tokyo", given={_CONVERT: "true"}),
    Case(_A, "A BIGINT", "A", "spark.sql.caseSensitive"),
    Case(
        _with_id(pa.array([5])), _BY_ID, "a", _setting_of_format("parquet", "fieldId.read.enabled")
    ),
    Case(
        _A,
        _OTHER_ID,
        "a",
        _setting_of_format("parquet", "fieldId.read.ignoreMissing"),
        given=_BY_IDS,
    ),
    Case(
        _with_id(_NANOS),
        _BY_ID,
        "a",
        "spark.sql.legacy.parquet.nanosAsLong",
        given=_BY_IDS,
        lines=_FIVE,
    ),
    Case(
        _with_id(_MICROS, **_INT96),
        _INSTANT_BY_ID,
        "unix_micros(a)",
        _setting_of_format("parquet", "int96AsTimestamp"),
        "false",
        _BY_IDS,
        lines=_FIVE,
    ),
    Case(
        _parquet({"a": pa.array([Decimal("1.50")], pa.decimal128(5, 2))}),
        "a STRING",
        "a",
        _setting_of_format("parquet", "enableVectorizedReader"),
        "false",
    ),
    Case(
        _parquet({"s": _UNSIGNED}),
        "s STRUCT<x: INT>",
        "s.x",
        _setting_of_format("parquet", "enableNestedColumnVectorizedReader"),
        "false",
    ),
    Case(
        _parquet({"s": _UNSIGNED}),
        "s STRUCT<y: INT>",
        "s IS NULL",
        "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing",
        lines=_SINCE_41,
    ),
    Case(
        _by_spark("SELECT parse_json('1') v"),
        "v STRUCT<metadata: BINARY, value: BINARY>",
        "v.value",
        _setting_of_format("parquet", "ignoreVariantAnnotation"),
        lines=_SINCE_41,
    ),
    Case(_A, "a BIGINT", "a", "parquet.crypto.factory.class", "no.such.Class"),
    Case(_A, "a BIGINT", "a", "parquet.read.filter", "no.such.Class"),
    Case(_A, "a BIGINT", "a", "parquet.private.read.filter.predicate", "no predicate"),
    Case(
        _A,
        _default(IntegerType(), "CAST('x' AS INT)"),
        "x",
        "spark.sql.ansi.enabled",
        "false",
        _ANSI,
    ),
    Case(
        _A,
        _default(StringType(), '"x"'),
        "x",
        "spark.sql.ansi.doubleQuotedIdentifiers",
        given=_ANSI,
    ),
    Case(
        _A,
        _default(StringType(), "typeof(TIMESTAMP '2020-01-01')"),
        "x",
        "spark.sql.timestampType",
        "TIMESTAMP_NTZ",
    ),
    Case(_A, _default(StringType(), "'a\\nb'"), "x", "spark.sql.parser.escapedStringLiterals"),
    Case(
        _A,
        _default(TimestampType(), "TIMESTAMP '2020-01-01'"),
        "unix_micros(x)",
        _ZONE,
        "Asia/Tokyo",
    ),
    Case(
        _A,
        _default(DateType(), _DATE_TEXT),
        "x",
        "spark.sql.legacy.timeParserPolicy",
        "LEGACY",
        _NO_ANSI,
    ),
    Case(
        _A,
        _default(StringType(), """to_json(parse_json('{"a":1,"a":2}'))"""),
        "x",
        "spark.sql.variant.allowDuplicateKeys",
        lines=_FOUR,
    ),
]
ORC = [
    Case(_AB, "b BIGINT, a BIGINT", "a", "orc.force.positional.evolution"),
    Case(
        _NESTED,
        "s STRUCT<b: BIGINT, a: BIGINT>",
        "s",
        "orc.force.positional.evolution.level",
        "2",
        _BY_PLACE | _ROWS,
    ),
    Case(_AB, "b BIGINT", "b", _setting_of_format("orc", "impl"), "hive"),
    Case(_AB, "A BIGINT", "A", "spark.sql.caseSensitive"),
    Case(_by_spark("SELECT DATE '1500-01-01' d"), "d DATE", "d", "orc.proleptic.gregorian"),
    Case(_orc({"d": [_OLD.date()]}), "d DATE", "d", "orc.proleptic.gregorian.default"),
    Case(
        _orc({"_col0": [1], "_col1": [2]}),
        "a BIGINT, b BIGINT",
        "b",
        "orc.tolerate.missing.schema",
        "false",
    ),
    Case(_damaged, "a BIGINT", "a", "orc.skip.corrupt.data"),
    Case(_damaged, "a BIGINT", "a", "hive.exec.orc.skip.corrupt.data"),
    Case(
        _orc({"_col0": [1], "_col1": [2]}),
        "a BIGINT, b BIGINT",
        "b",
        "hive.exec.orc.tolerate.missing.schema",
        "false",
    ),
    Case(_AB, "a BIGINT", "a", "orc.max.file.length", "10", lines=_FIVE),
]
CASES = {"parquet": PARQUET, "orc": ORC}
UNSHOWN = {
    "parquet.encryption.": "Spark's jars have no client of a key management service",
    "orc.key.provider": "likewise",
    "orc.filter.plugin": "Spark's jars have no filter to plug in",
    "orc.sarg.to.filter": "rows that a reader drops by itself have other values",
}
"""Prefixes of settings in the fingerprint; each prefix maps to the reason why no case tests it."""

KINDS = {"n": "long", "s": "string", "d": "date", "t": "timestamp", "y": "decimal(5,2)"}
"""The names and types of columns that have no field id and no default value."""
_OF_SPARK = ("spark.sql.{}.", "spark.sql.legacy.{}.", "spark.sql.files.")


def _rows(lab: Lab, path: Path, case: Case, options: Mapping[str, str]) -> Any:
    """The values of a case's column, or the error class of the failed query."""
    reader = lab.spark.read.format(path.suffix[1:]).schema(case.schema).options(**options)
    try:
        return reader.load(str(path)).selectExpr(case.shown).collect()
    except (PySparkException, Py4JError) as error:
        return type(error)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("kind", "case"),
    [
        # Spark needs many seconds until a query of the damaged file fails.
        pytest.param(
            k,
            case,
            id=f"{k} {case.key}",
            marks=pytest.mark.long if case.write is _damaged else (),
        )
        for k, cases in CASES.items()
        for case in cases
    ],
)
def test_a_setting_of_a_column(lab: Lab, tmp_path: Path, kind: str, case: Case) -> None:
    """Changing a case's setting or option changes the values that Spark reads from a file."""
    if ".".join(str(lab.spark.version).split(".")[:2]) not in case.lines.split():
        pytest.skip(f"only Spark {case.lines} asks for the setting")
    path = tmp_path / f"x.{kind}"
    case.write(lab, path)
    with lab.settings(dict(case.given)):
        before = _rows(lab, path, case, {})
        if case.options:
            assert _rows(lab, path, case, {case.key: case.value}) != before
        else:
            with lab.setting(case.key, case.value):
                assert _rows(lab, path, case, {}) != before
        assert _rows(lab, path, case, {}) == before


@pytest.mark.long
@pytest.mark.parametrize("kind", ["parquet", "orc", "csv", "json"])
def test_padding_changes_only_char_columns(lab: Lab, tmp_path: Path, kind: str) -> None:
    """CREATE refuses CHAR columns, because their values depend on settings of padding.

    If settings of CHAR padding change, indexes on VARCHAR columns stay in use.
    """
    padding = ("spark.sql.readSideCharPadding", "spark.sql.legacy.charVarcharAsString")
    plain: dict[str, str] = {}
    modes = [plain, {padding[0]: "false"}, {padding[1]: "true"}]
    with lab.database("padded"):
        lab.spark.sql(
            "SELECT id, concat('k', id) c, concat('k', id) v FROM range(0, 40, 1, 4)"
        ).write.format(kind).save(str(tmp_path / "t"))
        for file in (tmp_path / "t").iterdir():
            os.utime(file, (1_600_000_000, 1_600_000_000))
        lab.sql(
            f"CREATE TABLE t (id BIGINT, c CHAR(5), v VARCHAR(5)) USING {kind} "
            f"LOCATION '{tmp_path / 't'}'"
        )
        lengths = []
        for mode in modes:
            # Spark derives a table's columns with the first query's settings, and caches them until
            # REFRESH TABLE.
            lab.sql("REFRESH TABLE t")
            with lab.settings(mode):
                lengths += lab.sql("SELECT length(c), length(v) FROM t WHERE id = 15")
                with pytest.raises(PySparkException, match="SIEVE_UNSUPPORTED_TYPE"):
                    lab.sql("CREATE SIEVE INDEX ON t (c)")
        assert [tuple(row) for row in lengths] == [(5, 3), (3, 3), (3, 3)]
        for built in modes:
            with lab.settings(built):
                lab.sql("CREATE OR REPLACE SIEVE INDEX i ON t (v)")
            for mode in modes:
                lab.sql("REFRESH TABLE t")
                with lab.settings(mode):
                    found = lab.check("SELECT id, length(c) n FROM t WHERE v = 'k15'", exactly=1)
                    assert found.rows == {f"(15, {3 if mode else 5})": 1}


def _decided(kind: str, scope: str, key: str) -> bool:
    """Returns whether the fingerprint of any column contains the given setting or option."""
    columns: list[dict[str, Any]] = [
        {"name": name, "type": of, "nullable": True, "metadata": {}} for name, of in KINDS.items()
    ]
    by_id, default = {"parquet.field.id": 1}, {"EXISTS_DEFAULT": "7"}
    for name, of, metadata in (
        ("i", "long", by_id),
        ("j", "timestamp", by_id),
        ("x", "long", default),
    ):
        columns.append({"name": name, "type": of, "nullable": True, "metadata": metadata})
    part = f"{scope}.{key}"
    parts = {
        "format": f"{kind} org.apache.spark.sql.execution.datasources.{kind}.FileFormat",
        "schema": json.dumps({"type": "struct", "fields": columns}),
        part: "1",
    }
    return any(part in deciding_parts((column["name"],), parts) for column in columns)


def _of_spark(lab: Lab, kind: str) -> set[str]:
    """The settings of Spark for this format that a fingerprint contains."""
    jvm, session = lab.spark._jvm, lab.spark.newSession()._jsparkSession
    entries = getattr(jvm, "org.apache.spark.sql.internal.SQLConf$").__getattr__("MODULE$")
    prefixes = tuple(prefix.format(kind) for prefix in _OF_SPARK)
    conf, each = session.sessionState().conf(), entries.getConfigEntries().iterator()
    while each.hasNext():
        key = each.next().key()
        if key.startswith(prefixes):
            conf.settings().put(key, "another value")
    found = jvm.org.apache.spark.sql.sieve.formats.ReaderSettings.of(session).keys().iterator()
    names = set()
    while found.hasNext():
        names.add(found.next())
    return {name.removeprefix("conf.") for name in names if name.startswith("conf.")}


def _of_library(lab: Lab, kind: str) -> set[str]:
    """The names of settings that the classes of ORC or Parquet contain."""
    if kind == "orc":
        values = lab.spark._jvm.org.apache.orc.OrcConf.values()
        names = {name for of in values for name in (of.getAttribute(), of.getHiveConfName())}
        return {name for name in names if name and name.startswith(("orc.", "hive.exec.orc."))}
    found = set()
    for jar in Path(find_spark(os.environ).path, "jars").glob("parquet-hadoop-*.jar"):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                found |= set(re.findall(rb"[\x00-\x40](parquet\.[a-z][\w.-]+)", archive.read(name)))
    names = {name.decode() for name in found}
    return {
        name
        for name in names
        if not name.startswith(("parquet.hadoop.", "parquet.column.", "parquet.apache."))
    }


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_each_setting_that_affects_a_column_has_a_case(lab: Lab, kind: str) -> None:
    """A case exists for each setting of Spark, Parquet or ORC that affects a column."""
    known = _of_spark(lab, kind) | _of_library(lab, kind)
    assert len(known) > 50
    deciding = {key for key in known if _decided(kind, "conf", key)}
    shown = {case.key for case in CASES[kind] if not case.options}
    assert {key for key in deciding if not key.startswith(tuple(UNSHOWN))} <= shown
    assert all(any(key.startswith(prefix) for key in known) for prefix in UNSHOWN if kind in prefix)


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_each_case_has_a_setting_of_the_fingerprint(kind: str) -> None:
    """For each case, the fingerprint of the column contains the changed setting or option."""
    for case in CASES[kind]:
        if case.key not in (_ZONE, "spark.sql.caseSensitive"):
            assert _decided(kind, "option" if case.options else "conf", case.key.lower()), case.key
