"""Tests which parts of a reader fingerprint matter to the values of a column."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sieve.metadata.column_reader import changed_parts


def field(name: str, kind: Any, **metadata: str) -> dict[str, Any]:
    """A column in Spark's JSON form of a schema."""
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    """A struct type with these fields."""
    return {"type": "struct", "fields": list(fields)}


def parts(format_name: str, *columns: dict[str, Any], **more: str) -> dict[str, str]:
    """A reader fingerprint. In the name of an argument, two underscores stand for a dot."""
    own = {"format": f"{format_name} x", "schema": json.dumps(struct(*columns)), "spark": "4.1"}
    if format_name == "hudi":
        own["hudi.hoodie.table.type"] = "COPY_ON_WRITE"
    own |= {
        "partitions": json.dumps(struct(field("p", "integer", comment=more.pop("comment", ""))))
    }
    return own | {name.replace("__", "."): value for name, value in more.items()}


A, B = field("a", "long"), field("b", "string")
LINES = ("3.5", "4.1")
S = field("s", struct(field("x", "long"), field("y", "string")))


@pytest.mark.parametrize("format_name", ["parquet", "orc", "hudi", "delta"])
def test_other_columns_do_not_matter(format_name: str) -> None:
    """Other columns, other fields of the same struct, and comments do not matter to a column."""
    then = parts(format_name, A, S)
    remark = field("a", "long", comment="a remark", CURRENT_DEFAULT="7")
    wider = field("s", struct(field("x", "long"), field("y", "binary"), field("z", "date")))
    now = parts(format_name, remark, wider, B, zone__session="Asia/Tokyo", comment="a remark")
    assert changed_parts(("a",), then, now) == ()
    assert changed_parts(("s", "x"), then, now) == ()
    assert changed_parts(("s", "y"), then, now) == ("schema",)


@pytest.mark.parametrize(
    "now",
    [
        parts("parquet", field("a", "integer"), B),
        parts("parquet", field("a", "long", EXISTS_DEFAULT="7"), B),
        parts("parquet", field("a", "long", unknown="7"), B),
        parts("parquet", B),
        parts("parquet", A, B, field("A", "long")),
        parts("parquet", A, B, spark="9.9"),
        parts("parquet", A, B, reserved="__sieve_x"),
        parts("parquet", A, B, anything="1"),
        parts("parquet", A, B, option__parquet__nobody="1"),
        parts("parquet", A, B, conf__spark__hadoop__parquet__nobody="1"),
        parts("parquet", A, B, conf__hoodie__nobody="1"),
    ],
)
def test_changes_that_affect_a_column(now: dict[str, str]) -> None:
    """A column's type, default, metadata and name matter to the column.

    Unknown settings matter, too.
    """
    assert changed_parts(("a",), parts("parquet", A, B), now)


def test_lines_of_spark_that_read_alike() -> None:
    """Spark's version does not matter to types whose plain columns Spark 3.5 and 4.1 read alike."""
    date = field("t", "timestamp")
    then, now = parts("parquet", A, date, spark="3.5"), parts("parquet", A, date, spark="4.1")
    assert changed_parts(("a",), then, now) == changed_parts(("a",), now, then) == ()
    assert changed_parts(("t",), then, now) == ("spark",)
    assert changed_parts(("a",), then, now | {"spark": "9.9"}) == ("spark",)
    own = {"conf.spark.sql.parquet.nobody": "1"}
    assert changed_parts(("a",), then | own, now | own) == ("spark",)
    default = [parts("parquet", field("a", "long", EXISTS_DEFAULT="7"), spark=of) for of in LINES]
    assert changed_parts(("a",), *default) == ("spark",)
    assert changed_parts(("a",), *(parts("orc", A, spark=of) for of in LINES)) == ()
    for other in ("hudi", "delta"):
        assert changed_parts(("a",), *(parts(other, A, spark=of) for of in LINES)) == ("spark",)


def test_positions_of_columns_matter_in_orc() -> None:
    """Hive wrote ORC files without column names, so the positions of columns in ORC matter.

    The positions of a struct's fields in ORC matter only with a certain setting.
    """
    moved = [(A, B), (B, A)]
    for format_name, expected in (("parquet", ()), ("orc", ("schema",))):
        assert changed_parts(("a",), *(parts(format_name, *of) for of in moved)) == expected
    by_place = {"hadoop__orc__force__positional__evolution": "true"}
    cut = [(field("s", struct(field("x", "long"))), A), (S, A)]
    for more, expected in (({}, ()), (by_place, ("schema",))):
        assert changed_parts(("a",), *(parts("orc", *of, **more) for of in cut)) == expected


def test_only_the_time_zone_of_the_jvm_matters_in_orc() -> None:
    """In ORC, the JVM's time zone matters to every column; the session's zone matters to no column.

    A column that is a number in the table can be a timestamp in the file.
    """
    then = parts("orc", A, zone__jvm="UTC", zone__session="UTC")
    assert changed_parts(("a",), then, then | {"zone.session": "Asia/Tokyo"}) == ()
    for name in ("zone.jvm", "conf.spark.executor.extraJavaOptions"):
        assert changed_parts(("a",), then, then | {name: "Asia/Tokyo"}) == (name,)
    proleptic = "hadoop.orc.proleptic.gregorian"
    assert changed_parts(("b",), parts("orc", B), parts("orc", B) | {proleptic: "true"})


@pytest.mark.parametrize("format_name", ["parquet", "orc"])
def test_key_provider_of_encrypted_columns_matters(format_name: str) -> None:
    """Each setting that names the key provider of encrypted columns matters.

    If an encryption key is missing, ORC returns masked values.
    """
    key = "hadoop.security.key.provider.path"
    for scope in ("option", "hadoop", "conf.spark.hadoop"):
        name = f"{scope}.{key}"
        then = parts(format_name, A)
        assert changed_parts(("a",), then, then | {name: "jceks://x"}) == (name,)


@pytest.mark.parametrize("key", ["conf.spark.sql.parquet.mergeSchema", "option.mergeschema"])
def test_schema_inference_matters_only_for_hudi(key: str) -> None:
    """Schema inference settings matter only to Hudi tables, as other tables have a schema."""
    for format_name, expected in (("parquet", ()), ("orc", ()), ("delta", ()), ("hudi", (key,))):
        if format_name != "delta" or not key.startswith("option"):
            then = parts(format_name, A)
            assert changed_parts(("a",), then, then | {key: "true"}) == expected


def test_type_in_a_file_matters_for_columns_found_by_ids() -> None:
    """If the reader finds columns by field ids, settings for the types of columns in files matter.

    If the reader finds columns by name, Spark uses the types of the table.
    """
    key = "conf.spark.sql.legacy.parquet.nanosAsLong"
    by_id = field("a", "long", **{"parquet.field.id": "1"})
    for format_name, column, expected in (
        ("parquet", A, ()), ("parquet", by_id, (key,)), ("delta", A, (key,)), ("hudi", A, (key,)),
    ):  # fmt: skip
        then = parts(format_name, column)
        assert changed_parts(("a",), then, then | {key: "true"}) == expected


def test_session_time_zone_matters_only_if_a_reader_uses_it() -> None:
    """The session's time zone matters only if a reader uses it.

    Parquet's reader uses the session's time zone to convert INT96; Hudi's reader always uses it.
    """
    instant, name = field("a", "timestamp"), "zone.session"
    converts = {"conf.spark.sql.parquet.int96TimestampConversion": "true"}
    for format_name, more, expected in (
        ("parquet", {}, ()), ("parquet", converts, (name,)), ("orc", {}, ()), ("delta", {}, ()),
        ("delta", converts, (name,)), ("hudi", {}, (name,)),
    ):  # fmt: skip
        then = parts(format_name, instant, zone__session="UTC", zone__jvm="UTC") | more
        assert changed_parts(("a",), then, then | {name: "Asia/Tokyo"}) == expected
        assert changed_parts(("a",), then, then | {"zone.jvm": "Asia/Tokyo"}) == ("zone.jvm",)


@pytest.mark.parametrize("key", ["hadoop.orc.stripe.size", "conf.spark.hadoop.orc.use.zerocopy"])
def test_settings_without_an_effect_do_not_matter(key: str) -> None:
    """Settings of ORC's writer and buffers matter to a column only if Hive's reader is used."""
    then = parts("orc", A)
    assert changed_parts(("a",), then, then | {key: "1"}) == ()
    hive = then | {"format": "orc org.apache.spark.sql.hive.orc.OrcFileFormat"}
    assert changed_parts(("a",), hive, hive | {key: "1"}) == (key,)


def test_every_column_matters_for_an_unknown_merge_mode() -> None:
    """If a merge-on-read table has no known merge mode, every column matters.

    In a merge-on-read table, any column can decide which record is visible.
    """
    merged = {"hudi.hoodie.table.type": "MERGE_ON_READ"}
    avro = "conf.spark.sql.avro.datetimeRebaseModeInRead"
    then, now = parts("hudi", A, B) | merged, parts("hudi", A, field("b", "long")) | merged
    assert changed_parts(("a",), then, now) == ("schema",)
    assert changed_parts(("a",), then, then | {avro: "LEGACY"}) == (avro,)
    copied = parts("hudi", A, B)
    assert changed_parts(("a",), copied, parts("hudi", A, field("b", "long"))) == ()
    assert changed_parts(("a",), parts("parquet", A), parts("parquet", A) | {avro: "LEGACY"}) == ()


def merge_on_read(*columns: dict[str, Any], **more: str) -> dict[str, str]:
    """The fingerprint of a Hudi table with the record key `k` and the ordering fields `o`, `O2`."""
    own = {"type": "MERGE_ON_READ", "recordkey.fields": "k", "ordering.fields": "o, O2"}
    properties = {f"hudi.hoodie.table.{name}": value for name, value in own.items()}
    mode = {"hudi.hoodie.record.merge.mode": "EVENT_TIME_ORDERING"}
    return parts("hudi", *columns, **more) | properties | mode


KEY, ORDER, NEXT = field("k", "long"), field("o", "long"), field("o2", "long")
KEYS = (KEY, ORDER, NEXT)


def test_only_key_and_ordering_columns_matter_for_hudi() -> None:
    """With a known merge mode, only the record key, ordering fields and Hudi's columns matter."""
    then = merge_on_read(*KEYS, A, B)
    new = field("n", "timestamp")
    zone = {"zone.jvm": "Asia/Tokyo"}
    assert changed_parts(("a",), then, merge_on_read(*KEYS, A, field("b", "long"), new)) == ()
    assert changed_parts(("a",), then, merge_on_read(*KEYS, A, B, new) | zone) == ()
    for changed in (
        merge_on_read(field("k", "integer"), ORDER, NEXT, A, B),
        merge_on_read(KEY, field("o", "date"), NEXT, A, B),
        merge_on_read(KEY, ORDER, field("o2", "string"), A, B),
        merge_on_read(*KEYS, field("a", "integer"), B),
        merge_on_read(*KEYS, A, B, field("A", "long")),
        merge_on_read(*KEYS, A, B, field("_hoodie_is_deleted", "boolean")),
    ):
        assert changed_parts(("a",), then, changed) == ("schema",)
    for one in (KEY, ORDER, A):
        instant = [field(c["name"], "timestamp") if c is one else c for c in (*KEYS, A, B)]
        at = merge_on_read(*instant)
        assert changed_parts(("a",), at, at | zone) == ("zone.jvm",)


@pytest.mark.parametrize(
    "merger",
    [
        {"hudi.hoodie.record.merge.mode": "CUSTOM"},
        {"hudi.hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"},
        {"hudi.hoodie.record.merge.property.hoodie.payload.delete.field": "b"},
        {"conf.hoodie.datasource.write.payload.class": "X"},
        {"option.hoodie.datasource.merge.type": "skip_merge"},
    ],
    ids=lambda merger: next(iter(merger)),
)
def test_every_column_matters_with_a_custom_merger(merger: dict[str, str]) -> None:
    """With a custom merger, every column matters, because the merger can use any column."""
    then, now = (
        merge_on_read(*KEYS, A, B),
        merge_on_read(*KEYS, A, field("b", "long")),
    )
    assert changed_parts(("a",), then | merger, now | merger) == ("schema",)


@pytest.mark.parametrize("format_name", ["csv", "json"])
def test_every_column_matters_in_text(format_name: str) -> None:
    """In CSV and JSON, every column matters, because every column can make a record invalid.

    Settings that only other formats use do not matter.
    """
    then = parts(format_name, A, records="whole")
    assert changed_parts(("a",), then, then | parts(format_name, A, B)) == ("schema",)
    other = {"csv": "json", "json": "csv"}[format_name]
    for key in ("orc", "parquet", other):
        now = then | {f"conf.spark.sql.{key}.nobody": "1"}
        assert changed_parts(("a",), then, now) == ()
    assert changed_parts(("a",), then, then | {"option.nobody": "1"}) == ()
    for name in (f"conf.spark.sql.{format_name}.nobody", "option.quotes.nobody", "option.mode"):
        assert changed_parts(("a",), then, then | {name: "1"}) == (name,)


@pytest.mark.parametrize("format_name", ["csv", "json"])
def test_settings_for_writing_do_not_matter_in_text(format_name: str) -> None:
    """In CSV and JSON, settings that only writers use do not matter.

    Settings for literals matter if a file can lack a column with a default value.
    """
    defaulted = field("b", "long", CURRENT_DEFAULT="7")
    then = parts(format_name, A, field("b", "long"), records="whole")
    written = {"option.compression": "gzip", "option.mergeschema": "true"}
    literals = {"conf.spark.sql.ansi.enabled": "true", "conf.spark.sql.timestampType": "x"}
    now = then | parts(format_name, A, defaulted) | written | literals
    assert changed_parts(("a",), then, now) == ()
    existing = field("b", "long", EXISTS_DEFAULT="7")
    then = parts(format_name, A, existing, records="whole")
    assert len(changed_parts(("a",), then, then | literals)) == 2


def test_unknown_column_needs_all_parts() -> None:
    """For an unknown column, every part of the fingerprint matters."""
    then = parts("parquet", A)
    assert changed_parts(("c",), then, then) == ()
    assert changed_parts(("c",), then, parts("parquet", A, B)) == ("schema",)
