"""Compares Sieve with other systems that skip data: ``make bench-peers``.

All systems have the same rows and run the same queries, and must return the same results. On Spark
4.1, the systems are Spark alone, sorted Parquet files, Parquet's Bloom filters, Delta, Iceberg,
Sieve on Iceberg, and Sieve. These systems take turns in one session. On Spark 3.5, the systems are
Spark alone, Hudi's indexes, and Sieve on Hudi. A system uses the table's original files if it can.
Every other system gets a rewritten copy with the same number of files.

The report begins with the queries in which Sieve is worst compared with other systems. For each
query, the report shows the files that the scans read, the bytes that all processes read, the tasks,
and the median milliseconds of seven runs. If a run takes longer than 10 s, the benchmark makes only
three runs. For each table, the report shows the seconds until the first query can run, the bytes of
rewritten rows, and the bytes stored in addition to the rows. For the table ``log``, the report also
shows the cost of three writes: an INSERT of 1 % of the rows, an UPDATE of 1 % of the rows, and a
MERGE of 100 keys.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich.console import Console

from bench.hudi_session import start_hudi_session
from bench.peers.data import HOME, Dataset, datasets, log_rows
from bench.peers.hudi_systems import hudi_systems
from bench.peers.measure import QueryCost, TableCost, Written, ask, make, write
from bench.peers.picture import draw
from bench.peers.queries import KEY, Query, queries_of, small_tables
from bench.peers.report import Report, print_report
from bench.peers.systems import System, add_to_iceberg, declare, start, systems

_TABLES = ("lineitem", "log", "flights", "adversarial")
NEEDED = ("Spark alone", "Parquet, sorted")
_SIDES = {"4.1": "Spark 4.1", "3.5": "Spark 3.5"}


def main() -> None:
    """Measures both releases of Spark, each in a separate process, and prints one report."""
    parser = argparse.ArgumentParser(prog="make bench-peers ARGS=...", description=__doc__)
    parser.add_argument("--scale", type=int, default=3, help="of TPC-H's lineitem (default: 3)")
    parser.add_argument("--rows", type=int, default=5_000_000, help="of log and adversarial")
    parser.add_argument("--tables", nargs="+", choices=_TABLES, default=_TABLES)
    parser.add_argument("--sides", nargs="+", choices=list(_SIDES), default=list(_SIDES))
    parser.add_argument("--systems", default="", help="part of the names of the systems to run")
    parser.add_argument("--folder", type=Path, default=HOME / "build" / "bench-peers")
    parser.add_argument("--side", choices=list(_SIDES), help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.folder = args.folder.resolve()
    console = Console(width=None if sys.stdout.isatty() else 165, highlight=False)
    chosen = datasets(args.tables, args.folder / "data", args.scale, args.rows, console)
    if args.side:
        _measure(args, chosen, console)
        return
    found = {side: _in_process(args, side) for side in args.sides}
    print_report(console, found)
    with (args.folder / "peers.md").open("w") as file:
        print_report(Console(file=file, width=400, highlight=False), found)
    (args.folder / "peers.json").write_text(
        json.dumps({side: asdict(report) for side, report in found.items()}, indent=1)
    )
    picture = args.folder / "peers.png"
    draw(found).savefig(picture)
    console.print(f"  figures and picture: {args.folder}/peers.json, peers.md, peers.png")


def _in_process(args: argparse.Namespace, side: str) -> Report:
    """The report on one release of Spark, whose session runs in another process."""
    command = [sys.executable, "-m", "bench.peers", "--side", side, "--scale", str(args.scale)]
    command += ["--rows", str(args.rows), "--folder", str(args.folder), "--tables", *args.tables]
    command += ["--systems", args.systems]
    environ = dict(os.environ)
    if side == "3.5":
        environ |= {
            "SPARK_HOME": str(HOME / "build" / "spark-3.5" / "pyspark"),
            "PYTHONPATH": str(HOME / "build" / "spark-3.5"),
        }
    if subprocess.run(command, env=environ, check=False).returncode:
        raise SystemExit(f"the session of Spark {side} failed; see {args.folder / side}/spark.log")
    told: Mapping[str, Any] = json.loads((args.folder / f"{side}.json").read_text())
    return Report(
        _SIDES[side],
        [QueryCost(**each) for each in told["asked"]],
        [TableCost(**each) for each in told["made"]],
        [Written(**each) for each in told["written"]],
    )


# -- in the process of a line of Spark ------------------------------------------------------------


def _measure(args: argparse.Namespace, tables: Sequence[Dataset], console: Console) -> None:
    root: Path = args.folder / args.side
    shutil.rmtree(root, ignore_errors=True)
    if args.side == "3.5":
        spark, asked = start_hudi_session(root), hudi_systems()
    else:
        spark, asked = start(root), systems()
    # Also keeps the `NEEDED` systems, because the tables of other systems are made from their
    # tables.
    asked = [one for one in asked if args.systems in one.name or one.name in NEEDED]
    report = Report(_SIDES[args.side], [], [], [])
    for table in tables:
        for system in asked:
            with console.status(f"{table.name}: {system.name}"):
                report.made.append(make(spark, system, table, root))
            console.print(f"  {table.name}: {system.name}, {report.made[-1].seconds:.1f} s")
        for name, text in small_tables(table, args.scale).items():
            spark.sql(f"CREATE TABLE {name} USING parquet AS {text}")
        for query in queries_of(table, args.scale):
            with console.status(f"{table.name}: {query.name}"):
                report.asked.extend(ask(spark, query, table, asked))
                if query.name == KEY and args.side == "4.1":
                    report.asked.extend(_least(spark, query, table, root))
        if table.name == "log":
            keeping = [(system, system.version) for system in asked if system.version]
            versions = {system.name: of(spark, system.of("log")) for system, of in keeping}
            report.written.extend(_writes(spark, asked, args.rows, root))
            (key,) = (q for q in queries_of(table, args.scale) if q.name == KEY)
            past = replace(key, name=f"{KEY}, before the writes")
            of_versions = [system for system, _ in keeping]
            report.asked.extend(ask(spark, past, table, of_versions, versions))
    (args.folder / f"{args.side}.json").write_text(json.dumps(asdict(report)))
    spark.stop()


def _least(spark: SparkSession, query: Query, table: Dataset, root: Path) -> Sequence[QueryCost]:
    """Runs a query on an Iceberg table that has only the files with matching rows."""
    where = query.text.format(t=table.name).partition(" WHERE ")[2]
    matching = f"SELECT DISTINCT input_file_name() FROM {table.name} WHERE {where}"
    names = {Path(unquote(urlsplit(uri).path)).name for (uri,) in spark.sql(matching).collect()}
    folder = root / "tables" / f"{table.name}_matching"
    folder.mkdir()
    for file in table.files:
        if file.name in names:
            os.link(file, folder / file.name)
    least = replace(table, folder=folder)
    add_to_iceberg(spark, least, f"ice.db.{table.name}_matching", Path(f"{folder}_iceberg"))
    asked = replace(query, name=f"{KEY}, in a table of its files")
    return ask(spark, asked, table, [System("Iceberg", "ice.db.{}_matching", declare)])


def _writes(
    spark: SparkSession, asked: Sequence[System], rows: int, root: Path
) -> Sequence[Written]:
    """Appends 1 % of the log's rows, updates the newest 1 %, and merges 100 keys of older rows."""
    new = root / "new.parquet"
    pq.write_table(log_rows(rows, rows // 100), new, store_schema=False)
    spark.read.parquet(new.as_uri()).createOrReplaceTempView("log_new")
    spark.sql(
        f"CREATE TABLE log_keys USING parquet AS "
        f"SELECT id FROM log ORDER BY at LIMIT 100 OFFSET {rows // 3}"
    )
    first = spark.sql("SELECT min(id), min(at) FROM log_new").first()
    assert first is not None
    texts = {
        "append": (
            "INSERT INTO {t} SELECT * FROM log_new",
            f"SELECT count(*) FROM {{t}} WHERE id = '{first[0]}'",
        ),
        "update": (
            f"UPDATE {{t}} SET url = 'changed' WHERE at >= TIMESTAMP '{first[1]}'",
            f"SELECT count(*) FROM {{t}} WHERE id = '{first[0]}' AND url = 'changed'",
        ),
        "merge": (
            "MERGE INTO {t} a USING log_keys k ON a.id = k.id WHEN MATCHED THEN UPDATE SET url=''",
            "SELECT count(*) FROM {t} JOIN log_keys USING (id) WHERE url = ''",
        ),
    }
    written: list[Written] = []
    # Some systems share a table. Only one system writes to a shared table, so that the table gets
    # the new rows only once.
    tables: set[str] = set()
    for system in reversed(asked):
        name = system.of("log")
        if name not in tables:
            tables.add(name)
            written = [*write(spark, system, "log", root, texts), *written]
    return written


if __name__ == "__main__":
    main()
