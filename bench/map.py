"""Measures hash maps from keys to files: size, files read, and the time of build and look-up.

A hash map is a static function, in segments of about a million hashes. The keys are unique and
random, like UUIDs. Each key of the last map is in two files, and each key of the other maps is in
one file. Each look-up asks for 10,000 hashes that are all present or all absent. The benchmark runs
on one core and without Spark.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table

from sieve.encoding.encoder import Encoder
from sieve.encoding.hashing import hash_bytes, hash_codes
from sieve.indexing.hash_map_tasks import pack_hashes, write_maps
from sieve.segments.hash_map.format import build_map, decode_map
from sieve.segments.hash_map.lookup import MapSegment

SEGMENT = 1 << 20
ASKED = 10_000
ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of one map. Times are in seconds.

    `present` is the number of files read for a present key, and `absent` for an absent key.
    """

    files: int
    keys: int
    repeats: int
    bytes_a_key: float
    build: float
    lookup: float
    present: float
    absent: float


def main() -> None:
    """Measures maps with several numbers of files, and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m bench map", description=__doc__)
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--files", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--bits", type=int, default=6, help="bits of a fingerprint")
    args = parser.parse_args()
    rows = [measure(args.keys, files, args.bits, 1) for files in args.files]
    rows.append(measure(args.keys // 10, args.files[0], args.bits, 2))
    _print(rows, args.bits)
    print(f"hashing {ASKED:,} UUIDs of a query: {_hashing() * 1e3:.1f} ms")


def measure(keys: int, files: int, bits: int, repeats: int) -> Measured:
    """Measures a map of distinct keys. Each key occurs `repeats` times, in random files."""
    rng = np.random.default_rng(keys + files)
    hashes = np.repeat(np.sort(hash_codes(np.arange(keys))), repeats)
    locations = rng.integers(0, files, len(hashes), np.int32)
    step = SEGMENT * repeats
    start = time.perf_counter()
    payloads = [
        build_map(hashes[at : at + step], locations[at : at + step], files, bits)
        for at in range(0, len(hashes), step)
    ]
    build = time.perf_counter() - start
    segments = [decode_map(payload) for payload in payloads]
    present, absent, lookup = 0, 0, []
    for _ in range(ROUNDS):
        some = rng.integers(0, keys, ASKED)
        present += _read(segments, hash_codes(some))
        start = time.perf_counter()
        absent += _read(segments, hash_codes(some + keys))
        lookup.append(time.perf_counter() - start)
    size = sum(map(len, payloads)) / keys
    asked = ASKED * ROUNDS
    median = float(np.median(lookup))
    return Measured(files, keys, repeats, size, build, median, present / asked, absent / asked)


def cpu_seconds_of_tasks(keys: int, files: int, *, text: bool) -> float:
    """CPU seconds of the tasks that make a build's maps, on one core, without Spark.

    The tasks encode, hash, sort, pack and place the keys. In a build, the JVM hashes strings. So
    this function passes hashes to the tasks if the keys are strings. The time excludes the work of
    Spark itself, which reads the column and shuffles the packed pairs.

    Args:
        keys: number of keys, which are unique and in random order.
        files: number of files. Each file contains an equal share of the keys.
        text: whether the keys are strings.
    """
    given = np.random.default_rng(1).permutation(keys).astype(np.int64)
    if text:
        given = hash_codes(given).view(np.int64)
    batches = [
        pa.RecordBatch.from_arrays(
            [pa.array(part), pa.array(np.full(len(part), k, np.int32))], ["key", "location"]
        )
        for k, part in enumerate(np.array_split(given, files))
    ]
    start = time.process_time()
    parts = -(-keys // (2 * SEGMENT))
    encoder = Encoder("string" if text else "bigint")
    packed = list(pack_hashes(encoder, None, parts, None)(iter(batches)))
    for _ in write_maps(files, 0)(iter(packed)):
        pass
    return time.process_time() - start


def _read(segments: list[MapSegment], hashes: npt.NDArray[np.uint64]) -> int:
    """Total number of files read, with a separate query for each hash."""
    return sum(len(segment.matches(hashes)[0]) for segment in segments)


def _hashing() -> float:
    """Seconds to hash a long list of strings."""
    rng = np.random.default_rng(0)
    values = [rng.bytes(18).hex().encode() for _ in range(ASKED)]
    start = time.perf_counter()
    hash_bytes(values)
    return time.perf_counter() - start


def _print(rows: list[Measured], bits: int) -> None:
    table = Table(box=box.SIMPLE_HEAD, title=f"maps with fingerprints of {bits} bits")
    for name in ("files", "keys", "files a key", "bytes a key", "build, s"):
        table.add_column(name, justify="right")
    for name in (f"{ASKED:,} keys, ms", "read: occurs", "read: does not"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            f"{row.files:,}",
            f"{row.keys:,}",
            str(row.repeats),
            f"{row.bytes_a_key:.2f}",
            f"{row.build:.1f}",
            f"{row.lookup * 1e3:.1f}",
            f"{row.present:.3f}",
            f"{row.absent:.4f}",
        )
    Console(width=None if sys.stdout.isatty() else 110, highlight=False).print(table)


if __name__ == "__main__":
    main()
