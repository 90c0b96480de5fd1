"""Measures builds from a simulated scan of many files: ``python -m bench simulated-scan``.

Spark's `range` generates the rows, and each row contains the number of its file. The files do not
exist, and Spark lists no files. All other steps are the steps of a real build: to sample the
column, to compute its intervals, to write and measure the run, and to store the list of files.
Executors run in separate processes, and this process does the front end's work. For each number of
files, the output shows the seconds of the build, and the CPU milliseconds of all processes per
file. The output also shows the growth of this process's peak memory during the build, and the
driver's live heap before and after the build.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame
from rich.console import Console

from bench.many_files import MASTER, by_size, live_heap
from bench.memory import timed
from bench.session import start_session
from sieve.indexing.build_run import build_run
from sieve.indexing.tiling import locations_of, whole_files
from sieve.indexing.write_file_list import NOTHING_STORED, store_list
from sieve.metadata.index_options import IndexOptions
from sieve.storage.local import LocalStore
from sieve.tables.column import Column
from sieve.tables.data_file import DataFile
from sieve.tables.table import LOCATION

SIZES = (10_000, 100_000, 1_000_000)
FOLDER = Path(__file__).resolve().parent.parent / "build" / "bench-simulated"
_ROOT = "file:/warehouse/sales"
_FILE_BYTES = 1 << 20
_FILES_A_TASK = 5_000


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of one number of files.

    Attributes:
        files: number of simulated files.
        create: the build's wall-clock seconds, and its CPU seconds in all processes.
        grown: growth of this process's peak memory, in bytes.
        heap: size of the driver's live heap before and after the build, in MB.
        index: size of the run and of the list of files, in bytes.
    """

    files: int
    create: tuple[float, float]
    grown: int
    heap: tuple[float, float]
    index: int


def main() -> None:
    """Measures each number of files in a separate process, and prints one table."""
    parser = argparse.ArgumentParser(prog="python -m bench simulated-scan", description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--rows", type=int, default=4, help="of each file")
    parser.add_argument("--scattered", action="store_true", help="keys in no order")
    parser.add_argument("--side", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        print(json.dumps(asdict(_measure(args.side, args.rows, scattered=args.scattered))))
        return
    found = []
    for files in args.files:
        command = [sys.executable, "-m", "bench.simulated_scan", "--side", str(files)]
        command += ["--rows", str(args.rows), *(["--scattered"] if args.scattered else [])]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"a Spark failed; see {FOLDER}/spark/spark.log")
        found.append(Measured(**json.loads(done.stdout.strip().rpartition("\n")[2])))
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    console.print(by_size(f"{args.rows} rows a file", found, _ROWS))


def _measure(n: int, rows: int, *, scattered: bool) -> Measured:
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.master": MASTER,
        # This session has no front end to send Sieve's package to the executors.
        "spark.executorEnv.PYTHONPATH": str(FOLDER.parent.parent),
    }
    spark = start_session(FOLDER / "spark", settings)
    key = "xxhash64(id)" if scattered else "id"
    frame = spark.range(0, n * rows, 1, max(2, n // _FILES_A_TASK)).selectExpr(
        f"{key} AS id", f"cast(id div {rows} AS int) AS {LOCATION}"
    )
    # This job starts the executors.
    spark.range(1000).repartition(4).count()
    files = [
        DataFile(f"{_ROOT}/day={k * 365 // n}/part-{k:07d}.parquet", _FILE_BYTES, 1_760_000_000_000)
        for k in range(n)
    ]
    store, directory = LocalStore(), (FOLDER / "index").as_uri()
    for folder in ("intents", "locations"):
        store.mkdirs(f"{directory}/{folder}")
    gc.collect()
    heap, peak = live_heap(spark), _peak()
    stored: list[int] = []
    create = timed(lambda: stored.append(_create(frame, files, store, directory)))
    measured = Measured(n, create, _peak() - peak, (heap, live_heap(spark)), stored[0])
    spark.stop()
    shutil.rmtree(FOLDER)
    return measured


def _create(frame: DataFrame, files: list[DataFile], store: LocalStore, directory: str) -> int:
    """Builds and stores the run and the file list of a version. Returns their size in bytes."""
    tiling = whole_files([file.length for file in files])
    built = build_run(
        frame, Column(("id",), "bigint"), tiling, IndexOptions(), store, directory,
        whole=frame, counting=None, describe_job=lambda _: None,
    )  # fmt: skip
    assert built.run is not None
    counts = (built.rows, built.nulls, built.nans)
    listed = locations_of(files, built.tiling, counts, built.rows >= 0, 0)
    parts, _ = store_list(store, directory, listed, (_ROOT,), NOTHING_STORED)
    return built.run.bytes + sum(part.length for part in parts.parts)


def _peak() -> int:
    """Peak resident memory of this process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


_ROWS: Final[Mapping[str, Callable[[Measured], str]]] = {
    "build, s": lambda one: f"{one.create[0]:.1f}",
    "CPU of all processes, ms a file": lambda one: f"{one.create[1] / one.files * 1e3:.2f}",
    "growth of the front end, MB": lambda one: f"{one.grown / 1e6:.0f}",
    "driver's heap before and after, MB": lambda one: "{:.0f}, {:.0f}".format(*one.heap),
    "index, bytes a file": lambda one: f"{one.index / one.files:.1f}",
}


if __name__ == "__main__":
    main()
