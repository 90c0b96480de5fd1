"""Writes files with columns of every type, and records the values that each Spark release reads.

To add a release of Spark, run this program twice with the release as SPARK_HOME:

    python -m tests.compat.make_readers write    # files of this release, and of PyArrow
    python -m tests.compat.make_readers read     # its values of all files, into values.json
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyarrow import orc, parquet
from pyspark.errors import PySparkException

FOLDER = Path(__file__).parent / "readers"
VALUES = FOLDER / "values.json"
TYPES = (
    *("tinyint", "smallint", "int", "bigint", "boolean", "float", "double"),
    *("decimal(5,2)", "decimal(12,2)", "decimal(38,10)", "string", "binary", "date"),
)
"""Spark reads each column of a file as each of these types."""

Values = dict[str, dict[str, str]]
"""The values that a reader returns, by manner of reading and by column."""
Golden = dict[str, dict[str, dict[str, dict[str, str]]]]
"""The digests of values, by file, manner of reading, column and release line."""


def line_of(spark: Any) -> str:
    """The release line of a session's Spark, such as 4.1."""
    return ".".join(str(spark.version).split(".")[:2])


class Reader:
    """Calls the file reader that Spark's scans use, without a Spark job for each column."""

    def __init__(self, spark: Any, path: Path) -> None:
        self.columns = columns_of(path)
        self._session, self._jvm, self._kind = spark._jsparkSession, spark._jvm, path.suffix[1:]
        frame = spark.read.format(self._kind).schema("absent int").load(str(path))
        scan = frame.select("*")._jdf.queryExecution().sparkPlan()
        while scan.children().nonEmpty():
            scan = scan.children().head()
        self._file = scan.inputRDDs().head().filePartitions().apply(0).files()[0]
        self._format = scan.relation().fileFormat()

    def values(self, types: Iterable[str] = TYPES) -> Values:
        """The values of each column, read as each type that this Spark supports."""
        found: Values = {}
        nests = (False, True) if "s" in self.columns else (False,)
        for batches, kind, nested, name in product((True, False), types, nests, self.columns):
            shown = self.read(name, kind, batches=batches, nested=nested)
            if shown is not None:
                how = f"{kind}, {'batches' if batches else 'rows'}{', nested' * nested}"
                found.setdefault(how, {})[name] = shown
        return found

    def read(
        self, name: str, kind: str, *, batches: bool = True, nested: bool = False
    ) -> str | None:
        """A column's values as text, or None if this Spark cannot read the column as this type.

        Args:
            name: the column's name.
            kind: the column's type in the schema with which Spark reads the file.
            batches: whether Spark reads the column in batches instead of rows.
            nested: whether to read the column as a field of the struct ``s``. For a nested field,
                the schema has the name in upper case, because Spark ignores case by default.
        """
        for own in ("enableVectorizedReader", "enableNestedColumnVectorizedReader"):
            self._session.conf().set(f"spark.sql.{self._kind}.{own}", str(batches).lower())
        types = self._jvm.org.apache.spark.sql.types.StructType
        schema = types.fromDDL(f"s struct<{name.upper()}: {kind}>" if nested else f"{name} {kind}")
        own = schema.fields()[0].dataType()
        own = own.fields()[0].dataType() if nested else own
        options = self._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(
            {"returning_batch": "false"}
        )
        conf = self._session.sessionState().newHadoopConfWithOptions(options)
        no_filters = getattr(getattr(self._jvm, "scala.collection.immutable.Nil$"), "MODULE$")
        shown = []
        try:
            rows = self._format.buildReaderWithPartitionValues(
                self._session, schema, types(), schema, no_filters, options, conf
            ).apply(self._file)
            while rows.hasNext():
                row = rows.next()
                if nested:
                    row = None if row.isNullAt(0) else row.getStruct(0, 1)
                shown.append(_text(None if row is None or row.isNullAt(0) else row.get(0, own)))
        except (Py4JJavaError, PySparkException):
            return None
        return " ".join(shown)


def _text(value: Any) -> str:
    """The complete text form of one of Spark's internal values."""
    if hasattr(value, "getClass"):
        is_text = value.getClass().getSimpleName() == "UTF8String"
        value = value.getBytes() if is_text else value.toString()
    return value.hex() if isinstance(value, bytes | bytearray) else str(value)


def columns_of(path: Path) -> tuple[str, ...]:
    """The columns to read from a file: all its columns, and the missing column ``absent``."""
    reader = parquet.read_schema(path) if path.suffix == ".parquet" else orc.ORCFile(path).schema
    return (*reader.names, "absent")


_ANCIENT = "0001-01-01 1582-10-04 1582-10-15 1883-11-18 1969-12-31 9999-12-31"
_MODERN = "1901-01-01 1969-12-31 1970-01-01 2024-02-29 2099-12-31 2200-01-01"


def _instants(days: str) -> list[dt.datetime | None]:
    return [None, *(dt.datetime.fromisoformat(f"{d}T12:34:56.789123") for d in days.split())]


def _arrow_columns(kind: str) -> dict[str, pa.Array]:
    whole = {
        f"int{n}": [None, 0, 1, -1, 77, -(2 ** (n - 1)), 2 ** (n - 1) - 1] for n in (8, 16, 32, 64)
    }
    plus = {f"uint{n}": [None, 0, 1, 2, 77, 2 ** (n - 1), 2**n - 1] for n in (8, 16, 32, 64)}
    special = [None, 0.0, -0.0, 1.5, float("nan"), float("inf"), -1e-30]
    made = {
        name: pa.array(v, name) for name, v in (whole if kind == "orc" else whole | plus).items()
    }
    made |= {"float32": pa.array(special, pa.float32()), "float64": pa.array(special, pa.float64())}
    for precision in (5, 12, 25):
        most = Decimal(10**precision - 1).scaleb(-2)
        v = [None, Decimal("0.00"), Decimal("1.50"), Decimal("-1.25"), most, -most, Decimal("7.00")]
        made[f"decimal{precision}"] = pa.array(v, pa.decimal128(precision, 2))
    made["decimal9_4"] = pa.array(
        [None, *map(Decimal, "0 1.5 -1.2345 7 99999.9999 -7".split())], pa.decimal128(9, 4)
    )
    texts = [None, "", "a", "é", "5", "2024-02-29", "a\0b"]
    raw = [None, b"", b"a", b"\xff\xfe", b"\xc3", b"5", b"\0\0\0\1"]
    made |= {
        "text": pa.array(texts),
        "large_text": pa.array(texts, pa.large_string()),
        "number_text": pa.array([None, "5", "-7", "1.5", "true", " 9 ", "1e3"]),
        "raw": pa.array(raw, pa.binary()),
        "bool": pa.array([None, True, False, True, None, False, True]),
        "date": pa.array([v and v.date() for v in _instants(_MODERN)]),
        "date_old": pa.array([v and v.date() for v in _instants(_ANCIENT)]),
    }
    if kind == "parquet":
        fixed = [None, *(bytes([n]) * 4 for n in (0, 1, 127, 128, 255, 65))]
        made |= {
            "nothing": pa.nulls(7), "fixed": pa.array(fixed, pa.binary(4)),
            "time_ms": pa.array([None, 0, 1, 2, 3, 4, 86_399_999], pa.time32("ms")),
            "time_us": pa.array([None, 0, 1, 2, 3, 4, 86_399_999_999], pa.time64("us")),
            "uuid": pa.array([None, *(bytes([n]) * 16 for n in range(6))], pa.uuid()),
            "words": pa.array(texts).dictionary_encode(),
        }  # fmt: skip
    for unit in ("ms", "us", "ns") if kind == "parquet" else ("ns",):
        # Spark cannot read an ORC file with a column of ORC's own instant type.
        for zone in (None, "UTC") if kind == "parquet" else (None,):
            name = f"ts_{unit}{'_utc' if zone else ''}"
            made[name] = pa.array(_instants(_MODERN), pa.timestamp("us")).cast(
                pa.timestamp(unit, zone), safe=False
            )
            if unit != "ns":
                made[f"{name}_old"] = pa.array(_instants(_ANCIENT), pa.timestamp("us")).cast(
                    pa.timestamp(unit, zone), safe=False
                )
    return made


def write_by_arrow() -> None:
    """Writes Parquet and ORC files with PyArrow.

    Some of the Parquet files use rare encodings or the deprecated INT96 timestamps.
    """
    made = _arrow_columns("parquet")
    fields = pa.StructArray.from_arrays(
        list(made.values()), list(made), mask=pa.array([False] * 6 + [True])
    )
    table = pa.table(made | {"s": fields})
    parquet.write_table(table, FOLDER / "arrow.parquet", compression="none", write_statistics=False)
    delta = {
        n: "DELTA_BINARY_PACKED" if pa.types.is_integer(a.type) or pa.types.is_temporal(a.type)
        else "DELTA_BYTE_ARRAY" if a.type in (pa.string(), pa.binary()) else "PLAIN"
        for n, a in made.items() if n != "words"
    }  # fmt: skip
    delta["bool"] = "RLE"
    parquet.write_table(
        pa.table(made), FOLDER / "arrow-delta.parquet", compression="none", use_dictionary=False,
        data_page_version="2.0", column_encoding=delta, store_decimal_as_integer=True,
        write_statistics=False,
    )  # fmt: skip
    old = {n: a for n, a in made.items() if n in ("ts_us", "ts_us_utc")}
    parquet.write_table(
        pa.table(old), FOLDER / "arrow-int96.parquet", use_deprecated_int96_timestamps=True
    )
    made = _arrow_columns("orc")
    fields = pa.StructArray.from_arrays(
        list(made.values()), list(made), mask=pa.array([False] * 6 + [True])
    )
    orc.write_table(pa.table(made | {"s": fields}), FOLDER / "arrow.orc")


def write_by_spark(spark: Any) -> None:
    """Writes files with the running Spark. Some files store dates in the legacy hybrid calendar."""
    line = line_of(spark)
    stamps = ", ".join(
        "NULL" if v is None else f"'{v.isoformat(' ')}'" for v in _instants(_ANCIENT)
    )
    spark.sql(f"SELECT posexplode(array({stamps})) AS (n, t)").createOrReplaceTempView("stamps")
    frame = spark.sql(
        "SELECT CAST(n - 3 AS TINYINT) int8, CAST(300 - n AS SMALLINT) int16, 70000 - n int32, "
        "CAST(n AS BIGINT) * 1000000000000 int64, CAST(n / 7 AS FLOAT) float32, n / 7 float64, "
        "CAST(n AS DECIMAL(5,2)) decimal5, CAST(n * 1e7 AS DECIMAL(12,2)) decimal12, "
        "CAST(n * 1e15 AS DECIMAL(25,2)) decimal25, n % 2 = 0 bool, 'text ' || n text, "
        "CAST('raw ' || n AS BINARY) raw, CAST(t AS DATE) date, CAST(t AS TIMESTAMP) ts, "
        "CAST(t AS TIMESTAMP_NTZ) ntz FROM stamps ORDER BY n"
    )
    options: Mapping[str, Mapping[str, str]] = {
        "micros": {"outputTimestampType": "TIMESTAMP_MICROS", "mode": "CORRECTED"},
        "millis": {
            "outputTimestampType": "TIMESTAMP_MILLIS",
            "mode": "LEGACY",
            "writeLegacyFormat": "true",
        },
        "int96": {"outputTimestampType": "INT96", "mode": "LEGACY"},
    }  # fmt: skip
    for name, settings in options.items():
        for key, value in settings.items():
            for own in (
                ("datetimeRebaseModeInWrite", "int96RebaseModeInWrite") if key == "mode" else (key,)
            ):
                spark.conf.set(f"spark.sql.parquet.{own}", value)
        _write(frame, FOLDER / f"spark-{line}-{name}.parquet")
    _write(frame, FOLDER / f"spark-{line}.orc")


def _write(frame: Any, path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        frame.coalesce(1).write.format(path.suffix[1:]).option("compression", "none").save(
            f"{folder}/t"
        )
        (part,) = Path(folder, "t").glob(f"part-*{path.suffix}")
        shutil.copy(part, path)


def session() -> Any:
    """A session of the running Spark without Sieve."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "OFF",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def main(what: str) -> None:
    """Writes this Spark's data files, or records what this Spark reads from all data files."""
    spark = session()
    FOLDER.mkdir(exist_ok=True)
    if what == "write":
        if not (FOLDER / "arrow.orc").exists():
            write_by_arrow()
        write_by_spark(spark)
        return
    known = json.loads(VALUES.read_text()) if VALUES.exists() else {}
    found = {path.name: digests(Reader(spark, path).values()) for path in files()}
    VALUES.write_text(rendered(merged(known, line_of(spark), found)))


def rendered(golden: Golden) -> str:
    """The values as JSON text with one line per column."""
    text = json.dumps(golden, indent=1)
    return re.sub(r"\{[^{}]*\}", lambda one: " ".join(one[0].split()), text) + "\n"


def digests(values: Values) -> Values:
    """Replaces the text of each column's values by a digest of the text."""
    return {
        how: {name: hashlib.sha256(text.encode()).hexdigest()[:6] for name, text in own.items()}
        for how, own in values.items()
    }


def merged(known: Golden, line: str, found: Mapping[str, Values]) -> Golden:
    """Replaces one release line's digests, and returns the digests of all release lines."""
    result: Golden = {}
    for file, how in sorted({(f, h) for of in (known, found) for f in of for h in of[f]}):
        old, new = known.get(file, {}).get(how, {}), found.get(file, {}).get(how, {})
        for name in sorted(old.keys() | new.keys()):
            lines = {k: v for k, v in old.get(name, {}).items() if k != line}
            lines |= {line: new[name]} if name in new else {}
            if lines:
                result.setdefault(file, {}).setdefault(how, {})[name] = dict(sorted(lines.items()))
    return result


def files() -> list[Path]:
    """The files to read."""
    return sorted(p for p in FOLDER.iterdir() if p.suffix in (".parquet", ".orc"))


if __name__ == "__main__":
    main(*sys.argv[1:])
