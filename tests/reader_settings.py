"""Lists reader settings: some change values of certain columns, and others change no value."""

from __future__ import annotations

import pytest

FILES = 4
CHANGED = f"reader-changed: {FILES}"

_ZONE = ("spark.sql.session.timeZone", "Asia/Tokyo")
_ALL = [
    ("spark.sql.caseSensitive", "true"),
    ("spark.sql.files.nobody.knows.this.key", "1"),
]
_PARQUET = [
    *_ALL,
    ("spark.sql.parquet.enableVectorizedReader", "false"),
    ("spark.sql.parquet.enableNestedColumnVectorizedReader", "false"),
    ("spark.sql.parquet.nobody.knows.this.key", "1"),
    ("spark.sql.legacy.parquet.nobody.knows.this.key", "1"),
    ("parquet.encryption.key.list", "key: AAECAwQFBgcICQoLDA0ODw=="),
]
_PARQUET_DATES = [("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY")]
_PARQUET_INSTANTS = [
    *_PARQUET_DATES,
    ("spark.sql.parquet.int96RebaseModeInRead", "LEGACY"),
    ("spark.sql.parquet.int96TimestampConversion", "true"),
]
_PARQUET_IDS = [
    ("spark.sql.parquet.fieldId.read.enabled", "true"),
    ("spark.sql.parquet.fieldId.read.ignoreMissing", "true"),
]
LITERALS = [
    ("spark.sql.parser.escapedStringLiterals", "true"),
    ("spark.sql.timestampType", "TIMESTAMP_NTZ"),
]
_DEFAULTS = [
    ("spark.sql.defaultColumn.useNullsForMissingDefaultValues", "false"),
    ("spark.sql.ansi.enabled", "flip"),
    ("spark.sql.legacy.nobody.knows.this.key", "1"),
    ("spark.sql.legacy.charVarcharAsString", "true"),
    ("spark.sql.variant.allowReadingShredded", "false"),
    ("spark.sql.legacy.timeParserPolicy", "LEGACY"),
    *LITERALS,
    ("spark.sql.legacy.javaCharsets", "true"),
]
_ORC = [
    *_ALL,
    ("spark.sql.orc.impl", "hive"),
    ("orc.force.positional.evolution", "true"),
    ("orc.skip.corrupt.data", "true"),
    # With the next setting, ORC's reader converts the types in a file, for example days to text.
    ("orc.proleptic.gregorian", "true"),
    # ORC also accepts this name for `orc.skip.corrupt.data`.
    ("hive.exec.orc.skip.corrupt.data", "true"),
]
_TEXT = [
    *_ALL,
    _ZONE,
    ("spark.sql.ansi.enabled", "flip"),
    ("spark.sql.legacy.timeParserPolicy", "LEGACY"),
    ("spark.sql.legacy.nobody.knows.this.key", "1"),
    ("spark.sql.columnNameOfCorruptRecord", "broken"),
    ("mapreduce.input.linerecordreader.line.maxlength", "9"),
    # Hadoop still accepts this old name for the setting above.
    ("mapred.linerecordreader.maxlength", "9"),
    ("io.compression.codecs", "org.apache.hadoop.io.compress.GzipCodec"),
    ("spark.sql.execution.datasources.hadoopLineRecordReader.enabled", "false"),
    ("spark.sql.legacy.javaCharsets", "true"),
    ("spark.sql.variant.allowReadingShredded", "false"),
    ("spark.sql.defaultColumn.useNullsForMissingDefaultValues", "false"),
]
_CSV = [
    *_TEXT,
    ("spark.sql.csv.parser.columnPruning.enabled", "false"),
    ("spark.sql.legacy.csv.enableDateTimeParsingFallback", "true"),
]
_JSON = [
    *_TEXT,
    ("spark.sql.json.enablePartialResults", "false"),
    ("spark.sql.json.enableExactStringParsing", "false"),
    ("spark.sql.json.useUnsafeRow", "true"),
    ("spark.sql.legacy.json.enableDateTimeParsingFallback", "true"),
    ("spark.sql.legacy.json.allowEmptyString.enabled", "true"),
]
READ: dict[str, dict[str, list[tuple[str, str]]]] = {
    "parquet_t": {
        "id": _PARQUET,
        "d": [*_PARQUET, *_PARQUET_DATES],
        "ts": [*_PARQUET, *_PARQUET_INSTANTS],
        "s": _PARQUET,
    },
    "orc_t": {"id": _ORC, "ts": _ORC},
    "csv_t": {"id": _CSV, "ts": _CSV},
    "json_t": {"id": _JSON, "ts": _JSON},
    "ids_t": {"id": [*_PARQUET, *_PARQUET_IDS]},
    "default_t": {"x": [*_PARQUET, *_DEFAULTS, _ZONE]},
}
"""The settings that may affect a column's values, by table and column."""

ANYWHERE = dict(
    setting for columns in READ.values() for settings in columns.values() for setting in settings
)
WITHOUT_EFFECT = {
    "parquet.strict.typing": "false",
    "parquet.block.size": "1000000",
    "orc.schema.evolution.case.sensitive": "false",
    "orc.stripe.size": "1000000",
    "spark.sql.orc.enableVectorizedReader": "false",
    "spark.sql.orc.enableNestedColumnVectorizedReader": "false",
    "spark.sql.files.supportSecondOffsetFormat": "false",
}
"""Parquet and ORC settings that change no value, and a setting that only text readers use."""
INFERENCE = {
    "spark.sql.parquet.mergeSchema": "true",
    "spark.sql.orc.mergeSchema": "true",
    "spark.sql.parquet.respectSummaryFiles": "true",
    "spark.sql.parquet.binaryAsString": "true",
    "spark.sql.parquet.int96AsTimestamp": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
    "spark.sql.legacy.parquet.nanosAsLong": "true",
}
"""Settings for Spark's inference of schemas and types; they affect no value of a table."""
DAY, HOUR = "DATE '1970-01-06'", "TIMESTAMP '1970-01-01 05:00:00 UTC'"
FIVE = {"id": "5", "d": DAY, "ts": HOUR, "s": "'text 5'", "x": "5"}
_FORMAT = {"ids_t": "parquet_t", "default_t": "parquet_t", "json_t": "csv_t"}
COLUMNS = [(table, column) for table, columns in READ.items() for column in columns]
_FIRST: dict[tuple[str, str], tuple[str, str]] = {}
"""For each format and setting, the table and column of the first entry of `FLIPS`.

Only `make test-long` runs the other entries. For text, CSV stands for both formats.
"""
FLIPS = [
    pytest.param(
        table,
        column,
        key,
        value,
        marks=()
        if _FIRST.setdefault((_FORMAT.get(table, table), key), (table, column)) == (table, column)
        else pytest.mark.long,
    )
    for table, column in COLUMNS
    for key, value in dict(READ[table][column]).items()
]
HARMLESS = [
    ("parquet_t", "spark.sql.shuffle.partitions", "3"),
    ("parquet_t", "spark.sql.parquet.filterPushdown", "false"),
    ("parquet_t", "spark.sql.parquet.filterPushdown.date", "false"),
    ("parquet_t", "spark.sql.parquet.compression.codec", "gzip"),
    ("parquet_t", "spark.sql.parquet.enableVectorizedReader", "true"),
    ("parquet_t", "spark.sql.files.maxPartitionBytes", "1000"),
    ("parquet_t", "spark.sql.files.ignoreCorruptFiles", "true"),
    ("parquet_t", "spark.sql.files.ignoreInvalidPartitionPaths", "true"),
    ("parquet_t", "spark.sql.legacy.allowHashOnMapType", "true"),
    ("parquet_t", "io.file.buffer.size", "8192"),
    ("orc_t", "spark.sql.orc.filterPushdown", "false"),
    ("orc_t", "spark.sql.legacy.allowHashOnMapType", "true"),
    ("csv_t", "spark.sql.csv.filterPushdown.enabled", "false"),
    ("csv_t", "spark.sql.legacy.hive.thriftServer.useZeroBasedColumnOrdinalPosition", "true"),
    ("json_t", "spark.sql.json.filterPushdown.enabled", "false"),
]
