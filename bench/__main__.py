"""``python -m bench``: lists the benchmarks, or runs the named benchmark."""

from __future__ import annotations

import runpy
import sys

BENCHES = {
    "demo": "TPC-H queries without and with an index: files read, time, size (make demo)",
    "rivals": "files read at equal bytes, against other structures (make bench-rivals)",
    "estimate": "what ESTIMATE tells against what CREATE then makes",
    "map": "maps of unique keys to files: bytes a key, files read, time (no Spark)",
    "lookup": "look-ups of 1,000 to 1,000,000 files, cold and warm (make bench-lookup)",
    "scale": "growth from 1,000 to 1,000,000 files: time, memory, bytes (make bench-scale)",
    "dictionary": "memory of the driver's dictionary of files, up to 1,000,000 (a JVM, no Spark)",
    "keys": "keys of a join on their way to a scan: time in driver and front end",
    "encoders": "codes of strings: values told apart, files read, time (no Spark)",
    "build": "what a build takes as tables grow: seconds, memory (make bench-build)",
    "many-files": "CREATE on up to 200,000 tiny files: seconds, the driver's memory",
    "simulated-scan": "CREATE over up to 1,000,000 files that are not there: the same",
    "refresh": "REFRESH against a full build, versions a second (make bench-refresh)",
    "cluster": "a Thrift server with executors apart, on HDFS and S3 (make bench-cluster)",
    "users": "32 sessions of one Thrift server, indexes changing beside them (make bench-users)",
    "hudi": "Hudi tables: its own ways to skip and Sieve's (make bench-hudi)",
    "hudi-moves": "Hudi tables whose rows move to other keys: slices read (make bench-hudi-moves)",
    "hudi-refresh": "REFRESH of a Hudi table after small commits (make bench-hudi-refresh)",
    "peers": "other ways to skip, on the same rows: bytes, time, cost (make bench-peers)",
    "delta": "Delta tables: its own ways to skip and Sieve's (make bench-delta)",
    "joins": "joins whose keys pick files, TPC-H and TPC-DS: bytes, time (make bench-joins)",
    "top": "first rows in an order, MIN and MAX: files read, time (make bench-topk)",
    "logs": "an index on substrings of 4 GB of web log lines (make bench-logs)",
    "expressions": "expressions, tuples, elements, substrings (make bench-expressions)",
    "top-shapes": "first rows, MIN and MAX for each type, shape and order (make bench-topk)",
    "ranges": "queries that read parts of large files: time, rows, tasks (make bench-ranges)",
    "worker": "what a Python worker does between two tasks of a build (no job runs)",
    "start": "what a driver with Sieve takes until its first answer (make bench-start)",
    "planning": "what an index adds to the planning of a scan (make bench-planning)",
}


def main() -> None:
    """Prints the list of benchmarks, or runs the benchmark that the command line names."""
    if len(sys.argv) > 1 and sys.argv[1] in BENCHES:
        name = sys.argv.pop(1)
        runpy.run_module(f"bench.{name.replace('-', '_')}", run_name="__main__")
        return
    print("python -m bench NAME [OPTIONS]; --help after a name lists its options\n")
    for name, text in BENCHES.items():
        print(f"  {name:<10} {text}")
    if len(sys.argv) > 1 and sys.argv[1] not in {"-h", "--help"}:
        raise SystemExit(f"\nno bench is called {sys.argv[1]}")


if __name__ == "__main__":
    main()
