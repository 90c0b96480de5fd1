"""For each function of Spark, a list names the arguments for which the function is monotone.

The list has a line for each claim of the shim that a function is monotone. A claim is ``rises`` or
``falls``, followed by a call on a column. At the end, the list names the functions for which the
shim claims nothing.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from functions_of_spark import COLUMNS, GROUPS, Claim, calls, claims, names
from spark_session import INTERPRETED, Lab

from sieve.client.spark_home import find_spark

LIST = Path(__file__).parent / "order_of_functions.txt"
INT, LONG = 1 << 31, 1 << 63
DAY = 86_400_000_000
CONFIGURATIONS = [
    ("Etc/UTC", "true"),
    ("America/St_Johns", "false"),
    ("Pacific/Apia", "true"),
    ("America/Havana", "false"),
]
SETTINGS = INTERPRETED | {
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.optimizer.maxIterations": "100",
}
# Calls that Spark's examples lack: casts, and other patterns and intervals.
MORE = [
    *(f"CAST({a} AS {kind})" for a in COLUMNS for kind in (
        "TINYINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5,1)", "DECIMAL(30,10)", "DATE",
        "TIMESTAMP", "TIMESTAMP_NTZ", "STRING",
    )),
    *(f"{a} {op} {k}" for a in "ilfx" for op in ("+", "-", "*", "/") for k in ("-7", "1.5", "3D")),
    *(f"{k} - {a}" for a in "ilfx" for k in ("7", "1.5BD", "0.3D")),
    *(f"-{a}" for a in "ilfx"), "l DIV -3", "l * 9223372036854775807", "x / 0.07",
    *(f"{t} {op} INTERVAL {i}" for t in ("ts", "n") for op in "+-" for i in (
        "5 HOURS", "1 DAY", "40 DAYS", "1 MONTH", "13 MONTHS", "'1 03:00' DAY TO MINUTE",
    )),
    *(f"d {op} INTERVAL {i}" for op in "+-" for i in ("1 DAY", "1 MONTH", "100 YEARS")),
    *(f"timestampadd({u}, {k}, {t})" for u in ("HOUR", "DAY", "MONTH", "YEAR") for k in (1, -30)
      for t in ("ts", "n")),
    *(f"timestampdiff({u}, TIMESTAMP '2011-12-30 10:00:00', ts)" for u in ("HOUR", "DAY", "MONTH")),
    *(f"timestampdiff({u}, ts, TIMESTAMP '2011-12-30 10:00:00')" for u in ("HOUR", "DAY", "MONTH")),
    "TIMESTAMP '2024-11-03 01:30:00' - ts", "ts - TIMESTAMP '2024-11-03 01:30:00'",
    "DATE '2024-02-29' - d", "d - DATE '2024-02-29'", "datediff(DATE '2024-02-29', d)",
    "from_utc_timestamp(ts, 'America/Havana')", "to_utc_timestamp(ts, 'America/St_Johns')",
    "convert_timezone('America/Havana', 'Pacific/Apia', n)",
    *(f"date_format(ts, '{p}')" for p in ("yyyy", "yyyyMM", "yyyy-MM-dd HH", "yyyyMMddHHmmss.SSS")),
    "CAST(date_format(ts, 'yyyyMMdd') AS INT)", "to_date(date_format(ts, 'yyyy-MM-dd HH'))",
    "CAST(CAST(n AS STRING) AS TIMESTAMP)", "to_timestamp(date_format(ts, 'yyyy-MM-dd HH:mm'))",
    "left(CAST(ts AS STRING), 13)", "CAST(left(CAST(ts AS STRING), 4) AS INT)",
    "from_unixtime(l)", "from_unixtime(l, 'yyyyMMdd')", "to_date(from_unixtime(l))",
    *(f"date_trunc('{u}', ts)" for u in ("HOUR", "DAY", "WEEK", "MONTH", "YEAR")),
    *(f"trunc(d, '{u}')" for u in ("WEEK", "MONTH", "QUARTER", "YEAR")),
    *(f"{r}({a}, {k})" for r in ("round", "bround", "ceil", "floor") for a in "fx" for k in (0, 1)),
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def values(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Creates the table `edges`, with values of each type, and an ordinal for each value.

    The values include the limits of types, and clock changes.
    """
    if not find_spark(os.environ).version.startswith("4.1"):
        pytest.skip("the list is that of Spark 4.1")
    folder = tmp_path_factory.mktemp("edges")
    rng = np.random.default_rng(7)
    near = [0, 1, 2, 7, 41, 999, 10_000, 10**6]
    whole = {s * k for s in (-1, 1) for k in near} | {
        s * 10**e + k for s in (-1, 1) for e in range(19) for k in (-1, 0, 1)
    }
    longs = whole | {k - LONG for k in near} | {LONG - 1 - k for k in near}
    longs |= set(rng.integers(-LONG, LONG - 1, 40).tolist())
    ints = (
        {k for k in longs if -INT <= k < INT}
        | {k - INT for k in near}
        | {INT - 1 - k for k in near}
    )
    clocks = _clock_changes(lab)
    steps = [0, 1, 10**6, 59 * 60 * 10**6, 3600 * 10**6, 5400 * 10**6, DAY, DAY + 3600 * 10**6]
    times = {at + s * k for at in clocks for k in steps for s in (-1, 1)}
    dates = (
        "0003-01-01 1582-10-04 1900-01-01 1970-01-01 2023-12-28 2024-01-28 2024-02-27 9998-12-30"
    ).split()
    starts = np.array(dates, "datetime64[us]").astype(np.int64).tolist()
    times |= {at + k * 7 * 3600 * 10**6 for at in starts for k in range(14)}
    times |= {k * 10**6 for k in range(5)}
    times |= {k - LONG for k in near} | {LONG - 1 - k for k in near}
    shown = _clock_changes(lab, local=True)
    local = times | {at + s * k for at in shown for k in steps for s in (-1, 1)}
    days = {t // DAY for t in times} | {k - INT for k in near} | {INT - 1 - k for k in near}
    reals = [0.0, 0.5, 1.5, 2.4999, 1e-300, 7.0, 9.3e18, 1e300, float("inf")]
    doubles = sorted({*reals, *(-x for x in reals), *rng.normal(0, 1e4, 60).tolist()})
    cents = sorted({k for k in whole if abs(k) < 10**9} | {10**9 - 1, 1 - 10**9})
    bits = np.array(doubles).view(np.int64)
    ordinals = {
        "i": sorted(ints), "l": sorted(longs), "x": cents, "d": sorted(days),
        "f": np.where(bits >= 0, bits, bits ^ (LONG - 1)).tolist(),
        "ts": sorted(times), "n": sorted(local),
    }  # fmt: skip
    typed = {
        "i": pa.array(ordinals["i"], pa.int32()),
        "l": pa.array(ordinals["l"], pa.int64()),
        "f": pa.array(doubles, pa.float64()),
        "x": pa.array([Decimal(k).scaleb(-2) for k in cents], pa.decimal128(9, 2)),
        "d": pa.array(ordinals["d"], pa.int32()).cast(pa.date32()),
        "ts": pa.array(ordinals["ts"], pa.int64()).cast(pa.timestamp("us", "UTC")),
        "n": pa.array(ordinals["n"], pa.int64()).cast(pa.timestamp("us")),
    }
    rows = max(map(len, typed.values()))
    table = {k: pa.concat_arrays([v, pa.nulls(rows - len(v), v.type)]) for k, v in typed.items()}
    table |= {f"o_{k}": pa.array(v + [None] * (rows - len(v)), pa.int64())
              for k, v in ordinals.items()}  # fmt: skip
    pq.write_table(pa.table(table), folder / "edges.parquet")
    with ExitStack() as stack:
        stack.enter_context(lab.database("ordered"))
        stack.enter_context(lab.settings(SETTINGS))
        lab.sql(f"CREATE TABLE edges USING parquet LOCATION '{folder}'")
        yield


def _clock_changes(lab: Lab, *, local: bool = False) -> list[int]:
    """The latest clock changes in all time zones of the tests, in microseconds.

    Args:
        local: whether to return the local times just before and just after each clock change.
    """
    found = set()
    for zone, _ in CONFIGURATIONS:
        rules = lab.spark._jvm.java.time.ZoneId.of(zone).getRules()
        changes = [*rules.getTransitions()][-4:]
        for year in (2023, 2024):
            start = lab.spark._jvm.java.time.Instant.parse(f"{year}-01-01T00:00:00Z")
            for _ in range(2):
                change = rules.nextTransition(start)
                if change is not None:
                    changes.append(change)
                    start = change.getInstant()
        for change in changes:
            offsets = (change.getOffsetBefore(), change.getOffsetAfter()) if local else ()
            shown = [offset.getTotalSeconds() for offset in offsets] or [0]
            found |= {(change.toEpochSecond() + seconds) * 10**6 for seconds in shown}
    return sorted(found)


def test_every_function_of_spark_is_listed(lab: Lab) -> None:
    """The list contains every function of this Spark.

    If a new release adds a function of Spark, this test fails.
    """
    listed = LIST.read_text(encoding="utf-8").splitlines()
    named = {line.split(" ", 1)[1].split("(", 1)[0] for line in listed if "(" in line}
    unclaimed = {line for line in listed if " " not in line}
    assert set(names(lab)) <= named | unclaimed | {*"+-*/%&|^", "div", "~"}


@pytest.mark.long
def test_the_list_has_every_claim(lab: Lab, request: pytest.FixtureRequest) -> None:
    """The list contains exactly the shim's claims for calls in the form of Spark's examples."""
    every = names(lab)
    with lab.setting("spark.sql.ansi.enabled", "false"):
        found = {
            name: [claim for some in calls(lab, name) for claim in claims(lab, some)]
            for name, group in every.items()
            if group in GROUPS
        }
    lines = sorted({c.text for c in itertools.chain(claims(lab, MORE), *found.values())})
    lines += sorted(name for name in every if not found.get(name))
    if request.config.getoption("--regenerate"):
        LIST.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert LIST.read_text(encoding="utf-8").splitlines() == lines


@pytest.mark.parametrize(
    ("zone", "ansi"),
    [
        *CONFIGURATIONS[:2],
        *(pytest.param(*one, marks=pytest.mark.long) for one in CONFIGURATIONS[2:]),
    ],
)
def test_functions_keep_the_order_that_the_shim_claims(lab: Lab, zone: str, ansi: str) -> None:
    """In the range of a claim, a function keeps the order of its arguments and returns no NULL.

    Two results may be out of order if their arguments differ by at most the claim's slack.
    """
    listed = [line for line in LIST.read_text(encoding="utf-8").splitlines() if " " in line]
    with lab.settings({"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": ansi}):
        found = claims(lab, [line.split(" ", 1)[1] for line in listed])
        assert len(found) > 0.8 * len(listed)
        assert not {claim.text for claim in found} - set(listed)
        _judge(lab, found)


def _judge(lab: Lab, found: Sequence[Claim]) -> None:
    columns = [
        f"CASE WHEN o_{c.column} BETWEEN CAST('{c.low}' AS BIGINT) AND CAST('{c.high}' AS BIGINT) "
        f"THEN {c.call} END AS c{k}"
        for k, c in enumerate(found)
    ]
    frame = lab.spark.sql(
        f"SELECT {', '.join(columns)}, o_i, o_l, o_f, o_x, o_d, o_ts, o_n FROM edges"
    )
    results = frame.coalesce(1)
    folder = lab.spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")
    path = f"{folder}/judged"
    results.write.mode("overwrite").parquet(path)
    table = pq.read_table(path)
    faults = [
        fault
        for k, claim in enumerate(found)
        for fault in itertools.islice(_faults(claim, table[f"o_{claim.column}"], table[f"c{k}"]), 1)
    ]
    assert not faults, "\n".join(faults)


def _faults(claim: Claim, ordinals: pa.Array, results: pa.Array) -> Iterator[str]:
    rows = [
        (at, value)
        for at, value in zip(ordinals.to_pylist(), _comparable(results), strict=True)
        if at is not None and claim.low <= at <= claim.high
    ]
    if len(rows) < 2 or any(value is None for _, value in rows):
        yield f"{claim.text}: NULL, or no rows"
        return
    rows.sort(key=lambda row: row[0])
    slack = functools.cache(claim.function.slackNear)
    for (before, one), (after, other) in _inversions(rows, claim.rises):
        if after - before > min(slack(before), slack(after)):
            yield f"{claim.text}: {before} {one}, {after} {other}"


def _inversions(rows: Sequence[tuple[int, Any]], rises: bool) -> Any:
    """Pairs of ascending arguments with results in the wrong order."""
    if not rows:
        return
    tops = [rows[0]]
    for row in rows[1:]:
        for top in reversed(tops):
            if not (top[1] > row[1] if rises else top[1] < row[1]):
                break
            yield top, row
        if tops[-1][1] <= row[1] if rises else tops[-1][1] >= row[1]:
            tops.append(row)


def _comparable(results: pa.ChunkedArray) -> list[Any]:
    """Values that Python orders as Spark does: texts as bytes, and dates and times as integers."""
    kind = results.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return results.cast(pa.int64()).to_pylist()
    if pa.types.is_date(kind):
        return results.cast(pa.int32()).to_pylist()
    if pa.types.is_string(kind):
        return [value and value.encode() for value in results.to_pylist()]
    return results.to_pylist()
