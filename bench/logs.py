"""Measures an index on substrings of web log lines: ``make bench-logs``.

The table has 64 files of many row groups. A line has about 230 bytes, which include a random UUID
of 36 bytes. Five queries look for a part of a line, with Spark alone and with Sieve in turn. The
lower bound of the row groups read is the number of row groups with a match. The output also shows
how many row groups Bloom filters select. Each row group has a Bloom filter of its 4-byte sequences,
as in ClickHouse's index type ``ngrambf_v1``. Together, the filters have 5 % of the size of the
compressed lines. Each filter uses the best number of hashes.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich import box
from rich.console import Console
from rich.table import Table

from bench.in_turns import Turns, in_turns
from bench.session import SWITCH, start_session, with_settings
from bench.task_totals import COUNTED_READS
from sieve.index_key import GRAM_BYTES

FOLDER = Path(__file__).resolve().parent.parent / "build" / "bench-logs"
MODES = {"Spark alone": {SWITCH: "false"}, "Sieve": {"spark.sieve.strict": "true"}}
LINE_BYTES = 230
_WORDS = [
    f"{first}{last}"
    for first in ("shop", "cart", "user", "item", "page", "help", "news", "blog", "api/", "img/")
    for last in ("list", "view", "edit", "find", "sale", "home", "data", "info", "feed", "sort")
]
_AGENTS = [
    f"Mozilla/5.0 ({system}) {engine}/{version}.0"
    for system in ("X11; Linux x86_64", "Windows NT 10.0; Win64; x64", "Macintosh; Intel Mac OS X")
    for engine in ("AppleWebKit/537.36 (KHTML, like Gecko) Chrome", "Gecko/20100101 Firefox")
    for version in range(110, 130)
]
_RARE = "segmentation fault"
_UUID = "regexp_replace(md5(string(id)), '(.{8})(.{4})(.{4})(.{4})', '$1-$2-$3-$4-')"
_ODD = np.uint64(0x9E37_79B9_7F4A_7C15)
Grams = npt.NDArray[np.uint32]


def main() -> None:
    """Writes the table, creates the index, measures each query, and prints two tables."""
    parser = argparse.ArgumentParser(prog="python -m bench logs", description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=4.0, help="of text")
    parser.add_argument("--files", type=int, default=64)
    parser.add_argument("--group", type=int, default=4, help="parquet.block.size in megabytes")
    parser.add_argument("--runs", type=int, default=3, help="of each query in each mode")
    args = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 130, highlight=False)
    shutil.rmtree(FOLDER, ignore_errors=True)
    settings = {
        "spark.sieve.prune.timeout": "10s",
        # Spark cuts the files into tasks of about five row groups.
        "spark.sql.files.maxPartitionBytes": str(args.group << 22),
        **COUNTED_READS,
    }
    spark = start_session(FOLDER, settings)
    try:
        lines = round(args.gigabytes * 1e9 / LINE_BYTES)
        with console.status("writing the table"):
            _write(spark, lines, args.files, args.group << 20)
        groups = _row_groups(spark)
        texts = _texts(spark)
        built = _build(spark)
        bits = 8 * sum(group.nbytes for group in groups) // 20 // len(groups)
        with console.status("reading all row groups"), ThreadPoolExecutor(2) as pool:
            judged = list(pool.map(lambda group: group.judge(list(texts.values()), bits), groups))
        turns = {
            title: in_turns(
                spark,
                f"SELECT count(*), max(id) FROM logs WHERE contains(line, '{text}')",
                MODES,
                args.runs,
            )
            for title, text in texts.items()
        }
        for title, one in turns.items():
            assert one.differing is None, f"the modes give different rows: {title}"
        console.print(_report(built, turns, judged, groups))
    finally:
        spark.stop()
        shutil.rmtree(FOLDER, ignore_errors=True)


def _write(spark: SparkSession, lines: int, files: int, group: int) -> None:
    def one_of(texts: Sequence[str], salt: int) -> str:
        array = ", ".join(f"'{text}'" for text in texts)
        return (
            f"element_at(array({array}), 1 + CAST(pmod(xxhash64(id, {salt}), {len(texts)}) AS INT))"
        )

    rare = f"IF(pmod(xxhash64(id, 1), {max(1, lines // 10)}) = 7, ' {_RARE}', '')"
    line = (
        "concat('10.', pmod(xxhash64(id, 2), 256), '.', pmod(xxhash64(id, 3), 256), '.', "
        "pmod(xxhash64(id, 4), 256), ' - - [', date_format(timestamp_seconds(1780000000 + id DIV "
        "50), 'dd/MMM/yyyy:HH:mm:ss'), ' +0000] \"GET /', "
        f"{one_of(_WORDS, 5)}, '/', {one_of(_WORDS, 6)}, '/', pmod(xxhash64(id, 7), 100000), "
        "' HTTP/1.1\" ', IF(pmod(xxhash64(id, 8), 50) = 0, 404, 200), ' ', "
        f"pmod(xxhash64(id, 9), 60000), ' \"-\" \"', {one_of(_AGENTS, 10)}, '\" ', "
        f"{_UUID}, {rare})"
    )
    spark.sql(
        f"CREATE TABLE logs USING parquet OPTIONS (parquet.block.size = {group}) AS "
        f"SELECT id, {line} AS line FROM range(0, {lines}, 1, {files})"
    )
    # Waits, because a file becomes stable two seconds after its last change.
    time.sleep(2.1)


def _texts(spark: SparkSession) -> dict[str, str]:
    """The texts to look for. The first two texts are from the line with the id 424242."""
    row = spark.sql("SELECT line FROM logs WHERE id = 424242").first()
    assert row is not None
    return {
        "a piece of a UUID": row.line.split()[-1][-12:],
        "an IP address": f"{row.line.split()[0]} ",
        "a rare word": _RARE,
        "a common word": "Firefox",
        "an absent text": "kernel panic",
    }


@dataclass(frozen=True, slots=True)
class Built:
    """A built index: its size in bytes, and the seconds of CREATE and of a min/max query."""

    seconds: float
    plain_seconds: float
    index_bytes: int


def _build(spark: SparkSession) -> Built:
    """Creates the index. An untimed CREATE first starts Python workers."""
    spark.sql("CREATE SIEVE INDEX ON logs (id)").collect()
    plain = _seconds(spark, "SELECT min(line), max(line) FROM logs")
    built = _seconds(spark, "CREATE SIEVE INDEX ON logs (line) OPTIONS (kind = 'substring')")
    facts = dict(spark.sql("DESCRIBE SIEVE INDEX EXTENDED line_substring_sieve ON logs").collect())
    return Built(built, plain, int(facts["bytes"]))


def _seconds(spark: SparkSession, text: str) -> float:
    started = time.perf_counter()
    with with_settings(spark, {"spark.sieve.strict": "false"}):
        spark.sql(text).collect()
    return time.perf_counter() - started


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of a file. `nbytes` is the compressed size of its lines."""

    file: Path
    number: int
    nbytes: int

    def judge(self, texts: Sequence[str], bits: int) -> list[tuple[bool, bool]]:
        """For each text: whether a line contains it, and whether the Bloom filter may contain it.

        Args:
            bits: the size of the Bloom filter.
        """
        (lines,) = pq.ParquetFile(self.file).read_row_group(self.number, ["line"]).columns
        keys = grams_of(*lines.to_pylist())
        bloom = Bloom(keys, bits)
        return [
            (
                pc.any(pc.match_substring(lines, text)).as_py(),
                bloom.may_hold(grams_of(text)),
            )
            for text in texts
        ]


def grams_of(*texts: str) -> Grams:
    """The distinct sequences of 4 bytes in texts, as numbers. The texts contain no line feed."""
    characters = np.frombuffer("\n".join(texts).encode(), np.uint8)
    ends = len(characters) - GRAM_BYTES + 1
    grams, inside = np.zeros(ends, np.uint32), np.ones(ends, np.bool_)
    for k in range(GRAM_BYTES):
        grams = grams << np.uint32(8) | characters[k : k + ends]
        inside &= characters[k : k + ends] != ord("\n")
    return np.unique(grams[inside])


class Bloom:
    """A Bloom filter with the number of hashes that gives the fewest false positives."""

    def __init__(self, keys: Grams, bits: int) -> None:
        self._bits = bits
        self._hashes = max(1, round(0.69 * bits / max(1, len(keys))))
        self._set = np.zeros(bits, np.bool_)
        for places in self._places(keys):
            self._set[places] = True

    def may_hold(self, keys: Grams) -> bool:
        """Whether the filter may contain all of the keys."""
        return all(bool(self._set[places].all()) for places in self._places(keys))

    def _places(self, keys: Grams) -> Iterator[npt.NDArray[np.int64]]:
        hashed = keys.astype(np.uint64) * _ODD
        first, step = hashed >> np.uint64(33), (hashed * _ODD) >> np.uint64(33) | np.uint64(1)
        for k in range(self._hashes):
            yield ((first + np.uint64(k) * step) % np.uint64(self._bits)).astype(np.int64)


def _row_groups(spark: SparkSession) -> list[RowGroup]:
    found = []
    for uri in sorted(spark.table("logs").inputFiles()):
        file = Path(uri.removeprefix("file:"))
        metadata = pq.ParquetFile(file).metadata
        for number in range(metadata.num_row_groups):
            column = metadata.row_group(number).column(1)
            found.append(RowGroup(file, number, column.total_compressed_size))
    return found


def _report(
    built: Built,
    turns: dict[str, Turns],
    judged: list[list[tuple[bool, bool]]],
    groups: list[RowGroup],
) -> Table:
    text = sum(group.nbytes for group in groups)
    table = Table(
        title=(
            f"{text / 1e6:,.0f} MB of compressed lines in {len(groups)} row groups. Index: "
            f"{built.index_bytes / 1e3:,.0f} kB ({100 * built.index_bytes / text:.2f} %); CREATE "
            f"{built.seconds:.1f} s, min and max of the lines {built.plain_seconds:.1f} s"
        ),
        title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False,
    )  # fmt: skip
    table.add_column("text", no_wrap=True)
    for title in (
        "groups\nwith it", "MB in\nthem", "MB,\nSpark", "MB,\nSieve", "of all\nbytes",
        "MB, n-gram\nBloom",
        "ms,\nSpark", "ms,\nSieve",
    ):  # fmt: skip
        table.add_column(title, justify="right", no_wrap=True)
    for k, (title, one) in enumerate(turns.items()):
        held = [group.nbytes for group, of in zip(groups, judged, strict=True) if of[k][0]]
        bloom = sum(group.nbytes for group, of in zip(groups, judged, strict=True) if of[k][1])
        whole, part = (one.tasks[mode].bytes for mode in MODES)
        table.add_row(
            title, f"{len(held)}", f"{sum(held) / 1e6:.1f}", f"{whole / 1e6:.1f}",
            f"{part / 1e6:.1f}", f"{100 * part / whole:.1f} %", f"{bloom / 1e6:.1f}",
            *(f"{one.ms[mode]:.0f}" for mode in MODES),
        )  # fmt: skip
    return table


if __name__ == "__main__":
    main()
