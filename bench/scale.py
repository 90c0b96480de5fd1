"""Measures the costs of indexes of 1,000 to 1,000,000 files: ``make bench-scale``.

The benchmark runs without Spark. A separate process measures each number of files, and also its own
memory. The first request to the front end opens the index. Later requests are for random keys. The
front end's cache has its default size. For REFRESH, the benchmark measures only work outside of
Spark: to read the list of files, and to write the list with new modification times for 100 files.
``docs/benchmarks.md`` contains the figures.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table

from bench.built_version import BuiltVersion, CountingStore, make_version
from bench.lookup import LIST, POINT, percentiles, predicate_of, request_of, times_of
from sieve.indexing.write_file_list import read_list, store_list
from sieve.metadata.manifest import render_manifest
from sieve.reader.pruner import Pruner
from sieve.storage.local import LocalStore
from sql_ext.driver.roots import Roots
from sql_ext.driver.settings import DEFAULTS
from sql_ext.frontend.pruning import PruneService
from sql_ext.frontend.request_queue import Request

SIZES = (1_000, 10_000, 100_000, 1_000_000)
CHANGED = 100

_T = TypeVar("_T")
_PICTURE = Path(__file__).resolve().parent.parent / "docs" / "scale.svg"
_MS = 1e3


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of an index with a certain number of files.

    Times are in milliseconds. A name with `cpu` means CPU time, on which other load has little
    effect. All other times are wall-clock times.

    `held` is the size of the cache in bytes after the first request. `grown` is the process's
    growth in bytes during this request.
    """

    files: int
    ranges: int
    first_cpu: float
    first: float
    held: int
    grown: int
    dictionary: int
    dictionary_ms: float
    answer: int
    point_cpu: tuple[float, float]
    point: tuple[float, float]
    many_cpu: float
    many: float
    manifest_bytes: int
    list_bytes: int
    refresh_cpu: float
    refresh: float
    refresh_bytes: int


def main() -> None:
    """Measures each number of files, prints a table for each of them, and draws a picture."""
    parser = argparse.ArgumentParser(prog="python -m bench scale", description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--ranges", type=int, default=8, help="ranges of each file")
    parser.add_argument("--rounds", type=int, default=200, help="timed requests for one key")
    parser.add_argument("--picture", type=Path, default=_PICTURE)
    parser.add_argument("--json", type=Path, help="file for all figures")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(asdict(_measure(args.files[0], args.ranges, args.rounds))))
        return
    found = []
    for n in args.files:
        command = [sys.executable, "-m", "bench.scale", "--one", "--files", str(n)]
        command += ["--ranges", str(args.ranges), "--rounds", str(args.rounds)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found.append(Measured(**json.loads(done.stdout.splitlines()[-1])))
        Console(highlight=False, width=100).print(_table(found[-1]))
    if args.json:
        args.json.write_text(json.dumps([asdict(one) for one in found], indent=1))
    _draw(found).savefig(args.picture)


def _measure(n: int, ranges: int, rounds: int) -> Measured:
    gc.freeze()
    with tempfile.TemporaryDirectory() as folder:
        version = make_version(Path(folder), n, ranges)
        rng = np.random.default_rng(1)
        pruner = Pruner(lambda _: CountingStore(), DEFAULTS.cache_bytes)
        service = PruneService(Roots(None), pruner)

        def serve(text: str) -> str:
            return json.dumps(service.prune(Request(1, "prune", json.loads(text), None)))

        def asked(kind: str) -> str:
            return request_of(version, predicate_of(kind, rng), DEFAULTS.cache_bytes)

        before = _resident()
        text = asked(POINT)
        first_cpu, first, answer = _timed(lambda: serve(text))
        name = json.loads(answer)["dictionary"]
        request = Request(1, "dictionary", {"dictionary": name}, None)
        _, dictionary_ms, wire = _timed(lambda: json.dumps(service.dictionary(request)))
        held = pruner.cache.nbytes
        grown = _resident() - before - len(wire)
        warm = [asked(POINT) for _ in range(rounds)]
        cpu = times_of(serve, warm, time.thread_time)
        wall = times_of(serve, [asked(POINT) for _ in range(rounds)])
        many = [_timed(lambda: serve(asked(LIST))) for _ in range(3)]
        refresh_cpu, refresh, refresh_bytes = _refresh(version)
    return Measured(
        files=n, ranges=ranges, first_cpu=first_cpu, first=first, held=held, grown=grown,
        dictionary=len(wire), dictionary_ms=dictionary_ms, answer=len(answer),
        point_cpu=percentiles(cpu), point=percentiles(wall),
        many_cpu=float(np.median([cpu for cpu, _, _ in many])),
        many=float(np.median([ms for _, ms, _ in many])),
        manifest_bytes=len(render_manifest(version.manifest)),
        list_bytes=version.manifest.locations.parts[0].length,
        refresh_cpu=refresh_cpu, refresh=refresh, refresh_bytes=refresh_bytes,
    )  # fmt: skip


def _refresh(version: BuiltVersion) -> tuple[float, float, int]:
    """Measures reading the file list and writing it with `CHANGED` new modification times."""
    store, directory = LocalStore(), f"file:{version.root}/{version.manifest.index}"
    store.mkdirs(f"{directory}/intents")

    def run() -> int:
        before = read_list(store, directory, version.manifest)
        times = before.whole.mtimes.copy()
        times[:: max(1, len(times) // CHANGED)][:CHANGED] += 1
        now = replace(before.whole, mtimes=times)
        ref, _ = store_list(store, directory, now, version.manifest.roots, before)
        return ref.parts[-1].length

    return _timed(run)


def _timed(run: Callable[[], _T]) -> tuple[float, float, _T]:
    """Calls a function. Returns CPU and wall-clock milliseconds, and the function's result."""
    cpu, clock = time.process_time(), time.perf_counter()
    result = run()
    return (time.process_time() - cpu) * _MS, (time.perf_counter() - clock) * _MS, result


def _resident() -> int:
    """Resident memory of this process in bytes, after allocators have released free memory."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    pa.default_memory_pool().release_unused()
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * 4096


def _table(one: Measured) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=f"{one.files:,} files of {one.ranges} ranges")
    for title in ("", "CPU ms", "clock ms", "bytes", "bytes a file"):
        table.add_column(title, justify="right" if title else "left")
    each = 1 / one.files

    def add(
        name: str,
        cpu: float | None = None,
        clock: float | None = None,
        size: int | None = None,
    ) -> None:
        cells = ("" if ms is None else f"{ms:,.1f}" for ms in (cpu, clock))
        of = ("", "") if size is None else (f"{size:,}", f"{size * each:,.1f}")
        table.add_row(name, *cells, *of)

    add("first request; held then", one.first_cpu, one.first, one.held)
    add("growth of the process", size=one.grown)
    add("dictionary for the driver", clock=one.dictionary_ms, size=one.dictionary)
    add("one key, p50; answer", one.point_cpu[0], one.point[0], one.answer)
    add("one key, p99", one.point_cpu[1], one.point[1])
    add("IN of 10,000 keys", one.many_cpu, one.many)
    add("manifest", size=one.manifest_bytes)
    add("list of files", size=one.list_bytes)
    add(f"REFRESH after {CHANGED}, its list", one.refresh_cpu, one.refresh, one.refresh_bytes)
    return table


def _draw(found: list[Measured]) -> Figure:
    """Draws two panels: CPU milliseconds, and bytes per file, against the number of files."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    times, sizes = figure.subplots(1, 2)
    files = [one.files for one in found]
    for name, values in {
        "first request, opens the index": [one.first_cpu for one in found],
        "one key, p50": [one.point_cpu[0] for one in found],
        "one key, p99": [one.point_cpu[1] for one in found],
        "IN of 10,000 keys": [one.many_cpu for one in found],
        f"REFRESH after {CHANGED} files, its list": [one.refresh_cpu for one in found],
    }.items():
        times.plot(files, values, marker="o", label=name)
    for name, bytes_ in {
        "front end, held": [one.held for one in found],
        "dictionary on the wire": [one.dictionary for one in found],
        "list of files": [one.list_bytes for one in found],
        "manifest": [one.manifest_bytes for one in found],
        f"REFRESH after {CHANGED} files, its list": [one.refresh_bytes for one in found],
    }.items():
        sizes.plot(files, [b / one.files for b, one in zip(bytes_, found, strict=True)],
                   marker="o", label=name)  # fmt: skip
    _finish(times, "milliseconds of CPU")
    _finish(sizes, f"bytes a file of {found[0].ranges} ranges")
    return figure


def _finish(ax: Axes, what: str) -> None:
    ax.set(xscale="log", yscale="log", xlabel="files", ylabel=what)
    ax.grid(visible=True, alpha=0.3)
    ax.legend(fontsize=8)


if __name__ == "__main__":
    main()
