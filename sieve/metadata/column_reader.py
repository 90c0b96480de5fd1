"""The parts of a table's fingerprint that affect the values of one column.

A fingerprint contains every part (setting, option or type) that can affect how Spark reads any
column of a table. A scan can use a version of an index if the fingerprints of both agree in the
*deciding* parts, which affect the indexed column. A part is deciding unless Spark's reader
certainly ignores the part.

In CSV and JSON, a column that is appended to the schema also affects the other columns. Spark
treats a record as corrupt if a value cannot be converted to the new column's type, or if a CSV
record has no value for the new column. The other values of some corrupt records differ from query
to query. Neither a build nor CHECK nor an audit can recognise such a record. Example: the schema
gets a column `b MAP<STRING, INT>`, and `spark.sql.json.enablePartialResults` is off. For the record
`{"b":{"k":"x","a":7},"a":1}`, Spark then shows 7 for `a`, because its parser continues inside `b`.
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
"""The parts of a fingerprint: names and values."""

_OWN: Final[Mapping[str, tuple[str, ...]]] = {
    "parquet": ("parquet.", "spark.sql.parquet.", "spark.sql.legacy.parquet."),
    "orc": ("orc.", "hive.exec.orc.", "spark.sql.orc.", "spark.sql.legacy.orc."),
    "csv": ("spark.sql.csv.", "spark.sql.legacy.csv."),
    "json": ("spark.sql.json.", "spark.sql.legacy.json."),
    "avro": ("spark.sql.avro.",),
}
"""For each file format, prefixes of the settings that only readers of this format look up."""

_OF_TEXT: Final = (
    *("mapreduce.input.", "io.", "spark.sql.execution.datasources.hadooplinerecord"),
    "spark.sql.files.supportsecondoffsetformat",
)
"""Prefixes of settings that only readers of text formats look up. Parquet and ORC files name their
own codecs."""

_BASE: Final[Mapping[str, str]] = {
    "parquet": "parquet",
    "hudi": "parquet",
    "delta": "parquet",
    "iceberg": "parquet",
    "orc": "orc",
}
"""Table formats whose readers decode each column independently, with the format of their files."""

_OPTIONS: Final[Mapping[str, frozenset[str]]] = {
    "parquet": frozenset({"datetimerebasemode", "int96rebasemode"}),
    "orc": frozenset(),
}
"""For each file format, the options without a prefix that its reader looks up."""

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
"""Settings and options that affect only columns of some kinds.

ORC has no such setting. Its reader converts a file's types to the table's types, for example dates
to text and instants to numbers.
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
schema."""

_OF_FOUND_TYPES: Final = frozenset(
    {"spark.sql.parquet.int96astimestamp", "spark.sql.legacy.parquet.nanosaslong"}
)
"""Settings by which Spark 3.5's Parquet reader chooses the type of a file's column whose name is
not in the schema. In plain tables, the reader reads such a column only if it finds columns by field
id."""

_CONVERTS: Final = "spark.sql.parquet.int96timestampconversion"
"""With this setting, Spark's Parquet reader uses the session's time zone."""

_KEYS: Final = ("hadoop.security.key.",)
"""Settings and options for decrypting columns. Without the key, Spark reads other values."""

_OF_DEFAULTS: Final = (
    *("spark.sql.legacy.", "spark.sql.defaultcolumn.", "spark.sql.variant."),
    *("spark.sql.ansi.", "spark.sql.timestamptype", "spark.sql.parser."),
)
"""Settings that affect how Spark evaluates a column's default, which is stored as SQL."""

_OF_LITERALS: Final = tuple(
    f"conf.spark.sql.{name}"
    for name in ("ansi.", "timestamptype", "parser.", "legacy.charvarcharasstring")
)
"""Settings that affect a column's default, but no other value of an indexed column in a text
format.

One of these settings also affects CHAR columns, which cannot have an index.
"""

_WHOLE_RECORDS: Final = frozenset({"COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"})
"""Hudi's merge modes that return one of a key's records unchanged."""

_COMPARED: Final = tuple(
    f"hudi.hoodie.table.{name}"
    for name in ("recordkey.fields", "ordering.fields", "precombine.field", "partition.fields")
)
"""Table properties that name Hudi's key columns, ordering columns and partition columns."""

_MERGERS: Final = ("payload", "merge", "partial", "delete")
"""A setting with one of these words in its name may change how Hudi merges records."""

_EXPRESSION: Final = "expression."
"""Prefix of the name of an indexed expression's part; the expression's SQL follows."""


def changed_parts(column: Sequence[str], then: Parts, now: Parts) -> tuple[str, ...]:
    """Names of the parts that decide a column's values and differ between two fingerprints.

    Args:
        column: path of the column, with the names that the files use.
        then: the fingerprint of a version.
        now: the fingerprint of a scan. If no part has changed, the scan reads the column as the
            build did.
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
    # A changed setting can turn an unchanged part, such as Spark's release, into a deciding part.
    # The result names only parts whose value changed.
    return tuple(sorted(k for k in changed if then.get(k) != now.get(k)))


def _changed_of_expression(sql: str, then: Parts, now: Parts) -> tuple[str, ...]:
    """The changed parts for an expression: its own part, or if unchanged, its columns' parts."""
    name = _EXPRESSION + sql
    own = then.get(name)
    if own is None or own != now.get(name):
        return (name,)
    columns = json.loads(own)["columns"]
    return tuple(sorted({part for one in columns for part in changed_parts(one, then, now)}))


def _of_columns(parts: Parts) -> Parts:
    """The parts of a fingerprint, without the parts for expressions."""
    return {name: value for name, value in parts.items() if not name.startswith(_EXPRESSION)}


def deciding_parts(column: tuple[str, ...], parts: Parts) -> Parts:
    """The deciding parts: the parts that affect a column's values.

    Each part is reduced to the content that affects the column.
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
    # `is_unread` does not hold for Hudi, which merges files, or for ORC readers of Hive.
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
    """The time zones that affect a column's values: ``session``, ``jvm``, both or none."""
    if place.default or (format_name == "hudi" and place.kind == "instant"):
        return frozenset({"session", "jvm"})
    if format_name == "orc":
        # The ORC reader can convert a file's instants to other types, such as text.
        return frozenset({"jvm"})
    if place.kind != "instant":
        return frozenset()
    converts = any(name.lower().endswith(_CONVERTS) for name in parts)
    return frozenset({"session", "jvm"} if converts else {"jvm"})


def _decides(key: str, format_name: str, place: ColumnPlace, *, is_option: bool) -> bool:
    """Returns whether a setting or an option, in lower case, affects a column's values."""
    base = _BASE[format_name]
    if key.startswith(_foreign(base)) or (format_name != "hudi" and key.startswith(_OF_TEXT)):
        return False
    if key in _OF_SCHEMAS:
        # Hudi can also infer a schema from files.
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
        # Options of the executors' JVMs can set the time zone and the locale.
        decides = place.kind == "instant" or place.default or base == "orc"
    else:
        # Lakehouse formats have further options. The reader of a plain format looks up only
        # `_OPTIONS`.
        decides = not is_option or format_name != base or key in _OPTIONS[base]
        decides = decides or key.startswith(_KEYS)
    return decides


def _of_merged(column: tuple[str, ...], parts: Parts) -> Parts:
    """The deciding parts if Hudi merges the records of a key.

    If Hudi returns one of the records unchanged, the choice depends only on the key, the ordering
    columns and Hudi's own columns, such as the delete marker. Otherwise, the merged record can
    depend on every column.
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
    """The deciding parts of a text format, without options that no reader looks up."""
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
    """The deciding parts if every column can affect the rows of a file.

    In a text format, every column affects whether Spark can parse a record. In Hudi, every column
    can affect which record of a key Hudi returns.

    Args:
        own: the formats of the table's files.
    """
    foreign = _foreign(*own)

    def decides(name: str) -> bool:
        scope, _, key = name.partition(".")
        key = key.lower().removeprefix("spark.hadoop.")
        return scope not in {"conf", "hadoop"} or not key.startswith(foreign)

    kept = {name: value for name, value in parts.items() if decides(name)}
    return kept | {k: without_remarks(kept[k]) for k in ("schema", "partitions") if k in kept}


def _foreign(*own: str) -> tuple[str, ...]:
    """Prefixes of settings that only readers of other formats look up."""
    return tuple(one for name, prefixes in _OWN.items() if name not in own for one in prefixes)
