"""Finds the parts of a table's fingerprint that affect the values of one column.

A table's fingerprint consists of parts: every setting, option and type that can affect how Spark
reads any column of the table. The *deciding* parts can affect the indexed column. A scan can use a
version of an index if no deciding part has changed since the version's build. A part counts as
deciding if Spark's reader may use it for the indexed column.

In CSV and JSON, a column that is appended to the schema can also affect the values of other
columns. Spark treats a record as corrupt if it cannot convert the new column's value, or if a CSV
record lacks this value. The other values of some corrupt records differ from query to query, and
builds, CHECK and audits cannot recognise these records. Example:
`spark.sql.json.enablePartialResults` is off, and a column `b MAP<STRING, INT>` is added to the
schema. For the record `{"b":{"k":"x","a":7},"a":1}`, Spark then returns 7 for `a`, because its
parser continues inside `b`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from sieve.index_key import expression_of
from sieve.metadata.column_place import ColumnPlace, find_column, kind_of, without_remarks
from sieve.metadata.spark_lines import alike
from sieve.metadata.text_formats import TEXT_FORMATS, is_unread_option
from sieve.metadata.unread_settings import is_unread

Parts = Mapping[str, str]
"""A fingerprint: the values of its parts, by name."""

_OWN: Final[Mapping[str, tuple[str, ...]]] = {
    "parquet": ("parquet.", "spark.sql.parquet.", "spark.sql.legacy.parquet."),
    "orc": ("orc.", "hive.exec.orc.", "spark.sql.orc.", "spark.sql.legacy.orc."),
    "csv": ("spark.sql.csv.", "spark.sql.legacy.csv."),
    "json": ("spark.sql.json.", "spark.sql.legacy.json."),
    "avro": ("spark.sql.avro.",),
}
"""For each file format, the prefixes of settings that only readers of this format look up."""

_OF_TEXT: Final = (
    *("mapreduce.input.", "io.", "spark.sql.execution.datasources.hadooplinerecord"),
    "spark.sql.files.supportsecondoffsetformat",
)
"""Prefixes of settings that only readers of text formats look up. Some text settings choose a
codec. Readers of Parquet and ORC need no setting for the codec, because each Parquet and ORC file
names its own codec."""

_BASE: Final[Mapping[str, str]] = {
    "parquet": "parquet",
    "hudi": "parquet",
    "delta": "parquet",
    "iceberg": "parquet",
    "orc": "orc",
}
"""The table formats whose readers decode each column independently. A table format is mapped to its
file format."""

_OPTIONS: Final[Mapping[str, frozenset[str]]] = {
    "parquet": frozenset({"datetimerebasemode", "int96rebasemode"}),
    "orc": frozenset(),
}
"""For each file format, the reader options whose names have no prefix."""

_INSTANTS: Final = frozenset({"instant"})
_DAYS: Final = frozenset({"date", "instant"})
_OF_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "datetimerebasemode": _DAYS,
    "spark.sql.parquet.datetimerebasemodeinread": _DAYS,
    "int96rebasemode": _INSTANTS,
    "spark.sql.parquet.int96rebasemodeinread": _INSTANTS,
    "spark.sql.parquet.int96timestampconversion": _INSTANTS,
    "spark.sql.parquet.int96astimestamp": _INSTANTS,
    "spark.sql.parquet.infertimestampntz.enabled": _INSTANTS,
    "spark.sql.parquet.binaryasstring": frozenset({"string", "binary"}),
    "spark.sql.legacy.parquet.nanosaslong": frozenset({"long", "instant"}),
}
"""The kinds of columns that a setting or option affects, if it does not affect all kinds.

No setting of ORC is listed. ORC's reader can convert a file's types to the table's types, for
example dates to text or instants to numbers. So the kind of a column does not show which settings
of ORC affect the column.
"""

_OF_SCHEMAS: Final = frozenset(
    {
        *("mergeschema", "spark.sql.parquet.mergeschema", "spark.sql.orc.mergeschema"),
        "spark.sql.parquet.respectsummaryfiles",
        "spark.sql.parquet.reader.respectunknowntypeannotation.enabled",
        *("spark.sql.parquet.binaryasstring", "spark.sql.parquet.infertimestampntz.enabled"),
    }
)
"""Settings and options that Spark uses only to infer a schema from files. A table already has a
schema, so settings for inference do not affect it."""

_OF_FOUND_TYPES: Final = frozenset(
    {"spark.sql.parquet.int96astimestamp", "spark.sql.legacy.parquet.nanosaslong"}
)
"""Settings that affect only a file's extra columns, which the table's schema lacks. Spark 3.5's
Parquet reader chooses the types of extra columns by these settings. In plain tables, the reader
reads extra columns only if it finds columns by field id."""

_CONVERTS: Final = "spark.sql.parquet.int96timestampconversion"
"""If this setting is on, Spark's Parquet reader converts INT96 timestamps with the session's time
zone."""

_KEYS: Final = ("hadoop.security.key.",)
"""Prefixes of settings and options for decrypting columns. Without a column's decryption key, Spark
reads other values from the column."""

_OF_DEFAULTS: Final = (
    *("spark.sql.legacy.", "spark.sql.defaultcolumn.", "spark.sql.variant."),
    *("spark.sql.ansi.", "spark.sql.timestamptype", "spark.sql.parser."),
)
"""Prefixes of settings that affect how Spark evaluates a column's default value (stored as SQL)."""

_OF_LITERALS: Final = tuple(
    f"conf.spark.sql.{name}"
    for name in ("ansi.", "timestamptype", "parser.", "legacy.charvarcharasstring")
)
"""Prefixes of settings that affect only the default value of an indexed column in a text format.

``legacy.charvarcharasstring`` also affects CHAR columns, but Sieve cannot index CHAR columns.
"""

_WHOLE_RECORDS: Final = frozenset({"COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"})
"""The merge modes in which Hudi returns one of the records of a key, unchanged."""

_COMPARED: Final = tuple(
    f"hudi.hoodie.table.{name}"
    for name in ("recordkey.fields", "ordering.fields", "precombine.field", "partition.fields")
)
"""The table properties that name a Hudi table's key, ordering and partition columns."""

_MERGERS: Final = ("payload", "merge", "partial", "delete")
"""If the name of a setting contains one of these words, the setting may change how Hudi merges
records."""

_EXPRESSION: Final = "expression."
"""The fingerprint has a part for each indexed expression. The part's name is this prefix and the
expression's SQL."""


def changed_parts(column: Sequence[str], then: Parts, now: Parts) -> tuple[str, ...]:
    """Returns the names of a column's deciding parts that differ between two fingerprints.

    Args:
        column: the path of the column, with the column names in the files.
        then: the fingerprint at a version's build.
        now: the fingerprint at a scan. If no deciding part has changed since the build, the scan
            reads the same values as the build.
    """
    if then == now:
        return ()
    sql = expression_of(column)
    if sql is not None:
        return _changed_of_expression(sql, then, now)
    path = tuple(column)
    then, now = _of_columns(then), _of_columns(now)
    one, other = deciding_parts(path, then), deciding_parts(path, now)
    changed = (k for k in one.keys() | other.keys() if one.get(k) != other.get(k))
    # A changed setting can make an unchanged part, such as Spark's release, deciding in one
    # fingerprint and not deciding in the other. The result omits unchanged parts.
    return tuple(sorted(k for k in changed if then.get(k) != now.get(k)))


def _changed_of_expression(sql: str, then: Parts, now: Parts) -> tuple[str, ...]:
    """Returns the changed parts of an expression: its own part, or the parts of its columns."""
    name = _EXPRESSION + sql
    own = then.get(name)
    if own is None or own != now.get(name):
        return (name,)
    columns = json.loads(own)["columns"]
    return tuple(sorted({part for one in columns for part in changed_parts(one, then, now)}))


def _of_columns(parts: Parts) -> Parts:
    """Returns a fingerprint without the parts of indexed expressions."""
    return {name: value for name, value in parts.items() if not name.startswith(_EXPRESSION)}


def deciding_parts(column: tuple[str, ...], parts: Parts) -> Parts:
    """Returns the deciding parts, which can affect a column's values.

    From a deciding part, the result keeps only the content that can affect the column.
    """
    format_name = parts.get("format", "").partition(" ")[0]
    if format_name in TEXT_FORMATS:
        return _of_text_records(parts, format_name)
    if format_name not in _BASE or "schema" not in parts:
        return parts
    if format_name == "hudi" and parts.get("hudi.hoodie.table.type") != "COPY_ON_WRITE":
        return _of_merged(column, parts)
    orc = _BASE[format_name] == "orc"
    positions = orc and any("positional" in name for name in parts)
    place = find_column(column, parts["schema"], orc=orc, positions=positions)
    if place is None:
        return parts
    own = dict(_of_column(parts, format_name, place))
    is_set = any(name.startswith(("conf.", "hadoop.", "option.")) for name in own)
    if "spark" in own and format_name == _BASE[format_name] and not (place.default or is_set):
        own["spark"] = alike(own["spark"], format_name, place.kind)
    return own


def _of_column(parts: Parts, format_name: str, place: ColumnPlace) -> Iterator[tuple[str, str]]:
    zones = _zones(parts, format_name, place)
    # `is_unread` is valid only for Spark's own readers. Hudi's reader merges records of several
    # files, and Hive has an ORC reader of its own.
    native = format_name != "hudi" and ".hive." not in parts["format"]
    for name, value in parts.items():
        scope, _, key = name.partition(".")
        if name == "schema":
            yield name, place.schema
        elif name == "partitions":
            yield name, without_remarks(value)
        elif scope in {"conf", "hadoop", "option"}:
            own = key.lower().removeprefix("spark.hadoop.")
            is_option = scope == "option"
            unread = native and not is_option and is_unread(_BASE[format_name], own)
            if not unread and _decides(own, format_name, place, is_option=is_option):
                yield name, value
        elif scope == "zone":
            if key in zones:
                yield name, value
        elif name != "structs" or place.default:
            yield name, value


def _zones(parts: Parts, format_name: str, place: ColumnPlace) -> frozenset[str]:
    """Returns which time zones affect a column's values: ``session``, ``jvm``, both or neither."""
    if place.default or (format_name == "hudi" and place.kind == "instant"):
        return frozenset({"session", "jvm"})
    if format_name == "orc":
        # If a file's column contains instants, ORC's reader can convert them to another type, such
        # as text, with the JVM's time zone.
        return frozenset({"jvm"})
    if place.kind != "instant":
        return frozenset()
    converts = any(name.lower().endswith(_CONVERTS) for name in parts)
    return frozenset({"session", "jvm"} if converts else {"jvm"})


def _decides(key: str, format_name: str, place: ColumnPlace, *, is_option: bool) -> bool:
    """Returns whether a setting or option (in lower case) can affect a column's values."""
    base = _BASE[format_name]
    if key.startswith(_foreign(base)) or (format_name != "hudi" and key.startswith(_OF_TEXT)):
        return False
    if key in _OF_SCHEMAS:
        # Hudi may infer a schema from the files even though the table has one.
        decides = format_name == "hudi" and place.kind in _OF_KINDS.get(key, {place.kind})
    elif key in _OF_KINDS:
        by_name = format_name == "parquet" and not place.field_id
        decides = place.kind in _OF_KINDS[key] and not (by_name and key in _OF_FOUND_TYPES)
    elif key.startswith("spark.sql.parquet.fieldid.read."):
        decides = place.field_id
    elif key.startswith(_OWN[base]):
        decides = True
    elif key.startswith(_OF_DEFAULTS):
        decides = place.default
    elif key.startswith("spark.executor"):
        # Options of the executors' JVMs can set the JVM's time zone and locale.
        decides = place.kind == "instant" or place.default or base == "orc"
    else:
        # Readers of lakehouse formats look up options that Sieve does not know; the reader of a
        # plain format looks up only `_OPTIONS`.
        decides = not is_option or format_name != base or key in _OPTIONS[base]
        decides = decides or key.startswith(_KEYS)
    return decides


def _of_merged(column: tuple[str, ...], parts: Parts) -> Parts:
    """Returns the deciding parts of a Hudi table whose reader merges the records of a key.

    In some merge modes, Hudi returns one of the records of a key unchanged. To choose the record,
    Hudi uses only the key columns, the ordering columns and its own columns, such as the delete
    marker. In other merge modes, the merged record can depend on every column.
    """
    kept = dict(_of_records(parts, "parquet", "avro"))
    if not _takes_whole_records(parts):
        return kept
    names = {column[0].lower()}
    names |= {name.strip().lower() for key in _COMPARED for name in parts.get(key, "").split(",")}
    fields = [
        field
        for field in json.loads(kept["schema"])["fields"]
        if field["name"].lower() in names or field["name"].lower().startswith("_hoodie")
    ]
    kept["schema"] = json.dumps(fields)
    by_zone = any(kind_of(f["type"]) == "instant" or f["metadata"] for f in fields)
    return {k: v for k, v in kept.items() if by_zone or not k.startswith("zone.")}


def _takes_whole_records(parts: Parts) -> bool:
    return parts.get("hudi.hoodie.record.merge.mode") in _WHOLE_RECORDS and not any(
        word in name
        for name in parts
        if name.startswith(("conf.hoodie.", "option.", "hudi.hoodie.record.merge.property."))
        or name == "hudi.hoodie.table.partial.update.mode"
        for word in _MERGERS
    )


def _of_text_records(parts: Parts, format_name: str) -> Parts:
    """Returns the deciding parts of a text table, without options that no reader looks up."""
    kept = _of_records(parts, format_name)
    literals = () if "EXISTS_DEFAULT" in kept.get("schema", "") else _OF_LITERALS
    line = ".".join(kept.get("spark", "").split(".")[:2])
    return {
        name: value
        for name, value in kept.items()
        if not name.lower().startswith(literals)
        if not name.startswith("option.")
        or not is_unread_option(format_name, name.removeprefix("option."), line)
    }


def _of_records(parts: Parts, *own: str) -> Parts:
    """Returns the deciding parts of a table in which every column can affect the other columns.

    In a text format, the type of every column affects whether Spark can parse a record. In Hudi,
    the values of every column can affect which record of a key Hudi returns.

    Args:
        own: the file formats of the table.
    """
    foreign = _foreign(*own)

    def decides(name: str) -> bool:
        scope, _, key = name.partition(".")
        key = key.lower().removeprefix("spark.hadoop.")
        return scope not in {"conf", "hadoop"} or not key.startswith(foreign)

    kept = {name: value for name, value in parts.items() if decides(name)}
    return kept | {k: without_remarks(kept[k]) for k in ("schema", "partitions") if k in kept}


def _foreign(*own: str) -> tuple[str, ...]:
    """Returns the prefixes of settings that readers of the formats ``own`` never look up."""
    return tuple(one for name, prefixes in _OWN.items() if name not in own for one in prefixes)
