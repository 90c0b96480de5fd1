"""Runs Spark's own SQL test inputs without indexes, and with indexes on filtered columns.

Each query runs three times in one session: without the index, with the index, and with the index
under `strict`. All runs of a query must return the same rows or the same error. `UNCERTAIN` matches
queries with answers that differ between runs of Spark alone.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

from tests.foreign.indexed_session import FAILURES, IndexedSession
from tests.foreign.spark_inputs import SqlInput, extract_data, read_inputs
from tests.spark_session import Lab, start_session

ROOT = Path(__file__).parents[2]
JARS = ROOT / "build" / "foreign"
LEAST_ASKED, LEAST_SKIPPED = 1_000, 300
_QUERY = re.compile(r"\s*(\(\s*)*(select|with|from|values|table|map|reduce)\b", re.IGNORECASE)
_WRITES = re.compile(r"\binsert\b", re.IGNORECASE)
# Each of these queries can depend on the time, on randomness, or on the order of files.
UNCERTAIN = re.compile(
    r"\b(rand|randn|uuid|shuffle|current_\w+|now|unix_timestamp|localtimestamp|tablesample|first|"
    r"last|any_value|first_value|last_value|collect_\w+|array_agg|listagg|string_agg|"
    r"monotonically_increasing_id|input_file_\w+|spark_partition_id|row_number|limit|offset|"
    r"lead|lag|nth_value|ntile|randstr|uniform|sieve_status)\b",
    re.IGNORECASE,
)
_SETTINGS = {
    "spark.sql.legacy.createHiveTableByDefault": "false",
    # With these settings, Spark stores VALUES as several files, and uses one task for each file.
    "spark.sql.leafNodeDefaultParallelism": "3",
    "spark.sql.files.openCostInBytes": str(1 << 30),
    "spark.sql.session.timeZone": "America/Los_Angeles",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sieve.prune.timeout": "120s",
}
_ONEK = (
    "unique1 unique2 two four ten twenty hundred thousand twothousand fivethous tenthous odd even"
).split()
_TABLES = {
    "aggtest": ("agg.data", "a INT, b FLOAT"),
    "onek": ("onek.data", None),
    "tenk1": ("tenk.data", None),
}
_SHARED = {"testdata", *_TABLES}


class Suite:
    """Runs inputs, and counts events by name.

    Attributes:
        counts: for each kind of event, how often it has occurred.
        differences: for each difference, a text with the input, the statement and both answers.
        refused: for each error condition, how many statements Sieve has refused.
    """

    def __init__(self, spark: SparkSession, warehouse: Path) -> None:
        self.counts: Counter[str] = Counter()
        self.differences: list[str] = []
        self.refused: Counter[str] = Counter()
        self._spark = spark
        self._warehouse = warehouse

    def run(self, given: SqlInput, end: float) -> None:
        """Runs one input in a new session, until the time ``end`` at the latest.

        Afterwards, removes the tables that the SQL input created.
        """
        lab = Lab(self._spark.newSession())
        for key, value in (_SETTINGS | given.settings).items():
            try:
                lab.spark.conf.set(key, value)
            except FAILURES:
                self.counts["settings refused"] += 1
        session = IndexedSession(lab, self._warehouse)
        session.look()
        for statement in given.statements:
            if time.monotonic() > end:
                break
            if _QUERY.match(statement) and not _WRITES.search(statement):
                self._compare(session, given.name, statement)
            else:
                self._change(session, statement)
        self.counts["inputs"] += 1
        self.counts["tables indexed"] += len(session.indexed)
        self.refused += session.refused
        self._clean()
        if session.saved & _SHARED:
            self.make_tables()

    def make_tables(self) -> None:
        """Creates the tables that several inputs share.

        Creates a shared table again if an input has replaced the table.
        """
        lab = Lab(self._spark.newSession())
        session = IndexedSession(lab, self._warehouse)
        numbers = lab.spark.range(1, 101)
        session.save(
            "testdata", numbers.selectExpr("cast(id as int) key", "cast(id as string) value")
        )
        strings = "stringu1 STRING, stringu2 STRING, string4 STRING"
        onek = ", ".join(f"{name} INT" for name in _ONEK) + f", {strings}"
        for name, (file, schema) in _TABLES.items():
            path = str(JARS / file)
            session.save(name, lab.spark.read.csv(path, schema=schema or onek, sep="\t"))

    def _change(self, session: IndexedSession, statement: str) -> None:
        self.counts["statements"] += 1
        try:
            session.change(statement)
        except FAILURES:
            self.counts["statements that fail"] += 1
            session.look()

    def _compare(self, session: IndexedSession, name: str, query: str) -> None:
        if not session.prepare(query):
            self.counts["queries of no table"] += 1
            return
        self.counts["statements"] += 1
        self.counts["queries compared"] += 1
        with session.lab.setting("spark.sieve.enabled", "false"):
            off = _answer(session.lab, query)
        with session.lab.setting("spark.sieve.strict", "true"):
            on = _answer(session.lab, query)
        if isinstance(off, str):
            self.counts["queries that fail"] += 1
        if on == off:
            return
        if isinstance(off, str) and isinstance(on, Counter):
            self.counts["errors spared"] += 1
        elif UNCERTAIN.search(query):
            self.counts["uncertain by themselves"] += 1
        else:
            difference = f"{name}: {query}\n  without: {off}\n  with:    {on}"
            self.differences.append(difference)
            # prints at once, because a user may stop the run
            sys.stdout.write(f"DIFFERENCE in {difference}\n")

    def _clean(self) -> None:
        lab = Lab(self._spark)
        for database, *_ in lab.sql("SHOW DATABASES"):
            if database != "default":
                lab.sql(f"DROP DATABASE `{database}` CASCADE")
        for view in (row[1] for row in lab.sql("SHOW VIEWS IN default")):
            lab.sql(f"DROP VIEW IF EXISTS default.`{view}`")
        for table in (row[1] for row in lab.sql("SHOW TABLES IN default")):
            if table not in _SHARED:
                lab.sql(f"DROP TABLE IF EXISTS default.`{table}`")


def _answer(lab: Lab, query: str) -> Counter[str] | str:
    """The rows as a multiset, or the error."""
    try:
        return Counter(repr(tuple(row)) for row in lab.spark.sql(query).collect())
    except FAILURES as error:
        text = str(error)
        if "SIEVE_" in text:
            return text
        found = re.search(r"\[([A-Z0-9_.]+)\]", text)
        return found[1] if found else type(error).__name__
    except Exception as error:  # noqa: BLE001 - such as a value that Python cannot hold
        return type(error).__name__


def main() -> int:
    """Runs the inputs; the run fails if answers differ, or if no query used an index."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="stop after so many")
    parser.add_argument("--only", default="", help="inputs whose names contain this")
    parser.add_argument("--start", default="", help="leave out inputs that come before this one")
    parser.add_argument("--spark", choices=["4.1", "3.5"], default="4.1")
    given = parser.parse_args()
    if given.spark == "3.5" and "SIEVE_FOREIGN" not in os.environ:
        home = ROOT / "build" / "spark-3.5"
        other = {"SPARK_HOME": f"{home}/pyspark", "PYTHONPATH": str(home), "SIEVE_FOREIGN": "3.5"}
        os.execve(sys.executable, [*sys.orig_argv], os.environ | other)
    logging.disable()  # PySpark logs each failed query with two stack traces
    jar = next(JARS.glob(f"spark-sql_2.1?-{given.spark}.*-tests.jar"))
    extract_data(jar, JARS)
    with tempfile.TemporaryDirectory(prefix="sieve-foreign-") as folder:
        home = Path(folder) / "spark"
        spark = start_session(home, **{"spark.ui.enabled": "false"})
        spark.sparkContext.setLogLevel("OFF")
        suite = Suite(spark, home / "warehouse")
        suite.make_tables()
        end = time.monotonic() + 60 * given.minutes
        for each in read_inputs(jar, given.only):
            if each.name < given.start:
                continue
            if time.monotonic() > end:
                sys.stdout.write(f"stopped before {each.name}\n")
                break
            suite.run(each, end)
            sys.stdout.write(f"{each.name}: {dict(suite.counts)}\n")
            sys.stdout.flush()
        done = dict(Lab(spark).sql("SELECT counter, sum(value) FROM sieve_status() GROUP BY 1"))
        spark.stop()
    sys.stdout.write(f"refused: {dict(suite.refused)}\n")
    asked, skipped = done["prune_calls"], done["scans_pruned"]
    whole = not given.only and not given.start
    few = whole and (asked < LEAST_ASKED or skipped < LEAST_SKIPPED)
    for name, value in suite.counts.items():
        sys.stdout.write(f"{value:7} {name}\n")
    sys.stdout.write(
        f"{asked:7} scans that asked an index\n{skipped:7} scans that skipped a file\n"
        f"{len(suite.differences):7} differences\n" + ("too few scans\n" if few else "")
    )
    return 1 if few or suite.differences else 0


if __name__ == "__main__":
    sys.exit(main())
