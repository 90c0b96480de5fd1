"""Measures the latency of index look-ups, for 1,000 to 1,000,000 files: ``make bench-lookup``.

A *look-up* finds the files for one predicate in the index. A *request* is the front end's complete
work for a scan. The work consists of parsing the JSON and the predicate, the look-up, and writing
the answer's bitmap. The first look-up in a newly opened version is *cold*. The operating system
then has the index files in its page cache. A look-up is *warm* if Sieve's cache contains all data
that the look-up needs. The benchmark runs without Spark.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from bench.built_version import EACH, SPAN, BuiltVersion, CountingStore, make_version
from sieve.predicate.key_ranges import KeyRanges, key_ranges
from sieve.predicate.parse_predicate import Leaf, parse
from sieve.reader.lru_cache import Cache
from sieve.reader.pruner import Pruner
from sieve.reader.version_reader import OpenVersion, open_version
from sql_ext.driver.roots import Roots
from sql_ext.frontend.pruning import PruneService
from sql_ext.frontend.request_queue import Request

SIZES = (1_000, 10_000, 100_000, 1_000_000)
LISTED = 10_000
COLD_ROUNDS = 5
# Size of Sieve's cache in bytes, large enough for every measured version.
ROOM = 4 << 30

POINT, RANGE, LIST = "one key", "0.05 % of the keys", f"IN of {LISTED:,} keys"
# For a join with too many keys, the driver sends this number of key ranges instead.
RANGED = 1_000
RANGES = f"{RANGED:,} ranges"
KINDS = (POINT, RANGE, LIST, RANGES)


@dataclass(frozen=True, slots=True)
class Measured:
    """The times of one kind of query in milliseconds. A pair consists of p50 and p99.

    `cpu` is the CPU time of the thread that runs the look-up. Other load hardly affects this time.
    """

    locations: int
    query: str
    kept: float
    cold: float
    cold_files: float
    cold_bytes: float
    warm: tuple[float, float]
    cpu: tuple[float, float]
    request: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Opened:
    """The time to open a version, that is, to read its file list."""

    milliseconds: float
    list_bytes: int
    held: int


def main() -> None:
    """Measures each number of files, and prints a table for each of them."""
    parser = argparse.ArgumentParser(prog="python -m bench lookup", description=__doc__)
    parser.add_argument("--locations", type=int, nargs="+", default=list(SIZES), help="files")
    parser.add_argument("--ranges", type=int, default=1, help="ranges of each file")
    parser.add_argument("--rounds", type=int, default=300, help="timed look-ups of each kind")
    parser.add_argument("--json", type=Path, help="file for all figures")
    args = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    found: list[Measured] = []
    # Excludes the existing objects from garbage collection, as the front end does.
    gc.freeze()
    for n in args.locations:
        with tempfile.TemporaryDirectory() as folder:
            version = make_version(Path(folder), n, args.ranges)
            opened, measured = _measure(version, args.rounds)
        _print(console, version, opened, measured)
        found += measured
    if args.json:
        args.json.write_text(json.dumps([asdict(one) for one in found], indent=1))


def _measure(version: BuiltVersion, rounds: int) -> tuple[Opened, list[Measured]]:
    rng = np.random.default_rng(1)
    cold = {kind: _cold(version, kind, rng) for kind in KINDS}
    index, opened = _open(version)
    found = []
    for kind in KINDS:
        asked = [predicate_of(kind, rng) for _ in range(rounds)]
        wanted = [_required(index, predicate) for predicate in asked]
        kept = float(np.mean([np.count_nonzero(index.keep(one)) for one in wanted]))
        warm = percentiles(times_of(index.keep, wanted))
        cpu = percentiles(times_of(index.keep, wanted, time.thread_time))
        request = percentiles(
            times_of(service_of(version), [request_of(version, one) for one in asked])
        )
        n = version.manifest.locations.count
        found.append(Measured(n, kind, kept, *cold[kind], warm, cpu, request))
    opened = dataclasses.replace(opened, held=index.cache.nbytes)
    return opened, found


def _open(version: BuiltVersion) -> tuple[OpenVersion, Opened]:
    store, cache = CountingStore(), Cache(ROOM)
    folder = f"file:{version.root}/{version.manifest.index}"
    started = time.perf_counter()
    index = open_version(store, folder, version.manifest, cache)
    taken = (time.perf_counter() - started) * 1e3
    return index, Opened(taken, sum(store.sizes), cache.nbytes)


def _cold(version: BuiltVersion, kind: str, rng: np.random.Generator) -> tuple[float, float, float]:
    """For cold look-ups, the medians of milliseconds, of files read and of bytes read."""
    found = []
    for _ in range(COLD_ROUNDS):
        index, opened = _open(version)
        wanted = _required(index, predicate_of(kind, rng))
        (taken,) = times_of(index.keep, [wanted])
        assert isinstance(index.store, CountingStore)
        sizes = index.store.sizes
        found.append((taken, len(sizes) - 1, sum(sizes) - opened.list_bytes))
    taken, files, size = np.median(found, axis=0)
    return float(taken), float(files), float(size)


def predicate_of(kind: str, rng: np.random.Generator) -> dict[str, Any]:
    """A predicate with random keys, in the same JSON form as the driver's predicates."""
    key = int(rng.integers(0, SPAN))
    if kind == POINT:
        return {"op": "=", "col": ["id"], "value": key}
    if kind == LIST:
        values = rng.integers(0, SPAN, LISTED).tolist()
        return {"op": "in", "col": ["id"], "values": values}
    if kind == RANGES:
        firsts = np.sort(rng.integers(0, SPAN, RANGED)).tolist()
        return {"op": "or", "args": [_between(k, k + SPAN // RANGED**2) for k in firsts]}
    return _between(key, key + SPAN // 2000)


def _between(low: int, high: int) -> dict[str, Any]:
    ends = {">=": low, "<=": high}
    return {
        "op": "and",
        "args": [{"op": op, "col": ["id"], "value": value} for op, value in ends.items()],
    }


def _required(index: OpenVersion, predicate: dict[str, Any]) -> KeyRanges:
    """Key ranges that can satisfy a predicate."""
    if predicate["op"] in ("=", "in"):
        leaf = parse(predicate)
        assert isinstance(leaf, Leaf)
        return key_ranges(leaf, index.encoder)
    parts = predicate["args"] if predicate["op"] == "or" else [predicate]
    ends = [[end["value"] for end in part["args"]] for part in parts]
    return KeyRanges(np.array(ends, np.int64))


def service_of(version: BuiltVersion) -> Callable[[str], str]:
    """Returns a function that answers requests like a warm front end."""
    service = PruneService(Roots(None), Pruner(lambda _: CountingStore(), 1 << 26))

    def serve(text: str) -> str:
        return json.dumps(service.prune(Request(1, "prune", json.loads(text), None)))

    everything = {"op": "not in", "col": ["id"], "values": [0]}
    answer = json.loads(serve(request_of(version, everything)))
    assert answer["used"] == ["id_sieve@1"], answer
    return serve


def request_of(version: BuiltVersion, predicate: dict[str, Any], room: int = ROOM) -> str:
    """A request as JSON text, as the driver sends it. `room` is the cache's size in bytes."""
    manifest = version.manifest
    registration = {
        "format": 1,
        "uuid": manifest.index,
        "column": manifest.column,
        "root": f"file:{version.root}",
    }
    return json.dumps(
        {
            "table": asdict(manifest.table),
            "registrations": {"sieve.index.id_sieve": json.dumps(registration)},
            "fingerprints": ["own"],
            "parts": {"own": dict(manifest.fingerprint_parts)},
            "predicate": predicate,
            "settings": {
                "spark.sieve.roots": f"file:{version.root}",
                "spark.sieve.cache.bytes": str(room),
            },
        }
    )


def times_of(
    run: Callable[[Any], object],
    asked: Sequence[object],
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """The milliseconds of the call with each argument."""
    times = []
    for one in asked:
        started = clock()
        run(one)
        times.append((clock() - started) * 1e3)
    return times


def percentiles(times: Sequence[float]) -> tuple[float, float]:
    """Percentiles p50 and p99 of some times."""
    return float(np.percentile(times, 50)), float(np.percentile(times, 99))


def _print(
    console: Console, version: BuiltVersion, opened: Opened, measured: Sequence[Measured]
) -> None:
    run = version.manifest.runs[0]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column(f"\n{version.manifest.locations.count:,} locations", no_wrap=True)
    for title in (
        "kept", "cold\nms", "cold\nfiles", "cold\nMB", "look-up\np50 ms", "look-up\np99 ms",
        "its CPU\np99 ms", "request\np50 ms", "request\np99 ms",
    ):  # fmt: skip
        table.add_column(title, justify="right", no_wrap=True)
    for one in measured:
        table.add_row(
            one.query,
            f"{one.kept:,.1f}",
            f"{one.cold:.1f}",
            f"{one.cold_files:.0f}",
            f"{one.cold_bytes / 1e6:.2f}",
            *(f"{ms:.2f}" for ms in (*one.warm, one.cpu[1], *one.request)),
        )
    console.print(table)
    console.print(
        f"  run: {version.entries:,} entries ({EACH} a file), {run.segments} segments, "
        f"{len(run.files)} files, {run.bytes / 1e6:.1f} MB; made in {version.seconds:.0f} s\n"
        f"  opening reads the list of locations: {opened.milliseconds:.0f} ms, "
        f"{opened.list_bytes / 1e6:.2f} MB; held when all was read: {opened.held / 1e6:.0f} MB"
    )
    console.print()


if __name__ == "__main__":
    main()
