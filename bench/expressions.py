"""Measures indexes on expressions, tuples, elements and substrings: ``make bench-expressions``.

The indexed values are in random order. For two expressions and a tuple, the table also has a
generated column with the same values. So the benchmark can also measure an ordinary index on the
generated column. Each query runs in turn with Spark alone and with Sieve. The lower bound of the
files read is the number of files with a matching row. The output shows the input bytes of Spark's
tasks.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from rich import box
from rich.console import Console
from rich.table import Table

from bench.in_turns import Turns, in_turns
from bench.session import SWITCH, start_session, with_settings
from bench.task_totals import COUNTED_READS

FOLDER = Path(__file__).resolve().parent.parent / "build" / "bench-expressions"
MODES = {"Spark alone": {SWITCH: "false"}, "Sieve": {"spark.sieve.strict": "true"}}
_UUID = "regexp_replace(md5(string(id)), '(.{8})(.{4})(.{4})(.{4})', '$1-$2-$3-$4-')"
_USER = "get_json_object(payload, '$.user.id')"
_COLUMNS = {
    "email": "concat('User', hex(xxhash64(id, 1)), '@Example.org')",
    "payload": (
        'concat(\'{"user":{"id":\', pmod(xxhash64(id, 2), {rows}), \'},"ok":\', id % 7 = 0, '
        "',\"text\":\"', md5(string(id)), '\"}')"
    ),
    "tenant": "CAST(pmod(xxhash64(id, 3), 1000) AS INT)",
    "code": "CAST(pmod(xxhash64(id, 4), 1000) AS INT)",
    "tags": "array('all', concat('tag', pmod(xxhash64(id, 5), {rows} DIV 4)))",
    "message": (
        "concat('GET /item/', pmod(xxhash64(id, 6), 500), ' from 10.', pmod(xxhash64(id, 7), 256), "
        "'.', pmod(xxhash64(id, 8), 256), ' request ', uuid_of)"
    ),
}
_GENERATED = {
    "email_lower": "lower(email)",
    "user_id": _USER,
    "both": "xxhash64(tenant, code)",
}


@dataclass(frozen=True, slots=True)
class Case:
    """A predicate on an expression, and an equivalent predicate on a generated column.

    Attributes:
        index: text between the parentheses of CREATE. Empty if an earlier case creates the index.
        column: generated column; the indexed column itself if a row has many keys.
        by_column: predicate on the generated column. Empty if there is no generated column.
    """

    title: str
    index: str
    column: str
    by_expression: str
    by_column: str = ""
    options: str = ""

    @property
    def name(self) -> str:
        """Name of the index on the expression."""
        return f"of_{self.column}"


@dataclass(frozen=True, slots=True)
class Measured:
    """The number of files with a matching row, and the figures of a case's two predicates."""

    least: int
    expression: Turns
    column: Turns | None


def main() -> None:
    """Creates the table and the indexes, measures each predicate, and prints two tables."""
    parser = argparse.ArgumentParser(prog="python -m bench expressions", description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5, help="of each query in each mode")
    args = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 130, highlight=False)
    shutil.rmtree(FOLDER, ignore_errors=True)
    spark = start_session(FOLDER, {"spark.sieve.prune.timeout": "10s", **COUNTED_READS})
    try:
        with console.status("writing the table"):
            _write(spark, args.rows, args.files)
        cases = _cases(spark)
        console.print(_builds(spark, cases))
        measured = {case: _measure(spark, case, args.runs) for case in cases}
        tuples = _singles(spark, cases[2], args.runs)
        console.print(_queries(measured, f"{args.rows:,} rows in {args.files:,} files"))
        console.print(
            f"  two indexes of one column each: {tuples.files['Sieve']} files, "
            f"{tuples.tasks['Sieve'].bytes / 1e6:.1f} MB, {tuples.ms['Sieve']:.0f} ms"
        )
    finally:
        spark.stop()
        shutil.rmtree(FOLDER, ignore_errors=True)


def _write(spark: SparkSession, rows: int, files: int) -> None:
    own = ", ".join(f"{sql.replace('{rows}', str(rows))} AS {c}" for c, sql in _COLUMNS.items())
    made = ", ".join(f"{sql} AS {c}" for c, sql in _GENERATED.items())
    for name in ("events", "singles"):
        spark.sql(
            f"CREATE TABLE {name} USING parquet AS SELECT *, {made} FROM "
            f"(SELECT id, {own} FROM (SELECT id, {_UUID} AS uuid_of "
            f"FROM range(0, {rows}, 1, {files})))"
        )
    # Waits, because a file becomes stable two seconds after its last change.
    time.sleep(2.1)


def _cases(spark: SparkSession) -> list[Case]:
    """The predicates to measure. Most constants in the predicates are the values of one row."""
    row = spark.sql("SELECT * FROM events WHERE id = 4242").first()
    assert row is not None
    email, user, tenant, code = row.email_lower, row.user_id, row.tenant, row.code
    return [
        Case("lower(email) = x", "lower(email)", "email_lower", f"lower(email) = '{email}'",
             f"email_lower = '{email}'"),
        Case("a path of JSON = x", _USER, "user_id", f"{_USER} = '{user}'", f"user_id = '{user}'"),
        Case("tenant = x AND code = y", "(tenant, code)", "both",
             f"tenant = {tenant} AND code = {code}", f"both = {row.both}"),
        Case("a rare tag", "tags", "tags", f"array_contains(tags, '{row.tags[1]}')"),
        Case("a tag of all rows", "", "tags", "array_contains(tags, 'all') AND id < 0 - id"),
        *(Case(title, "message" if k == 0 else "", "message", f"message LIKE '%{text}%'",
               options="OPTIONS (kind = 'substring')")
          for k, (title, text) in enumerate({
              "a piece of a UUID": row.message[-12:],
              "a whole UUID": row.message[-36:],
              "an IP address": row.message.split()[3],
              "a common word": "request",
              "an absent text": "no such text",
          }.items())),
    ]  # fmt: skip


def _builds(spark: SparkSession, cases: list[Case]) -> Table:
    """Creates the indexes and measures the times. An untimed CREATE first starts Python workers."""
    spark.sql("CREATE SIEVE INDEX ON events (id)").collect()
    table = _table(
        "index", "CREATE, s", "generated\ncolumn, s", "min, max of\nthe column, s", "size,\nMB"
    )
    for case in cases:
        if not case.index:
            continue
        plain = _seconds(spark, f"SELECT min({case.column}), max({case.column}) FROM events")
        column = "-"
        if case.by_column:
            column = f"{_seconds(spark, f'CREATE SIEVE INDEX ON events ({case.column})'):.1f}"
        index = _seconds(
            spark, f"CREATE SIEVE INDEX {case.name} ON events ({case.index}) {case.options}"
        )
        facts = dict(spark.sql(f"DESCRIBE SIEVE INDEX EXTENDED {case.name} ON events").collect())
        size = int(facts["bytes"]) / 1e6
        table.add_row(case.index, f"{index:.1f}", column, f"{plain:.1f}", f"{size:.2f}")
    spark.sql("CREATE SIEVE INDEX ON singles (tenant, code)").collect()
    return table


def _seconds(spark: SparkSession, text: str) -> float:
    started = time.perf_counter()
    with with_settings(spark, {"spark.sieve.strict": "false"}):
        spark.sql(text).collect()
    return time.perf_counter() - started


def _measure(spark: SparkSession, case: Case, runs: int) -> Measured:
    with with_settings(spark, MODES["Spark alone"]):
        found = spark.sql(
            f"SELECT count(DISTINCT _metadata.file_path) FROM events WHERE {case.by_expression}"
        ).first()
    assert found is not None
    expression = _turns(spark, f"SELECT id FROM events WHERE {case.by_expression}", runs)
    column = None
    if case.by_column:
        column = _turns(spark, f"SELECT id FROM events WHERE {case.by_column}", runs)
    return Measured(found[0], expression, column)


def _singles(spark: SparkSession, case: Case, runs: int) -> Turns:
    return _turns(spark, f"SELECT id FROM singles WHERE {case.by_expression}", runs)


def _turns(spark: SparkSession, text: str, runs: int) -> Turns:
    turns = in_turns(spark, text, MODES, runs)
    assert turns.differing is None, f"the modes give different rows: {text}"
    return turns


def _queries(measured: dict[Case, Measured], title: str) -> Table:
    table = _table(
        f"\n{title}", "hold a\nmatch", "files", "of the\ncolumn",
        "MB,\nSpark", "MB", "of the\ncolumn", "ms,\nSpark", "ms", "of the\ncolumn",
    )  # fmt: skip
    for case, one in measured.items():
        made, column = one.expression, one.column
        table.add_row(
            case.title,
            str(one.least),
            str(made.files["Sieve"]),
            str(column.files["Sieve"]) if column else "-",
            *(f"{of.bytes / 1e6:.1f}" for of in made.tasks.values()),
            f"{column.tasks['Sieve'].bytes / 1e6:.1f}" if column else "-",
            *(f"{ms:.0f}" for ms in made.ms.values()),
            f"{column.ms['Sieve']:.0f}" if column else "-",
        )
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column(first, no_wrap=True)
    for title in others:
        table.add_column(title, justify="right", no_wrap=True)
    return table


if __name__ == "__main__":
    main()
