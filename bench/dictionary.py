"""Measures the memory of the driver's dictionary of files: ``python -m bench dictionary``.

A JVM without a Spark application parses the dictionary from the front end's JSON. The dictionary's
size is the growth of the used heap, measured after full garbage collections. The driver's cache
estimates the size of each dictionary, and the output also shows this estimate.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import time
from typing import Any

from pyspark.java_gateway import launch_gateway
from rich import box
from rich.console import Console
from rich.table import Table

from bench.built_version import built_list
from sieve.client.spark_home import find_spark, shim_jar
from sieve.reader.placement import place
from sql_ext.frontend.pruning import dictionary_to_wire

_COPIES = 4
"""Number of dictionaries in memory at once. With several dictionaries, other objects are
negligible."""


def main() -> None:
    """Measures the dictionary for several numbers of files, and of ranges per file."""
    parser = argparse.ArgumentParser(prog="python -m bench dictionary", description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--ranges", type=int, nargs="+", default=[1, 8])
    args = parser.parse_args()
    jar = shim_jar(find_spark(os.environ))
    # The heap must also have room for the JSON text, which is several times as large as the
    # dictionary.
    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        f"--driver-class-path {jar} --driver-memory 2g pyspark-shell"
    )
    gateway = launch_gateway()
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("files", "ranges of each", "MB sent", "s to take in", "heap a file", "counted"):
        table.add_column(title, justify="right")
    for ranges in args.ranges:
        for n in args.files:
            table.add_row(f"{n:,}", str(ranges), *_measure(gateway.jvm, n, ranges))
    Console(highlight=False, width=100).print(table)
    gateway.shutdown()


def _measure(jvm: Any, n: int, ranges: int) -> tuple[str, ...]:
    wire = json.dumps(dictionary_to_wire(place(built_list(n, ranges)).files))
    sieve = jvm.org.apache.spark.sql.sieve
    node = sieve.base.Json.read(wire)
    sieve.ask.FileDictionary.read(node)
    before = _used(jvm)
    started = time.perf_counter()
    made = [sieve.ask.FileDictionary.read(node) for _ in range(_COPIES)]
    taken = (time.perf_counter() - started) / _COPIES
    grown = (_used(jvm) - before) / _COPIES
    counted = made[0].bytes()
    return f"{len(wire) / 1e6:.1f}", f"{taken:.2f}", f"{grown / n:.1f}", f"{counted / n:.1f}"


def _used(jvm: Any) -> int:
    """Bytes of the JVM's used heap, after full garbage collections in Python and in the JVM."""
    gc.collect()
    time.sleep(1)
    runtime = jvm.java.lang.Runtime.getRuntime()
    for _ in range(3):
        jvm.java.lang.System.gc()
    return int(runtime.totalMemory() - runtime.freeMemory())


if __name__ == "__main__":
    main()
