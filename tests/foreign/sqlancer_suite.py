"""Runs SQLancer against a Thrift server whose tables have an index on each column.

SQLancer makes small tables of random rows. SQLancer checks queries by TLP (ternary logic
partitioning). For each row, a predicate is true, false or unknown, so the rows of the three cases
together must be the table. SQLancer connects to a proxy. The proxy indexes the tables before
SQLancer's first query. For each query, the proxy compares the rows with the index and the rows
without it. Both runs must return the same rows. So a TLP check that fails also fails without the
index.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.command import sieve
from tests.foreign.hive_proxy import HiveProxy
from tests.foreign.indexed_database import IndexedDatabase, Tally
from tests.thrift_session import thrift_session

ROOT = Path(__file__).parents[2]
LEAST_ASKED, LEAST_SKIPPED = 1_000, 300
ROUND_S = 600
DEPTHS = (1, 2, 3)
"""Depths of random expressions, one per round. An index can rarely serve a deep predicate."""

_NO_JAR = """\
No SQLancer: give the path of its jar, with its libraries in the folder lib beside it.
  make test-sqlancer SQLANCER_JAR=/path/to/sqlancer-2.0.0.jar
The jar must hold the Spark provider (sqlancer/spark); Maven Central has no such release.
"""
_SETTINGS = {
    "spark.sieve.strict": "true",
    "spark.sieve.prune.timeout": "120s",
    # SQLancer draws constants of any type. ANSI rules would refuse most INSERTs of these constants.
    "spark.sql.storeAssignmentPolicy": "LEGACY",
    "spark.sql.leafNodeDefaultParallelism": "3",
    # SQLancer's tables have few rows, so planning and starting tasks would take most of the time.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.ui.enabled": "false",
}
_MISMATCH = "result sets of the following queries mismatch"
_ERROR = re.compile(
    r"trigger an unexpected error with message: .*?\[([A-Z][A-Z0-9_.]+)\]", re.DOTALL
)
_EXCEPTION = re.compile(r"^(?:--)?\s*(java\.[\w.]+.{0,80})", re.MULTILINE)


def main() -> int:
    """Runs SQLancer for a limited time; fails if answers differ, or if no query used an index."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jar", default=os.environ.get("SQLANCER_JAR", ""))
    parser.add_argument("--minutes", type=float, default=120, help="how long SQLancer runs")
    parser.add_argument("--seed", type=int, default=1, help="of the first database")
    parser.add_argument("--threads", type=int, default=2, help="databases at a time")
    parser.add_argument("--queries", type=int, default=100, help="TLP checks a database")
    parser.add_argument("--spark", choices=["4.1", "3.5"], default="4.1")
    given = parser.parse_args()
    if not Path(given.jar).is_file():
        sys.stderr.write(_NO_JAR)
        return 2
    if given.spark == "3.5":
        home = ROOT / "build" / "spark-3.5"
        os.environ |= {"SPARK_HOME": f"{home}/pyspark", "PYTHONPATH": str(home)}
    tally = Tally()
    failures: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="sieve-sqlancer-") as name:
        folder = Path(name)
        with socket.create_server(("localhost", 0)) as free:
            port = free.getsockname()[1]
        conf = [part for item in _SETTINGS.items() for part in ("--conf", "=".join(item))]
        sieve(folder, "thriftserver", "start", "--port", str(port), "--driver-memory", "3g", *conf)
        try:
            warehouse = folder / "spark-warehouse"
            proxy = HiveProxy(port, lambda session: IndexedDatabase(session, warehouse, tally))
            proxy.start()
            end = time.monotonic() + 60 * given.minutes
            number = 0
            while (left := end - time.monotonic()) > 0:
                failures += _round(folder / f"round{number}", given, proxy.port, number, left)
                done = _status(port)
                sys.stdout.write(f"round {number}: {dict(tally.counts)} {dict(done)}\n")
                sys.stdout.flush()
                number += 1
        finally:
            sieve(folder, "thriftserver", "stop")
    for error in proxy.errors:
        sys.stdout.write(f"ERROR in this program: {error}\n")
    return _report(tally, failures, done) or bool(proxy.errors)


def _round(
    folder: Path, given: argparse.Namespace, port: int, number: int, left: float
) -> Counter[str]:
    """Runs one round of SQLancer; returns how many reports of each kind SQLancer has made."""
    folder.mkdir()
    options = {
        "--host": "localhost",
        "--port": port,
        "--num-threads": given.threads,
        "--num-tries": 10_000,
        "--max-generated-databases": 1,
        "--num-queries": given.queries,
        "--max-num-inserts": 20,
        # Most random rows do not fit the column types. With this limit, SQLancer abandons tables
        # that refuse nearly all rows.
        "--num-statement-kind-retries": 20,
        "--test-only-nonempty-tables": "true",
        "--max-expression-depth": DEPTHS[number % len(DEPTHS)],
        "--random-seed": given.seed + 10_000 * number,
        "--database-prefix": f"round{number}_",
        "--timeout-seconds": int(min(ROUND_S, left)) + 1,
        "--log-execution-time": "false",
        # SQLancer reports findings only if its reducer is on. So the reducer is on, but may take no
        # step.
        "--statement-reducer-max-steps": 0,
        "--statement-reducer-max-time": 0,
    }
    words = [str(word) for option in options.items() for word in option] + ["--use-reducer"]
    with (folder / "output.txt").open("wb") as output:
        subprocess.run(
            ["java", "-Xmx1g", "-jar", str(Path(given.jar).resolve()), *words, "spark"],
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=ROUND_S + 120,
            check=False,
        )
    logs = (folder / "logs" / "spark").glob("*.log")
    return Counter(_kind(log) for log in logs if not log.name.endswith("-cur.log"))


def _kind(log: Path) -> str:
    """The reason why SQLancer gave up a database.

    The reason is a failed TLP check, an error condition, or an exception in SQLancer.
    """
    text = log.read_text(errors="replace")
    if _MISMATCH in text:
        sys.stdout.write(f"TLP fails, with the index and without: {text[-3000:]}\n")
        return "TLP fails, with the index and without"
    failure = _ERROR.search(text) or _EXCEPTION.search(text)
    return failure[1] if failure else text[:100]


def _status(port: int) -> Counter[str]:
    with thrift_session(port) as connection:
        cursor = connection.cursor()
        cursor.execute(
            "SELECT counter, sum(value) FROM sieve_status() WHERE counter IN "
            "('prune_calls', 'scans', 'scans_pruned', 'files_listed', 'files_skipped') GROUP BY 1"
        )
        return Counter(dict(cursor.fetchall()))


def _report(tally: Tally, failures: Counter[str], done: Counter[str]) -> int:
    for kind, number in failures.most_common():
        sys.stdout.write(f"{number:7} databases that SQLancer left: {kind}\n")
    sys.stdout.write(f"refused: {dict(tally.refused)}\n")
    asked, skipped = done["prune_calls"], done["scans_pruned"]
    few = asked < LEAST_ASKED or skipped < LEAST_SKIPPED
    for name, value in tally.counts.items():
        sys.stdout.write(f"{value:7} {name}\n")
    sys.stdout.write(
        f"{asked:7} scans that asked an index\n{skipped:7} scans that skipped a file\n"
        f"{done['files_skipped']:7} files skipped of {done['files_listed']}\n"
        f"{len(tally.differences):7} differences\n" + ("too few scans\n" if few else "")
    )
    return 1 if few or tally.differences else 0


if __name__ == "__main__":
    sys.exit(main())
