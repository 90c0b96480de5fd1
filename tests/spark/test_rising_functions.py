"""Tests monotone functions of columns, also near clock changes and where values wrap around."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from spark_session import Lab, together

from sieve.arrays.interval_set import merge
from sieve.encoding.encoder import Encoder
from sieve.predicate.evaluate import evaluate
from sieve.predicate.key_ranges import KeyRanges
from sieve.predicate.parse_predicate import parse

TWICE = "TIMESTAMP_NTZ '2024-11-03 00:20:00'"

QUERIES = [
    f"CAST(ts AS TIMESTAMP_NTZ) = {TWICE}",
    f"CAST(ts AS TIMESTAMP_NTZ) > {TWICE}",
    f"CAST(ts AS TIMESTAMP_NTZ) <= {TWICE}",
    "CAST(CAST(ts AS TIMESTAMP_NTZ) AS DATE) = DATE '2024-11-03'",
    "date_trunc('DAY', ts) = TIMESTAMP '2024-11-03 00:00:00'",
    "date_trunc('HOUR', ts) >= TIMESTAMP '2024-11-03 00:00:00'",
]


OF_ZONES = {
    "to_utc_timestamp": ("2024-03-10 07:20:00", "2024-03-10 07:10:00", "2024-03-10 07:40:00"),
    "from_utc_timestamp": ("2024-03-10 03:00:00",),
}


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param("", marks=pytest.mark.long),
        "org.apache.spark.sql.catalyst.optimizer.UnwrapCast",
    ],
)
def test_rows_of_a_repeated_hour_are_found(lab: Lab, rule: str) -> None:
    """When clocks go back, a local time decreases once, but queries lose no row.

    Spark 4 rewrites a comparison of a cast as a comparison of the column. With this rewrite, Spark
    finds only one of the two equal hours. Without the rule UnwrapCast, the shim receives the
    comparison as the user wrote it.
    """
    excluded = f"{rule}InBinaryComparison" if rule else "none"
    with (
        lab.database("clocks"),
        lab.setting("spark.sql.session.timeZone", "America/Havana"),
        lab.setting("spark.sql.optimizer.excludedRules", excluded),
    ):
        lab.sql(
            "CREATE TABLE t USING parquet AS SELECT id, "
            "timestamp_micros(1730548800000000 + id * 1200000000) AS ts FROM range(0, 240, 1, 40)"
        )
        lab.sql("CREATE SIEVE INDEX ON t (ts) OPTIONS (error = 1)")
        for query in QUERIES:
            lab.check(f"SELECT * FROM t WHERE {query}")
        found = lab.check(f"SELECT id FROM t WHERE {QUERIES[0]}", at_most=6).rows
        if rule:
            assert found == {"(49,)": 1, "(52,)": 1}


def test_local_times_that_clocks_skip_or_repeat_are_found(lab: Lab) -> None:
    """Queries find each instant of a local time, even if clocks skip or repeat this local time."""
    with (
        lab.database("skipped"),
        lab.setting("spark.sql.session.timeZone", "UTC"),
    ):
        lab.sql(
            "CREATE TABLE t USING parquet AS SELECT timestamp_micros(id * 1200000000 + "
            "unix_micros(TIMESTAMP '2024-03-10 01:00:00')) AS ts FROM range(0, 24, 1, 8)"
        )
        lab.sql("CREATE SIEVE INDEX ON t (ts)")
        lab.check(
            together(
                f"SELECT ts FROM t WHERE {name}(ts, 'America/New_York') {op} TIMESTAMP '{value}'"
                for name, values in OF_ZONES.items()
                for value in values
                for op in "=<>"
            )
        )


# -- every function on all values of its type --

DAY = 86_400_000_000
INT, LONG = 1 << 31, 1 << 63
OPS = ("=", "<", "<=", ">", ">=")
_SETTINGS = {
    # Without the rule UnwrapCast, both the index and Spark evaluate a comparison as the user wrote
    # it.
    "spark.sql.optimizer.excludedRules": (
        "org.apache.spark.sql.catalyst.optimizer.UnwrapCastInBinaryComparison"
    ),
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.ansi.enabled": "false",
}

Codes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# Functions of each column; on `m` and `u`, no value makes a function fail.
OF_TIMES: Mapping[str, Sequence[str]] = {
    "d": [
        "date_add({}, 1)",
        "{} + 1",
        "{} + INTERVAL 1 DAY",
        "date_sub({}, 1)",
        "{} - 5",
        "trunc({}, 'YEAR')",
        "trunc({}, 'MM')",
        "trunc({}, 'WEEK')",
        "trunc(date_sub({}, 3), 'MM')",
        "year({})",
        "year(date_add({}, 1))",
        "datediff({}, DATE '2024-02-29')",
        "datediff(DATE '2024-02-29', {})",
        "-datediff({}, DATE '2024-02-29')",
    ],
    "m": [
        "CAST({} AS TIMESTAMP)",
        "CAST({} AS TIMESTAMP_NTZ)",
        "trunc({}, 'QUARTER')",
        "date_trunc('DAY', {})",
        "date_trunc('MONTH', {})",
        "CAST(date_trunc('WEEK', {}) AS DATE)",
        "add_months({}, 13)",
        "last_day({})",
    ],
    "ts": [
        "CAST({} AS DATE)",
        "year({})",
        "date_trunc('MICROSECOND', {})",
        "date_trunc('MILLISECOND', {})",
        "date_trunc('SECOND', {})",
        "CAST(date_trunc('SECOND', {}) AS DATE)",
        "trunc(CAST({} AS DATE), 'MM')",
        "date_add(CAST({} AS DATE), 2)",
        "datediff(DATE '2024-02-29', {})",
    ],
    "u": [
        "CAST({} AS TIMESTAMP_NTZ)",
        "CAST(CAST({} AS TIMESTAMP_NTZ) AS DATE)",
        "date_trunc('MINUTE', {})",
        "date_trunc('HOUR', {})",
        "date_trunc('DAY', {})",
        "date_trunc('WEEK', {})",
        "date_trunc('MONTH', {})",
        "date_trunc('QUARTER', {})",
        "date_trunc('YEAR', {})",
        "CAST(date_add(CAST({} AS DATE), 30) AS TIMESTAMP)",
        "{} + INTERVAL 1 DAY",
        "{} - INTERVAL 1 MONTH",
        "unix_timestamp({})",
        "-unix_seconds({})",
    ],
    "n": ["CAST({} AS DATE)", "year({})"],
}
# For half of all days, the results of these functions exceed the limits of the result type.
WRAPPING: Mapping[str, Sequence[str]] = {
    "d": ["date_add({}, 2147483647)", "date_sub({}, CAST(-2147483648 AS INT))"],
    "m": ["date_format({}, 'yyyy')"],
    "ts": ["left(CAST({} AS STRING), 4)"],
}
OF_NUMBERS: Mapping[str, Sequence[str]] = {
    "i": [
        "CAST({} AS BIGINT)",
        "CAST({} AS FLOAT)",
        "CAST({} AS DECIMAL(12,2))",
        "CAST(CAST({} AS DECIMAL(25,2)) AS DOUBLE)",
        "{} + 5",
        "7 - {}",
        "{} * -3",
        "-{} - 2147483647",
        "~{}",
        "floor({} / 2)",
        "CAST({} AS SMALLINT) + 0L",
    ],
    "l": [
        "{} - 9223372036854775807",
        "-{}",
        "{} DIV -1",
        "CAST({} AS INT)",
        "CAST({} AS FLOAT)",
        "CAST({} AS DOUBLE)",
        "CAST({} AS DECIMAL(20,0))",
        "CAST(CAST({} AS FLOAT) AS DOUBLE)",
    ],
    "x": [
        "CAST(-{} AS DECIMAL(9,4))",
        "CAST({} * -0.5 AS DECIMAL(9,4))",
        "CAST({} AS DECIMAL(9,4))",
        "CAST({} AS DECIMAL(30,10))",
        "CAST({} AS DOUBLE)",
    ],
    "f": ["CAST({} AS DOUBLE)", "-{}", "{} * -0.3F", "1.5D - {}", "floor({})", "CAST({} AS INT)"],
}
CONSTANTS: Mapping[str, Sequence[str]] = {
    "int": ["2009", "2024", "-5877641", "5881580", "2147483647", "-2147483648"],
    "bigint": ["0L", "2147483647L", "-2147483648L", "5000000000L"],
    "double": ["0.0D", "1.5D", "9.3e18D", "-2147483648D", "double('-Infinity')", "double('NaN')"],
    "date": [
        "DATE '2009-11-01'",
        "DATE '2011-12-30'",
        "DATE '2024-02-29'",
        *(f"date_from_unix_date({n})" for n in (-INT, 200 - INT, INT - 200, INT - 1)),
    ],
    "timestamp": [
        "TIMESTAMP '2009-10-01 00:00:00'",
        "TIMESTAMP '2009-11-01 00:00:00'",
        "TIMESTAMP '2009-10-31 23:30:00'",
        "TIMESTAMP '2011-12-31 00:00:00'",
        *(
            f"timestamp_micros(CAST('{n}' AS BIGINT))"
            for n in (-LONG, 300 * DAY - LONG, LONG - 300 * DAY, LONG - 1)
        ),
    ],
    "timestamp_ntz": [
        "TIMESTAMP_NTZ '2009-11-01 00:00:00'",
        "TIMESTAMP_NTZ '2009-10-31 23:30:00'",
        "TIMESTAMP_NTZ '290000-01-01 00:00:00'",
    ],
}
CONSTANTS = {
    **CONSTANTS,
    "string": ["'2009'", "'2024'", "'-'"],
    "float": CONSTANTS["double"],
    "decimal(12,2)": CONSTANTS["bigint"],
    "decimal(20,0)": CONSTANTS["bigint"],
    "decimal(9,4)": ["0.0000BD", "123.4567BD", "-999.99BD", "99999.9999BD"],
    "decimal(30,10)": ["0BD", "123.4567BD", "-999.99BD", "1234567890123456789.5BD"],
}


@dataclass(frozen=True, slots=True)
class Values:
    """Stands in for an index of a column; each value has its own location."""

    encoder: Encoder
    codes: Codes
    nan: Flags
    null_proof: bool = True

    def keep(self, key_ranges: KeyRanges) -> Flags:
        """For each value, whether the key ranges contain this value."""
        asked = merge(key_ranges.intervals)
        at = np.searchsorted(asked[:, 0], self.codes, side="right") - 1
        found = (at >= 0) & (self.codes <= np.append(asked[:, 1], -LONG)[at])
        return np.where(self.nan, key_ranges.nan, found)


@pytest.mark.parametrize(
    "zone",
    [
        "America/St_Johns",
        pytest.param("Asia/Kolkata", marks=pytest.mark.long),
        "Pacific/Apia",
        pytest.param("Etc/UTC", marks=pytest.mark.long),
    ],
)
def test_no_value_of_a_time_is_lost(lab: Lab, tmp_path: Path, zone: str) -> None:
    """The key ranges of a comparison contain each value for which the comparison is TRUE.

    Key ranges contain other values only near clock changes, and near the limits of the type.
    """
    clocks = changes(lab, zone)
    seconds = [
        sign * s
        for sign in (-1, 1)
        for s in (0, 1e-6, 1, 59, 60, 1800, 3540, 3600, 7200, 43200, 86400, 2 * 86400)
    ]
    near = {at * 1_000_000 + round(s * 1e6) for at in clocks for s in seconds}
    ordinary = {
        int(np.datetime64(text, "us").astype(np.int64))
        for text in ("0001-01-01", "1582-10-04", "2009-10-01", "2024-02-29T12", "9999-12-31")
    }
    fits = near | ordinary | {sign * (LONG - 401 * DAY) for sign in (-1, 1)}
    ends = [k + n * DAY for n in (0, 1, 6, 30, 365, 366, 399, 400) for k in (0, 1, 999, 999_999)]
    times = fits | {k - LONG for k in ends} | {LONG - 1 - k for k in ends}
    days = {t // DAY for t in fits}
    whole = days | {k - INT for k in range(0, 410, 3)} | {INT - 1 - k for k in range(0, 410, 3)}
    utc = pa.timestamp("us", "UTC")
    columns = {
        "d": pa.array(np.array(sorted(whole), np.int32)).cast(pa.date32()),
        "m": pa.array(np.array(sorted(days), np.int32)).cast(pa.date32()),
        "ts": pa.array(sorted(times), pa.int64()).cast(utc),
        "u": pa.array(sorted(fits), pa.int64()).cast(utc),
        "n": pa.array(sorted(times), pa.int64()).cast(pa.timestamp("us")),
    }
    with edges(lab, tmp_path, columns, zone):
        for name, functions in OF_TIMES.items():
            day = pa.types.is_date(columns[name].type)
            values = columns[name].cast(pa.int32() if day else pa.int64()).to_numpy()
            days_off = values.astype(np.int64)[:, None] // (1 if day else DAY)
            days_off = np.abs(days_off - np.array(clocks, np.int64) // 86400)
            far = 30_000_000 * (1 if day else DAY)
            plain = (values > -far) & (values < far) & (days_off.min(axis=1, initial=9) > 2)
            judge(lab, name, functions, columns[name], plain)
            if name in WRAPPING:
                judge(lab, name, WRAPPING[name], columns[name], np.zeros_like(plain))


def test_no_value_of_a_number_is_lost(lab: Lab, tmp_path: Path) -> None:
    """Comparisons of casts and sums lose no number, from a type's minimum to its maximum."""
    whole = [k * sign for sign in (-1, 1) for k in (0, 1, 2**24 + 1, 2**31 - 2, 2**31 - 1)]
    long = [sign * (2**53 + k) for sign in (-1, 1) for k in (-1, 0, 1)] + [LONG - 1, -LONG]
    real = [0.0, -0.0, 1.5, -1.5, 3.4028235e38, np.inf, -np.inf, np.nan, 1e-45]
    scaled = [Decimal(text) for text in ("0.00", "123.45", "-999.99", "999.99")]
    columns = {
        "i": pa.array([*whole, -INT], pa.int32()),
        "l": pa.array([*whole, *long], pa.int64()),
        "x": pa.array(scaled, pa.decimal128(5, 2)),
        "f": pa.array(real, pa.float32()),
    }
    with edges(lab, tmp_path, columns, "Etc/UTC"):
        for name, functions in OF_NUMBERS.items():
            judge(lab, name, functions, columns[name], np.zeros(len(columns[name]), np.bool_))


def changes(lab: Lab, zone: str) -> list[int]:
    """Returns a zone's latest clock changes, and its changes near a month's end, in seconds."""
    jvm = lab.spark._jvm
    found = [t.toEpochSecond() for t in jvm.java.time.ZoneId.of(zone).getRules().getTransitions()]
    months = np.array(found, "datetime64[s]").astype("datetime64[D]")
    first = (months - months.astype("datetime64[M]")).astype(int)
    return sorted({*found[-3:], *itertools.compress(found, (first < 1) | (first > 29))})[-12:]


@contextmanager
def edges(lab: Lab, folder: Path, columns: Mapping[str, pa.Array], zone: str) -> Iterator[None]:
    """A table `edges` with the given columns; NULLs fill up the shorter columns."""
    rows = max(map(len, columns.values()))
    table = {k: pa.concat_arrays([v, pa.nulls(rows - len(v), v.type)]) for k, v in columns.items()}
    pq.write_table(pa.table({"at": pa.array(range(rows)), **table}), folder / "edges.parquet")
    with ExitStack() as stack:
        stack.enter_context(lab.database("edges"))
        for key, value in {**_SETTINGS, "spark.sql.session.timeZone": zone}.items():
            stack.enter_context(lab.setting(key, value))
        lab.sql(f"CREATE TABLE edges USING parquet LOCATION '{folder}'")
        yield


def judge(lab: Lab, column: str, functions: Sequence[str], values: pa.Array, plain: Flags) -> None:
    """Asserts that a comparison's key ranges contain each value for which Spark returns TRUE.

    Args:
        lab: the session in which the table `edges` exists.
        column: a column of `edges`.
        functions: the functions of the column that comparisons contain.
        values: all values of the column.
        plain: flags the values that key ranges must omit if the comparison is not TRUE.
    """
    typed = lab.spark.sql(
        "SELECT {} FROM edges".format(", ".join(f.format(column) for f in functions))
    ).schema
    comparisons = [
        f"{f.format(column)} {op} CAST({v} AS {field.dataType.simpleString()})"
        for f, field in zip(functions, typed, strict=True)
        for v in CONSTANTS[field.dataType.simpleString()]
        for op in OPS
    ]
    frame = lab.spark.sql(
        f"SELECT at, array({', '.join(comparisons)}) AS found FROM edges "
        f"WHERE at < {len(values)} ORDER BY at"
    )
    true = np.array([row.found for row in frame.collect()], object) == True  # noqa: E712
    kind = lab.spark.table("edges").schema[column].dataType.simpleString()
    encoder = Encoder.for_type(kind)
    encoded = encoder.encode(values)
    index = Values(encoder, encoded.codes, encoded.nan)
    for k, tree in enumerate(translated(lab, frame)):
        verdict = evaluate(parse(tree), {(column,): index}, len(values))
        # If a comparison is TRUE for no value, the evaluation may ignore the index.
        assert verdict.used or not verdict.keep.any(), (comparisons[k], tree)
        lost = true[:, k] & ~verdict.keep
        assert not lost.any(), (comparisons[k], tree, values.filter(pa.array(lost)))
        vain = verdict.keep & ~true[:, k] & plain
        assert not vain.any(), (comparisons[k], tree, values.filter(pa.array(vain)))


def translated(lab: Lab, frame: DataFrame) -> list[object]:
    """The query selects an array of comparisons; returns the JSON predicate of each comparison."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    arrays, relations = [], []
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        kind = node.getClass().getSimpleName()
        if kind == "LogicalRelation":
            relations.append(node)
        if kind == "Project" and node.projectList().apply(1).getClass().getSimpleName() == "Alias":
            arrays.append(node.projectList().apply(1).child())
        waiting += [node.children().apply(k) for k in range(node.children().size())]
    (array,), (relation,) = arrays, relations
    predicate = lab.spark._jvm.org.apache.spark.sql.sieve.predicate
    none = predicate.IndexedExpressions.none()
    filters = predicate.Filters.of(relation.output(), relation.relation(), none)
    tree = filters.conjunction(array.children())
    write = lab.spark._jvm.org.apache.spark.sql.sieve.base.Json.write
    found: list[object] = json.loads(write(tree))["args"]
    return found
