"""Byte ranges cover a file without gap or overlap. Exactly one range reads each row.

Byte ranges, formats and contents are random. A range can end at any byte, for example inside a row
group, a stripe, a line or a line break. In one test, the driver makes the ranges. The driver's
ranges end between row groups or stripes.
"""

from __future__ import annotations

import csv
import io
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from spark_session import Lab

from sieve.tables.table import DAMAGED, LOCATION

MODES = {
    "batches": {"spark.sql.files.maxPartitionBytes": "2k"},
    "rows in small tasks": {
        "spark.sql.parquet.enableVectorizedReader": "false",
        "spark.sql.orc.enableVectorizedReader": "false",
        "spark.sql.files.maxPartitionBytes": "700",
    },
}
OPTIONS = {"csv": "OPTIONS (header 'true')", "csv-crlf": "", "json": ""}
FORMATS = ("parquet", "orc", "csv", "csv-crlf", "json")


@dataclass(frozen=True, slots=True)
class Tiled:
    """A table, and the paths and lengths of its files at the last listing."""

    access: Any
    paths: tuple[str, ...]
    lengths: tuple[int, ...]


def write(path: Path, kind: str, first: int, count: int, rng: random.Random) -> None:
    """Writes a file of rows (id, pad), with small and empty row groups or lines of all lengths."""
    pads = ["x" * rng.choice([0, 1, 20, 20, 20, 900]) for _ in range(count)]
    ids = list(range(first, first + count))
    table = pa.table({"id": pa.array(ids, pa.int64()), "pad": pa.array(pads, pa.string())})
    if kind == "parquet":
        with pq.ParquetWriter(path, table.schema, compression=None) as writer:
            at = 0
            while at < count:
                size = rng.choice([0, 1, 50, 200, 1000])
                writer.write_table(table.slice(at, size), row_group_size=max(1, size))
                at += size
    elif kind == "orc":
        po.write_table(
            table, path, stripe_size=rng.choice([1024, 16384]), batch_size=rng.choice([10, 100])
        )
    elif kind == "json":
        rows = (json.dumps({"id": n, "pad": pad}) for n, pad in zip(ids, pads, strict=True))
        path.write_text("\n".join(rows) + rng.choice(["", "\n", "\n\n\n"]), encoding="utf-8")
    else:
        text = io.StringIO()
        ending = "\r\n" if kind == "csv-crlf" else "\n"
        writer = csv.writer(text, lineterminator=ending)
        writer.writerows(
            ([["id", "pad"]] if kind == "csv" else []) + [*zip(ids, pads, strict=True)]
        )
        path.write_bytes(text.getvalue().removesuffix(rng.choice(["", ending])).encode())


@pytest.fixture(scope="module", params=FORMATS)
def kind(request: pytest.FixtureRequest) -> str:
    """Draws the format of the files."""
    return str(request.param)


@pytest.fixture(scope="module")
def tiled(lab: Lab, kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tiled]:
    """Writes files with many row groups, stripes or lines, in two partitions."""
    rng, folder = random.Random(kind), tmp_path_factory.mktemp("tiled")
    for k, count in enumerate((0, 1, 60, 300, 700, 400)):
        path = folder / f"p={k % 2}" / f"part-{k}.{kind.partition('-')[0]}"
        path.parent.mkdir(exist_ok=True)
        write(path, kind, 10_000 * k, count, rng)
    with lab.database("tiled"):
        lab.sql(
            f"CREATE TABLE t (id BIGINT, pad STRING, p INT) USING {kind.partition('-')[0]} "
            f"{OPTIONS.get(kind, '')} PARTITIONED BY (p) LOCATION '{folder}'"
        )
        lab.sql("MSCK REPAIR TABLE t")
        tables = lab.spark._jvm.org.apache.spark.sql.sieve.statements.Tables
        access = tables.resolve(lab.spark._jsparkSession, ["t"])
        paths, lengths, _ = zip(*json.loads(access.list()), strict=True)
        yield Tiled(access, paths, lengths)


def rows(lab: Lab, tiled: Tiled, cuts: Sequence[Sequence[int]], *columns: str) -> DataFrame:
    """Reads the rows of all files. An added column names the range that contains the row."""
    numbers = [*range(len(tiled.paths))]
    frame = tiled.access.frame(
        lab.spark._jsparkSession, numbers, [], LOCATION, json.dumps([*map(list, cuts)]), "", ""
    )
    return DataFrame(frame, lab.spark).select("id", "pad", "p", LOCATION, *columns)


def ranges(tiled: Tiled, cuts: Sequence[Sequence[int]]) -> list[tuple[str, int, int]]:
    """Returns the path, start and length of each range, ordered by path and start."""
    return [
        (path, start, end - start)
        for path, length, own in zip(tiled.paths, tiled.lengths, cuts, strict=True)
        for start, end in zip((0, *own), (*own, length), strict=True)
    ]


def random_cuts(tiled: Tiled, rng: random.Random) -> list[list[int]]:
    """Draws cuts at random bytes. Some files get many cuts, and other files get no cut."""
    return [
        sorted(rng.sample(range(1, length), min(length - 1, rng.choice([0, 1, 3, 12]))))
        if length > 1
        else []
        for length in tiled.lengths
    ]


def cuts_near_lines(tiled: Tiled) -> list[list[int]]:
    """Returns cuts one byte before, at, and one byte after the start of every twentieth line.

    In binary formats, each byte with a line feed's value counts as the end of a line.
    """
    cuts = []
    for path, length in zip(tiled.paths, tiled.lengths, strict=True):
        data = Path(path.removeprefix("file:")).read_bytes()
        firsts = [k + 1 for k, byte in enumerate(data) if byte == ord("\n")][::20]
        around = {first + off for first in firsts for off in (-1, 0, 1)}
        cuts.append(sorted(cut for cut in around if 0 < cut < length))
    return cuts


LONG = {
    ("orc", "rows in small tasks"),
    ("csv", "rows in small tasks"),
    ("csv-crlf", "batches"),
    ("json", "rows in small tasks"),
}
"""Pairs of format and mode that only `make test-long` tests.

A text format has the same reader in both modes.
"""


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        pytest.param(kind, mode, marks=pytest.mark.long if (kind, mode) in LONG else ())
        for kind in FORMATS
        for mode in MODES
    ],
    indirect=["kind"],
)
def test_each_row_is_read_by_one_range(lab: Lab, kind: str, tiled: Tiled, mode: str) -> None:
    """Exactly one range reads each row: the range that contains the row's position.

    The number of tasks has no effect on the range that reads a row.
    """
    rng = random.Random(f"{kind} {mode}")
    index = ["_metadata.row_index"] if kind == "parquet" else []
    block = [f"_metadata.{name}" for name in ("file_path", "file_block_start", "file_block_length")]
    damaged = [DAMAGED] if kind not in ("parquet", "orc") else []
    with lab.settings(MODES[mode]):
        truth = Counter(
            (row.id, row.pad, row.p, *(row[5:]))
            for row in rows(lab, tiled, [], block[0], *index, *damaged).collect()
        )
        assert sum(truth.values()) > 1000
        for cuts in (random_cuts(tiled, rng), cuts_near_lines(tiled)):
            expected = ranges(tiled, cuts)
            seen = rows(lab, tiled, cuts, *block, *index, *damaged).collect()
            assert Counter((row.id, row.pad, row.p, *(row[7:])) for row in seen) == truth
            for row in seen:
                path, start, length = expected[row[LOCATION]]
                assert row.file_path == path
                # Spark may split a file anywhere if Sieve has cut no ranges in the file.
                if length < tiled.lengths[tiled.paths.index(path)]:
                    assert (row.file_block_start, row.file_block_length) == (start, length)


def test_ranges_consist_of_whole_row_groups(lab: Lab, kind: str, tiled: Tiled) -> None:
    """Each range consists of whole row groups or stripes, and has at least the requested length."""
    numbers = [*range(len(tiled.paths))]
    if kind not in ("parquet", "orc"):
        none = {"offsets": [], "footer": 0}
        assert json.loads(tiled.access.cuts(numbers, 1)) == [none] * len(numbers)
        return
    for least in (1, 5000, 1 << 40):
        found_cuts = json.loads(tiled.access.cuts(numbers, least))
        cuts = [of_file["offsets"] for of_file in found_cuts]
        groups = {}
        for path, of_file in zip(tiled.paths, found_cuts, strict=True):
            local = path.removeprefix("file:")
            if kind == "parquet":
                meta = pq.read_metadata(local)
                sizes = [meta.row_group(k).num_rows for k in range(meta.num_row_groups)]
                footer = meta.serialized_size + 8
            else:
                file = po.ORCFile(local)
                sizes = [file.read_stripe(k).num_rows for k in range(file.nstripes)]
                parts = (file.file_footer_length, file.file_postscript_length)
                footer = file.stripe_statistics_length + sum(parts) + 1
            groups[path] = sizes
            assert of_file["footer"] == footer
        found = Counter(row[LOCATION] for row in rows(lab, tiled, cuts).collect())
        place = 0
        for path, own in zip(tiled.paths, cuts, strict=True):
            counts = [found[place + k] for k in range(len(own) + 1)]
            place += len(counts)
            borders = {sum(groups[path][:k]) for k in range(len(groups[path]) + 1)}
            assert {sum(counts[:k]) for k in range(len(counts) + 1)} <= borders
            assert sum(counts) == sum(groups[path])
            if least == 1:
                assert len(counts) == max(1, sum(map(bool, groups[path])))
        uncut = {path for path, own in zip(tiled.paths, cuts, strict=True) if not own}
        sizes = [size for path, _, size in ranges(tiled, cuts) if path not in uncut]
        assert min(sizes, default=least) >= least
        assert len(sizes) > 3 or least > 1


def test_a_file_without_splits_is_not_cut(lab: Lab, tmp_path: Path) -> None:
    """Compressed text files, and text files whose records span several lines, are read whole.

    A damaged file is read whole, too.
    """
    cases = {
        "gz": ("csv", "", "a.csv.gz", [None]),
        "bz2": ("json", "", "a.json.bz2", [None]),
        "zstd": ("csv", "", "a.csv.ZSTD", [None]),
        "multi": ("json", "OPTIONS (multiLine 'true')", "a.json", [None]),
        "plain": ("csv", "", "a.csv", [{"offsets": [], "footer": 0}]),
        "damaged": ("parquet", "", "a.parquet", [{"offsets": [], "footer": 0}]),
    }
    tables = lab.spark._jvm.org.apache.spark.sql.sieve.statements.Tables
    with lab.database("unsplit"):
        for name, (format_name, options, file, expected) in cases.items():
            (tmp_path / name).mkdir()
            (tmp_path / name / file).write_bytes(b"1,2\n3,4\n")
            lab.sql(
                f"CREATE TABLE {name} (a INT, b INT) USING {format_name} {options} "
                f"LOCATION '{tmp_path / name}'"
            )
            access = tables.resolve(lab.spark._jsparkSession, [name])
            access.list()
            assert json.loads(access.cuts([0], 1)) == expected, name
