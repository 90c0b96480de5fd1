"""Measures joins in which one table's keys select files of another table: ``make bench-joins``.

There are three suites. ``star`` (the default) is a small star schema with queries that join its
tables. ``tpch`` and ``tpcds`` are the 22 queries of TPC-H and the 99 queries of TPC-DS. Each query
runs in three modes in turn. The first mode is Spark alone (``spark.sieve.enabled = false``). In the
second mode, Sieve skips files only by constants in the query (``spark.sieve.join.pruning = off``).
In the third mode, Sieve also skips files by join keys. ``--without-constants`` omits the second
mode. For TPC, the benchmark sums the bytes of all tasks, because the metrics of the final plan omit
stages that adaptive execution has dropped. Parquet's vectored reads are off, because Spark does not
count their bytes on a local file system.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from rich.console import Console

from bench import star
from bench.join_modes import MODES, SETTINGS
from bench.tpc import Suite
from bench.tpc_picture import draw
from bench.tpc_report import head, line, shares, summary


def main() -> None:
    """Measures every query. The exit code is 0 if all modes return equal rows."""
    parser = argparse.ArgumentParser(prog="python -m bench joins", description=__doc__)
    parser.add_argument("suite", nargs="?", choices=["star", "tpch", "tpcds"], default="star")
    parser.add_argument("--runs", type=int, default=5, help="of each query in each mode")
    parser.add_argument("--rows", type=int, default=50_000, help="of each file of the star")
    parser.add_argument("--scale", type=float, default=1, help="factor of TPC-H and TPC-DS")
    parser.add_argument(
        "--pruning", choices=["auto", "always"], default="auto", help="spark.sieve.join.pruning"
    )
    parser.add_argument(
        "--without-constants", action="store_true", help="leave out the mode 'constants'"
    )
    parser.add_argument("--only", type=int, nargs="*", default=[], help="numbers of queries")
    first, *others = SETTINGS
    parser.add_argument(
        "--settings",
        nargs="+",
        choices=list(SETTINGS),
        default=[first],
        help=f"of Spark; all but '{first}' take a run of each query, without --runs",
    )
    parser.add_argument(
        "--all-settings",
        action="store_const",
        const=[first, *others],
        dest="settings",
        help="all of them",
    )
    parser.add_argument("--picture", type=Path, help="SVG file for shares of TPC-H or TPC-DS")
    args = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 130, highlight=False)
    if args.suite == "star":
        star.measure(console, args.rows, args.runs)
        return
    # By default, PySpark logs the whole query and two stack traces for each error.
    logging.disable()
    modes = MODES | {"Sieve": MODES["Sieve"] | {"spark.sieve.join.pruning": args.pruning}}
    if args.without_constants:
        del modes["constants"]
    suite = Suite(args.suite, args.scale, args.only, modes, console)
    faults = 0
    try:
        for setting in args.settings:
            measured = []
            head(console, setting, list(modes))
            for one in suite.measure(setting, args.runs if setting == first else 0):
                measured.append(one)
                line(console, one)
            summary(console, measured)
            if args.picture and setting == first:
                title = f"{args.suite} at scale {args.scale:g}, {setting}"
                draw(title, shares(measured)).savefig(args.picture)
            faults += sum(bool(one.fault) for one in measured)
    finally:
        suite.close()
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()
